package shell

import "strings"

// Programs that want a person find stdin at its end and no terminal, and most
// fail at once. signs are what they then say, with the way out; those with
// fails set count only when the command failed.
var signs = []struct {
	text  string
	fails bool
	why   string
}{
	{"Vim: Warning: Input is not from a terminal", false, "vim needs a person at a terminal; change files with the edit tool, or with sed"},
	{"Error opening terminal: ", true, "the program draws on a terminal, and there is none; use a mode of it without a screen"},
	{"top: failed tty get", true, "top needs a terminal; use `top -b -n 1`"},
	{"a terminal is required to read the password", true, "sudo asks for a password, and nobody can type one; use `sudo -n`, or have the user run it"},
	{"sudo: a password is required", true, "sudo needs a password, and nobody can type one; have the user run it"},
	{"terminal prompts disabled", true, "git asks for credentials, and nobody can type them; use a credential helper, a token in the URL or ssh keys"},
	{sequenceMessage, true, "`git rebase -i` opens a list for a person to edit; set GIT_SEQUENCE_EDITOR to a command that edits it, such as \"sed -i '2s/^pick/squash/'\""},
	{"problem with the editor 'false'", true, "an editor was opened for a person; give the text as an argument, such as `git commit -m`"},
	{"Aborting commit due to empty commit message", true, "git opened an editor for the message; give it with `git commit -m`"},
	{"the input device is not a TTY", true, "the program wants a terminal; leave out -t"},
	{"cannot open '/dev/tty'", true, "the program asks a person at the terminal, and there is none; use its batch mode (gpg: --batch)"},
	{"Host key verification failed", true, "ssh asks a person whether to trust the host; add its key to known_hosts first, or use -o StrictHostKeyChecking=accept-new"},
	{"EOF when reading a line", true, "the program reads an answer from stdin, which is empty here; give it by a pipe, such as `printf 'y\\n' | program`, or by an option"},
	{"must be run from a terminal", true, "the program wants a terminal, and there is none; use its non-interactive mode"},
	{"not a tty", true, "the program wants a terminal, and there is none; use its non-interactive mode"},
	{"Inappropriate ioctl for device", true, "the program wants a terminal, and there is none; use its non-interactive mode"},
}

// wantedPerson looks for such a sign near the end of a command's output. It
// says why the command counts as interactive, or nothing.
func wantedPerson(output string, exitCode int) string {
	const near = 4 << 10
	if len(output) > 2*near {
		output = output[:near] + "\n" + output[len(output)-near:]
	}
	for _, s := range signs {
		if (exitCode != 0 || !s.fails) && strings.Contains(output, s.text) {
			return s.why
		}
	}
	return ""
}

// An idleWatch finds a command that does nothing but wait at a terminal of its
// own (script, expect and ssh -tt make one), or in front of a password window.
type idleWatch struct {
	moved int64
	pid   int
	count int
}

// idleLooks in a row, with the same process waiting and no output between,
// count as waiting for a person; the looks are a quarter of Options.Idle apart.
const idleLooks = 4

func (w *idleWatch) look(root int, moved int64) (why string) {
	if root <= 1 {
		return ""
	}
	if moved != w.moved {
		w.moved, w.count = moved, 0
		return ""
	}
	pid, why := atTerminal(root)
	if pid == 0 || pid != w.pid {
		w.pid, w.count = pid, min(pid, 1)
		return ""
	}
	if w.count++; w.count < idleLooks {
		return ""
	}
	return why
}
