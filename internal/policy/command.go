package policy

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// A word is one word of a simple command, as the command will see it.
type word struct {
	s     string   // with dynamic for each part that is computed
	glob  bool     // has a wildcard or brace that the shell expands
	tilde bool     // begins with a tilde that the shell expands
	vars  []string // the variables in it
	other bool     // holds what is computed in another way than by commands
	split bool     // the shell could make several words of what is computed
	proc  bool     // is one end of a pipe to a command: <(…)
}

// dynamic stands for what is known only when the command runs. No argument can
// hold a NUL.
const dynamic = "\x00"

// wordOf evaluates a word as far as it is literal.
func wordOf(n *syntax.Word) word {
	var out word
	var b strings.Builder
	for i, part := range n.Parts {
		switch part := part.(type) {
		case *syntax.Lit:
			out.tilde = out.tilde || i == 0 && strings.HasPrefix(part.Value, "~")
			out.glob = unquoted(&b, part.Value) || out.glob
		case *syntax.SglQuoted:
			if part.Dollar {
				b.WriteString(dynamic)
			} else {
				b.WriteString(part.Value)
			}
		case *syntax.DblQuoted:
			for _, inner := range part.Parts {
				switch lit, ok := inner.(*syntax.Lit); {
				case ok && !part.Dollar:
					quoted(&b, lit.Value)
				case ok: // of $"…", which could be translated
					out.other = true
					b.WriteString(dynamic)
				default:
					out.computes(&b, inner, i == 0 && b.Len() == 0)
				}
			}
		default:
			out.computes(&b, part, i == 0)
			out.split = true
			_, out.proc = part.(*syntax.ProcSubst)
			out.proc = out.proc && len(n.Parts) == 1
		}
	}
	out.s = b.String()
	out.glob = out.glob && out.s != "[" // which is a command
	return out
}

// computes notes a part that is known only when the line runs. The home directory
// at the beginning of a word is as good as a tilde.
func (x *word) computes(b *strings.Builder, part syntax.WordPart, first bool) {
	switch p := part.(type) {
	case *syntax.ParamExp:
		if !param(p) {
			x.other = true
			break
		}
		if first && p.Param.Value == "HOME" && p.Exp == nil && p.Repl == nil && !p.Length {
			x.tilde = true
			b.WriteByte('~')
			return
		}
		x.vars = append(x.vars, p.Param.Value)
		if p.Exp != nil && p.Exp.Word != nil {
			x.within(p.Exp.Word)
		}
		if p.Repl != nil {
			x.within(p.Repl.Orig)
			x.within(p.Repl.With)
		}
	case *syntax.CmdSubst, *syntax.ProcSubst, *syntax.ExtGlob: // the commands in it are judged
	default:
		x.other = true
	}
	b.WriteString(dynamic)
}

// within notes the variables of a word inside another.
func (x *word) within(n *syntax.Word) {
	if n != nil {
		in := wordOf(n)
		x.vars, x.other = append(x.vars, in.vars...), x.other || in.other
	}
}

// unquoted writes an unquoted literal without its backslashes, and says
// whether the shell expands it further.
func unquoted(b *strings.Builder, s string) (expands bool) {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			if i++; i == len(s) {
				return expands
			}
			if s[i] == '\n' {
				continue
			}
		case '*', '?', '[', '{':
			expands = true
		}
		b.WriteByte(s[i])
	}
	return expands
}

// quoted writes a literal from between double quotes.
func quoted(b *strings.Builder, s string) {
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && strings.IndexByte("$`\"\\\n", s[i+1]) >= 0 {
			if i++; s[i] == '\n' {
				continue
			}
		}
		b.WriteByte(s[i])
	}
}

// line writes a simple command so that equal lines are equal commands: words
// are quoted where they need it.
func line(words []word) string {
	parts := make([]string, len(words))
	for i, w := range words {
		parts[i] = quoteWord(w.s)
	}
	return strings.Join(parts, " ")
}

// text is line for people.
func text(words []word) string { return strings.ReplaceAll(line(words), dynamic, "$…") }

