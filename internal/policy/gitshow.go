package policy

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// gitShows notes which contents a git command could show, so that rules about
// paths see them: those of files, also of earlier versions and of files that
// are gone. The acts are for the rules alone.
func (w *shellWalk) gitShows(words []word, owner *act) {
	g, ok := parseGit(words)
	if !ok || !g.showsContents() {
		return
	}
	paths, tree := w.gitPaths(g)
	if tree || !g.plain {
		for _, dir := range w.dirs {
			paths = append(paths, workTree(dir))
		}
	}
	for _, path := range paths {
		w.acts = append(w.acts, act{kind: actRead, tool: searchTool, path: path, owner: owner, harmless: true, maybe: true})
	}
}

// workTree returns the git work tree that holds the directory, else itself.
func workTree(dir string) string {
	for at := dir; ; at = filepath.Dir(at) {
		if exists(filepath.Join(at, ".git")) {
			return at
		}
		if at == filepath.Dir(at) {
			return dir
		}
	}
}

// gitNames are the subcommands of git that show names, numbers and messages
// alone, with these options.
var gitNames = map[string]reader{
	"add":          {short: "Aufnv", long: []string{"--all", "--update", "--force", "--dry-run"}},
	"branch":       {short: "adDfmMcCrvlqut", valued: "u", long: []string{"--all", "--list", "--remotes", "--show-current", "--delete", "--merged", "--no-merged"}},
	"checkout":     {short: "bBqft", long: []string{"--quiet", "--track", "--detach", "--ours", "--theirs"}},
	"cherry-pick":  {short: "nx", long: []string{"--continue", "--abort", "--skip", "--no-commit"}},
	"clean":        {short: "ndfxXq"},
	"commit":       {short: "amqsn", valued: "m", long: []string{"--all", "--amend", "--no-edit", "--message=", "--allow-empty", "--no-verify", "--quiet", "--signoff"}},
	"describe":     {long: []string{"--tags", "--always", "--dirty", "--all", "--long"}},
	"fetch":        {short: "pqtaf", long: []string{"--all", "--prune", "--tags", "--quiet"}},
	"init":         {short: "qb", valued: "b", long: []string{"--quiet"}},
	"ls-files":     gitReaders["ls-files"],
	"merge":        {short: "mq", valued: "m", long: []string{"--no-ff", "--ff-only", "--no-edit", "--squash", "--abort", "--continue"}},
	"merge-base":   {long: []string{"--is-ancestor", "--all"}},
	"pull":         {short: "qr", long: []string{"--rebase", "--ff-only", "--no-rebase", "--quiet"}},
	"push":         {short: "ufqd", long: []string{"--set-upstream", "--force", "--force-with-lease", "--tags", "--all", "--delete", "--quiet", "--dry-run"}},
	"rebase":       {short: "q", long: []string{"--continue", "--abort", "--skip", "--onto"}},
	"remote":       {short: "v"},
	"reset":        {short: "q", long: []string{"--hard", "--soft", "--mixed", "--keep", "--quiet"}},
	"restore":      {short: "SWq", long: []string{"--staged", "--worktree", "--quiet"}},
	"rev-parse":    gitReaders["rev-parse"],
	"revert":       {short: "n", long: []string{"--no-edit", "--no-commit", "--continue", "--abort", "--skip"}},
	"rm":           {short: "rfqn", long: []string{"--cached", "--force", "--quiet", "--dry-run"}},
	"show-ref":     {short: "q", long: []string{"--heads", "--tags", "--head"}},
	"switch":       {short: "cCqft", long: []string{"--create", "--quiet", "--detach"}},
	"symbolic-ref": {short: "q", long: []string{"--short"}},
	"tag":          {short: "adlmfs", valued: "m", long: []string{"--list", "--annotate", "--delete", "--message="}},
	"version":      {},
}

// gitStash are the subcommands of git stash that show no contents, alone.
var gitStash = []string{"push", "pop", "apply", "drop", "list", "clear", "save"}

// gitLimited are the subcommands that show contents of the paths they name,
// and of no others.
var gitLimited = []string{"show", "blame", "annotate", "log", "diff", "reflog", "status", "grep", "cat-file", "archive", "format-patch",
	"whatchanged", "difftool", "diff-tree", "diff-index", "diff-files"}

