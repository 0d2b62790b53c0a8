package policy

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A reader is a command that only reads when it is given no other options than
// these. What is not an option counts as a path that it reads.
type reader struct {
	short    string                 // the letters of its one-letter options
	valued   string                 // those of them that take a value, in the same word or the next
	numeric  string                 // those of them whose value is a number
	attached string                 // those of them whose value, if there is one, is in the same word
	long     []string               // its long options; one that ends in = has a value, which is no path
	values   bool                   // its arguments are no paths
	names    bool                   // it shows names and sizes, not contents
	here     bool                   // without a path it reads the working directory
	search   bool                   // its first argument is a pattern, if -e gives none; with -r it reads directories
	files    bool                   // of directories it would follow links, so it may read files only
	next     []string               // its long options whose value is the next word
	skip     int                    // so many operands come first that are no files
	first    bool                   // its first argument has to be literal
	harmless bool                   // no option makes it more than a reader, so that a file may be called like one
	most     int                    // so many operands it has at most; 0 is any number, -1 is none
	plain    func(args []word) bool // a further condition
}

// grepNext are options of grep whose value is the next word.
var grepNext = []string{"--max-count", "--context", "--after-context", "--before-context", "--include", "--exclude", "--exclude-dir", "--binary-files", "--label", "--directories", "--regexp"}

