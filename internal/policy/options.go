package policy

import (
	"path/filepath"
	"slices"
	"strings"
)

// This file is about the options of commands that name files: how they are told
// apart, and what may be behind one that no table has.

// An option is one that a command was given.
type option struct {
	name  string // without its dashes, and in full
	value word   // empty for none
	stray bool   // no table has it: value is what may be its value
}

// split tells options and operands apart, as getopt_long does: a long option may
// be cut short, and its value be in the same word or the next.
func (c *fileCommand) split(args []word) (operands []word, options []option) {
	on := true
	for i := 0; i < len(args); i++ {
		s, next := args[i].s, word{}
		if i+1 < len(args) {
			next = args[i+1]
		}
		switch {
		case on && s == "--":
			on = false
		case on && c.words && len(s) > 1 && s[0] == '-':
			name := strings.TrimLeft(s, "-")
			if slices.Contains(strings.Fields(c.into), name) {
				options = append(options, option{name: name, value: next})
				i++
			}
		case on && strings.HasPrefix(s, "--"):
			o, valued := c.longOption(args[i])
			if _, _, has := strings.Cut(s, "="); !has && valued {
				o.value = next
				i++
			} else if !has && o.stray && c.skip == noOperand && !strings.HasPrefix(next.s, "-") {
				o.value = next // of which nothing else speaks
			}
			options = append(options, o)
		case on && len(s) > 1 && s[0] == '-':
			o, taken := c.letters(args[i], next)
			options = append(options, o...)
			i += taken
		default:
			operands = append(operands, args[i])
		}
	}
	return operands, options
}

// longOption finds a long option, whose name may be cut short, and says whether
// it has a value. Of two that it could be the command would take none.
func (c *fileCommand) longOption(x word) (o option, valued bool) {
	name, v, has := strings.Cut(x.s[2:], "=")
	o = option{name: name}
	if has {
		o.value = valueOf(x, v)
	}
	var short string
	for _, list := range [][]string{c.long, strings.Fields(c.into), strings.Fields(c.from)} {
		for _, known := range list {
			known = strings.TrimPrefix(known, "--")
			if known == name {
				return o, true
			}
			if len(known) > 1 && len(name) > 0 && strings.HasPrefix(known, name) && !slices.Contains(flags, name) {
				short = known
			}
		}
	}
	if short != "" {
		o.name = short
		return o, true
	}
	for known := range strings.FieldsSeq(c.edits) {
		if len(known) > 1 && name != "" && strings.HasPrefix(known, name) {
			o.name = known
			return o, false
		}
	}
	o.stray = name != "reference" && !slices.Contains(flags, name)
	return o, false
}

// flags are options without a value whose names another one's begins with, and
// others that are common.
var flags = []string{"cookies", "config-file", "compress", "progress", "verbose", "silent", "fail", "location", "insecure", "include", "head", "quiet",
	"recursive", "parents", "force", "archive", "create", "extract", "list", "gzip", "show-error", "get", "compressed", "globoff", "remote-name", "remote-header-name",
	"fail-with-body", "no-verbose", "continue", "no-check-certificate", "no-clobber", "create-dirs", "ipv4", "http1.1", "http2", "remove-destination"}

// letters tells the options of one dash apart.
func (c *fileCommand) letters(x, next word) (options []option, taken int) {
	s := x.s
	for i := 1; i < len(s); i++ {
		letter := s[i : i+1]
		switch {
		case !strings.Contains(c.valued, letter):
			options = append(options, option{name: letter})
			continue
		case i+1 < len(s):
			return append(options, option{name: letter, value: valueOf(x, s[i+1:])}), 0
		}
		return append(options, option{name: letter, value: next}), 1
	}
	if len(s) > 2 && strings.ContainsAny(s, "./") {
		options = append(options, option{name: s[1:2], value: valueOf(x, s[2:]), stray: true})
	}
	return options, 0
}

