package policy

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A gitCall is a git command in parts.
type gitCall struct {
	sub   string // the subcommand
	name  word   // the same
	args  []word // what follows it
	plain bool   // no option before it but --no-pager
	// configured: an option before it gives settings, or names programs
	configured bool
}

// words returns the command without the options before the subcommand.
func (g *gitCall) words() []word { return append([]word{{s: "git"}, g.name}, g.args...) }

// gitGlobals are git's own options that take the next word as their value.
var gitGlobals = []string{"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--config-env", "--super-prefix", "--attr-source", "--exec-path"}

// parseGit finds the subcommand of a git command.
func parseGit(words []word) (g gitCall, ok bool) {
	if len(words) == 0 || filepath.Base(words[0].s) != "git" {
		return g, false
	}
	g.plain = true
	for i := 1; i < len(words); i++ {
		s := words[i].s
		if !strings.HasPrefix(s, "-") {
			g.sub, g.name, g.args = s, words[i], words[i+1:]
			return g, true
		}
		if s != "--no-pager" {
			g.plain = false
		}
		if s == "-c" || strings.HasPrefix(s, "--config-env") || strings.HasPrefix(s, "--exec-path") || strings.Contains(s, dynamic) {
			g.configured = true
		}
		if slices.Contains(gitGlobals, s) {
			i++
		}
	}
	return g, false
}

// gitReaders are the subcommands of git that only read with these options.
var gitReaders = map[string]reader{
	"status":    {short: "sbuvz", attached: "u", long: []string{"--short", "--branch", "--porcelain", "--porcelain=", "--untracked-files=", "--ignored"}, here: true, names: true},
	"log":       {short: gitShort, valued: "nGL", attached: "UMC", long: gitLong, here: true, names: true, plain: noSignature},
	"diff":      {short: gitShort, valued: "nGL", attached: "UMC", long: gitLong, here: true, names: true},
	"show":      {short: gitShort, valued: "nGL", attached: "UMC", long: gitLong, here: true, names: true, plain: noSignature},
	"rev-parse": {long: []string{"--show-toplevel", "--abbrev-ref", "--short", "--verify", "--git-dir", "--is-inside-work-tree"}, here: true, names: true},
	"branch":    {short: "avr", most: -1, long: []string{"--show-current", "--all", "--list", "--remotes", "--merged", "--no-merged", "--verbose", "--no-color", "--sort=", "--format="}},
	"remote": {short: "v", values: true, plain: func(args []word) bool {
		return len(args) == 0 || len(args) == 1 && args[0].s == "-v" || args[0].s == "get-url"
	}},
	"tag":      {short: "ln", attached: "n", values: true, long: []string{"--list", "--sort="}, plain: listsTags},
	"stash":    {short: "", values: true, plain: func(args []word) bool { return len(args) == 1 && args[0].s == "list" }},
	"worktree": {values: true, plain: func(args []word) bool { return len(args) == 1 && args[0].s == "list" }},
	"describe": {values: true, long: []string{"--tags", "--always", "--dirty", "--all", "--long", "--abbrev="}},
	"rev-list": {short: "n", valued: "n", values: true, long: []string{"--count", "--all", "--max-count=", "--left-right", "--no-merges", "--merges", "--since=", "--until="}},
	"shortlog": {short: "sne", values: true, long: []string{"--no-merges", "--summary", "--numbered"}},
	"reflog": {short: gitShort, valued: "nGL", attached: "UMC", long: gitLong, values: true, plain: func(args []word) bool {
		return len(args) == 0 || strings.HasPrefix(args[0].s, "-") || args[0].s == "show"
	}},
	"show-ref":      {short: "s", values: true, long: []string{"--heads", "--tags", "--head"}},
	"merge-base":    {values: true, long: []string{"--is-ancestor", "--all", "--fork-point"}},
	"symbolic-ref":  {short: "q", values: true, most: 1, long: []string{"--short"}},
	"for-each-ref":  {values: true, long: []string{"--format=", "--sort=", "--count="}},
	"ls-tree":       {short: "rdtlz", values: true, long: []string{"--name-only", "--full-tree"}},
	"cat-file":      {short: "pts", values: true},
	"count-objects": {short: "vH", most: -1},
	"check-ignore":  {short: "vnq", names: true},
	"config":        {values: true, long: []string{"--get"}, plain: plainSetting},
	"grep":          {short: "nilcwEFGPvIhHoeABC0123456789", valued: "eABC", numeric: "ABC", values: true, long: []string{"--cached", "--count", "--files-with-matches", "--line-number", "--ignore-case", "--color=", "--heading", "--break"}},
	"ls-files":      {short: "cdmosz", long: []string{"--cached", "--deleted", "--modified", "--others", "--exclude-standard"}, here: true, names: true},
	"blame":         {short: "Lwe", valued: "L", names: true},
}

