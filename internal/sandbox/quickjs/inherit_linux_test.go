package quickjs

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capstan/internal/sandbox"
	"capstan/internal/sandbox/sandboxtest"
)

// A child has three files and no environment, whatever its parent has. S0-115
// S0-152
func TestInheritsNothing(t *testing.T) {
	t.Setenv("SECRET", "x")
	stray, err := syscall.Dup(0) // without close-on-exec
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(stray)
	r := newRunner(t, Options{})
	h := newHost()
	h.tools["look"] = func(_ context.Context, c sandbox.Call) sandbox.Reply {
		for _, pid := range sandboxtest.Children() {
			proc := fmt.Sprintf("/proc/%d/", pid)
			env, err := os.ReadFile(proc + "environ")
			if err != nil || len(env) > 0 {
				t.Errorf("environment: %q, %v", env, err)
			}
			files, err := os.ReadDir(proc + "fd")
			if err != nil {
				t.Error(err)
			}
			var names []string
			for _, f := range files {
				names = append(names, f.Name())
			}
			if d := cmp.Diff([]string{"0", "1", "2"}, names); d != "" {
				t.Errorf("files (-want +got):\n%s", d)
			}
		}
		return succeed(c, "")
	}
	if _, err := run(t, r, h, `await tools.look()`, sandbox.Limits{}); err != nil {
		t.Error(err)
	}
}
