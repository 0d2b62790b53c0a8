package policy

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"
)

const (
	maxCommand = 64 << 10 // bytes of a command line that is taken apart
	maxNesting = 1000     // things in it that could nest
	maxInner   = 4        // lines that are arguments of lines (sh -c), one in the other
	maxLines   = 64       // such lines in all
	maxDirs    = 8        // directories that a command could be in after cd
	maxSimple  = 500      // simple commands of a line that are judged
	maxWords   = 2000     // words of one of them
	maxActs    = 2000     // acts of a line
)

// shellActs parses a command line and returns what it does: each simple
// command wherever it stands, each redirect, and what cannot be judged. It
// starts in dir, a resolved path. What goes beyond the bounds is one act that
// asks, so that a judgement takes little time; it ends early when stopped.
func (p *judgement) shellActs(src, dir string, stopped func() bool) []act {
	ruled := p.shellRule(func(*commandPattern) bool { return true }) != nil
	w := &shellWalk{place: p.place, stopped: stopped, runs: map[string]string{}, dirs: []string{dir}, ruled: ruled, guarded: p.guarded(), environ: p.environ}
	w.source(src, 0, false)
	if w.full {
		w.acts = append(w.acts[:min(len(w.acts), maxActs)], act{kind: actOpaque, unread: true, cut: true,
			why: fmt.Sprintf("the command line does too much to be judged (more than %d commands, %d words of one, or %d files): split it", maxSimple, maxWords, maxActs)})
	}
	w.gitAlone()
	if len(w.acts) == 0 {
		w.doubt("runs no command")
	}
	return w.acts
}

type shellWalk struct {
	place *place
	acts  []act
	// dirs are all the directories that a part of the line could run in. A cd
	// adds to them; whether it fails or stays in a subshell is not followed.
	dirs     []string
	lost     bool              // something may have changed how commands run
	odd      bool              // and where cd leads
	strayed  bool              // it runs in a directory that is not among them, perhaps
	rerooted bool              // and / is another one
	linked   bool              // one of dirs was reached through a symbolic link
	lines    int               // within this one, so far
	data     *syntax.Word      // of the latest here-document
	commands int               // simple ones, so far
	full     bool              // a bound is reached, and the rest not looked at
	runs     map[string]string // what repositoryRuns said, by subcommand and root
	stopped  func() bool
	ruled    bool // a rule forbids some commands, or asks about them
	guarded  bool // and some files

	environ   []string                          // the names of the environment; nil when they are not known
	texts     map[string]bool                   // variables that hold something else than a number; * is any
	tainted   map[string]bool                   // variables that hold something of it
	functions map[string]uint                   // where functions of this source are certain to be defined
	movedBy   map[*syntax.Stmt]*syntax.CallExpr // the cd that was done when a statement runs
	moved     map[*syntax.CallExpr][]string     // where it leads
	again     int                               // loops and functions around the node: it may run again, and later
	defined   bool                              // a function or a trap was defined before it
}

// doubt notes something that cannot be judged, once.
func (w *shellWalk) doubt(format string, a ...any) {
	why := "the command line " + fmt.Sprintf(format, a...)
	if !slices.ContainsFunc(w.acts, func(a act) bool { return a.why == why }) {
		w.acts = append(w.acts, act{kind: actOpaque, why: why})
	}
}

// unseen notes that the line runs commands which do not stand in it, so that
// rules about commands cannot be checked. Without such rules, what the command
// is judged as is enough.
func (w *shellWalk) unseen(format string, a ...any) {
	if w.ruled {
		w.acts = append(w.acts, act{kind: actOpaque, unread: true, why: "the command line " + fmt.Sprintf(format, a...)})
	}
}

// source takes a line apart; depth counts the lines around it, and same says that
// the shell which is in it runs it: what it does is not over at its end.
func (w *shellWalk) source(src string, depth int, same bool) {
	file, err := parse(src)
	if err != nil {
		// A shell runs the lines before one that it cannot read either.
		w.acts = append(w.acts, act{kind: actOpaque, unread: true, cut: w.guarded, why: "the command line " + err.Error()})
		return
	}
	around, again, defined := w.functions, w.again, w.defined
	if w.functions = functionsOf(file); !same {
		w.again, w.defined = 0, false
	}
	defer func() {
		if w.functions, w.again = around, again; !same {
			w.defined = defined
		}
	}()
	w.taint(file)
	w.text(file)
	var leave []func()
	syntax.Walk(file, func(node syntax.Node) bool {
		if node == nil {
			last := len(leave) - 1
			if leave[last] != nil {
				leave[last]()
			}
			leave = leave[:last]
			return true
		}
		if w.full = w.full || len(w.acts) > maxActs; w.full || w.stopped() {
			return false
		}
		leave = append(leave, w.enter(node))
		w.node(node, depth)
		return true
	})
}