// noSignature says whether no format asks for a check of signatures, which would
// run another program.
func noSignature(args []word) bool {
	return !slices.ContainsFunc(args, func(x word) bool { return strings.Contains(x.s, "%G") })
}

// listsTags says whether git tag only lists.
func listsTags(args []word) bool {
	for _, x := range args {
		if x.s == "-l" || x.s == "--list" {
			return true
		}
		if !strings.HasPrefix(x.s, "-") {
			return false
		}
	}
	return true
}

// plainSetting says whether git config only shows one setting, and not one that
// could hold a password.
func plainSetting(args []word) bool {
	return len(args) == 2 && args[0].s == "--get" && !secretKey.MatchString(args[1].s)
}

var secretKey = regexp.MustCompile(`(?i)extraheader|password|token|key|secret|credential|sendemail|pass`)

const gitShort = "pnwbsuUMCizGL0123456789"

var gitLong = []string{
	"--oneline", "--stat", "--shortstat", "--numstat", "--name-only", "--name-status", "--patch", "--no-patch", "--all", "--graph",
	"--decorate", "--decorate=", "--author=", "--since=", "--until=", "--after=", "--before=", "--grep=", "--cached", "--staged",
	"--no-color", "--color=", "--pretty=", "--format=", "--abbrev-commit", "--follow", "--reverse", "--merges", "--no-merges",
	"--word-diff", "--unified=", "--summary", "--first-parent", "--max-count=", "--date=", "--no-ext-diff", "--no-textconv", "--check", "--diff-filter=",
}

// gitRuns says why git, with this subcommand, could run a program that the
// files of the workspace name; "" when it cannot. The line is judged before it
// runs, and other calls may write in between, so git is trusted only where the
// repository that it will find is fixed: in the root of the workspace, whose
// .git nothing writes without a question. Any directory below the root becomes
// a repository of its own by a few plain files (HEAD, objects, refs, config).
func (w *shellWalk) gitRuns(sub string) string {
	if len(w.dirs) != 1 || !slices.Contains(w.place.roots, w.dirs[0]) || !isWorkTree(w.dirs[0]) {
		return "could be of another repository than the workspace's, for it does not run in the workspace's root"
	}
	key := sub + "\x00" + w.dirs[0]
	why, known := w.runs[key]
	if !known {
		why = w.place.repositoryRuns(w.dirs[0], sub)
		w.runs[key] = why
	}
	return why
}

// gitAlone takes back that git is harmless when something else in the line
// could change the files that git obeys before it runs.
func (w *shellWalk) gitAlone() {
	if !slices.ContainsFunc(w.acts, changes) {
		return
	}
	for i := range w.acts {
		if a := &w.acts[i]; a.kind == actCommand && a.harmless && filepath.Base(a.words[0].s) == "git" {
			a.harmless, a.why = false, "stands in a line that also changes something, which git could obey"
		}
	}
}

// changes says whether an act of a line could change files.
func changes(a act) bool {
	return a.kind == actWrite || (a.kind == actOpaque || a.kind == actCommand) && !a.harmless
}

