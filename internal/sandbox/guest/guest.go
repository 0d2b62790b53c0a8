// Package guest is the sandbox's child: the process in which one program runs.
//
// A binary that links this package can be started as a child. Its init takes
// the process over before the packages of the rest of the program are
// initialised: it hardens itself, restores QuickJS from a snapshot, runs the
// one program that it is handed, and exits. The parent side is package
// quickjs; nothing here knows a tool, a setting or a name.
//
// To come first in the order of initialisation, and cheaply, it imports
// runtime, sync, syscall, time, unsafe and embed, and of ours package bin, the
// wire format and the translated engine only. JSON is parsed by the guest's own
// prelude, never in Go.
package guest

import (
	"syscall"
	_ "unsafe" // for go:linkname
)

// Marker is the first argument of a child.
const Marker = "capstan-sandbox-child"

//go:linkname runtimeArgs os.runtime_args
func runtimeArgs() []string

func init() {
	args := runtimeArgs()
	if len(args) >= 2 && args[1] == Marker {
		main(args[2:])
		syscall.Exit(0)
	}
}
