package shell

import (
	"fmt"
	"strings"

	"capstan/internal/shell/keeper"
)

// A Sandbox is what the commands that are Confined cannot do, whatever they run.
// It is the system that refuses, and it is no replacement for rules: what a
// command reads is not restricted, and everything below a writable directory can
// be changed.
type Sandbox struct {
	// Writable are directories, or files, that may be changed; nothing else may
	// be but the devices below /dev. Absolute.
	Writable []string
	// NoNetwork refuses every socket but those of the machine itself.
	NoNetwork bool
}

// SandboxSupport says whether this system can confine commands, and how: what is
// in force, or why nothing is.
func SandboxSupport() (how string, ok bool) {
	switch v := keeper.LandlockVersion(); {
	case !keeper.Supported:
		return "not on this system: commands are not confined", false
	case v == 0:
		return "the kernel has no Landlock: commands are not confined", false
	case v < 3:
		return fmt.Sprintf("Landlock version %d: files outside can still be cut to nothing", v), true
	default:
		return fmt.Sprintf("Landlock version %d for files, seccomp for sockets", v), true
	}
}

// confine puts the sandbox into the request of a command.
func (s *Sandbox) confine(req *keeper.Request) {
	req.Confine, req.Writable = keeper.ConfineFiles, s.Writable
	if s.NoNetwork {
		req.Confine |= keeper.ConfineNetwork
	}
}

// refusals are what programs print when the system has refused them something.
var refusals = []string{"permission denied", "eacces", "operation not permitted", "network is unreachable", "could not resolve host", "temporary failure in name resolution", "invalid cross-device link"}

// Explain says what a failed command may have run into; empty when nothing in its
// output looks like that.
func (s *Sandbox) Explain(output string) string {
	const tail = 64 << 10 // the reason stands at the end
	low := strings.ToLower(output[max(0, len(output)-tail):])
	for _, r := range refusals {
		if !strings.Contains(low, r) {
			continue
		}
		text := "commands run in a sandbox: files can be changed only below " + strings.Join(s.Writable, ", ")
		if s.NoNetwork {
			text += ", and there is no network"
		}
		return text + "; if that is what failed here, tell the user, who can change it (sandbox in the settings)"
	}
	return ""
}