// showsContents says whether the command could show more than names, numbers
// and messages. What is not known to do so does: most of git's subcommands can
// read a file, or show one out of the history, with some option.
func (g *gitCall) showsContents() bool {
	if !g.plain {
		return true // git -c could make anything show more
	}
	if r, known := gitNames[g.sub]; known {
		c := r.split(g.args)
		return c.unknown || slices.ContainsFunc(c.operands, word.computed)
	}
	if g.sub == "stash" {
		return len(g.args) > 0 && !(slices.Contains(gitStash, g.args[0].s) && len(g.args) == 1)
	}
	var r reader
	switch g.sub {
	case "status", "log", "diff":
		r = gitReaders[g.sub]
	case "reflog":
		r = gitReaders["log"]
	default:
		return true
	}
	c := r.split(g.args)
	is := func(list ...string) func(string) bool {
		return func(s string) bool {
			name, _, _ := strings.Cut(s, "=")
			return slices.Contains(list, name)
		}
	}
	switch {
	case c.unknown, slices.ContainsFunc(c.long, is("--patch", "--unified", "--word-diff", "--check")):
		return true
	case g.sub == "status":
		return strings.Contains(c.letters, "v")
	case strings.ContainsAny(c.letters, "puUGL"):
		return true
	case g.sub == "diff":
		return !strings.Contains(c.letters, "s") &&
			!slices.ContainsFunc(c.long, is("--stat", "--shortstat", "--numstat", "--summary", "--name-only", "--name-status", "--no-patch"))
	}
	return false
}

// aCommit matches what can only be a commit. Any other name or number could be
// that of a file's contents, which git shows whatever paths are named.
var aCommit = regexp.MustCompile(`^(?:HEAD|@)(?:[~^][0-9]*)*$`)

// gitPaths returns the paths that a git command names, alone or in a revision
// (REV:path), and whether it could show others.
func (w *shellWalk) gitPaths(g gitCall) (paths []string, tree bool) {
	named, options := false, true
	r := gitReaders[g.sub]
	for i := 0; i < len(g.args); i++ {
		arg := g.args[i]
		switch {
		case strings.Contains(arg.s, dynamic) || arg.glob || arg.tilde:
			tree = true
		case options && arg.s == "--":
			options = false
		case options && strings.HasPrefix(arg.s, "-"):
			if strings.HasPrefix(arg.s, "--") {
				continue
			}
			if letters, value, wants := r.cluster(arg.s[1:]); wants {
				tree = tree || strings.HasSuffix(letters, "L") // of the file that its value names
				if value == "" {
					i++
				}
			}
		case options && strings.Contains(arg.s, ":"):
			more, ok := w.revisionPaths(arg.s)
			paths, named, tree = append(paths, more...), true, tree || !ok
		case strings.ContainsAny(arg.s, `*?[\`) || strings.HasPrefix(arg.s, ":"):
			tree = true // a pattern
		case !options || w.exists(arg.s):
			more, ok := w.paths(arg)
			paths, named, tree = append(paths, more...), true, tree || !ok
		case g.sub != "log" && !aCommit.MatchString(arg.s):
			tree = true
		}
	}
	return paths, tree || !named || !slices.Contains(gitLimited, g.sub)
}

// revisionPaths returns the paths that REV:path, :path or :N:path could mean:
// of the work tree's root, and of the directory.
func (w *shellWalk) revisionPaths(s string) (paths []string, ok bool) {
	rev, path, _ := strings.Cut(s, ":")
	switch {
	case strings.ContainsAny(rev, "{}"):
		return nil, false // a message or a date could be in it
	case rev != "":
	case len(path) > 1 && path[0] >= '0' && path[0] <= '3' && path[1] == ':':
		path = path[2:]
	case path == "" || strings.IndexByte("(!^/:", path[0]) >= 0:
		return nil, false // a pattern, or a text that stands in a message
	}
	for _, dir := range w.dirs {
		for _, base := range []string{workTree(dir), dir} {
			full, err := resolve(base + string(filepath.Separator) + filepath.FromSlash(path))
			if err != nil {
				return nil, false
			}
			paths = append(paths, full)
		}
	}
	return paths, true
}

// exists says whether the word names a file in one of the directories. Git
// takes such a word for a path, and refuses one that is a revision as well.
func (w *shellWalk) exists(s string) bool {
	return slices.ContainsFunc(w.dirs, func(dir string) bool {
		if filepath.IsAbs(s) {
			return exists(s)
		}
		return exists(dir + string(filepath.Separator) + s)
	})
}