// enter prepares for what is below a node, and returns what to do behind it.
func (w *shellWalk) enter(node syntax.Node) (leave func()) {
	switch n := node.(type) {
	case *syntax.BinaryCmd:
		if cd := doneBefore(n); cd != nil {
			if w.movedBy == nil {
				w.movedBy, w.moved = map[*syntax.Stmt]*syntax.CallExpr{}, map[*syntax.CallExpr][]string{}
			}
			w.movedBy[n.Y], w.moved[cd] = cd, nil
		}
	case *syntax.Stmt:
		if to := w.moved[w.movedBy[n]]; to != nil {
			before := w.dirs
			w.dirs = to
			return func() { w.addDirs(before) }
		}
	case *syntax.WhileClause, *syntax.ForClause, *syntax.FuncDecl:
		_, isFunc := n.(*syntax.FuncDecl)
		w.again++
		return func() { w.again--; w.defined = w.defined || isFunc }
	case *syntax.Subshell, *syntax.CmdSubst, *syntax.ProcSubst:
		// A cd in it is over at its end. Those that it was in are kept all the same.
		again, strayed := w.again, w.strayed
		w.again = 0
		return func() { w.again, w.strayed = again, strayed }
	}
	return nil
}

// doneBefore returns the cd that has been done when the right side of && runs.
func doneBefore(n *syntax.BinaryCmd) *syntax.CallExpr {
	for n.Op == syntax.AndStmt {
		x := n.X
		if b, ok := x.Cmd.(*syntax.BinaryCmd); ok && plainStmt(x) && b.Op == syntax.AndStmt {
			if cd := isCd(b.Y); cd != nil {
				return cd
			}
			n = b
			continue
		}
		return isCd(x)
	}
	return nil
}

func plainStmt(s *syntax.Stmt) bool { return !s.Negated && !s.Background && !s.Coprocess && !s.Disown }

func isCd(s *syntax.Stmt) *syntax.CallExpr {
	call, ok := s.Cmd.(*syntax.CallExpr)
	if ok && plainStmt(s) && len(call.Args) > 0 && lit(call.Args[0]) == "cd" {
		return call
	}
	return nil
}

// addDirs notes further directories that commands could run in.
func (w *shellWalk) addDirs(more []string) {
	w.dirs = slices.Clone(w.dirs)
	for _, dir := range more {
		if !slices.Contains(w.dirs, dir) {
			w.dirs = append(w.dirs, dir)
		}
	}
}

func parse(src string) (*syntax.File, error) {
	if len(src) > maxCommand {
		return nil, fmt.Errorf("is longer than %d bytes", maxCommand)
	}
	if strings.Contains(src, dynamic) {
		return nil, errors.New("is known only when it runs")
	}
	if nesting(src) > maxNesting {
		return nil, errors.New("is nested too deeply")
	}
	if what := ambiguous(src); what != "" {
		return nil, errors.New(what)
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(src), "")
	if err != nil {
		return nil, fmt.Errorf("cannot be parsed (%s)", show(err.Error()))
	}
	return file, nil
}

// ambiguous finds what the parser and bash read differently: a carriage return is
// a character to bash and white space to the parser, a continued line ends a
// comment or a here-document for one of them only, and so does a # behind a
// quoted delimiter. Nobody can say then which commands would run.
func ambiguous(src string) string {
	switch {
	case strings.Contains(src, "\r"):
		return "holds a carriage return"
	case continuesWord(src):
		return "continues a line within a word"
	case strings.Contains(src, "\\\n") && (strings.Contains(src, "#") || strings.Contains(src, "<<")):
		return "continues a line where it has a comment or a here-document"
	case strings.Contains(src, "<<") && hashedDelimiter().MatchString(src):
		return "has a # in the delimiter of a here-document"
	}
	return ""
}

// continuesWord says whether a line is continued elsewhere than at white space:
// what stands on both sides would be one word, or one operator, such as $ and (.
func continuesWord(src string) bool {
	for at := 0; ; at += 2 {
		next := strings.Index(src[at:], "\\\n")
		if next < 0 {
			return false
		}
		at += next
		blank := func(i int) bool { return i < 0 || i >= len(src) || strings.IndexByte(" \t\n", src[i]) >= 0 }
		if !blank(at-1) && !blank(at+2) {
			return true
		}
	}
}

