package session

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// A test that needs a second process starts this binary again with the name of
// a helper.
func TestMain(m *testing.M) {
	if name := os.Getenv("CAPSTAN_SESSION_HELPER"); name != "" {
		if err := helpers[name](os.Args[1:]); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if code == 0 && childLeft() {
			fmt.Println("a child process was left")
			code = 1
		}
		os.Exit(code)
	}))
}

// childLeft reports whether this process has children, where that can be asked.
var childLeft = func() bool { return false }