// valueOf is a part of a word. Some shells expand a tilde behind = too.
func valueOf(x word, s string) word {
	x.s, x.tilde = s, s == "~" || strings.HasPrefix(s, "~/")
	return x
}

// shortFor says whether a word is a long option, perhaps cut short and with a
// value in the same word.
func shortFor(s, long string) bool {
	s, _, _ = strings.Cut(s, "=")
	return len(s) > 2 && strings.HasPrefix(long, s)
}

// strayValue notes what may be the value of an option that no table has: the
// command could read it, or write it.
func (w *shellWalk) strayValue(o option, a *act) {
	if o.value.s == "" {
		return
	}
	w.output(o.value, a)
	if w.guarded && !strings.Contains(o.name, "clude") && !strings.Contains(o.name, "ignore") {
		w.guesses([]word{o.value}, a)
	}
}

// strayOptions notes the files that options of a reader name which the table
// does not have. What known options and operands are is judged elsewhere.
func (w *shellWalk) strayOptions(args []word, known func(string) bool, a *act) {
	for i, x := range args {
		if x.s == "--" {
			return
		}
		if len(x.s) < 2 || x.s[0] != '-' || known(x.s) {
			continue
		}
		if _, v, has := strings.Cut(x.s, "="); has {
			w.output(valueOf(x, v), a)
		}
		if !w.guarded {
			continue
		}
		if w.guesses([]word{x}, a); i+1 < len(args) {
			w.guesses(args[i+1:i+2], a)
		}
	}
}

// knows says whether the table of a reader has all options of a word.
func (r *reader) knows(s string) bool {
	if strings.HasPrefix(s, "--") {
		return r.longOption(s) || slices.Contains(r.next, s)
	}
	letters, _, _ := r.cluster(s[1:])
	return strings.Trim(letters, r.short) == ""
}

// outputs notes the files that options of an unknown command name which are for
// output nearly everywhere. They need not exist.
func (w *shellWalk) outputs(args []word, a *act) {
	for i, x := range args {
		switch {
		case (x.s == "-o" || x.s == "--output") && i+1 < len(args):
			w.output(args[i+1], a)
		case strings.HasPrefix(x.s, "--output="):
			w.output(valueOf(x, x.s[len("--output="):]), a)
		case strings.HasPrefix(x.s, "-o") && len(x.s) > 2:
			w.output(valueOf(x, x.s[2:]), a)
		}
	}
}

// output notes a file that a command may write: like one that it does write, but
// that a rule which forbids it makes it ask.
func (w *shellWalk) output(x word, a *act) {
	if x.s == "-" || strings.HasPrefix(x.s, "/dev/") {
		return
	}
	paths, _ := w.operand(x, true)
	for _, path := range paths {
		w.acts = append(w.acts, act{kind: actWrite, tool: writeTool, path: path, spelled: x.s, owner: a, guess: true})
	}
}

// gitOutputs notes the files that git is told to write its output to, or to make
// a repository or work tree in.
func (w *shellWalk) gitOutputs(g *gitCall, words []word, a *act) {
	base := word{}
	for i := 1; i < len(words)-len(g.args)-1; i++ {
		if words[i].s == "-C" {
			if x := words[i+1]; base.s == "" || filepath.IsAbs(x.s) || x.tilde {
				base = x
			} else {
				base.s, base.glob = base.s+"/"+x.s, base.glob || x.glob
			}
			i++
		}
	}
	touch := func(x word) {
		if base.s != "" && x.s != "" && !filepath.IsAbs(x.s) && !x.tilde {
			x.s, x.tilde, x.glob = base.s+"/"+x.s, base.tilde, x.glob || base.glob
		}
		w.touches(actWrite, x, a, false)
	}
	var operands []word
	files := slices.Contains([]string{"archive", "format-patch", "bugreport", "diagnose"}, g.sub)
	for i := 0; i < len(g.args); i++ {
		x, next := g.args[i], word{}
		if i+1 < len(g.args) {
			next = g.args[i+1]
		}
		_, v, has := strings.Cut(x.s, "=")
		switch {
		case x.s == "--" && g.sub != "worktree":
			i = len(g.args)
		case len(x.s) > 3 && (shortFor(x.s, "--output") || files && shortFor(x.s, "--output-directory")):
			if has {
				next = valueOf(x, v)
			} else {
				i++
			}
			touch(next)
		case files && x.s == "-o":
			touch(next)
			i++
		case files && strings.HasPrefix(x.s, "-o"):
			touch(valueOf(x, x.s[2:]))
		case !strings.HasPrefix(x.s, "-"):
			operands = append(operands, x)
		}
	}
	switch n := len(operands); {
	case g.sub == "bundle" && n > 1 && operands[0].s == "create":
		touch(operands[1])
	case g.sub == "clone" && n > 1:
		touch(operands[n-1])
	case g.sub == "init" && n > 0:
		touch(operands[n-1])
	}
}