var hashedDelimiter = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`<<-?[ \t]*(?:"[^"\n]*"|'[^'\n]*'|\\.|[^ \t\n;&|<>()#])*#`)
})

// guarded says whether a deny or ask rule is about files.
func (p *judgement) guarded() bool {
	return slices.ContainsFunc(p.deny, aboutFiles) || slices.ContainsFunc(p.ask, aboutFiles)
}

// aboutFiles says whether a rule is about files: some, or all that a tool touches.
func aboutFiles(r *rule) bool { return r.path != nil || r.whole() && r.family != actUse }

// nesting bounds how deep a line can nest, for the parser recurses.
func nesting(src string) int {
	n := 0
	for i := range len(src) {
		if strings.IndexByte("({[`!", src[i]) >= 0 {
			n++
		}
	}
	for _, word := range strings.FieldsFunc(src, func(r rune) bool { return r <= ' ' || r == ';' }) {
		switch word {
		case "if", "while", "until", "for", "case", "function", "time", "coproc", "select", "then", "else", "elif", "do":
			n++
		}
	}
	return n
}

// node judges one node. Those below it come by themselves, so commands are
// found wherever they stand: in substitutions, here-documents, functions.
func (w *shellWalk) node(node syntax.Node, depth int) {
	switch n := node.(type) {
	case nil, *syntax.File, *syntax.BinaryCmd, *syntax.Subshell, *syntax.Block, *syntax.Lit, *syntax.SglQuoted,
		*syntax.DblQuoted, *syntax.CmdSubst, *syntax.ProcSubst, *syntax.ExtGlob, *syntax.Comment,
		*syntax.IfClause, *syntax.WhileClause, *syntax.CaseClause, *syntax.CaseItem, *syntax.TimeClause,
		*syntax.TestClause, *syntax.ParenTest:
	case *syntax.ForClause:
		if n.Select {
			w.lose()
			w.doubt("uses what is not analysed (select)")
		}
	case *syntax.WordIter:
		w.setName(n.Name.Value)
		if integerVars[n.Name.Value] && (len(n.Items) == 0 || slices.ContainsFunc(n.Items, func(x *syntax.Word) bool { return !w.number(x) })) {
			w.evaluated("what %s is set to", n.Name.Value)
		}
	case *syntax.FuncDecl:
		w.defines(n)
	case *syntax.DeclClause:
		w.declares(n)
	case *syntax.ArithmExp:
		w.computes(n.X)
	case *syntax.ArithmCmd:
		w.computes(n.X)
	case *syntax.LetClause:
		w.computes(n.Exprs...)
	case *syntax.CStyleLoop:
		w.computes(n.Init, n.Cond, n.Post)
	case *syntax.BinaryArithm, *syntax.UnaryArithm, *syntax.ParenArithm:
	case *syntax.UnaryTest:
		w.unaryTest(n)
	case *syntax.BinaryTest:
		w.binaryTest(n)
	case *syntax.Word:
		w.word(n)
	case *syntax.Assign:
		w.assign(n)
	case *syntax.Stmt:
		if n.Background || n.Coprocess || n.Disown {
			w.doubt("leaves a command running in the background")
		}
	case *syntax.ParamExp:
		w.expansion(n)
		if !param(n) {
			w.doubt("computes a value (${…})")
		}
	case *syntax.CallExpr:
		w.call(n, depth)
	case *syntax.Redirect:
		w.redirect(n)
	default:
		w.lose()
		w.doubt("uses what is not analysed (%s)", strings.TrimPrefix(fmt.Sprintf("%T", node), "*syntax."))
	}
}

// word notes commands in a literal word: what evaluates subscripts (test -v,
// [[ -v, let, read, printf -v and more) runs them. A here-document is data.
func (w *shellWalk) word(n *syntax.Word) {
	if n == w.data {
		return
	}
	if s := wordOf(n).s; strings.Contains(s, "$(") || strings.Contains(s, "`") || strings.Contains(s, "${") {
		w.unseen("has commands in a quoted word, which something could run")
	}
}

