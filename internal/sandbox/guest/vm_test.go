package guest

import (
	"testing"
	"time"

	"capstan/internal/sandbox/guest/qjswasm"
)

// newVM boots a vm in this process.
func newVM(t *testing.T, call func(argc, argv int32) int32) *vm {
	t.Helper()
	imp := &imports{now: time.Now, interrupt: func() bool { return false }, call: call}
	m := qjswasm.New(imp, imp)
	e := translated{m}
	imp.mem = e.memory
	v := &vm{engine: e}
	if err := v.boot(); err != nil {
		x, ok := err.(*exception)
		if !ok {
			t.Fatal(err)
		}
		t.Fatal(v.str(x.value, 1000))
	}
	return v
}

func TestBoot(t *testing.T) { newVM(t, nil) }