func quoteWord(s string) string {
	special := func(r rune) bool {
		return r <= ' ' && r != 0 || r == 0x7f || strings.ContainsRune("\"'`$\\*?[]{}()<>|&;#!~", r)
	}
	if s != "" && !strings.ContainsFunc(s, special) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// A commandPattern is what a rule for the shell has in parentheses: an exact
// command, `prefix:*` (or `prefix *`), which ends between two words, or a
// command with a * in it, which stands for anything.
type commandPattern struct {
	re    *regexp.Regexp
	words []string // up to the first with a wildcard, the command by its base name
	spelt []string // the same, as they were written
	// prefix is what a rule has in front of the command: NAME=value. To allow, the
	// command has to have the very same.
	prefix string
	exact  bool // no wildcard in it, and nothing behind it
}

// parseCommandPattern reads a pattern. A wide one matches whatever begins with
// it.
func parseCommandPattern(spec string, wide bool) (*commandPattern, error) {
	spec, prefix := strings.CutSuffix(spec, ":*")
	file, err := parse(spec)
	if err != nil {
		return nil, fmt.Errorf("the command %w", err)
	}
	call := simpleCall(file)
	if call == nil {
		return nil, errors.New("a rule names one simple command, without operators and redirects: write one rule for each command")
	}
	var b strings.Builder
	b.WriteString("(?s)^")
	for i, arg := range call.Args {
		if i > 0 && i == len(call.Args)-1 && lit(arg) == "*" {
			prefix = true
			break
		}
		if i > 0 {
			b.WriteString(" ")
		}
		if err := wordPattern(&b, arg); err != nil {
			return nil, err
		}
	}
	if prefix || wide {
		b.WriteString("(?: .*)?")
	}
	b.WriteString("$")
	re, err := regexp.Compile(b.String())
	if err != nil {
		return nil, fmt.Errorf("the command is no pattern: %w", err)
	}
	cp := &commandPattern{re: re, exact: !prefix && !wide && !strings.Contains(b.String(), ".*")}
	if len(call.Assigns) > 0 {
		if cp.prefix = prefixOf(call.Assigns); cp.prefix == "" {
			return nil, errors.New("an assignment before the command of a rule has to be plain: NAME=value")
		}
	}
	for i, arg := range call.Args {
		if w := wordOf(arg); w.glob {
			break
		} else if i == 0 {
			cp.words = append(cp.words, filepath.Base(w.s))
			cp.spelt = append(cp.spelt, w.s)
		} else {
			cp.words, cp.spelt = append(cp.words, w.s), append(cp.spelt, w.s)
		}
	}
	return cp, nil
}

func simpleCall(file *syntax.File) *syntax.CallExpr {
	if len(file.Stmts) != 1 {
		return nil
	}
	s := file.Stmts[0]
	call, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || len(s.Redirs) > 0 || s.Background || s.Negated || s.Coprocess || s.Disown || len(call.Args) == 0 {
		return nil
	}
	return call
}

// prefixOf writes assignments so that equal texts are equal assignments; "" when
// they are not literal.
func prefixOf(list []*syntax.Assign) string {
	var parts []string
	for _, a := range list {
		if a.Name == nil || a.Append || a.Naked || a.Index != nil || a.Array != nil {
			return ""
		}
		var value word
		if a.Value != nil {
			value = wordOf(a.Value)
		}
		if strings.Contains(value.s, dynamic) || value.tilde {
			return ""
		}
		parts = append(parts, a.Name.Value+"="+quoteWord(value.s))
	}
	return strings.Join(parts, " ")
}

// names says whether the rule spells the word out, as an argument.
func (cp *commandPattern) names(spelled string) bool {
	return cp.exact || len(cp.spelt) > 1 && slices.Contains(cp.spelt[1:], spelled)
}

// lit returns the source of a word that has no quotes and nothing computed.
func lit(w *syntax.Word) string {
	if len(w.Parts) == 1 {
		if lit, ok := w.Parts[0].(*syntax.Lit); ok {
			return lit.Value
		}
	}
	return ""
}

// wordPattern writes the expression for one word of a pattern. A quoted or
// escaped * is itself.
func wordPattern(b *strings.Builder, arg *syntax.Word) error {
	w := wordOf(arg)
	if strings.Contains(w.s, dynamic) {
		return errors.New("the command of a rule cannot hold variables or substitutions")
	}
	src := lit(arg)
	if !strings.Contains(strings.ReplaceAll(src, `\*`, ""), "*") {
		b.WriteString(regexp.QuoteMeta(quoteWord(w.s)))
		return nil
	}
	b.WriteString("'?") // the command's word is quoted when it holds a * itself
	defer b.WriteString("'?")
	for i := 0; i < len(src); i++ {
		switch {
		case src[i] == '\\' && i+1 < len(src):
			i++
			b.WriteString(regexp.QuoteMeta(src[i : i+1]))
		case src[i] == '*':
			b.WriteString(".*")
		default:
			b.WriteString(regexp.QuoteMeta(src[i : i+1]))
		}
	}
	return nil
}

// matches says whether the rule speaks of the command. To forbid or to ask
// (strict), a command counts as well under its base name and behind a command
// that runs another one. To allow, it has to be the very command.
func (cp *commandPattern) matches(a *act, strict bool) bool {
	if len(a.words) == 0 {
		return false
	}
	if !strict {
		if cp.prefix != a.prefix && (cp.prefix != "" || a.prefixed) {
			return false
		}
		return !strings.Contains(a.words[0].s, dynamic) && cp.re.MatchString(line(a.words))
	}
	for i := range behind(a.words) {
		if len(cp.words) > 0 && cp.words[0] != filepath.Base(a.words[i].s) {
			continue // most rules are about other commands
		}
		if i == 0 && cp.re.MatchString(line(a.words)) {
			return true
		}
		rest := slices.Clone(a.words[i:])
		rest[0].s = filepath.Base(rest[0].s)
		if cp.re.MatchString(line(rest)) {
			return true
		}
		// git -C dir push is a push.
		if g, ok := parseGit(rest); ok && cp.re.MatchString(line(g.words())) {
			return true
		}
	}
	return false
}

// could says whether a command might turn out to be one that the rule speaks
// of, once what is computed in it is known.
func (cp *commandPattern) could(a *act) bool {
	if wrappers[filepath.Base(a.words[0].s)] {
		return len(a.words) > maxBehind || slices.ContainsFunc(a.words, word.computed)
	}
	if cp.couldBe(a.words) {
		return true
	}
	g, ok := parseGit(a.words)
	return ok && cp.couldBe(g.words())
}

// couldBe compares the words up to the first that is computed. It may turn out
// to be any words, or none.
func (cp *commandPattern) couldBe(words []word) bool {
	for i, w := range words {
		switch {
		case w.computed():
			return true
		case i >= len(cp.words):
		case w.s != cp.words[i] && (i > 0 || filepath.Base(w.s) != cp.words[i]):
			return false
		}
	}
	return false
}

// computed says whether the shell makes another word, or several, of it.
func (w word) computed() bool { return w.glob && w.s != "{}" || strings.Contains(w.s, dynamic) }

// behind returns how many words of a command could be the name of one that
// runs.
func behind(words []word) int {
	if wrappers[filepath.Base(words[0].s)] {
		return min(len(words), maxBehind)
	}
	return 1
}

// maxBehind is how many words of a wrapper are tried as the command that it
// runs.
const maxBehind = 32

// wrappers are commands that run the command which is among their arguments.
var wrappers = map[string]bool{
	"env": true, "sudo": true, "doas": true, "pkexec": true, "nohup": true, "time": true, "nice": true, "ionice": true, "chrt": true,
	"timeout": true, "command": true, "builtin": true, "exec": true, "xargs": true, "parallel": true, "setsid": true, "stdbuf": true,
	"busybox": true, "toybox": true, "find": true, "flock": true, "watch": true, "strace": true, "ltrace": true, "chroot": true,
	"unshare": true, "nsenter": true, "runuser": true, "su": true, "taskset": true, "prlimit": true, "setarch": true, "systemd-run": true,
	"setpriv": true, "ssh-agent": true, "dbus-run-session": true, "dbus-launch": true, "xvfb-run": true, "fakeroot": true, "firejail": true,
	"bwrap": true, "numactl": true, "capsh": true, "gosu": true, "su-exec": true, "sg": true, "torsocks": true, "proxychains": true,
	"proxychains4": true, "valgrind": true, "gdb": true, "perf": true, "rlwrap": true, "tini": true, "dumb-init": true, "choom": true,
	"chpst": true, "eatmydata": true, "cgexec": true, "uclampset": true, "linux32": true, "linux64": true, "i386": true, "x86_64": true,
	"script": true, "unbuffer": true, "entr": true, "caffeinate": true, "coproc": true,
}