// call judges a simple command.
func (w *shellWalk) call(n *syntax.CallExpr, depth int) {
	if len(n.Args) == 0 {
		for _, a := range n.Assigns {
			w.sets(a)
		}
		return
	}
	if w.commands++; w.commands > maxSimple || len(n.Args) > maxWords {
		w.full = true
		return
	}
	a := act{kind: actCommand, shell: true}
	if len(n.Assigns) > 0 {
		a.why = assigned(n.Assigns)
		a.prefixed, a.prefix = a.why != "", prefixOf(n.Assigns)
	}
	for _, arg := range n.Args {
		a.words = append(a.words, wordOf(arg))
	}
	defer w.elsewhere(a.words)()
	for i := range behind(a.words) {
		w.inner(a.words[i:], i > 0, depth)
	}
	reads, as, ok := w.readOnly(&a)
	followed := len(reads) > 0 && own(a.words)[0].s == "cd"
	w.moves(a.words, followed, &a)
	if end, mine := w.functions[a.words[0].s]; mine && n.Pos().Offset() >= end {
		ok = !a.prefixed // its body is judged
	}
	if followed {
		if _, before := w.moved[n]; before {
			w.moved[n] = slices.Clone(reads)
		}
		if w.again > 0 || w.defined {
			ok = false // what was judged may run there too
			a.why = "stands where commands may run before it and after it"
		}
	}
	if name := a.words[0].s; !ok && (shiftsShell[name] || strings.Contains(name, dynamic)) {
		w.lost = true
		w.odd = w.odd || !calmShift[name]
	}
	a.harmless = ok
	w.acts = append(w.acts, a)
	w.wrapped(&a)
	for _, path := range reads {
		w.acts = append(w.acts, act{kind: actRead, tool: as, path: path, owner: &a})
	}
	w.files(&a)
	for i := range behind(a.words) {
		w.gitShows(a.words[i:], &a)
	}
}

// shiftsShell are the commands that change what a later one of the line means
// or touches.
var shiftsShell = map[string]bool{
	"cd": true, "pushd": true, "popd": true, "alias": true, "unalias": true, "eval": true, "source": true, ".": true,
	"exec": true, "set": true, "shopt": true, "enable": true, "hash": true, "builtin": true, "command": true,
	"export": true, "unset": true, "read": true, "trap": true,
}

// redirect judges a redirect: it reads or writes the path that it names, as
// the file tools do (BUG-SP-05).
func (w *shellWalk) redirect(n *syntax.Redirect) {
	w.data = n.Hdoc
	if n.N != nil && strings.HasPrefix(n.N.Value, "{") {
		w.lose()
		w.doubt("sets a variable")
	}
	data := n.Hdoc
	if n.Op == syntax.WordHdoc {
		data = n.Word
	}
	switch n.Op {
	case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
		// Substitutions in it come by themselves; variables show the environment.
		if data != nil && w.showsEnv(wordOf(data)) {
			w.doubt("feeds in what is known only when it runs")
		}
		return
	}
	target := wordOf(n.Word)
	if n.Op == syntax.DplOut || n.Op == syntax.DplIn {
		if fd := strings.TrimSuffix(target.s, "-"); strings.Trim(fd, "0123456789") == "" {
			return // a descriptor, not a file
		}
	}
	switch target.s {
	case "/dev/null", "/dev/stdout", "/dev/stderr", "/dev/stdin":
		return
	}
	paths, ok := w.paths(target)
	if !ok || n.Op == syntax.DplIn { // the paths that are known count all the same
		const why = "redirects to or from something that is known only when it runs"
		if w.guarded { // cut: rules of any kind cannot be checked
			w.acts = append(w.acts, act{kind: actOpaque, unread: true, cut: true, why: "the command line " + why})
		} else {
			w.doubt(why)
		}
	}
	for _, path := range paths {
		if n.Op == syntax.RdrIn || n.Op == syntax.RdrInOut {
			w.acts = append(w.acts, act{kind: actRead, tool: readTool, path: path})
		}
		if n.Op != syntax.RdrIn {
			w.acts = append(w.acts, act{kind: actWrite, tool: writeTool, path: path})
		}
	}
}

// paths resolves a word as a path, in every directory that the command could
// run in. They may not be all when it returns false.
func (w *shellWalk) paths(target word) ([]string, bool) {
	s := target.s
	switch {
	case s == "" || strings.Contains(s, dynamic) || target.glob:
		return nil, false
	case target.tilde:
		if w.place.home == "" || w.lost || s != "~" && !strings.HasPrefix(s, "~/") {
			return nil, false
		}
		s = w.place.home + s[1:]
	}
	if filepath.IsAbs(s) {
		path, err := resolve(s)
		if err != nil {
			return nil, false
		}
		return []string{path}, !w.rerooted
	}
	var out []string
	for _, dir := range w.dirs {
		path, err := resolveIn(dir, s)
		if err != nil {
			return nil, false
		}
		out = append(out, path)
	}
	return out, !w.strayed && !w.rerooted
}
