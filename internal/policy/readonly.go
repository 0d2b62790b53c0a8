package policy

import (
	"slices"
	"strings"
)

// A reader is a command that only reads when it is given no other options than
// these. What is not an option counts as a path that it reads.
type reader struct {
	short    string   // the letters of its one-letter options
	valued   string   // those of them that take a value, in the same word or the next
	numeric  string   // those of them whose value is a number
	attached string   // those of them whose value, if there is one, is in the same word
	long     []string // its long options; one that ends in = has a value, which is no path
	values   bool     // its arguments are no paths
	names    bool     // it shows names and sizes, not contents
	here     bool     // without a path it reads the working directory
	search   bool     // its first argument is a pattern, if -e gives none; with -r it reads directories
	files    bool     // of directories it would follow links, so it may read files only
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
	"stat":      {short: "cLt", valued: "c", long: []string{"--format=", "--printf="}, names: true},
	"du":        {short: "achksmd0123456789", valued: "d", numeric: "d", long: []string{"--max-depth="}, here: true, names: true},
	"readlink":  {short: "femnz", names: true},
	"realpath":  {short: "emsz", names: true},
	"file":      {short: "bi", long: []string{"--brief", "--mime", "--mime-type"}},
	"cat":       {short: "AbeEnstTuv"},
	"head":      {short: "cnqv0123456789", valued: "cn"},
	"tail":      {short: "cnqv0123456789", valued: "cn"},
	"wc":        {short: "clmLw"},
	"cmp":       {short: "bls"},
	"diff":      {short: "abBcdipqsuwyU0123456789", valued: "U", numeric: "U", long: []string{"--brief", "--unified=", "--color="}, files: true},
	"grep":      {short: "aABCcEeFGHhiILlmnoPqrsvwx0123456789", valued: "ABCme", numeric: "ABCm", long: []string{"--include=", "--exclude=", "--exclude-dir=", "--color=", "--line-number", "--ignore-case", "--count"}, search: true},
	"md5sum":    {short: "bt"},
	"sha256sum": {short: "bt"},
}

// readOnly says whether a command is known to change nothing, which paths it
// may read, and as what tool those reads count. In doubt the answer is no; the
// paths that it does name are returned even so.
func (w *shellWalk) readOnly(a *act) (reads []string, as string, ok bool) {
	ok = !a.prefixed && !w.lost
	args := a.words[1:]
	if a.words[0].s == "cd" && ok {
		reads, ok = w.changeDir(args)
		return reads, "list_directory", ok
	}
	r, known := readers[a.words[0].s]
	if g, is := parseGit(a.words); is {
		r, known = gitReaders[g.sub]
		if known && ok {
			if why := w.gitRuns(g.sub); why != "" {
				a.why, ok = why, false
			}
		}
		ok = ok && g.plain && a.words[0].s == "git"
		args = g.args
	}
	if !known {
		return nil, "", false
	}
	reads, literal := w.arguments(&r, args)
	as = searchTool // a directory's files may be shown, as a search does
	if r.names {
		as = "list_directory"
	}
	return reads, as, ok && literal
}

// arguments judges the options, and resolves what else there is as paths. What
// is computed is in doubt always: it could be an option, and it could show the
// environment, which is not in the workspace.
func (w *shellWalk) arguments(r *reader, args []word) (reads []string, ok bool) {
	c := r.split(args)
	ok = !c.unknown
	for _, arg := range c.operands {
		switch {
		case strings.Contains(arg.s, dynamic):
			ok = false
			continue
		case r.values && !arg.glob || arg.s == "-": // "-" is standard input
			continue
		}
		paths, found := w.paths(arg)
		if !found || r.files && slices.ContainsFunc(paths, isDir) {
			ok = false
		}
		reads = append(reads, paths...)
	}
	if (len(c.operands) == 0 || c.whole) && (r.here || r.search && c.recursive) {
		reads = append(reads, w.dirs...)
	}
	return reads, ok
}

