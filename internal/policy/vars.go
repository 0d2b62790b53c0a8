package policy

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// plainEnv are variables that a command may be given without a question, for
// none of them names a program, a file or an option: how much is said, in which
// language and colours, for which system. What could go wrong with all others
// nobody knows.
var plainEnv = []string{
	"CI", "NODE_ENV", "APP_ENV", "RAILS_ENV", "RACK_ENV", "FLASK_ENV", "MIX_ENV", "TEST", "DEBUG", "VERBOSE", "LOG_LEVEL", "RUST_LOG", "PORT", "HEADLESS",
	"FORCE_COLOR", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS", "LINES", "TERM", "TZ", "LANG", "LANGUAGE", "LC_*",
	"CGO_ENABLED", "GOOS", "GOARCH", "GOARM", "GOMAXPROCS", "GO111MODULE", "GOTRACEBACK", "RUST_BACKTRACE", "CARGO_TERM_COLOR", "CARGO_INCREMENTAL",
	"PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE", "PYTHONIOENCODING", "PYTHONUTF8", "PYTHONHASHSEED", "PYTHONWARNINGS",
	"NEXT_TELEMETRY_DISABLED", "DO_NOT_TRACK", "DEBIAN_FRONTEND", "TF_IN_AUTOMATION", "SOURCE_DATE_EPOCH", "POSIXLY_CORRECT",
}

// riskyVars are variables that the shell itself obeys, or that programs obey
// wherever they are set. An assignment to one of them asks.
var riskyVars = []string{
	"PATH", "*PATH", "IFS", "ENV", "HOME", "PWD", "OLDPWD", "SHELL", "SHELLOPTS", "BASH*", "ZDOTDIR", "PS[0-9]", "PROMPT*", "HIST*", "FIGNORE", "GLOBIGNORE",
	"GLOBSORT", "EXECIGNORE", "FUNCNEST", "INPUTRC", "REPLY", "TMPDIR", "LD_*", "DYLD_*", "GIT_*", "*PAGER", "*EDITOR", "VISUAL", "BROWSER", "LESS*",
	"*OPTS", "*OPTIONS", "*FLAGS", "*_CMD", "*COMMAND", "*WRAPPER", "*HOME", "*PRELOAD", "*PROXY", "*proxy", "CC", "CXX", "LD", "AR", "MAKE*", "GO*", "NODE_*",
	"NPM_*", "npm_*", "PYTHON*", "PERL*", "RUBY*", "RUST*", "CARGO_*", "SSH_*", "DOCKER_*", "KUBECONFIG", "AWS_*", "XDG_*", "TERMINFO*", "LOCPATH", "NLSPATH",
}

// plainVars are variables that may be shown: they are no secrets.
var plainVars = []string{
	"?", "#", "!", "$", "-", "PWD", "OLDPWD", "HOME", "USER", "LOGNAME", "SHELL", "PATH", "LANG", "TERM", "UID", "EUID", "PPID", "HOSTNAME", "OSTYPE", "HOSTTYPE",
	"RANDOM", "SECONDS", "LINENO", "BASHPID", "BASH_VERSION", "SHLVL", "COLUMNS", "LINES", "PIPESTATUS", "CI", "NODE_ENV", "GOPATH", "GOROOT", "TMPDIR", "EDITOR",
}

func isName(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		ok, _ := path.Match(p, name)
		return ok
	})
}

// assigned judges assignments in front of a command: whether all of them are
// known to be harmless, and else what to say.
func assigned(list []*syntax.Assign) (why string) {
	for _, a := range list {
		switch {
		case a.Name == nil || a.Index != nil || a.Array != nil || a.Append:
			return "has an assignment before it that is not analysed"
		case !isName(plainEnv, a.Name.Value):
			return "has " + show(a.Name.Value) + " set before it, which can change what it does"
		}
	}
	return ""
}

// sets judges an assignment to a variable of the shell. Later commands of the line
// see it only where they name it, unless it is exported.
func (w *shellWalk) sets(a *syntax.Assign) {
	if a.Name == nil || a.Index != nil || a.Array != nil {
		w.lose()
		w.doubt("sets a variable in a way that is not analysed")
		return
	}
	w.setName(a.Name.Value)
}

// setName judges that a variable gets a value.
func (w *shellWalk) setName(name string) {
	if isName(riskyVars, name) || w.isExported(name) {
		w.loseTo(name)
		w.doubt("sets %s, which can change what commands do", show(name))
		return
	}
	const why = "the command line sets a variable"
	if !slices.ContainsFunc(w.acts, func(a act) bool { return a.why == why }) {
		w.acts = append(w.acts, act{kind: actOpaque, harmless: true, why: why})
	}
}

