package policy

import (
	"path/filepath"
	"slices"
	"strings"
)

// A fileCommand is a command of which it is known which arguments are files that
// it reads or writes, beside the readers.
type fileCommand struct {
	valued  string   // one-letter options with a value in the same word or the next
	long    []string // long options with a value in the next word
	skip    int      // so many operands come first that are no files
	reads   bool     // the operands are read
	writes  bool     // the operands are written
	last    bool     // the last operand is written and may be a directory; the others are read
	into    string   // options whose value is what is written, without their dashes
	from    string   // options whose value is read
	tree    bool     // what is below a directory is written too
	hasMode bool     // the first operand is no file, unless --reference takes its place
	first   bool     // the first operand is written, into which the others are packed
	edits   string   // options, without their dashes, with which the operands are written
	words   bool     // options of many letters begin with one dash
}

// noOperand is how many operands a command has at most that are no files when
// none of them is one.
const noOperand = 1 << 20

var fileCommands = map[string]fileCommand{
	"tee": {writes: true}, "touch": {valued: "drt", writes: true}, "mkdir": {valued: "m", writes: true}, "truncate": {valued: "sr", writes: true},
	"mkfifo": {valued: "m", writes: true}, "mknod": {valued: "m", writes: true}, "rmdir": {writes: true}, "unlink": {writes: true},
	"rm": {writes: true, tree: true}, "shred": {valued: "ns", writes: true}, "chmod": {hasMode: true, writes: true, tree: true},
	"chown": {hasMode: true, writes: true, tree: true}, "chgrp": {hasMode: true, writes: true, tree: true},
	"cp":      {valued: "tS", long: []string{"--target-directory", "--suffix"}, last: true, into: "t target-directory"},
	"mv":      {valued: "tS", long: []string{"--target-directory", "--suffix"}, last: true, writes: true, tree: true, into: "t target-directory"},
	"ln":      {valued: "tS", long: []string{"--target-directory", "--suffix"}, last: true, writes: true, tree: true, into: "t target-directory"},
	"install": {valued: "mgotS", long: []string{"--target-directory", "--mode", "--owner", "--group"}, last: true, into: "t target-directory"},
	"rsync":   {valued: "ef", long: []string{"--exclude", "--include", "--rsh", "--filter"}, last: true, tree: true},
	"sort":    {valued: "ktSTo", long: []string{"--output", "--key", "--field-separator", "--buffer-size", "--compress-program", "--temporary-directory", "--parallel"}, reads: true, into: "o output"},
	"uniq":    {valued: "fsw", last: true}, "xxd": {valued: "clsgo", last: true}, "shuf": {valued: "ino", reads: true, into: "o output"},
	"tree": {valued: "oLIPH", skip: noOperand, into: "o"},
	"curl": {valued: "AbcCdDeEFHKmoPQrtTuUwxXyYz", long: []string{"--request", "--user", "--url", "--user-agent", "--referer", "--max-time", "--connect-timeout", "--retry", "--retry-delay", "--retry-max-time", "--proxy", "--range", "--resolve", "--limit-rate", "--data-raw", "--form-string", "--cert-type", "--key-type", "--max-redirs", "--oauth2-bearer", "--interface"},
		skip: noOperand, into: "o output c cookie-jar D dump-header output-dir stderr trace trace-ascii etag-save alt-svc hsts libcurl",
		from: "d data data-binary data-ascii data-urlencode json url-query variable F form H header proxy-header w write-out T upload-file K config b cookie E cert key cacert capath crlfile pinnedpubkey proxy-cert proxy-key proxy-cacert netrc-file etag-compare"},
	"wget": {valued: "OoaiPUtTeQw", long: []string{"--header", "--user", "--password", "--timeout", "--tries", "--user-agent", "--wait", "--level", "--post-data", "--method", "--body-data", "--accept", "--reject", "--execute"},
		skip: noOperand, into: "O output-document o output-file a append-output P directory-prefix save-cookies rejected-log warc-file hsts-file",
		from: "post-file body-file i input-file load-cookies config certificate private-key ca-certificate"},
	"patch":  {valued: "pidoBzDr", long: []string{"--strip"}, writes: true, into: "o output r reject-file d directory", from: "i input"},
	"tar":    {valued: "fCTXIFgbKNVHL", long: []string{"--files-from", "--exclude", "--exclude-from", "--strip-components", "--transform", "--info-script", "--new-volume-script", "--to-command", "--checkpoint-action", "--rmt-command", "--rsh-command", "--use-compress-program"}, reads: true, into: "C directory f file g listed-incremental one-top-level index-file"},
	"unzip":  {valued: "dx", reads: true, into: "d"},
	"zip":    {valued: "xbnPtO", reads: true, first: true, into: "O out output-file b temp-path logfile-path"},
	"gzip":   {valued: "S", reads: true, writes: true},
	"gunzip": {reads: true, writes: true}, "bzip2": {reads: true, writes: true}, "xz": {reads: true, writes: true}, "zstd": {valued: "oD", reads: true, into: "o output-dir-flat output-dir-mirror"},
	"split": {valued: "abCln", long: []string{"--filter", "--bytes", "--lines", "--number", "--suffix-length"}, last: true}, "csplit": {valued: "fbn", reads: true, into: "f prefix"},
	"source": {reads: true}, ".": {reads: true},
	"less": {reads: true}, "more": {reads: true}, "bat": {reads: true}, "zcat": {reads: true}, "vi": {reads: true, writes: true}, "vim": {reads: true, writes: true},
	"nano": {reads: true, writes: true}, "ed": {reads: true, writes: true}, "ex": {reads: true, writes: true}, "emacs": {reads: true, writes: true},
	"iconv": {valued: "fto", reads: true, into: "o output"}, "gpg": {valued: "ourR", reads: true, into: "o output"},
	"openssl": {words: true, reads: true, into: "out keyout CAserial writerand sigout certout respout"},
	"scp":     {valued: "cDFiJloPS", last: true}, "ag": {skip: 1, reads: true}, "ack": {skip: 1, reads: true},
	"yq": {skip: 1, reads: true, edits: "i inplace in-place"}, "envsubst": {}, "dos2unix": {reads: true, writes: true}, "unix2dos": {reads: true, writes: true},
}

