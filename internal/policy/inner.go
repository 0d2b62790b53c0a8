package policy

import (
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// shells run the line that follows -c, else a script, else their input.
var shells = map[string]bool{
	"sh": true, "bash": true, "rbash": true, "dash": true, "zsh": true, "ksh": true, "mksh": true, "ash": true, "fish": true,
}

// inner takes apart the line that is an argument of this command, so that
// rules see what it runs. The command may stand behind another one.
func (w *shellWalk) inner(words []word, wrapped bool, depth int) {
	name, args := filepath.Base(words[0].s), words[1:]
	switch {
	case shells[name]:
		w.shell(name, args, wrapped, depth)
		return
	case name == "eval":
		w.inside(strings.TrimPrefix(joined(args), "-- "), depth, true)
		return
	}
	switch name {
	case "trap":
		if len(args) > 0 && args[0].s == "--" {
			args = args[1:]
		}
		if len(args) > 1 {
			w.trap(args[0].s, depth)
		}
	case "su", "runuser", "script", "flock", "sg":
		if !w.lineOption(args, "c", "--command", "", depth) && name != "flock" && name != "runuser" {
			w.unseen("starts a shell with %s, which reads its commands elsewhere", name)
		}
	case "env":
		// The value is split into arguments of env itself.
		w.lineOption(args, "S", "--split-string", "env ", depth)
		if slices.ContainsFunc(args, func(arg word) bool { return strings.HasPrefix(arg.s, "-") && strings.Contains(arg.s, `\`) }) {
			w.unseen("has a line for env that is not analysed")
		}
	case "watch":
		for i := range args[:min(len(args), 8)] { // an option, its value, the line
			if !strings.HasPrefix(args[i].s, "-") {
				w.inside(joined(args[i:]), depth, false)
			}
		}
	case "sudo", "doas":
		for _, arg := range args {
			if arg.s == "-s" || arg.s == "-i" || arg.s == "--shell" || arg.s == "--login" {
				w.unseen("starts a shell with %s", name)
			}
		}
	case "git":
		w.git(words)
	case "test", "[", "printf", "let", "read", "getopts", "unset", "wait", "declare", "typeset", "local", "export", "readonly":
		w.evaluates(name, args)
	case "compgen", "complete", "bind", "enable", "fc":
		w.unseen("gives the shell commands to run or to load (%s)", name)
	case "xargs", "parallel":
		w.input(name, args)
	case "source", ".":
		if len(args) > 0 && (args[0].computed() || isInput(args[0].s)) {
			w.unseen("runs commands that it reads (%s)", name)
		}
	case "alias":
		if len(args) > 0 {
			w.unseen("gives commands another name (alias)")
		}
	case "hash", "mapfile", "readarray":
		if name != "hash" {
			w.evaluates(name, args)
		}
		if slices.ContainsFunc(args, func(arg word) bool {
			return strings.HasPrefix(arg.s, "-") && strings.ContainsAny(arg.s, "pC") || arg.computed()
		}) {
			w.unseen("gives %s a command", name)
			w.unseenFile("gives "+name+" a command", nil)
		}
	case "at", "batch", "crontab":
		w.unseen("runs commands later (%s)", name)
	}
}

func joined(words []word) string {
	parts := make([]string, len(words))
	for i, word := range words {
		parts[i] = word.s
	}
	return strings.Join(parts, " ")
}

// trap judges what a shell is told to do later: perhaps more than once, and in a
// directory that it goes to in between, as a function that is called there.
func (w *shellWalk) trap(src string, depth int) {
	w.again++
	w.inside(src, depth, true)
	w.again--
	w.defined = w.defined || src != "" && src != "-"
}

// inside takes a line within this one apart; same is that of source.
func (w *shellWalk) inside(src string, depth int, same bool) {
	if w.lines++; depth >= maxInner || w.lines > maxLines {
		w.unseen("has too many lines inside each other")
		return
	}
	w.source(src, depth+1, same)
}

// shell finds the line that a shell runs. Its options end at the first word
// that is none; some take a word, and -c may stand anywhere among them.
func (w *shellWalk) shell(name string, args []word, wrapped bool, depth int) {
	line, input := false, false
	for len(args) > 0 {
		s := args[0].s
		if args[0].computed() || len(s) < 2 && s != "-" || s[0] != '-' && s[0] != '+' {
			break
		}
		args = args[1:]
		if s == "--" || s == "-" {
			break
		}
		take := 0
		switch {
		case s == "--rcfile" || s == "--init-file" || s == "--init-command":
			take = 1
		case s == "--command":
			line = true
		case !strings.HasPrefix(s, "--"):
			line = line || s[0] == '-' && strings.Contains(s, "c")
			input = input || s[0] == '-' && strings.Contains(s, "s")
			take = strings.Count(s, "o") + strings.Count(s, "O")
		}
		args = args[min(take, len(args)):]
	}
	switch {
	case len(args) == 0 && line && !wrapped: // nothing: an error
	case len(args) == 0, !line && (input || args[0].computed() || isInput(args[0].s)):
		w.unseen("starts a shell that reads its commands (%s)", name)
	case line:
		w.inside(args[0].s, depth, false)
	}
}

// isInput says whether a file is what is fed in.
func isInput(path string) bool {
	return path == "-" || strings.HasPrefix(path, "/dev/") || strings.HasPrefix(path, "/proc/")
}

// lineOption takes apart the line that is the value of an option: of a letter,
// wherever in a word of such options, or of a long one, perhaps shortened.
func (w *shellWalk) lineOption(args []word, letter, long, before string, depth int) (found bool) {
	line := func(s string) {
		found = true
		w.inside(before+s, depth, false)
	}
	for i, arg := range args {
		name, value, has := strings.Cut(arg.s, "=")
		if strings.HasPrefix(name, "--") {
			switch {
			case len(name) == 2 || !strings.HasPrefix(long, name):
			case has:
				line(value)
			case i+1 < len(args):
				line(args[i+1].s)
			}
			continue
		}
		at := strings.Index(arg.s, letter)
		if at < 1 || arg.s[0] != '-' {
			continue
		}
		if rest := arg.s[at+1:]; rest != "" {
			line(rest)
		}
		if strings.HasSuffix(arg.s, letter) && i+1 < len(args) {
			line(args[i+1].s)
		}
	}
	return found
}

// git notes the ways in which git runs commands that its arguments or
// settings name.
func (w *shellWalk) git(words []word) {
	g, ok := parseGit(words)
	if !ok {
		return
	}
	if g.configured {
		w.unseen("gives git settings, which can name commands")
	}
	is := func(list ...string) bool {
		return slices.ContainsFunc(g.args, func(arg word) bool {
			return slices.ContainsFunc(list, func(s string) bool { return strings.HasPrefix(arg.s, s) })
		})
	}
	switch g.sub {
	case "bisect", "filter-branch", "difftool", "mergetool", "for-each-repo", "config":
		if g.sub == "config" && is("--get", "--list", "-l") {
			return
		}
	default:
		if !gitOption(g.sub, g.args) && (g.sub != "rebase" && g.sub != "submodule" || !is(dynamic)) {
			return
		}
	}
	w.unseen("gives git commands to run (%s)", g.sub)
}

// input judges a command that makes commands of what it reads.
func (w *shellWalk) input(name string, args []word) {
	unseen := name == "parallel"
	for _, arg := range args {
		base := filepath.Base(arg.s)
		unseen = unseen || wrappers[base] || shells[base] || base == "eval" ||
			strings.HasPrefix(arg.s, "-I") || strings.HasPrefix(arg.s, "-i") || strings.HasPrefix(arg.s, "-J") || strings.HasPrefix(arg.s, "--replace")
	}
	if unseen {
		w.unseen("makes commands of what it reads (%s)", name)
	}
}

// assign looks for commands in the value of a variable, where they run when
// something evaluates the variable.
func (w *shellWalk) assign(a *syntax.Assign) {
	w.subscript(a.Index)
	w.integer(a)
	if a.Name != nil && !a.Naked {
		var value word
		if a.Value != nil {
			value = wordOf(a.Value)
		}
		w.commandVar(a.Name.Value, value)
	}
	found := false
	look := func(n *syntax.Word) {
		if n != nil {
			found = found || strings.Contains(wordOf(n).s, "$(") || strings.Contains(wordOf(n).s, "`")
		}
	}
	look(a.Value)
	if a.Array != nil {
		for _, e := range a.Array.Elems {
			w.subscript(e.Index)
			look(e.Value)
		}
	}
	if found {
		w.doubt("puts commands into a variable")
		w.unseen("puts commands into a variable")
	}
}