// repositoryRuns says why git could run a program that the repository names:
// an unpacked archive or a copied folder brings its .git along, and with it
// settings and hooks that even `git status` obeys.
func (pl *place) repositoryRuns(root, sub string) string {
	dir, common, err := gitDirs(root)
	if err != nil {
		return "is of a repository that cannot be looked at (" + show(err.Error()) + ")"
	}
	for _, d := range []string{dir, common} {
		// Elsewhere in the workspace its settings are files like any other,
		// written without a question.
		if pl.inside(d) && pl.sensitive(d) == "" {
			return "is of a repository that lies among the files of the workspace (" + show(d) + ")"
		}
	}
	for _, file := range []string{filepath.Join(common, "config"), filepath.Join(common, "config.worktree"), filepath.Join(dir, "config.worktree")} {
		if key := strangeKey(file); key != "" {
			return "can run other programs, for the repository's own settings say " + show(key) + " (" + show(file) + ")"
		}
	}
	for _, d := range []string{dir, common} {
		for _, name := range []string{"config", "config.worktree", "hooks", "index", "commondir"} {
			// Where a link leads can be written without a question.
			if file := filepath.Join(d, name); isLink(file) {
				return "is of a repository whose " + name + " is a symbolic link (" + show(file) + ")"
			}
		}
	}
	hook := filepath.Join(common, "hooks", "post-index-change")
	if _, err := os.Lstat(hook); err == nil {
		return "can run the hook " + show(hook)
	}
	if (sub == "status" || sub == "diff") && hasSubmodules(dir) {
		return "also looks into submodules, whose own settings can make it run other programs"
	}
	return ""
}

// isLink says whether the file itself is a symbolic link, or cannot be looked
// at.
func isLink(file string) bool {
	info, err := os.Lstat(file)
	if err != nil {
		return !os.IsNotExist(err)
	}
	return info.Mode()&os.ModeSymlink != 0
}

// gitDirs returns the resolved directory of a work tree's repository, and the
// one that it shares with the other work trees of it.
func gitDirs(root string) (dir, common string, err error) {
	dir = filepath.Join(root, ".git")
	info, err := os.Stat(dir)
	if err != nil {
		return "", "", err
	}
	if !info.IsDir() {
		text, err := smallFile(dir)
		if err != nil {
			return "", "", err
		}
		dir = pointer(root, bytes.TrimPrefix(text, []byte("gitdir:")))
	}
	if dir, err = resolve(dir); err != nil {
		return "", "", err
	}
	common = dir
	if text, err := smallFile(filepath.Join(dir, "commondir")); err == nil {
		if common, err = resolve(pointer(dir, text)); err != nil {
			return "", "", err
		}
	} else if !os.IsNotExist(err) {
		return "", "", err
	}
	return dir, common, nil
}

func pointer(base string, text []byte) string {
	to := filepath.FromSlash(string(bytes.TrimSpace(text)))
	if filepath.IsAbs(to) {
		return to
	}
	return base + string(filepath.Separator) + to
}

// maxGitFile bounds the settings of a repository that are read, in bytes.
const maxGitFile = 1 << 20

func smallFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxGitFile {
		return nil, fmt.Errorf("%s is no small file", path)
	}
	return os.ReadFile(path)
}