// readers are the commands that are known to change nothing. The table is
// short on purpose, and knows every option: what it does not know asks.
var readers = map[string]reader{
	"pwd":      {short: "LP"},
	"true":     {},
	"false":    {},
	"whoami":   {},
	"uname":    {short: "asnrmpio"},
	"echo":     {short: "neE", values: true},
	"printf":   {values: true, first: true},
	"basename": {short: "az", values: true},
	"dirname":  {short: "z", values: true},
	"which":    {short: "a", values: true},
	"ls":       {harmless: true, short: "aAlhrtSRd1FgGinopsUXBCckmqx", long: []string{"--all", "--almost-all", "--color", "--color=", "--recursive", "--human-readable"}, here: true, names: true},
	"stat":     {harmless: true, short: "cLt", valued: "c", long: []string{"--format=", "--printf="}, names: true},
	"du":       {short: "achksmd0123456789", valued: "d", numeric: "d", long: []string{"--max-depth="}, here: true, names: true},
	"readlink": {short: "femnz", names: true},
	"realpath": {short: "emsz", names: true},
	"file":     {harmless: true, short: "bi", long: []string{"--brief", "--mime", "--mime-type"}},
	"cat":      {harmless: true, short: "AbeEnstTuv"},
	"head":     {next: []string{"--lines", "--bytes"}, harmless: true, short: "cnqv0123456789", valued: "cn", long: []string{"--lines=", "--bytes="}},
	"tail":     {next: []string{"--lines", "--bytes"}, harmless: true, short: "cnqv0123456789", valued: "cn", long: []string{"--lines=", "--bytes="}},
	"wc":       {short: "clmLw", long: []string{"--lines", "--words", "--bytes"}},
	"cmp":      {short: "bls"},
	"diff":     {short: "abBcdipqsuwyU0123456789", valued: "U", numeric: "U", long: []string{"--brief", "--unified=", "--color="}, files: true},
	"grep": {next: grepNext, short: "aABCcEeFGHhiILlmnoPqrsvwx0123456789", valued: "ABCme", numeric: "ABCm", long: []string{"--include=", "--exclude=", "--exclude-dir=", "--color=", "--line-number", "--ignore-case", "--count", "--only-matching", "--files-with-matches", "--invert-match", "--word-regexp", "--context=",
		"--max-count=", "--after-context=", "--before-context=", "--binary-files=", "--regexp=", "--recursive", "--no-messages", "--no-filename", "--with-filename", "--text", "--extended-regexp", "--fixed-strings", "--perl-regexp", "--quiet", "--silent", "--files-without-match", "--byte-offset", "--line-regexp", "--line-buffered"}, search: true},
	"egrep": {short: "aABCceHhiILlmnoqrsvwx0123456789", valued: "ABCme", numeric: "ABCm", search: true},
	"fgrep": {short: "aABCceHhiILlmnoqrsvwx0123456789", valued: "ABCme", numeric: "ABCm", search: true},
	"rg": {next: []string{"--glob", "--type", "--context", "--max-count", "--sort", "--color", "--max-depth", "--max-columns", "--after-context", "--before-context", "--threads", "--iglob", "--type-not", "--sortr", "--max-filesize", "--regexp"}, short: "nilcvwoxSsFHIhNUPpuABCegmtTj0123456789", valued: "ABCegmtTj", numeric: "ABCmj", here: true, search: true,
		long: []string{"--files", "--glob=", "--type=", "--hidden", "--no-ignore", "--line-number", "--ignore-case", "--smart-case", "--count", "--files-with-matches", "--color=", "--no-heading", "--heading", "--context=", "--max-count=", "--fixed-strings", "--word-regexp", "--only-matching", "--sort=", "--json", "--type-list",
			"--max-depth=", "--max-columns=", "--after-context=", "--before-context=", "--threads=", "--iglob=", "--type-not=", "--sortr=", "--max-filesize=", "--regexp=", "--no-filename", "--with-filename", "--line-regexp", "--invert-match", "--files-without-match", "--count-matches", "--multiline", "--trim", "--stats", "--vimgrep", "--column", "--text", "--pretty", "--no-ignore-vcs"}},
	"md5sum":    {short: "bt"},
	"sha1sum":   {short: "bt"},
	"sha256sum": {short: "bt"},
	"sha512sum": {short: "bt"},
	"cksum":     {},
	"sort":      {short: "bdfghiMnRrVuszkt", valued: "kt", long: []string{"--reverse", "--numeric-sort", "--unique", "--version-sort", "--human-numeric-sort"}},
	"uniq":      {short: "cdiuDzfsw", valued: "fsw", most: 1, long: []string{"--count", "--repeated", "--unique"}},
	"cut":       {short: "dfcbsz", valued: "dfcb", long: []string{"--delimiter=", "--fields=", "--complement"}},
	"tr":        {short: "cCdst", values: true},
	"nl":        {short: "bnwsvi", valued: "bnwsvi"},
	"tac":       {}, "rev": {}, "fold": {short: "swb", valued: "w"}, "expand": {short: "t", valued: "t"}, "fmt": {short: "w", valued: "w"},
	"paste":    {short: "dsz", valued: "d"},
	"comm":     {short: "123z"},
	"join":     {short: "12atoej", valued: "12atoej"},
	"column":   {short: "tsoxc", valued: "soc"},
	"od":       {short: "AtxcNjvd", valued: "AtNj"},
	"hexdump":  {short: "Cvnse", valued: "nse"},
	"xxd":      {short: "lpscgub", valued: "lscg", most: 1},
	"strings":  {short: "ant", valued: "nt"},
	"base64":   {short: "dwi", valued: "w", long: []string{"--decode", "--wrap="}},
	"jq":       {short: "rncesSajMC", skip: 1, long: []string{"--raw-output", "--compact-output", "--null-input", "--slurp", "--sort-keys", "--exit-status", "--tab"}, plain: jqReads},
	"tree":     {short: "adfLIPhsDpugC", valued: "LIP", here: true, names: true, long: []string{"--gitignore", "--dirsfirst", "--noreport"}},
	"seq":      {short: "swf", valued: "sf", values: true},
	"sleep":    {values: true},
	"date":     {short: "uRId", valued: "d", attached: "I", values: true, long: []string{"--utc", "--iso-8601", "--iso-8601=", "--date="}, plain: dateReads},
	"type":     {short: "aptP", values: true},
	"whereis":  {values: true},
	"command":  {short: "vV", values: true, plain: func(args []word) bool { return len(args) == 2 && (args[0].s == "-v" || args[0].s == "-V") }},
	"id":       {short: "ugGnr", values: true},
	"groups":   {values: true},
	"nproc":    {long: []string{"--all"}, most: -1},
	"arch":     {most: -1},
	"tty":      {short: "s", most: -1},
	"hostname": {short: "fsIi", most: -1},
	"uptime":   {short: "ps", most: -1},
	"free":     {short: "hmgbkt", most: -1},
	"df":       {short: "hHTaikm", names: true},
	"ps":       {short: "eAfopuCFlLT", valued: "opuC", values: true, plain: psReads},
	"pgrep":    {short: "aflnux", valued: "u", values: true},
	"lscpu":    {most: -1},
	"cal":      {values: true},
	"factor":   {values: true},
	"numfmt":   {values: true, long: []string{"--to=", "--from=", "--grouping"}},
	"tput":     {values: true},
	"exit":     {values: true},
	"return":   {values: true},
	"wait":     {values: true},
	"shift":    {values: true},
	"break":    {values: true},
	"continue": {values: true},
	":":        {values: true},
}