// A commandArgs is what the arguments of a reader are.
type commandArgs struct {
	operands  []word // without what is certainly the pattern of a search
	recursive bool   // -r
	whole     bool   // the only operand may be the pattern, so that there is none
	unknown   bool   // something is not in the table, or computed
	letters   string // the one-letter options
	long      []string
}

// split tells options, their values and operands apart, as getopt does. Taking
// a value for an operand would make a search of the whole directory look like
// one of that path alone. In doubt a word is an operand.
func (r *reader) split(args []word) (c commandArgs) {
	options, given := true, false // given: an option may hold the pattern
	for i := 0; i < len(args); i++ {
		arg := args[i]
		switch {
		case options && arg.s == "--":
			options = false
		case options && strings.HasPrefix(arg.s, "--"):
			c.long = append(c.long, arg.s)
			if arg.computed() || !r.longOption(arg.s) {
				c.unknown = true
				given = given || strings.HasPrefix(arg.s, "--r") || strings.HasPrefix(arg.s, "--f")
				if _, value, has := strings.Cut(arg.s, "="); has && r.search {
					c.operands = append(c.operands, word{s: value}) // --file=, say
				}
			}
		case options && len(arg.s) > 1 && arg.s[0] == '-':
			c.unknown = c.unknown || arg.computed()
			i += r.letters(&c, arg.s[1:], args[i+1:])
		default:
			c.operands = append(c.operands, arg)
		}
	}
	c.recursive = strings.ContainsAny(c.letters, "rRd") || slices.ContainsFunc(c.long, func(s string) bool {
		return strings.HasPrefix(s, "--r") || strings.HasPrefix(s, "--de") || strings.HasPrefix(s, "--di")
	})
	if !r.search {
		return c
	}
	// -e or -f may stand behind the first operand, which is a file then.
	given = given || strings.ContainsAny(c.letters, "ef")
	if len(c.operands) > 0 && !given {
		c.unknown = c.unknown || c.operands[0].computed()
		if c.unknown {
			c.whole = len(c.operands) == 1 // the pattern, perhaps
		} else {
			c.operands = c.operands[1:]
		}
	}
	return c
}

// letters judges a word of one-letter options, and says how many words after
// it are its value.
func (r *reader) letters(c *commandArgs, s string, next []word) (taken int) {
	if s[0] >= '0' && s[0] <= '9' && r.valued != "" && strings.Trim(s, "0123456789") != "" {
		// The obsolete -NUMc has no value, though -c has one.
		c.unknown = true
		c.letters += s
		return 0
	}
	letters, value, wants := r.cluster(s)
	c.letters += letters
	c.unknown = c.unknown || strings.Trim(letters, r.short) != ""
	last := letters[len(letters)-1:]
	if wants && value == "" {
		if len(next) == 0 || next[0].computed() {
			c.unknown = true
			return min(1, len(next))
		}
		value, taken = next[0].s, 1
	}
	if wants && strings.Contains(r.numeric, last) && strings.Trim(value, "0123456789") != "" {
		c.unknown = true
	}
	if at := strings.IndexByte(s, 'f'); r.search && at >= 0 && s[at+1:] != "" {
		c.operands = append(c.operands, word{s: s[at+1:]}) // of patterns
	}
	return taken
}

// cluster splits a word of one-letter options at the first one with a value,
// and says whether that one needs it.
func (r *reader) cluster(s string) (letters, value string, wants bool) {
	for i := range len(s) {
		switch {
		case strings.IndexByte(r.valued, s[i]) >= 0:
			return s[:i+1], s[i+1:], true
		case strings.IndexByte(r.attached, s[i]) >= 0:
			return s[:i+1], s[i+1:], false
		}
	}
	return s, "", false
}

// longOption says whether a long option is in the table.
func (r *reader) longOption(s string) bool {
	name, _, has := strings.Cut(s, "=")
	if has {
		name += "="
	}
	return slices.Contains(r.long, name)
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