// declares judges export, local, readonly and their like.
func (w *shellWalk) declares(n *syntax.DeclClause) {
	kind := n.Variant.Value
	w.declared(n)
	if len(n.Args) == 0 {
		w.doubt("shows variables (%s)", kind)
	}
	for _, a := range n.Args {
		switch {
		case a.Name == nil || a.Index != nil || a.Array != nil || kind != "export" && kind != "local" && kind != "readonly":
			w.lose()
			w.doubt("has a %s that is not analysed", kind)
		case kind == "export" && !isName(plainEnv, a.Name.Value):
			w.loseTo(a.Name.Value)
			w.doubt("exports %s, which can change what commands do", show(a.Name.Value))
		case !a.Naked || kind == "export":
			if kind == "export" {
				w.acts = append(w.acts, act{kind: actOpaque, harmless: true, why: "the command line exports " + a.Name.Value})
			} else {
				w.sets(a)
			}
		}
	}
}

// isExported says whether a variable is one of the environment, as far as that
// is known.
func (w *shellWalk) isExported(name string) bool {
	return w.environ == nil || slices.Contains(w.environ, name)
}

// showsEnv says whether a word could hold something of the environment that is
// not known to be no secret. What the line computes is judged where it does so.
func (w *shellWalk) showsEnv(x word) bool {
	return x.other || slices.ContainsFunc(x.vars, func(name string) bool {
		return !slices.Contains(plainVars, name) && (fromShell(name) || !identifier.MatchString(name) || w.isExported(name) || w.tainted[name])
	})
}

// fromShell says whether the shell itself gives a variable what an earlier command
// was given: $_ its last word, BASH_REMATCH what [[ … =~ … ]] matched, DIRSTACK
// where it went.
func fromShell(name string) bool {
	return name == "_" || name == "DIRSTACK" || strings.HasPrefix(name, "BASH_")
}

// taint finds the variables that get something of the environment, from one
// another too.
func (w *shellWalk) taint(f *syntax.File) {
	type value struct {
		name string
		word word
	}
	var all []value
	for node := range syntax.Preorder(f) {
		switch n := node.(type) {
		case *syntax.Assign:
			if n.Name != nil && n.Value != nil {
				all = append(all, value{n.Name.Value, wordOf(n.Value)})
			}
		case *syntax.WordIter:
			for _, item := range n.Items {
				all = append(all, value{n.Name.Value, wordOf(item)})
			}
			if n.Name != nil && len(n.Items) == 0 { // "$@"
				all = append(all, value{n.Name.Value, word{other: true}})
			}
		}
		if len(all) > maxWords {
			return // what comes next is beyond a bound too
		}
	}
	for again := true; again; {
		again = false
		for _, v := range all {
			if !w.tainted[v.name] && w.showsEnv(v.word) {
				if w.tainted == nil {
					w.tainted = map[string]bool{}
				}
				w.tainted[v.name], again = true, true
			}
		}
	}
}

// param says whether a parameter expansion only makes a text of another.
func param(n *syntax.ParamExp) bool {
	if n.Excl || n.Index != nil || n.Slice != nil || n.NestedParam != nil || n.Flags != nil || n.Width || n.IsSet || len(n.Modifiers) > 0 {
		return false
	}
	if n.Exp != nil {
		switch n.Exp.Op {
		case syntax.OtherParamOps, syntax.AssignUnset, syntax.AssignUnsetOrNull:
			return false
		case syntax.ErrorUnset, syntax.ErrorUnsetOrNull: // which shows the word
			if n.Exp.Word != nil {
				if x := wordOf(n.Exp.Word); len(x.vars) > 0 || x.other {
					return false
				}
			}
		}
	}
	return n.Param != nil
}

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// unaryTest and binaryTest judge the parts of [[ … ]]. Some of its operators
// evaluate what they are given as arithmetic, where commands can stand.
func (w *shellWalk) unaryTest(n *syntax.UnaryTest) {
	x, ok := n.X.(*syntax.Word)
	if n.Op != syntax.TsVarSet && n.Op != syntax.TsRefVar {
		return
	}
	if !ok || !identifier.MatchString(wordOf(x).s) {
		w.lose()
		w.doubt("evaluates a subscript ([[ -v … ]])")
		w.evaluated("a subscript ([[ -v … ]])")
	}
}

func (w *shellWalk) binaryTest(n *syntax.BinaryTest) {
	switch n.Op {
	case syntax.TsReMatch: // one that cannot be read is shown
		if y, ok := n.Y.(*syntax.Word); !ok || w.showsEnv(wordOf(y)) {
			w.doubt("matches against what is known only when it runs")
		}
		return
	case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
	default:
		return
	}
	for _, side := range []syntax.TestExpr{n.X, n.Y} {
		if x, ok := side.(*syntax.Word); !ok || !isNumber(wordOf(x)) {
			if ok && w.number(x) {
				continue
			}
			w.lose()
			w.doubt("evaluates arithmetic ([[ … %s … ]])", n.Op)
			w.evaluated("arithmetic ([[ … %s … ]])", n.Op)
		}
	}
}