// files notes the files that a command is known to read or write, and with rules
// about files those that one may, of which nothing is known.
func (w *shellWalk) files(a *act) {
	for _, i := range starts(a.words) {
		words := a.words[i:]
		name := filepath.Base(words[0].s)
		if r, known := readerOf(words); known {
			if i > 0 || name != words[0].s {
				w.alsoReads(&r, words, a)
			}
			if w.strayed {
				w.unseenFile("handles files in a directory that only turns out when it runs", a)
			}
			w.strayOptions(words[1:], r.knows, a)
			if _, also := fileCommands[name]; !also && name != "sed" {
				continue
			}
		}
		switch c, known := fileCommands[name]; {
		case name == "dd":
			w.dd(words[1:], a)
		case name == "sed":
			w.sed(words[1:], a)
		case name == "awk" || name == "gawk" || name == "mawk" || name == "nawk":
			files, plain := awkReads(words[1:])
			if !plain {
				w.script(name, a)
			}
			for _, x := range files {
				w.touches(actRead, x, a, false)
			}
		case name == "find":
			w.find(words[1:], a)
		case name == "git":
			w.gitWrites(words, a)
		case name == "cpio" || name == "bsdcpio" || name == "pax":
			w.unseenFile("gives "+name+" files whose names are fed in", a)
			w.outputs(words[1:], a)
			if w.guarded {
				w.guesses(words[1:], a)
			}
		case known:
			w.fileCommand(&c, name, words[1:], a)
		case i == 0 && !quiet[name]:
			w.outputs(words[1:], a)
			if w.guarded {
				w.guesses(words[1:], a)
			}
		}
	}
	if name := filepath.Base(a.words[0].s); w.guarded && (name == "xargs" || name == "parallel") && w.handles(a.words) {
		w.unseenFile("gives files to a command that only turn out when it runs", a)
	}
}

