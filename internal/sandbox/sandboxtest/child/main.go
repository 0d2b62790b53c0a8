// Command child is the sandbox's child and nothing else: what a test that is
// itself built with cgo, as the race detector needs, names as its binary.
package main

import (
	"os"

	_ "capstan/internal/sandbox/guest" // takes the process over in its init
)

func main() {
	os.Stderr.WriteString("this program is started by tests only\n")
	os.Exit(2)
}
