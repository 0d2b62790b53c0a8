package quickjs

import (
	"os"
	"testing"

	"capstan/internal/sandbox/sandboxtest"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == fakeChild {
		runFake(os.Args[2])
		return
	}
	sandboxtest.Main(m)
}

// newRunner is a Runner whose spares are gone when the test ends.
func newRunner(t testing.TB, o Options) *Runner {
	t.Helper()
	if o.Binary == "" {
		o.Binary = sandboxtest.Binary(t)
	}
	r := New(o)
	t.Cleanup(r.Close)
	return r
}