// quiet are commands whose words are no files, or are judged as lines.
var quiet = map[string]bool{"test": true, "[": true, "eval": true, "trap": true, "set": true, "export": true, "kill": true, "wait": true, "sleep": true, "exit": true, "return": true}

// handles says whether one of the words behind a command names one that reads or
// writes files.
func (w *shellWalk) handles(words []word) bool {
	return slices.ContainsFunc(words[1:], func(x word) bool {
		name := filepath.Base(x.s)
		r, reads := readers[name]
		_, known := fileCommands[name]
		return reads && !r.values && !r.names || known || name == "sed" || name == "dd"
	})
}

// unknownFile notes that a command handles files which only turn out when the
// line runs. With rules about files it asks in every mode; without them it asks as
// what lies outside the workspace does, whatever rule allows the command.
func (w *shellWalk) unknownFile(why string, owner *act) {
	why = "the command line " + why
	if n := len(w.acts); n > 0 && w.acts[n-1].file && w.acts[n-1].owner == owner && w.acts[n-1].why == why {
		return
	}
	w.acts = append(w.acts, act{kind: actOpaque, file: true, why: why, owner: owner})
}

// unknownFiles is why an operand could not be judged.
const unknownFiles = "handles files that only turn out when it runs"

// unseenFile is unknownFile for what only rules about files are asked about: the
// command itself is judged as what it is.
func (w *shellWalk) unseenFile(why string, owner *act) {
	if w.guarded {
		w.unknownFile(why, owner)
	}
}

// within says whether the act is of this very command, or of one that it runs.
func (a *act) within(cp *commandPattern) bool {
	for o := a.owner; o != nil; o = o.owner {
		if cp.matches(o, false) {
			return true
		}
	}
	return false
}

// alsoReads notes what a reader reads that stands behind another command, or is
// called by its path: for the rules.
func (w *shellWalk) alsoReads(r *reader, words []word, a *act) {
	reads, _ := w.arguments(r, words[1:], a)
	as := searchTool
	if r.names || r.values {
		as = "list_directory"
	}
	for _, path := range reads {
		w.acts = append(w.acts, act{kind: actRead, tool: as, path: path, owner: a, harmless: true})
	}
}

// touches notes a file that a command reads or writes.
func (w *shellWalk) touches(kind actKind, x word, a *act, tree bool) {
	if x.s == "" || x.s == "-" || strings.HasPrefix(x.s, "/dev/std") || x.s == "/dev/null" || x.proc {
		return
	}
	paths, ok := w.operand(x, true)
	if !ok {
		w.unknownFile(unknownFiles, a)
	}
	name := readTool
	if kind == actWrite {
		name = writeTool
	}
	for _, path := range paths {
		w.acts = append(w.acts, act{kind: kind, tool: name, path: path, spelled: x.s, owner: a, tree: tree && isDir(path)})
	}
}