// number says whether a word is evaluated to a number and no more: a literal, or a
// variable that holds one.
func (w *shellWalk) number(n *syntax.Word) bool {
	if len(n.Parts) != 1 {
		return false
	}
	switch p := n.Parts[0].(type) {
	case *syntax.Lit:
		return arithNumber.MatchString(p.Value) || w.numeric(p.Value)
	case *syntax.ParamExp:
		return param(p) && p.Exp == nil && p.Repl == nil && (p.Length || p.Param.Value == "#" || p.Param.Value == "?" || w.numeric(p.Param.Value))
	case *syntax.ArithmExp:
		return w.arithmetic(p.X)
	case *syntax.DblQuoted:
		return !p.Dollar && w.number(&syntax.Word{Parts: p.Parts})
	}
	return false
}

var arithNumber = regexp.MustCompile(`^(?:[0-9]+|0[xX][0-9a-fA-F]+)$`)

// numeric says whether a variable can hold nothing but a number: it is not of the
// environment, and neither the line nor the shell gives it a text.
func (w *shellWalk) numeric(name string) bool {
	return identifier.MatchString(name) && !w.texts["*"] && !w.texts[name] && !fromShell(name) && !w.isExported(name) && !isName(riskyVars, name)
}

// arithmetic says whether an expression only computes. A variable with text in it
// would be evaluated, and its subscripts can run commands.
func (w *shellWalk) arithmetic(x syntax.ArithmExpr) bool {
	switch x := x.(type) {
	case nil:
		return true
	case *syntax.Word:
		return w.number(x)
	case *syntax.ParenArithm:
		return w.arithmetic(x.X)
	case *syntax.UnaryArithm:
		return w.arithmetic(x.X)
	case *syntax.BinaryArithm:
		return w.arithmetic(x.X) && w.arithmetic(x.Y)
	}
	return false
}

// computes judges arithmetic.
func (w *shellWalk) computes(list ...syntax.ArithmExpr) {
	for _, x := range list {
		if !w.arithmetic(x) {
			w.lose()
			w.doubt("uses arithmetic that is not analysed")
			w.evaluated("arithmetic")
		}
	}
}

// text finds the variables that the line gives something else than a number.
func (w *shellWalk) text(f *syntax.File) {
	mark := func(name string) {
		if w.texts == nil {
			w.texts = map[string]bool{}
		}
		w.texts[name] = true
	}
	for node := range syntax.Preorder(f) {
		switch n := node.(type) {
		case *syntax.Assign:
			if n.Name != nil && (n.Append || n.Index != nil || n.Array != nil || n.Value != nil && !onlyNumber(n.Value)) {
				mark(n.Name.Value)
			}
		case *syntax.WordIter:
			if len(n.Items) == 0 || slices.ContainsFunc(n.Items, func(x *syntax.Word) bool { return !onlyNumber(x) }) {
				mark(n.Name.Value)
			}
		case *syntax.DeclClause:
			for _, a := range n.Args { // those that are named come by themselves
				if a.Name == nil && a.Value != nil && (wordOf(a.Value).computed() || strings.HasPrefix(lit(a.Value), "-") && strings.Contains(lit(a.Value), "n") || !strings.HasPrefix(lit(a.Value), "-")) {
					mark("*")
				}
			}
		case *syntax.ParamExp:
			if n.Param != nil && n.Exp != nil && (n.Exp.Op == syntax.AssignUnset || n.Exp.Op == syntax.AssignUnsetOrNull) {
				mark(n.Param.Value)
			}
		case *syntax.CallExpr:
			if len(n.Args) > 0 && setsVariables[wordOf(n.Args[0]).s] && (lit(n.Args[0]) != "printf" || len(n.Args) < 2 || !strings.HasPrefix(lit(n.Args[1]), "%") && !isQuoted(n.Args[1])) {
				mark("*")
			}
		}
	}
}

// isQuoted says whether a word is one quoted text, and so cannot be an option
// that begins with another part.
func isQuoted(n *syntax.Word) bool {
	s := wordOf(n).s
	return !strings.HasPrefix(s, "-") && !strings.HasPrefix(s, dynamic)
}

