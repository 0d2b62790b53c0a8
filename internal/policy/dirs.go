package policy

import (
	"path/filepath"
	"slices"
	"strings"
)

// changeDir follows a cd to a literal directory. One through a symbolic link and
// back with .. is not followed: bash takes the name before the .. away, where a
// file system goes up from what the link leads to.
func (w *shellWalk) changeDir(args []word, prefixed bool) (reads []string, ok bool) {
	for len(args) > 0 && len(args[0].s) > 1 && args[0].s[0] == '-' {
		s := args[0].s
		args = args[1:]
		if s == "--" {
			break
		}
		if strings.Trim(s[1:], "LPe@") != "" {
			return nil, false
		}
	}
	if len(args) != 1 || args[0].s == "-" || len(w.dirs) > maxDirs || w.odd || prefixed {
		return nil, false
	}
	if !strings.HasPrefix(args[0].s, "/") && slices.Contains(w.environ, "CDPATH") {
		return nil, false // it could lead elsewhere
	}
	if reads, ok = w.paths(args[0]); !ok {
		return nil, false
	}
	if linked := w.throughLink(args[0].s, reads); linked || w.linked {
		if slices.Contains(splitPath(args[0].s), "..") {
			return nil, false
		}
		w.linked = true
	}
	w.addDirs(reads)
	return reads, true
}

// throughLink says whether a directory, which resolves to these, has another
// name than the one that a shell would call it by.
func (w *shellWalk) throughLink(s string, resolved []string) bool {
	if filepath.IsAbs(s) {
		return resolved[0] != filepath.Clean(s)
	}
	for i, dir := range w.dirs {
		if resolved[i] != filepath.Join(dir, s) {
			return true
		}
	}
	return false
}

// lose notes that later commands of the line may be others than they look like,
// cd among them.
func (w *shellWalk) lose() { w.lost, w.odd = true, true }

// loseTo is lose for a variable that got a value. A few of them lead cd elsewhere.
func (w *shellWalk) loseTo(name string) {
	w.lost = true
	w.odd = w.odd || name == "CDPATH" || strings.HasPrefix(name, "BASH")
}

// calmShift are those of the commands that shift the shell which leave cd what it
// is. What stands in a file that is read (source) is not judged, as in a script.
var calmShift = map[string]bool{"source": true, ".": true, "exec": true, "set": true, "export": true, "unset": true, "trap": true, "cd": true, "pushd": true, "popd": true}

// own returns a command without `command` and `builtin` in front of it, which say
// no more than that the shell's own is meant.
func own(words []word) []word {
	for len(words) > 1 && (words[0].s == "command" || words[0].s == "builtin") {
		words = words[1:]
		for len(words) > 1 && strings.HasPrefix(words[0].s, "-") && strings.Trim(words[0].s, "-p") == "" {
			words = words[1:]
		}
	}
	return words
}

// moves judges what a command does to the directory that the shell is in. When
// nobody knows where it leads, relative paths are unknown from then on; where
// what was judged before may run after it, so are those.
func (w *shellWalk) moves(words []word, followed bool, a *act) {
	cmd := own(words)
	switch name := cmd[0].s; {
	case name == "cd", name == "pushd" || name == "popd", strings.Contains(name, dynamic), cmd[0].glob:
		w.strayed = w.strayed || name != "cd" || !followed
	case name == "alias" || name == "enable" || name == "shopt":
		// Another command could be a cd from then on.
		w.strayed = w.strayed || len(cmd) > 1 && (name != "shopt" || slices.ContainsFunc(cmd, func(x word) bool { return x.computed() || x.s == "expand_aliases" }))
		return
	default:
		return
	}
	if w.again > 0 || w.defined {
		w.unknownFile("changes its directory where commands may run before it and after it", a)
	}
}

// A dirOption is how a command is told to work in another directory.
type dirOption struct {
	letter string // an option of one letter, with the directory
	long   string // the same, long ones
	root   string // options that change what / is: letters and words
	login  string // options that start in the directory of the user
	always bool   // it works below another root whatever the options say
}

var dirOptions = map[string]dirOption{
	"env": {letter: "C", long: "--chdir"}, "sudo": {letter: "D", long: "--chdir", root: "R --chroot", login: "i --login"},
	"tar": {letter: "C", long: "--directory --cd"}, "bsdtar": {letter: "C", long: "--directory --cd"}, "cpio": {letter: "D", long: "--directory"},
	"git": {letter: "C", long: "--work-tree"}, "parallel": {long: "--wd --workdir"}, "unshare": {letter: "w", long: "--wd", root: "R --root"},
	"nsenter": {always: true}, "chroot": {always: true}, "bwrap": {always: true}, "firejail": {always: true}, "proot": {always: true}, "systemd-run": {long: "--working-directory", root: "p --property", login: "M --machine"},
	"su": {login: "l - --login"}, "runuser": {login: "l - --login"}, "patch": {letter: "d", long: "--directory"},
}

// elsewhere notes the directories that a command, or one in front of another, is
// told to work in, until undo: paths are judged in them too.
func (w *shellWalk) elsewhere(words []word) (undo func()) {
	words = own(words) // which themselves can be a cd, that is not over then
	name := filepath.Base(words[0].s)
	if _, ok := dirOptions[name]; !ok && !wrappers[name] {
		return func() {}
	}
	dirs, strayed, rerooted := w.dirs, w.strayed, w.rerooted
	at := starts(words)
	for n, i := range at {
		end := len(words)
		if n+1 < len(at) {
			end = at[n+1]
		}
		if g, is := parseGit(words[i:]); is {
			end = len(words) - len(g.args) - 1
		}
		if o, ok := dirOptions[filepath.Base(words[i].s)]; ok {
			w.option(&o, words[i+1:], end-i-1)
		}
	}
	return func() { w.dirs, w.strayed, w.rerooted = dirs, strayed, rerooted }
}

// option finds the directories among the first arguments of a command. A word that
// could be such an option counts as one: there are only more directories then.
func (w *shellWalk) option(o *dirOption, args []word, most int) {
	w.rerooted = w.rerooted || o.always
	given := func(x word, list string) bool {
		for s := range strings.FieldsSeq(list) {
			long := len(s) > 1
			name, _, _ := strings.Cut(x.s, "=")
			switch {
			case x.s == s && s == "-":
				return true
			case long && len(name) > 2 && strings.HasPrefix(s, name):
				return true
			case !long && len(x.s) > 1 && x.s[0] == '-' && x.s[1] != '-' && strings.Contains(x.s, s):
				return true
			}
		}
		return false
	}
	to := func(s string, like word) {
		like.s, like.tilde = s, like.tilde && s == like.s
		paths, ok := w.paths(like)
		if w.strayed = w.strayed || !ok || len(w.dirs) > maxDirs; !w.strayed {
			w.addDirs(paths)
		}
	}
	for i, x := range args[:max(0, most)] {
		w.rerooted = w.rerooted || given(x, o.root)
		w.strayed = w.strayed || given(x, o.login) || strings.HasPrefix(x.s, "-") && x.computed()
		next := func() {
			if i+1 < len(args) {
				to(args[i+1].s, args[i+1])
			}
		}
		switch _, value, has := strings.Cut(x.s, "="); {
		case given(x, o.long) && has:
			to(value, x)
		case given(x, o.long):
			next()
		case o.letter != "" && given(x, o.letter):
			if rest := x.s[strings.Index(x.s, o.letter)+1:]; rest != "" {
				to(rest, x)
			} else {
				next()
			}
		}
	}
}