func (w *shellWalk) fileCommand(c *fileCommand, name string, args []word, a *act) {
	var into word
	edits := false
	operands, options := c.split(args)
	for _, o := range options {
		switch {
		case name == "zip" && (o.name == "@" || len(o.name) > 1 && strings.HasPrefix("names-stdin", o.name)):
			w.unseenFile("gives zip files whose names are fed in", a)
		case name == "sort" && o.name == "compress-program" || name == "split" && o.name == "filter":
			w.unseen("gives %s a command to run (--%s)", name, o.name)
		case o.stray:
			w.strayValue(o, a)
		case slices.Contains(strings.Fields(c.edits), o.name):
			edits = true
		case name == "curl" && o.name == "url":
			w.fetched(o.value, a)
		case slices.Contains(strings.Fields(c.into), o.name):
			if into = o.value; !c.last {
				w.touches(actWrite, into, a, false)
			}
		case slices.Contains(strings.Fields(c.from), o.name):
			files := []word{o.value}
			if name == "curl" {
				files = curlFiles(o.name, o.value)
			}
			if name == "curl" && (o.name == "T" || o.name == "upload-file") && strings.ContainsAny(o.value.s, "{[") {
				w.unknownFile(unknownFiles, a) // curl expands it
			}
			for _, x := range files {
				w.touches(actRead, x, a, false)
			}
		}
	}
	moded := slices.ContainsFunc(options, func(o option) bool { return o.name == "reference" })
	skip := c.skip
	if c.hasMode && !moded {
		skip = 1
	}
	if name == "tar" && len(operands) > 0 && len(args) > 0 && args[0].s[:min(1, len(args[0].s))] != "-" && len(operands) > 1 && strings.Contains(operands[0].s, "f") {
		w.touches(actWrite, operands[1], a, false) // the old form: tar cf FILE
		skip = 2
	}
	if name == "curl" || name == "wget" {
		for _, x := range operands {
			w.fetched(x, a)
		}
	}
	operands = operands[min(skip, len(operands)):]
	if c.first && len(operands) > 0 {
		w.touches(actWrite, operands[0], a, false)
	}
	if name == "tar" {
		w.packed(options, operands, a)
	}
	switch {
	case c.last && into.s != "":
		w.target(append(slices.Clone(operands), into), a, c.tree)
	case c.last && len(operands) > 1:
		w.target(operands, a, c.tree)
		into, operands = operands[len(operands)-1], operands[:len(operands)-1]
	}
	if name == "ln" {
		operands = w.links(args, operands, into)
	}
	for _, x := range operands {
		if strings.Contains(x.s, ":") && (name == "scp" || name == "rsync") {
			continue // on another machine
		}
		if c.reads || c.last {
			w.touches(actRead, x, a, false)
		}
		if c.last || name == "tar" || name == "zip" {
			w.below(x, a)
		}
		if c.writes || edits {
			w.touches(actWrite, x, a, c.tree)
		}
	}
}

// target notes what cp, mv and the like write: the last operand, or a file of
// the same name as each other one in that directory.
func (w *shellWalk) target(operands []word, a *act, tree bool) {
	last := operands[len(operands)-1]
	w.touches(actWrite, last, a, tree)
	for _, x := range operands[:len(operands)-1] {
		if base := filepath.Base(x.s); !x.computed() && base != "." && base != ".." {
			into := last
			into.s = strings.TrimSuffix(last.s, "/") + "/" + base
			if dirs, ok := w.operand(last, true); ok && slices.ContainsFunc(dirs, isDir) {
				w.touches(actWrite, into, a, false)
			}
		}
	}
}

func (w *shellWalk) dd(args []word, a *act) {
	for _, x := range args {
		if rest, ok := strings.CutPrefix(x.s, "of="); ok {
			w.touches(actWrite, word{s: rest, glob: x.glob}, a, false)
		} else if rest, ok := strings.CutPrefix(x.s, "if="); ok {
			w.touches(actRead, word{s: rest, glob: x.glob}, a, false)
		}
	}
}

// sed notes the files that sed -i writes, and those that its script could.
func (w *shellWalk) sed(args []word, a *act) {
	inPlace, given, onlyPrints := false, false, true
	var operands, scripts []word
	for i := 0; i < len(args); i++ {
		s := args[i].s
		switch {
		case shortFor(s, "--in-place"):
			inPlace = true
		case shortFor(s, "--expression") || shortFor(s, "--file"):
			given, onlyPrints = true, false
			if !strings.Contains(s, "=") {
				i++
			}
		case len(s) > 1 && s[0] == '-' && s[1] != '-':
			letters, value, _ := (&reader{valued: "ef", attached: "i"}).cluster(s[1:])
			last := letters[len(letters)-1]
			inPlace = inPlace || last == 'i'
			if last == 'e' || last == 'f' {
				given = true
				script := word{s: value}
				if value == "" && i+1 < len(args) {
					i++
					script = args[i]
				}
				onlyPrints = onlyPrints && last == 'e' && !script.computed() && sedScript.MatchString(script.s)
			}
		case !given && len(scripts) == 0:
			scripts = append(scripts, args[i])
		default:
			operands = append(operands, args[i])
		}
	}
	if given {
		operands = append(scripts, operands...)
	}
	if given && !onlyPrints || !given && slices.ContainsFunc(scripts, func(x word) bool { return x.computed() || !sedScript.MatchString(x.s) }) {
		w.script("sed", a)
	}
	for _, x := range operands {
		w.touches(actRead, x, a, false)
		if inPlace {
			w.touches(actWrite, x, a, false)
		}
	}
}