// onlyNumber says whether a value is certainly a number. That of an arithmetic
// expression always is.
func onlyNumber(n *syntax.Word) bool {
	if len(n.Parts) == 0 {
		return true
	}
	if len(n.Parts) == 1 {
		switch p := n.Parts[0].(type) {
		case *syntax.Lit:
			return arithNumber.MatchString(p.Value)
		case *syntax.ArithmExp:
			return true
		}
	}
	return false
}

// setsVariables are the builtins that give variables a value which they read or
// are given, and dynamic for what could be one.
var setsVariables = map[string]bool{
	"read": true, "mapfile": true, "readarray": true, "printf": true, "getopts": true, "eval": true, "source": true, ".": true, "builtin": true, "command": true,
	"declare": true, "typeset": true, "let": true, "wait": true, "coproc": true, dynamic: true,
}

// isNumber says whether a word is certainly a number.
func isNumber(x word) bool {
	if x.s == dynamic {
		return len(x.vars) == 1 && (x.vars[0] == "?" || x.vars[0] == "#") && !x.other
	}
	digits := strings.TrimPrefix(x.s, "-")
	return digits != "" && strings.Trim(digits, "0123456789") == ""
}

// testCommand says whether `test` or `[` only compares. How it reads its words
// depends on how many there are, so none may become several. What should be a
// number and is not is shown.
func (w *shellWalk) testCommand(name string, args []word) bool {
	if name == "[" {
		if len(args) == 0 || args[len(args)-1].s != "]" {
			return false
		}
		args = args[:len(args)-1]
	}
	for len(args) > 1 && args[0].s == "!" {
		args = args[1:]
	}
	for _, x := range args {
		if x.split && !isNumber(x) || x.glob {
			return false
		}
	}
	switch len(args) {
	case 0, 1:
		return true
	case 2:
		op := args[0].s
		if op == "-t" && w.showsEnv(args[1]) {
			return false
		}
		return len(op) == 2 && op[0] == '-' && strings.Contains("abcdefghkprstuwxGLNOSnz", op[1:])
	case 3:
		if op := args[1].s; slices.Contains([]string{"-eq", "-ne", "-lt", "-le", "-gt", "-ge"}, op) && (w.showsEnv(args[0]) || w.showsEnv(args[2])) {
			return false
		}
		return slices.Contains([]string{"=", "==", "!=", "<", ">", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef"}, args[1].s)
	}
	return false
}

// setOptions says whether `set` only changes what errors do, and shows no more
// than the line itself: with -x it would show what variables hold.
func setOptions(args []word) bool {
	for i := 0; i < len(args); i++ {
		s := args[i].s
		if len(s) < 2 || s[0] != '-' && s[0] != '+' || strings.Trim(s[1:], "euxvEo") != "" || s[0] == '-' && strings.Contains(s, "x") {
			return false
		}
		if strings.HasSuffix(s, "o") {
			if i++; i == len(args) || !slices.Contains([]string{"pipefail", "errexit", "nounset", "verbose", "errtrace", "noclobber"}, args[i].s) {
				return false
			}
		} else if strings.Contains(s, "o") {
			return false
		}
	}
	return len(args) > 0
}

// reads judges the builtin read: it sets the variables that it names.
func (w *shellWalk) readCommand(args []word) bool {
	for len(args) > 0 && (args[0].s == "-r" || args[0].s == "-rs" || args[0].s == "-s") {
		args = args[1:]
	}
	for _, x := range args {
		if !identifier.MatchString(x.s) || isName(riskyVars, x.s) || w.isExported(x.s) {
			return false
		}
	}
	return len(args) > 0
}

// functionsOf returns where each function is defined that is there for certain
// from then on: one in the line itself, not in a branch or a subshell. Its body
// is judged, so that a call of it needs no judgement.
func functionsOf(f *syntax.File) map[string]uint {
	var out map[string]uint
	for _, s := range f.Stmts {
		if d, ok := s.Cmd.(*syntax.FuncDecl); ok && d.Name != nil && !s.Background && len(s.Redirs) == 0 {
			if out == nil {
				out = map[string]uint{}
			}
			if _, there := out[d.Name.Value]; !there {
				out[d.Name.Value] = s.End().Offset()
			}
		}
	}
	return out
}

// defines judges the definition of a function: not its body, which is judged as
// it stands.
func (w *shellWalk) defines(n *syntax.FuncDecl) {
	if n.Name == nil || shiftsShell[n.Name.Value] || n.Name.Value == "test" || n.Name.Value == "[" {
		w.lose()
		w.doubt("redefines %s", show(fmt.Sprint(nameOf(n))))
		return
	}
	const why = "the command line defines a function"
	w.acts = append(w.acts, act{kind: actOpaque, harmless: true, why: why})
}

func nameOf(n *syntax.FuncDecl) string {
	if n.Name == nil {
		return "functions"
	}
	return n.Name.Value
}
