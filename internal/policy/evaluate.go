package policy

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// evaluated notes that bash evaluates a text, in which commands can stand that
// nobody sees: they run, and may read and write files.
func (w *shellWalk) evaluated(format string, a ...any) {
	w.unseen("evaluates "+format+", in which commands can stand", a...)
	w.unseenFile("evaluates a text in which commands can stand", nil)
}

// expansion judges a parameter expansion as something that is evaluated: a
// subscript, an offset, a prompt (${x@P}), a name that is in another variable.
func (w *shellWalk) expansion(n *syntax.ParamExp) {
	switch {
	case n.Names != 0: // ${!prefix*}
	case n.Excl && !allElements(n.Index):
		w.evaluated("the name in a variable (${!…})")
	case n.Exp != nil && n.Exp.Op == syntax.OtherParamOps && (n.Exp.Word == nil || lit(n.Exp.Word) == "P" || lit(n.Exp.Word) == ""):
		w.evaluated("a variable as a prompt (${…@P})")
	case n.Exp != nil && (n.Exp.Op == syntax.AssignUnset || n.Exp.Op == syntax.AssignUnsetOrNull) && n.Param != nil && integerVars[n.Param.Value] && n.Exp.Word != nil && !w.number(n.Exp.Word):
		w.evaluated("what %s is set to", n.Param.Value)
	}
	w.subscript(n.Index)
	if n.Slice != nil && (!w.arithmetic(n.Slice.Offset) || !w.arithmetic(n.Slice.Length)) {
		w.evaluated("an offset (${…:…})")
	}
}

// integerVars are the variables of which bash evaluates what they are set to.
var integerVars = map[string]bool{
	"RANDOM": true, "SRANDOM": true, "SECONDS": true, "OPTIND": true, "LINENO": true, "HISTCMD": true, "EPOCHSECONDS": true, "BASHPID": true, "BASH_SUBSHELL": true,
}

// integer judges an assignment to one of them.
func (w *shellWalk) integer(a *syntax.Assign) {
	if a.Name == nil || a.Naked || !integerVars[a.Name.Value] {
		return
	}
	if a.Array != nil || a.Value != nil && !w.number(a.Value) {
		w.evaluated("what %s is set to", a.Name.Value)
	}
}

// subscript judges that of an array.
func (w *shellWalk) subscript(x syntax.ArithmExpr) {
	if x != nil && !allElements(x) && !w.arithmetic(x) {
		w.evaluated("a subscript")
	}
}

func allElements(x syntax.ArithmExpr) bool {
	n, ok := x.(*syntax.Word)
	return ok && (lit(n) == "@" || lit(n) == "*")
}

// declared judges the words of declare and its like: of an integer the value is
// evaluated, of a reference (-n) the name, of a word that is computed all of it.
func (w *shellWalk) declared(n *syntax.DeclClause) {
	for _, a := range n.Args {
		if a.Name != nil || a.Value == nil {
			continue
		}
		x := wordOf(a.Value)
		flag := len(x.s) > 1 && (x.s[0] == '-' || x.s[0] == '+')
		if !flag && !identifier.MatchString(x.s) || x.computed() || flag && x.s[0] == '-' && n.Variant.Value != "export" && strings.ContainsAny(x.s, "in") {
			w.evaluated("what it declares (%s)", n.Variant.Value)
		}
	}
	if n.Variant.Value == "nameref" {
		w.evaluated("what it declares (nameref)")
	}
}

