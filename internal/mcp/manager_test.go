package mcp

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A server that nobody needs is not started; one that is waited for is, and no
// other. The tools that read resources are there from the beginning.
func TestLazyStart(t *testing.T) {
	r := newRig(t, Options{})
	if err := r.Add(stdioServer("a", "sdk"), stdioServer("b", "sdk")); err != nil {
		t.Fatal(err)
	}
	states := func() map[string]State {
		m := map[string]State{}
		for _, s := range r.Status() {
			m[s.Name] = s.State
		}
		return m
	}
	if diff := cmp.Diff(map[string]State{"a": Idle, "b": Idle}, states()); diff != "" || len(r.reg.Tools()) != len(resourceNames) {
		t.Error(diff, r.reg.Tools())
	}
	r.ready("b")
	if diff := cmp.Diff(map[string]State{"a": Idle, "b": Ready}, states()); diff != "" {
		t.Error(diff)
	}
	if _, err := r.Ping(r.ctx, "a"); err != nil { // a use starts it too
		t.Error(err)
	}
	if diff := cmp.Diff(map[string]State{"a": Ready, "b": Ready}, states()); diff != "" {
		t.Error(diff)
	}
	if err := r.Add(stdioServer("c", "sdk")); err != nil {
		t.Fatal(err)
	}
	r.Close()
	if got := r.Wait(r.ctx, "c"); len(got) != 1 || got[0].Why != "the session has ended" {
		t.Errorf("after the end: %v", got)
	}
}

// A server that failed is tried again when it is named, and its pause is over.
func TestNamedAgain(t *testing.T) {
	r := newRig(t, Options{})
	if err := r.Add(stdioServer("a", "once:"+filepath.Join(t.TempDir(), "seen"))); err != nil {
		t.Fatal(err)
	}
	if got := r.Wait(r.ctx); len(got) != 1 {
		t.Fatalf("it should have failed: %v", got)
	}
	r.until("the server that is named is ready", func() bool { return len(r.Wait(r.ctx, "a")) == 0 })
}
