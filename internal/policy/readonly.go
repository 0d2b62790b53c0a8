package policy

import (
	"slices"
	"strings"
)

// A reader is a command that only reads when it is given no other options than
// these. What is not an option counts as a path that it reads.
type reader struct {
	short  string   // the letters of its one-letter options
	long   []string // its long options; one that ends in = has a value, which is no path
	values bool     // its arguments are no paths
	names  bool     // it shows names and sizes, not contents
	here   bool     // without a path it reads the working directory
	search bool     // its first argument is a pattern; with -r it reads directories
	files  bool     // of directories it would follow links, so it may read files only
}

// readers are the commands that are known to change nothing. The table is
// short on purpose, and knows every option: what it does not know asks.
var readers = map[string]reader{
	"pwd":       {short: "LP"},
	"true":      {},
	"false":     {},
	"whoami":    {},
	"uname":     {short: "asnrmpio"},
	"echo":      {short: "neE", values: true},
	"printf":    {values: true},
	"basename":  {short: "az", values: true},
	"dirname":   {short: "z", values: true},
	"which":     {short: "a", values: true},
	"ls":        {short: "aAlhrtSRd1FgGinopsUXBCckmqx", long: []string{"--all", "--almost-all", "--color", "--color=", "--recursive", "--human-readable"}, here: true, names: true},
	"stat":      {short: "cLt", long: []string{"--format=", "--printf="}, names: true},
	"du":        {short: "achksmd0123456789", long: []string{"--max-depth="}, here: true, names: true},
	"readlink":  {short: "femnz", names: true},
	"realpath":  {short: "emsz", names: true},
	"file":      {short: "bi", long: []string{"--brief", "--mime", "--mime-type"}},
	"cat":       {short: "AbeEnstTuv"},
	"head":      {short: "cnqv0123456789"},
	"tail":      {short: "cnqv0123456789"},
	"wc":        {short: "clmLw"},
	"cmp":       {short: "bls"},
	"diff":      {short: "abBcdipqsuwyU0123456789", long: []string{"--brief", "--unified=", "--color="}, files: true},
	"grep":      {short: "aABCcEeFGHhiILlmnoPqrsvwx0123456789", long: []string{"--include=", "--exclude=", "--exclude-dir=", "--color=", "--line-number", "--ignore-case", "--count"}, search: true},
	"md5sum":    {short: "bt"},
	"sha256sum": {short: "bt"},
}

// gitReaders are the subcommands of git that only read with these options.
var gitReaders = map[string]reader{
	"status":    {short: "sbuvz", long: []string{"--short", "--branch", "--porcelain", "--porcelain=", "--untracked-files=", "--ignored"}, here: true, names: true},
	"log":       {short: gitShort, long: gitLong, here: true, names: true},
	"diff":      {short: gitShort, long: gitLong, here: true, names: true},
	"show":      {short: gitShort, long: gitLong, here: true, names: true},
	"rev-parse": {long: []string{"--show-toplevel", "--abbrev-ref", "--short", "--verify", "--git-dir", "--is-inside-work-tree"}, here: true, names: true},
	"ls-files":  {short: "cdmosz", long: []string{"--cached", "--deleted", "--modified", "--others", "--exclude-standard"}, here: true, names: true},
	"blame":     {short: "Lwe", names: true},
}

const gitShort = "pnwbsuUMCizGL0123456789"

var gitLong = []string{
	"--oneline", "--stat", "--shortstat", "--numstat", "--name-only", "--name-status", "--patch", "--no-patch", "--all", "--graph",
	"--decorate", "--decorate=", "--author=", "--since=", "--until=", "--after=", "--before=", "--grep=", "--cached", "--staged",
	"--no-color", "--color=", "--pretty=", "--format=", "--abbrev-commit", "--follow", "--reverse", "--merges", "--no-merges",
	"--word-diff", "--unified=", "--summary", "--first-parent", "--max-count=", "--date=", "--no-ext-diff", "--no-textconv", "--check", "--diff-filter=",
}

// readOnly says whether a command is known to change nothing, which paths it
// may read, and as what tool those reads count. In doubt the answer is no.
func (w *shellWalk) readOnly(a *act) (reads []string, as string, ok bool) {
	if a.prefixed || w.lost {
		return nil, "", false
	}
	args := a.words[1:]
	if a.words[0].s == "cd" {
		reads, ok = w.changeDir(args)
		return reads, "list_directory", ok
	}
	r, ok := readers[a.words[0].s]
	if a.words[0].s == "git" {
		if len(args) > 0 && args[0].s == "--no-pager" {
			args = args[1:]
		}
		if len(args) == 0 {
			return nil, "", false
		}
		r, ok = gitReaders[args[0].s]
		args = args[1:]
		ok = ok && !slices.ContainsFunc(w.dirs, func(dir string) bool { return !w.place.ownGit(dir) })
	}
	if !ok {
		return nil, "", false
	}
	reads, ok = w.arguments(&r, args)
	as = searchTool // a directory's files may be shown, as a search does
	if r.names {
		as = "list_directory"
	}
	return reads, as, ok
}

// arguments judges the options, and resolves what else there is as paths. What
// is computed is in doubt always: it could be an option, and it could show the
// environment, which is not in the workspace.
func (w *shellWalk) arguments(r *reader, args []word) (reads []string, ok bool) {
	operands, recursive, options := 0, false, true
	for _, arg := range args {
		switch {
		case strings.Contains(arg.s, dynamic):
			return nil, false
		case options && arg.s == "--":
			options = false
			continue
		case options && len(arg.s) > 1 && arg.s[0] == '-':
			if arg.glob || !r.option(arg.s) {
				return nil, false
			}
			recursive = recursive || arg.s[1] != '-' && strings.Contains(arg.s, "r")
			continue
		}
		operands++
		if r.values && !arg.glob || arg.s == "-" { // "-" is standard input
			continue
		}
		paths, ok := w.paths(arg)
		if !ok || r.files && slices.ContainsFunc(paths, isDir) {
			return nil, false
		}
		reads = append(reads, paths...)
	}
	if r.here && operands == 0 || r.search && recursive && operands < 2 {
		reads = append(reads, w.dirs...)
	}
	return reads, true
}

// option says whether an option is in the table.
func (r *reader) option(s string) bool {
	if strings.HasPrefix(s, "--") {
		name, _, has := strings.Cut(s, "=")
		if has {
			name += "="
		}
		return slices.Contains(r.long, name)
	}
	return strings.Trim(s[1:], r.short) == ""
}

// changeDir follows a cd to a literal directory.
func (w *shellWalk) changeDir(args []word) (reads []string, ok bool) {
	if len(args) != 1 || strings.HasPrefix(args[0].s, "-") || len(w.dirs) > maxDirs {
		return nil, false
	}
	if reads, ok = w.paths(args[0]); !ok {
		return nil, false
	}
	for _, path := range reads {
		if !slices.Contains(w.dirs, path) {
			w.dirs = append(w.dirs, path)
		}
	}
	return reads, true
}