var (
	gitHeader = regexp.MustCompile(`^\[([A-Za-z0-9.-]+)(?:[ \t]+"(?:[^"\\]|\\.)*")?\]`)
	gitKey    = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9-]*)[ \t]*(?:=|$)`)
)

// strangeKey returns the first setting of a git configuration file that is not
// known to be harmless, or what stands in its place; "" when all are. A line
// that goes on in the next one is strange: it could hide a setting.
func strangeKey(file string) string {
	text, err := smallFile(file)
	if os.IsNotExist(err) {
		return ""
	}
	if err != nil {
		return err.Error()
	}
	section := ""
	for line := range strings.SplitSeq(strings.TrimPrefix(string(text), "\ufeff"), "\n") {
		line = strings.Trim(line, " \t\r")
		if strings.HasSuffix(line, `\`) {
			return line
		}
		if m := gitHeader.FindStringSubmatch(line); m != nil {
			section, _, _ = strings.Cut(strings.ToLower(m[1]), ".")
			line = strings.TrimLeft(line[len(m[0]):], " \t")
		}
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		m := gitKey.FindStringSubmatch(line)
		if m == nil {
			return line
		}
		key := strings.ToLower(m[1])
		if keys, ok := gitSettings[section]; !ok || !slices.Contains(strings.Fields(keys), key) {
			return section + "." + key
		}
	}
	return ""
}

// gitSettings are the settings of a repository that name no program, no other
// file and no other place for the work tree. They are those that git, and the
// tools around it, write by themselves or that people often set; a list of the
// others could never be complete.
var gitSettings = map[string]string{
	"core": "repositoryformatversion filemode bare logallrefupdates ignorecase precomposeunicode symlinks autocrlf eol safecrlf quotepath " +
		"abbrev compression bigfilethreshold untrackedcache preloadindex trustctime checkstat hidedotfiles longpaths protecthfs protectntfs " +
		"commitgraph multipackindex sparsecheckout sparsecheckoutcone whitespace commentchar",
	"extensions": "objectformat compatobjectformat refstorage worktreeconfig preciousobjects noop",
	"remote":     "url pushurl fetch push tagopt prune prunetags mirror skipfetchall skipdefaultupdate",
	"branch":     "remote merge rebase pushremote description autosetupmerge autosetuprebase vscode-merge-base gh-merge-base",
	"user":       "name email signingkey useconfigonly",
	"author":     "name email",
	"committer":  "name email",
	"submodule":  "url active branch",
	"pull":       "rebase ff",
	"push":       "default autosetupremote followtags",
	"fetch":      "prune prunetags parallel",
	"merge":      "ff conflictstyle",
	"rebase":     "autostash autosquash",
	"init":       "defaultbranch",
	"commit":     "gpgsign",
	"tag":        "gpgsign sort",
	"rerere":     "enabled autoupdate",
	"diff":       "algorithm renames renamelimit mnemonicprefix noprefix colormoved context indentheuristic",
	"log":        "date decorate abbrevcommit follow",
	"status":     "showuntrackedfiles short branch",
	"index":      "version threads",
	"pack":       "window depth windowmemory compression threads indexversion packsizelimit usebitmaps usesparse writereverseindex allowpackreuse",
	"gc":         "auto autodetach pruneexpire",
	"color": "ui branch diff grep status interactive decorate showbranch push remote blame context plain meta frag func old new commit " +
		"whitespace current local upstream header added updated changed untracked nobranch unmerged filename linenumber match separator tag stash head",
	"advice": "detachedhead statushints statusaheadbehindwarning commitbeforemerge resolveconflict implicitidentity amworkdir addemptypathspec " +
		"addignoredfile addembeddedrepo skippedcherrypicks pushupdaterejected pushnonfastforward pushnonffcurrent pushfetchfirst " +
		"pushalreadyexists pushneedsforce statusuoption rmhints setupstreamfailure graftfiledeprecated diverging forcedeletebranch " +
		"sequencerinuse submodulealternateerrorstrategydie defaultbranchname updatesparsepath mergeconflict",
	"lfs":  "repositoryformatversion access",
	"http": "extraheader postbuffer",
}

// hasSubmodules says whether the index could have an entry for a submodule.
// It looks for the mode of one where an entry can have it: entries begin 12
// bytes after the start and, in the usual formats, at every eighth byte. What
// cannot be read, or is stored in several parts, could have one.
func hasSubmodules(gitDir string) bool {
	const maxIndex = 32 << 20
	file := filepath.Join(gitDir, "index")
	info, err := os.Stat(file)
	if os.IsNotExist(err) {
		return false
	}
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxIndex {
		return true
	}
	index, err := os.ReadFile(file)
	if err != nil || len(index) < 12 || !bytes.HasPrefix(index, []byte("DIRC\x00\x00\x00")) || bytes.Contains(index, []byte("sdir")) {
		return true
	}
	shared := func(e os.DirEntry) bool { return strings.HasPrefix(e.Name(), "sharedindex.") }
	if files, err := os.ReadDir(gitDir); err != nil || slices.ContainsFunc(files, shared) {
		return true
	}
	packed := index[7] > 3 // names are shortened, and entries not aligned
	for at := 0; ; at++ {
		next := bytes.Index(index[at:], []byte{0, 0, 0xe0, 0})
		if next < 0 {
			return false
		}
		if at += next; packed || at%8 == (12+24)%8 {
			return true
		}
	}
}
