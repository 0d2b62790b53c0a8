package policy

import (
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A rule that is added counts for the calls that are judged from then on, in its
// list, and is shown with where it came from.
func TestAdd(t *testing.T) {
	w := newWorld(t)
	o := w.options(Default)
	o.Tools = []string{"run_shell_command", "edit", "write_file"}
	p, _, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	type step struct{ Decision, By string }
	judge := func(call string) step {
		v := p.Decide(t.Context(), w.request(t, call))
		return step{decisions[v.Decision], v.By}
	}
	got := []step{judge("sh make install")}
	for _, r := range []Rule{
		{"allow", "Bash(make:*)", "session"},
		{"allow", " Bash(make:*) ", "again"}, // is there already
		{"ask", "Bash(make install)", "session"},
		{"deny", "Bash(make:*)", "session"},
	} {
		if err := p.Add(r); err != nil {
			t.Fatal(err)
		}
		got = append(got, judge("sh make install"))
	}
	want := []step{
		{"ask", "approval mode default"},
		{"allow", `rule permissions.allow "Bash(make:*)" (session)`},
		{"allow", `rule permissions.allow "Bash(make:*)" (session)`},
		{"ask", `rule permissions.ask "Bash(make install)" (session)`},
		{"deny", `rule permissions.deny "Bash(make:*)" (session)`},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if n := len(p.rules.Load().allow); n != 1 {
		t.Errorf("%d allow rules, want 1", n)
	}
}

func TestAddRefuses(t *testing.T) {
	w := newWorld(t)
	o := w.options(Default)
	o.Tools = []string{"run_shell_command"}
	p, _, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	for r, want := range map[Rule]string{
		{"allow", "Bash(a && b)", "session"}: `reading permissions.allow "Bash(a && b)" (session): a rule names one simple command`,
		{"allow", "Bsh", ""}:                 "did you mean Bash",
		{"maybe", "Bash", ""}:                `unknown list "maybe"`,
		{"allow", "", ""}:                    "the rule is empty",
	} {
		if err := p.Add(r); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", r, err, want)
		}
	}
	o.ManagedOnly = true
	o.Rules = []Rule{{"allow", "Bash(make)", "managed"}}
	if p, _, err = New(o); err != nil {
		t.Fatal(err)
	}
	if err := p.Add(Rule{"allow", "Bash(ls)", "session"}); err == nil {
		t.Error("an allow rule was added although only the managed ones count")
	}
	if err := p.Add(Rule{"deny", "Bash(make)", "session"}); err != nil {
		t.Error(err)
	}
	if v := p.Decide(t.Context(), w.request(t, "sh make")); decisions[v.Decision] != "deny" {
		t.Error(v)
	}
}

// Rules are added while calls are judged, and none is lost.
func TestAddAtOnce(t *testing.T) {
	w := newWorld(t)
	p, _, err := New(w.options(Default))
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	names := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	for _, name := range names {
		wg.Go(func() {
			if err := p.Add(Rule{"allow", "Bash(" + name + ")", "session"}); err != nil {
				t.Error(err)
			}
			p.Decide(t.Context(), w.request(t, "sh make"))
		})
	}
	wg.Wait()
	for _, name := range names {
		if v := p.Decide(t.Context(), w.request(t, "sh "+name)); decisions[v.Decision] != "allow" {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

// Where yolo is forbidden, nothing switches to it.
func TestNoYolo(t *testing.T) {
	w := newWorld(t)
	o := w.options(Yolo)
	o.NoYolo = "managed settings /m.json:1:2"
	if _, _, err := New(o); err == nil || !strings.Contains(err.Error(), o.NoYolo) {
		t.Errorf("%v does not say where it is forbidden", err)
	}
	o.Mode = AutoEdit
	p, _, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.SetMode(Yolo); err == nil || p.Mode() != AutoEdit {
		t.Errorf("%v, mode %s", err, p.Mode())
	}
}