const maxParts = 8 // of an argument that are looked at

// partsOf returns what could be the name of a file in an argument of a command of
// which nothing is known: --env-file=.env, @.env, file:.env, -f.env.
func partsOf(s string) []string {
	const separators = "=@:,"
	if s == "" {
		return nil
	}
	if s[0] != '-' && !strings.ContainsAny(s, separators) {
		return []string{s}
	}
	var tries []string
	if s[0] != '-' {
		tries = append(tries, s)
	}
	if len(s) > 2 && s[0] == '-' && s[1] != '-' {
		tries = append(tries, s[2:])
	}
	separates := func(r rune) bool { return strings.ContainsRune(separators, r) }
	for i, part := range strings.FieldsFunc(s, separates) {
		if i == maxParts {
			break
		}
		tries = append(tries, part)
		if rest, ok := strings.CutPrefix(part, "//"); ok { // of a URL
			tries = append(tries, rest)
		}
	}
	if at := strings.LastIndexAny(s, "=@"); at >= 0 { // its name may have the others
		tries = append(tries, s[at+1:])
	}
	slices.Sort(tries)
	tries = slices.Compact(tries)
	return tries
}

const maxBraces = 64 // words that are made of one with braces

// braced returns the words that the shell makes of one with alternatives in
// braces, without empty ones, and whether these are all. Braces without a comma
// are text, such as {}.
func braced(x word) (out []word, all bool) {
	if !x.glob || !strings.Contains(x.s, "{") {
		return []word{x}, true
	}
	plain := strings.NewReplacer("{", "\x01", "}", "\x02") // braces that stay
	restore := strings.NewReplacer("\x01", "{", "\x02", "}")
	left := []word{x}
	for len(left) > 0 && len(left)+len(out) < maxBraces {
		y := left[len(left)-1]
		left = left[:len(left)-1]
		end := strings.IndexByte(y.s, '}')
		open := strings.LastIndexByte(y.s[:max(end, 0)], '{')
		if open < 0 {
			if y.s == "" {
				continue // the shell drops it
			}
			if y.glob = strings.ContainsAny(y.s, "*?["); end >= 0 { // } alone
				y.s = y.s[:end] + plain.Replace(y.s[end:end+1]) + y.s[end+1:]
				y.glob = x.glob
				left = append(left, y)
				continue
			}
			y.s = restore.Replace(y.s)
			out = append(out, y)
			continue
		}
		before, inner, after := y.s[:open], y.s[open+1:end], y.s[end+1:]
		switch {
		case strings.Contains(inner, ","):
			for part := range strings.SplitSeq(inner, ",") {
				z := y
				z.s = before + part + after
				left = append(left, z)
			}
		case strings.Contains(inner, ".."): // {1..3}: more than the shell makes of it
			y.s = before + "*" + after
			left = append(left, y)
		default: // such as {}
			y.s = before + plain.Replace(y.s[open:end+1]) + after
			left = append(left, y)
		}
	}
	return out, len(left) == 0
}