// versions are commands that with --version alone say which they are, and obey
// no file of the workspace before they do.
var versions = []string{"node", "npm", "python", "python3", "ruby", "perl", "gcc", "g++", "clang", "java", "php", "docker", "bash", "git", "make", "cmake", "jq", "rg", "curl", "tar"}

func jqReads(args []word) bool {
	return !slices.ContainsFunc(args, func(x word) bool {
		return strings.Contains(x.s, "env") || strings.Contains(x.s, "ENV") || strings.Contains(x.s, "import") || strings.Contains(x.s, "include") || strings.Contains(x.s, "$__")
	})
}

// dateReads says whether date does not set the clock, nor look a file up.
func dateReads(args []word) bool {
	value := false
	for _, x := range args {
		if !value && !strings.HasPrefix(x.s, "-") && !strings.HasPrefix(x.s, "+") || x.split {
			return false
		}
		value = x.s == "-d" || x.s == "-ud"
	}
	return true
}

// psReads says whether ps shows no environment.
func psReads(args []word) bool {
	columns := false
	for _, x := range args {
		switch {
		case x.computed(), columns && !psColumns.MatchString(x.s):
			return false
		case columns, strings.HasPrefix(x.s, "-"):
			columns = !columns && strings.HasSuffix(x.s, "o")
		case strings.Trim(x.s, "0123456789,axu") != "":
			return false
		}
	}
	return true
}

var psColumns = regexp.MustCompile(`^[a-z%]+(?:[,=][a-z%]*)*$`)

// readOnly says whether a command is known to change nothing, which paths it
// may read, and as what tool those reads count. In doubt the answer is no; the
// paths that it does name are returned even so.
func (w *shellWalk) readOnly(a *act) (reads []string, as string, ok bool) {
	ok = !a.prefixed && !w.lost
	args := a.words[1:]
	if a.words[0].s == "cd" {
		reads, followed := w.changeDir(args, a.prefixed)
		return reads, "list_directory", ok && followed
	}
	r, known := readers[a.words[0].s]
	switch name := a.words[0].s; {
	case len(args) == 1 && args[0].s == "--version" && slices.Contains(versions, name):
		return nil, "", ok
	case name == "test" || name == "[":
		return nil, "", ok && w.testCommand(name, args)
	case name == "set":
		return nil, "", ok && setOptions(args)
	case name == "read":
		return nil, "", ok && w.readCommand(args)
	case shellLine(a.words):
		return nil, "", ok
	case name == "find":
		dirs, lists := findReads(args)
		reads, found := w.arguments(&reader{here: true, names: true}, append([]word{{s: "--"}}, dirs...), a)
		return reads, "list_directory", ok && lists && found
	case name == "sed", name == "awk":
		judge := sedReads
		if name == "awk" {
			judge = awkReads
		}
		files, plain := judge(args)
		reads, found := w.arguments(&reader{files: true}, append([]word{{s: "--"}}, files...), a)
		return reads, searchTool, ok && plain && found
	case clear(a.words) != nil:
		return w.readOnly(&act{kind: actCommand, words: clear(a.words), prefixed: a.prefixed, owner: a})
	}
	files := a
	if g, is := parseGit(a.words); is {
		r, known = gitReaders[g.sub]
		if known && ok {
			if why := w.gitRuns(g.sub); why != "" {
				a.why, ok = why, false
			}
		}
		ok = ok && g.plain && a.words[0].s == "git"
		args, files = g.args, nil
	}
	if !known {
		return nil, "", false
	}
	reads, literal := w.arguments(&r, args, files)
	ok = ok && (r.plain == nil || r.plain(args))
	as = searchTool // a directory's files may be shown, as a search does
	if r.names || r.values {
		as = "list_directory"
	}
	return reads, as, ok && literal
}

