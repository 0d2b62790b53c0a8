package sandbox

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The limits of the design. S0-131 S0-132 S0-141 S0-142 S0-143
func TestDefaultLimits(t *testing.T) {
	want := Limits{
		Source: 131_072, ControlFrame: 1_048_576, Body: 16_777_216, Media: 16, MediaBytes: 10_485_760,
		Memory: 67_108_864, Stack: 524_288, CPU: 30 * time.Second, Calls: 10_000, Outstanding: 256, Output: 16_777_216,
		Watchdog: 10 * time.Second, Startup: 10 * time.Second, Teardown: 5 * time.Second,
	}
	if d := cmp.Diff(want, DefaultLimits()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if d := cmp.Diff(want, Limits{}.WithDefaults()); d != "" {
		t.Errorf("of zero limits (-want +got):\n%s", d)
	}
	small := want
	small.CPU = time.Second
	if d := cmp.Diff(small, Limits{CPU: time.Second}.WithDefaults()); d != "" {
		t.Errorf("of a smaller limit (-want +got):\n%s", d)
	}
}

// Every field is checked, in both directions.
func TestValidate(t *testing.T) {
	if err := DefaultLimits().Validate(); err != nil {
		t.Errorf("the defaults: %v", err)
	}
	typ := reflect.TypeFor[Limits]()
	for i := range typ.NumField() {
		for _, delta := range []int64{1, -1} {
			l := DefaultLimits()
			f := reflect.ValueOf(&l).Elem().Field(i)
			if delta > 0 {
				f.SetInt(f.Int() + 1)
			} else {
				f.SetInt(-1)
			}
			if err := l.Validate(); err == nil {
				t.Errorf("%s = %d is accepted", typ.Field(i).Name, f.Int())
			}
		}
	}
}

func TestError(t *testing.T) {
	cause := errors.New("cause")
	for _, c := range []struct {
		err  Error
		want string
	}{
		{Error{Kind: KindException, Name: "TypeError", Message: "not a function", Line: 3, Column: 7}, "running the program: exception: TypeError: not a function at line 3, column 7"},
		{Error{Kind: KindTimeout, Message: "the program used up its CPU time"}, "running the program: timeout: the program used up its CPU time"},
		{Error{Kind: KindStartup, Message: "starting x: cause", Err: cause}, "running the program: startup: starting x: cause"},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
		if c.err.Err != nil && !errors.Is(&c.err, cause) {
			t.Errorf("%v does not wrap its cause", &c.err)
		}
	}
}