// script notes that a program in a language of its own could run commands, and
// read and write files.
func (w *shellWalk) script(name string, a *act) {
	w.unseen("gives %s a program that could run commands", name)
	w.unseenFile("gives "+name+" a program that could read and write files", a)
}

// find notes that a command which find runs, or find itself, handles the files
// below its directories.
func (w *shellWalk) find(args []word, a *act) {
	dirs, rest := findDirs(args)
	runs, deletes := false, false
	for i := 0; i < len(rest); i++ {
		switch s := rest[i].s; {
		case strings.Contains(findValued, " "+s+" "):
			i++
		case strings.HasPrefix(s, "-fprint") || s == "-fls":
			if i++; i < len(rest) {
				w.touches(actWrite, rest[i], a, false)
			}
		case s == "-files0-from":
			w.unseenFile("gives find directories that stand in a file", a)
		case s == "-delete":
			deletes = true
		case strings.HasPrefix(s, "-exec") || strings.HasPrefix(s, "-ok"):
			runs = true
		}
	}
	if !runs && !deletes {
		return
	}
	if len(dirs) == 0 {
		dirs = []word{{s: "."}}
	}
	for _, x := range dirs {
		paths, ok := w.operand(x, true)
		if !ok {
			w.unknownFile(unknownFiles, a)
		}
		for _, path := range paths {
			w.acts = append(w.acts, act{kind: actRead, tool: searchTool, path: path, owner: a, harmless: true, maybe: true},
				act{kind: actWrite, tool: writeTool, path: path, spelled: x.s, owner: a, harmless: !deletes, tree: true})
		}
	}
}

// gitWrites notes the files of the work tree that git is told to change or to
// take away.
func (w *shellWalk) gitWrites(words []word, a *act) {
	g, ok := parseGit(words)
	if !ok {
		return
	}
	w.gitOutputs(&g, words, a)
	switch g.sub {
	case "rm", "mv", "restore", "checkout", "clean":
	default:
		return
	}
	for _, x := range g.args {
		if x.computed() && g.sub != "checkout" {
			w.unseenFile(unknownFiles, a)
		}
		if strings.HasPrefix(x.s, "-") || x.computed() || g.sub == "checkout" && !w.exists(x.s) {
			continue
		}
		paths, _ := w.paths(x)
		for _, path := range paths {
			w.acts = append(w.acts, act{kind: actWrite, tool: writeTool, path: path, owner: a, harmless: true, tree: isDir(path)})
		}
	}
}

// guesses notes the words of an unknown command that name a file, for the rules
// about files: such as --env-file=.env, @.env and file:.env.
func (w *shellWalk) guesses(args []word, a *act) {
	for _, x := range args {
		if languages[filepath.Base(a.words[0].s)] {
			w.guess(named(x.s), word{}, a)
		}
		if x.s == "" || len(x.s) > 255 || strings.ContainsAny(x.s, "\n\x00") {
			continue
		}
		words, all := braced(x)
		if !all {
			w.unseenFile("names more files in braces than are looked at", a)
		}
		for _, x := range words {
			w.guess(partsOf(x.s), x, a)
		}
	}
}

// guess notes those of some texts that name files; they are taken from the word x.
func (w *shellWalk) guess(tries []string, x word, a *act) {
	for _, s := range tries {
		if s == "" || !x.glob && !x.tilde && !w.exists(s) {
			continue
		}
		paths, ok := w.operand(word{s: s, glob: x.glob, tilde: x.tilde && s == x.s}, true)
		if !ok && !strings.Contains(s, dynamic) {
			w.unknownFile(unknownFiles, a)
		}
		for _, path := range paths {
			if exists(path) {
				w.acts = append(w.acts,
					act{kind: actRead, tool: readTool, path: path, owner: a, harmless: true, guess: true},
					act{kind: actWrite, tool: writeTool, path: path, owner: a, harmless: true, guess: true})
			}
		}
	}
}