// evaluates notes the builtins that evaluate the subscripts in their arguments,
// when these are known only then or hold one.
func (w *shellWalk) evaluates(name string, args []word) {
	valued := ""
	switch name {
	case "let":
		valued = "all"
	case "test", "[":
		for i, x := range args {
			if x.split && !isNumber(x) && !w.numericWord(x) {
				w.evaluated("what is known only when it runs (%s)", name)
				return
			}
			if strings.HasPrefix(x.s, "-v") || x.s == "-R" || i == 0 && len(args) < 4 && x.s == dynamic && len(args) > 1 && args[1].s == dynamic {
				valued = "all"
			}
		}
	case "printf":
		if len(args) > 0 && (strings.HasPrefix(args[0].s, "-v") || strings.HasPrefix(args[0].s, dynamic) && !w.numericWord(args[0])) {
			valued = "all"
		}
	case "wait":
		if !slices.ContainsFunc(args, func(x word) bool { return strings.HasPrefix(x.s, "-") && strings.Contains(x.s, "p") }) {
			return
		}
		valued = "all"
	case "read":
		valued = "pdinNtu"
	case "mapfile", "readarray":
		valued = "dnOsuCc"
	default: // unset, getopts, and declare and its like behind `builtin` or `command`
		valued = "-"
	}
	if valued == "" {
		return
	}
	for i := 0; i < len(args); i++ {
		s := args[i].s
		if valued != "all" && len(s) > 1 && s[0] == '-' && !args[i].computed() {
			if strings.IndexByte(valued, s[len(s)-1]) >= 0 {
				i++ // its value is no name
			}
			continue
		}
		if name != "let" && name != "unset" && name != "test" && name != "[" && integerVars[strings.TrimPrefix(s, "-v")] {
			w.evaluated("what %s is set to (%s)", strings.TrimPrefix(s, "-v"), name)
			return
		}
		if strings.Contains(s, dynamic) && !w.numericWord(args[i]) || valued != "all" && strings.Contains(s, "[") {
			w.evaluated("what is known only when it runs (%s)", name)
			return
		}
	}
}

// numericWord says whether a word is a variable that can hold nothing but a number.
func (w *shellWalk) numericWord(x word) bool {
	return x.s == dynamic && !x.other && len(x.vars) == 1 && (isNumber(x) || w.numeric(x.vars[0]))
}

// commandVars are variables that name commands, or settings that can, for those
// who obey them.
var commandVars = []string{
	"GIT_*", "*EDITOR", "*PAGER", "VISUAL", "BROWSER", "LESSOPEN", "LESSCLOSE", "*ASKPASS", "*_RSH", "BASH_ENV", "ENV", "PS4", "PROMPT_COMMAND",
	"*_COMMAND", "*_WRAPPER", "MAKEFLAGS", "GNUMAKEFLAGS",
}

// plainCommandVars are those of them that name no command.
var plainCommandVars = []string{
	"GIT_AUTHOR_*", "GIT_COMMITTER_*", "GIT_TERMINAL_PROMPT", "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_TRACE*", "GIT_OPTIONAL_LOCKS",
	"GIT_MERGE_AUTOEDIT", "GIT_LFS_SKIP_SMUDGE", "GIT_DISCOVERY_ACROSS_FILESYSTEM", "GIT_CEILING_DIRECTORIES", "GIT_COMMIT", "GIT_BRANCH", "GIT_SHA", "GIT_TAG",
}

// commandVar notes a variable that is given a command to run.
func (w *shellWalk) commandVar(name string, value word) {
	if !isName(commandVars, name) || isName(plainCommandVars, name) {
		return
	}
	switch path.Base(value.s) {
	case "cat", "true", ":", "less", "more", ".": // . is of the empty text
		if !value.computed() && !strings.Contains(value.s, " ") {
			return
		}
	}
	w.unseen("sets %s, which can name commands", show(name))
}

// gitOptions are options of git's subcommands that name a command, or settings.
var gitOptions = map[string]string{
	"grep": "-O --open-files-in-pager", "fetch": "--upload-pack", "pull": "--upload-pack", "clone": "-u --upload-pack -c --config --template",
	"ls-remote": "--upload-pack --exec", "fetch-pack": "--upload-pack --exec", "push": "--receive-pack --exec", "send-pack": "--receive-pack --exec",
	"archive": "--exec", "rebase": "-x --exec", "send-email": "--smtp-server --sendmail-cmd --to-cmd --cc-cmd --header-cmd", "instaweb": "-d --httpd -b --browser",
	"init": "--template", "submodule": "foreach", "remote": "ext::", "help": "-w --web", "web--browse": "-c -t -b",
}

// gitOption says whether one of the arguments is such an option: a letter, alone
// or with others in one word, or a long one, perhaps shortened.
func gitOption(sub string, args []word) bool {
	list := strings.Fields(gitOptions[sub])
	return slices.ContainsFunc(args, func(x word) bool {
		if strings.HasPrefix(x.s, "ext::") {
			return true
		}
		name, _, _ := strings.Cut(x.s, "=")
		return slices.ContainsFunc(list, func(o string) bool {
			switch {
			case strings.HasPrefix(o, "--"):
				return len(name) > 2 && strings.HasPrefix(o, name)
			case o[0] == '-':
				return len(x.s) > 1 && x.s[0] == '-' && x.s[1] != '-' && strings.Contains(x.s, o[1:])
			}
			return x.s == o
		})
	})
}