// arguments judges the options, and resolves what else there is as paths. What
// is computed is in doubt always: it could be an option, and it could show the
// environment, which is not in the workspace. A path that cannot be resolved is a
// file of the owner's that nobody knows; what git is given is no path (owner nil).
func (w *shellWalk) arguments(r *reader, args []word, owner *act) (reads []string, ok bool) {
	unknown := func() {
		if ok = false; owner != nil && !r.values {
			w.unknownFile(unknownFiles, owner)
		}
	}
	c := r.split(args)
	ok = !c.unknown && (r.most == 0 || len(c.operands) <= max(r.most, 0))
	for i, arg := range c.operands {
		ok = ok && (r.most == 0 || !arg.glob)
		switch {
		case i < r.skip:
			ok = ok && !arg.computed()
			continue
		case arg.proc: // what it reads is judged
			continue
		case strings.Contains(arg.s, dynamic):
			if r.values && !w.showsEnv(arg) && (i > 0 || !r.first) {
				continue // as text
			}
			unknown()
			continue
		case r.values && !arg.glob || arg.s == "-" || arg.s == "/dev/stdin": // what is fed in is judged
			continue
		}
		paths, found := w.operand(arg, r.harmless)
		if !found {
			unknown()
		}
		if r.files && slices.ContainsFunc(paths, isDir) {
			ok = false
		}
		reads = append(reads, paths...)
	}
	if (len(c.operands) == 0 || c.whole || r.search && c.taking) && (r.here || r.search && c.recursive) {
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
	taking    bool   // and the next word may be its value, so that no operand may be a file
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
			if slices.Contains(r.next, arg.s) {
				if i++; i == len(args) || args[i].computed() {
					c.unknown = true
				}
				continue
			}
			if arg.computed() && !valueOnly(arg) || !r.longOption(arg.s) {
				c.unknown = true
				given = given || strings.HasPrefix(arg.s, "--r") || strings.HasPrefix(arg.s, "--f")
				_, value, has := strings.Cut(arg.s, "=")
				if c.taking = c.taking || !has; has && r.search {
					c.operands = append(c.operands, word{s: value, glob: arg.glob}) // --file=, say
				}
			}
		case options && len(arg.s) > 1 && arg.s[0] == '-':
			c.unknown = c.unknown || arg.computed()
			c.taking = c.taking || arg.computed() || r.mayTake(arg.s)
			i += r.letters(&c, arg, args[i+1:])
		default:
			c.operands = append(c.operands, arg)
		}
	}
	c.recursive = strings.ContainsAny(c.letters, "rRd") || slices.ContainsFunc(c.long, func(s string) bool {
		return strings.HasPrefix(s, "--r") && !strings.HasPrefix(s, "--reg") || strings.HasPrefix(s, "--de") || strings.HasPrefix(s, "--di")
	})
	if !r.search {
		return c
	}
	// -e or -f may stand behind the first operand, which is a file then.
	given = given || strings.ContainsAny(c.letters, "ef") || slices.ContainsFunc(c.long, func(s string) bool {
		return s == "--files" || s == "--type-list" || strings.HasPrefix(s, "--reg")
	})
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

// mayTake says whether the last of the one-letter options in a word is one that the
// table does not have, which may have the next word for its value.
func (r *reader) mayTake(s string) bool {
	const flags = "RzZUuybTaLqN0K." // of grep and rg
	letters, _, _ := r.cluster(s[1:])
	last := letters[len(letters)-1:]
	return !strings.Contains(r.short, last) && !strings.Contains(flags, last)
}

// valueOnly says whether all that the shell makes of a word begins with the same
// option, such as --include=*.go.
func valueOnly(x word) bool {
	before, _, found := strings.Cut(x.s, "=")
	return found && !strings.Contains(x.s, dynamic) && !strings.ContainsAny(before, "*?[{")
}

// letters judges a word of one-letter options, and says how many words after
// it are its value.
func (r *reader) letters(c *commandArgs, arg word, next []word) (taken int) {
	s := arg.s[1:]
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
		c.operands = append(c.operands, word{s: s[at+1:], glob: arg.glob}) // of patterns
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

// readerOf returns what is known of a command that reads, whatever path it is
// called by.
func readerOf(words []word) (reader, bool) {
	r, known := readers[filepath.Base(words[0].s)]
	return r, known
}
