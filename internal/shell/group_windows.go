package shell

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"capstan/internal/shell/keeper"
)

const createNewProcessGroup = 0x200

// groupAttr hands cmd.exe its line as it is: it does not undo the quoting that
// other programs' arguments get.
func groupAttr(req keeper.Request) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{CreationFlags: createNewProcessGroup, HideWindow: true}
	if len(req.Argv) == 5 && strings.EqualFold(req.Argv[2], "/s") {
		attr.CmdLine = syscall.EscapeArg(req.Argv[0]) + ` /d /s /c "` + req.Argv[4] + `"`
	}
	return attr
}

// signalGroup ends a process and its children. There is no gentle way for
// programs without a window.
func signalGroup(pid int, force bool) {
	if pid > 0 && pid != os.Getpid() && force {
		exec.Command("taskkill", "/T", "/F", "/PID", strconv.Itoa(pid)).Run()
	}
}

// groupAlive cannot be known on Windows once the command has ended.
func groupAlive(int) bool { return false }

func groupMembers(int) []Process { return nil }

func exitStatus(state *os.ProcessState) (code, signal uint32) {
	if state == nil {
		return 1, 0
	}
	return uint32(state.ExitCode()), 0
}
