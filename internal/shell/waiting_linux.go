//go:build amd64 || arm64

package shell

import (
	"fmt"
	"os"
	"path"
	"runtime"
	"strconv"
	"strings"

	"capstan/internal/shell/keeper"
)

// askers are programs that exist to ask a person, mostly in a window.
var askers = []string{"pinentry", "ssh-askpass", "ksshaskpass", "gnome-ssh-askpass", "lxqt-openssh-askpass", "git-gui--askpass", "zenity", "kdialog"}

// screens are programs that wait for keys with poll or select, so that what
// they wait for cannot be told from the system call alone.
var screens = []string{"vi", "vim", "nvim", "view", "vimdiff", "ex", "nano", "pico", "emacs", "emacsclient", "helix", "hx", "micro", "joe", "ne",
	"less", "more", "most", "pg", "man", "top", "htop", "btop", "mc", "tig", "lazygit", "fzf", "dialog", "whiptail",
	"bash", "zsh", "fish", "python", "python3", "node", "irb", "psql", "mysql", "mariadb", "sqlite3", "gdb", "lldb", "ftp", "sftp", "telnet"}

// The system calls of reading and of waiting for a descriptor.
var readCall, waitCalls = func() (string, map[string]bool) {
	set := func(list ...string) map[string]bool {
		m := map[string]bool{}
		for _, n := range list {
			m[n] = true
		}
		return m
	}
	if runtime.GOARCH == "arm64" {
		return "63", set("72", "73", "22", "441") // read; pselect6, ppoll, epoll_pwait, epoll_pwait2
	}
	return "0", set("7", "23", "232", "270", "271", "281", "441") // read; poll, select, epoll_wait, …
}()

// atTerminal finds a process below root that waits for a person.
func atTerminal(root int) (pid int, why string) {
	for _, p := range keeper.Descendants(keeper.Scan(), root) {
		dir := "/proc/" + strconv.Itoa(p.PID())
		comm, err := os.ReadFile(dir + "/comm")
		if err != nil {
			continue
		}
		name := strings.TrimSpace(string(comm))
		for _, a := range askers {
			if strings.HasPrefix(name, a[:min(len(a), 15)]) { // the kernel keeps 15 bytes
				return p.PID(), fmt.Sprintf("%s asks a person, and nobody is there to answer", name)
			}
		}
		call, _ := os.ReadFile(dir + "/syscall")
		f := strings.Fields(string(call))
		if len(f) < 2 {
			continue // running, or not ours to see
		}
		fd := 0
		switch {
		case f[0] == readCall:
			n, err := strconv.ParseUint(strings.TrimPrefix(f[1], "0x"), 16, 31)
			if err != nil {
				continue
			}
			fd = int(n)
		case !waitCalls[f[0]] || !isScreen(name):
			continue
		}
		if isTerminal(dir+"/fd/"+strconv.Itoa(fd)) || fd == 0 && readsOwnOutput(dir) {
			return p.PID(), fmt.Sprintf("%s waited for a person to type at a terminal, and nobody is there; "+
				"give it its input by arguments, files or a pipe, or use another tool", name)
		}
	}
	return 0, ""
}

func isScreen(name string) bool {
	name, _, _ = strings.Cut(name, ".") // vim.basic, python3.11
	for _, s := range screens {
		if s == name {
			return true
		}
	}
	return false
}

// readsOwnOutput reports whether a process has made stderr its stdin, as vi does
// when stdin ends: it hopes for a terminal there.
func readsOwnOutput(dir string) bool {
	in, err := os.Readlink(dir + "/fd/0")
	if err != nil {
		return false
	}
	errs, err := os.Readlink(dir + "/fd/2")
	return err == nil && in == errs
}

// isTerminal reports whether a descriptor is a terminal, and not the master of
// one, which is the terminal's other end.
func isTerminal(link string) bool {
	to, err := os.Readlink(link)
	if err != nil || path.Base(to) == "ptmx" {
		return false
	}
	return strings.HasPrefix(to, "/dev/pts/") || strings.HasPrefix(to, "/dev/tty") || to == "/dev/console"
}
