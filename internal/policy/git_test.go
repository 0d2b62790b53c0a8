package policy

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"capstan/internal/sched"
)

// put writes a file below the world, with its directories.
func (w world) put(t testing.TB, name, text string) {
	t.Helper()
	name = filepath.Join(w.base, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

// A repository's own settings, hooks and submodules make `git status` and the
// like run programs, so such a repository asks.
func TestGitThatRunsPrograms(t *testing.T) {
	const plain = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n[remote \"origin\"]\n\turl = https://x.test/y.git ; c\n" +
		"\tfetch = +refs/heads/*:refs/remotes/origin/*\n[branch \"a\\\"]b\"] merge = refs/heads/x\r\n# fsmonitor = x\n[user]\n\tname=x\n"
	index := func(mode string) string { // one entry, and its mode
		return "DIRC\x00\x00\x00\x02\x00\x00\x00\x01" + strings.Repeat("\x00", 24) + mode + strings.Repeat("\x01", 44)
	}
	config := func(text string) map[string]string { return map[string]string{"ws/.git/config": text} }
	for name, c := range map[string]struct {
		files map[string]string
		why   string // part of the reason; "" when it runs
	}{
		"nothing of its own":        {nil, ""},
		"what git init writes":      {config(plain), ""},
		"byte order mark":           {config("\ufeff[core]\nbare = false"), ""},
		"fsmonitor":                 {config(plain + "[core]\n\tfsmonitor = touch x"), "core.fsmonitor"},
		"case":                      {config("[CORE]\nFsMonitor = touch x"), "core.fsmonitor"},
		"in the line of its header": {config("[core] fsmonitor = touch x"), "core.fsmonitor"},
		"after a header's end":      {config("[user \"]\"] name = x\n[core \"]\"] [core]fsmonitor = touch x"), "core"},
		"old subsection":            {config("[diff.x]\ntextconv = touch x"), "diff.textconv"},
		"external diff":             {config("[diff]\nexternal = touch x"), "diff.external"},
		"text conversion":           {config("[diff \"x\"]\n textconv = touch x"), "diff.textconv"},
		"filter":                    {config("[filter \"x\"]\n clean = touch x"), "filter.clean"},
		"hooks elsewhere":           {config("[core]\nhooksPath = h"), "core.hookspath"},
		"pager":                     {config("[core]\npager = touch x"), "core.pager"},
		"ssh":                       {config("[core]\nsshCommand = touch x"), "core.sshcommand"},
		"fetches what is missing":   {config("[remote \"o\"]\npromisor = true"), "remote.promisor"},
		"another work tree":         {config("[core]\nworktree = /"), "core.worktree"},
		"gpg":                       {config("[log]\nshowSignature = true"), "log.showsignature"},
		"include":                   {config("[include]\npath = x"), "include.path"},
		"conditional include":       {config("[includeIf \"gitdir:/\"]\npath = x"), "includeif.path"},
		"hidden by a value":         {config("[user]\nname = x \\\nfsmonitor = y"), "say name = x"},
		"hidden by a comment":       {config("[user]\n# x \\\nname = y"), `\`},
		"hidden in a section":       {config("[core]\n\twhitespace = trailing-space \\\n[pack]\n\tfsmonitor = touch x"), "whitespace = trailing-space"},
		"hidden, other line end":    {config("[core]\n\twhitespace = trailing-space \\\r\n[pack]\n\tfsmonitor = touch x"), "whitespace = trailing-space"},
		"unknown key of pack":       {config("[pack]\nfsmonitor = touch x"), "pack.fsmonitor"},
		"unknown key of color":      {config("[color \"diff\"]\nmeta = red\nfsmonitor = x"), "color.fsmonitor"},
		"unknown key of advice":     {config("[advice]\nfsmonitor = x"), "advice.fsmonitor"},
		"known colors":              {config("[color \"diff\"]\nmeta = red\n[color]\nui = auto\n[pack]\nthreads = 1"), ""},
		"no key":                    {config("[core]\n\"x\""), `say "x"`},
		"settings of the work tree": {map[string]string{"ws/.git/config.worktree": "[core]\nfsmonitor = x"}, "core.fsmonitor"},
		"too large":                 {config(strings.Repeat("#", maxGitFile+1)), "no small file"},
		"a hook":                    {map[string]string{"ws/.git/hooks/post-index-change": "#!/bin/sh\n"}, "post-index-change"},
		"another hook":              {map[string]string{"ws/.git/hooks/pre-commit": "#!/bin/sh\n"}, ""},
		"files in the index":        {map[string]string{"ws/.git/index": index("\x00\x00\x81\xa4")}, ""},
		"a submodule in the index":  {map[string]string{"ws/.git/index": index("\x00\x00\xe0\x00")}, "submodules"},
		"an index that is none":     {map[string]string{"ws/.git/index": "x"}, "submodules"},
		"a split index":             {map[string]string{"ws/.git/index": index("\x00\x00\x81\xa4"), "ws/.git/sharedindex.ab": "x"}, "submodules"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			for file, text := range c.files {
				w.put(t, file, text)
			}
			p, _, err := New(w.options(Default))
			if err != nil {
				t.Fatal(err)
			}
			for _, call := range []string{"sh git status", "sh ls && git --no-pager diff"} {
				got := p.Decide(t.Context(), w.request(t, call))
				want := "allow"
				if c.why != "" {
					want = "ask"
				}
				if decisions[got.Decision] != want || !strings.Contains(got.Reason, c.why) {
					t.Errorf("%s: got %s (%s), want %s (%s)", call, decisions[got.Decision], got.Reason, want, c.why)
				}
			}
		})
	}
}

// Where a link in a repository leads can be written without a question.
func TestGitLinks(t *testing.T) {
	for _, name := range []string{"config", "config.worktree", "hooks", "index", "commondir"} {
		w := newWorld(t)
		at := filepath.Join(w.ws, ".git", name)
		if err := os.RemoveAll(at); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("../cfg", at); err != nil {
			t.Fatal(err)
		}
		p, _, err := New(w.options(AutoEdit))
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Decide(t.Context(), w.request(t, "sh git status -s")); got.Decision != sched.Ask {
			t.Errorf("%s is a link: %s", name, decisions[got.Decision])
		}
	}
}

// The repository of a linked work tree lies elsewhere, and counts there. One
// that lies among the files of the workspace is as writable as they are.
func TestGitElsewhere(t *testing.T) {
	for name, c := range map[string]struct{ dir, settings, want string }{
		"outside":         {"../main/.git/worktrees/x", "[user]\nname = x\n", "allow"},
		"outside, hooked": {"../main/.git/worktrees/x", "[core]\nfsmonitor = x\n", "ask"},
		"among the files": {"data", "[user]\nname = x\n", "ask"},
		"a submodule's":   {"../main/.git/modules/x", "[core]\nworktree = ../../../x\n", "ask"},
		"missing":         {"../none", "", "allow"},
	} {
		w := newWorld(t)
		if err := os.RemoveAll(filepath.Join(w.ws, ".git")); err != nil {
			t.Fatal(err)
		}
		w.put(t, "ws/.git", "gitdir: "+c.dir+"\n")
		if c.settings != "" {
			w.put(t, filepath.Join("ws", c.dir, "commondir"), "../..\n")
			w.put(t, filepath.Join("ws", c.dir, "../../config"), c.settings)
		}
		p, _, err := New(w.options(Default))
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Decide(t.Context(), w.request(t, "sh git log")); decisions[got.Decision] != c.want {
			t.Errorf("%s: %s %s, want %s", name, decisions[got.Decision], got.Reason, c.want)
		}
	}
}

// TestRealGit: what git init and git add leave runs without a question, and a
// real submodule is found.
func TestRealGit(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git here")
	}
	w := newWorld(t)
	git := func(dir string, args ...string) {
		t.Helper()
		cmd := exec.Command("git", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull,
			"GIT_AUTHOR_NAME=x", "GIT_AUTHOR_EMAIL=x@y", "GIT_COMMITTER_NAME=x", "GIT_COMMITTER_EMAIL=x@y")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
	if err := os.RemoveAll(filepath.Join(w.ws, ".git")); err != nil {
		t.Fatal(err)
	}
	git(w.ws, "init", "-q")
	git(w.ws, "add", "a.txt", "src")
	git(w.ws, "commit", "-q", "-m", "x")
	p, _, err := New(w.options(Default))
	if err != nil {
		t.Fatal(err)
	}
	if got := p.Decide(t.Context(), w.request(t, "sh git status")); got.Decision != sched.Allow {
		t.Errorf("a new repository asks: %s", got.Reason)
	}
	module := filepath.Join(w.ws, "src", "module")
	if err := os.Mkdir(module, 0o755); err != nil {
		t.Fatal(err)
	}
	git(module, "init", "-q")
	git(module, "commit", "-q", "--allow-empty", "-m", "x")
	for _, version := range []string{"2", "4"} {
		git(w.ws, "-c", "index.version="+version, "add", "src/module")
		git(w.ws, "update-index", "--index-version", version)
		if got := p.Decide(t.Context(), w.request(t, "sh git status")); got.Decision != sched.Ask || !strings.Contains(got.Reason, "submodules") {
			t.Errorf("version %s, with a submodule: %s %s", version, decisions[got.Decision], got.Reason)
		}
	}
}

// TestGitShowsProtectedFiles: what git takes out of its history is read like
// any other file. Whether a whole tree holds a protected file nobody can say,
// so that asks in every mode.
func TestGitShowsProtectedFiles(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct{ rules, call, want string }{
		{"deny Read(.env)", "git show HEAD:.env", "deny"},
		{"deny Read(.env)", "git show HEAD:./.env", "deny"},
		{"deny Read(.env)", "git show HEAD~3:gone/.env", "deny"},
		{"deny Read(.env)", "git show :.env", "deny"},
		{"deny Read(.env)", "git show :2:.env", "deny"},
		{"deny Read(/sub/.env)", "cd sub && git show HEAD:./.env", "deny"},
		{"deny Read(/sub/.env)", "cd sub/deep && git show HEAD:sub/.env", "deny"},
		{"deny Read(.env)", "git cat-file -p HEAD:.env", "deny"},
		{"deny Read(.env)", "git -C sub show HEAD:.env", "deny"},
		{"deny Read(.env)", "sudo git show HEAD:.env", "deny"},
		{"deny Read(.env)", "/usr/bin/git show HEAD:.env", "deny"},
		{"deny Read(.env)", "git diff -- .env", "deny"},
		{"deny Read(.env)", "git diff .env", "deny"},
		{"deny Read(.env)", "git log -p -- .env", "deny"},
		{"deny Read(.env)", "git blame .env", "deny"},
		{"deny Read(.env)", "git show HEAD", "ask"},
		{"deny Read(.env)", "git show", "ask"},
		{"deny Read(.env)", "git show --stat 1a2b3c4", "ask"},
		{"deny Read(.env)", "git show 1a2b3c4 -- src/main.go", "ask"},
		{"deny Read(.env)", "git show HEAD@{1}:.env", "ask"},
		{"deny Read(.env)", "git show :/fix", "ask"},
		{"deny Read(.env)", "git diff", "ask"},
		{"deny Read(.env)", "git diff -- '*.env'", "ask"},
		{"deny Read(.env)", "git diff -- ':(glob)**'", "ask"},
		{"deny Read(.env)", "git diff -- $X", "ask"},
		{"deny Read(.env)", "git diff -- sub", "ask"},
		{"deny Read(.env)", "git diff -- gone", "ask"},
		{"deny Read(.env)", "git diff --stat -p", "ask"},
		{"deny Read(.env)", "git diff --ext-diff", "ask"},
		{"deny Read(.env)", "git log -p", "ask"},
		{"deny Read(.env)", "git log --word-diff", "ask"},
		{"deny Read(.env)", "git log -L 1,5:.env", "ask"},
		{"deny Read(.env)", "git log -n 3 -U9", "ask"},
		{"deny Read(.env)", "git status -v", "ask"},
		{"deny Read(.env)", "git grep SECRET", "ask"},
		{"deny Read(.env)", "git archive HEAD", "ask"},
		{"deny Read(.env)", "git stash show -p", "ask"},
		{"deny Read(.env)", "git cat-file --batch", "ask"},
		{"deny Read(.env)", "git -c a.b=c show HEAD:src/main.go", "ask"},
		{"deny Read(.env)", "git stash list -p", "ask"},
		{"deny Read(.env)", "git stash list --patch", "ask"},
		{"deny Read(.env)", "git config -f .env --list", "deny"},
		{"deny Read(.env)", "git config -f.env --list", "ask"},
		{"deny Read(.env)", "git config --file=.env -l", "ask"},
		{"deny Read(.env)", "git add -p", "ask"},
		{"deny Read(.env)", "git commit -v", "ask"},
		{"deny Read(.env)", "git commit -F .env", "deny"},
		{"deny Read(.env)", "git checkout -p", "ask"},
		{"deny Read(.env)", "git hash-object a.txt", "ask"},
		{"deny Read(.env)", "git rev-list --objects HEAD", "ask"},
		{"deny Read(.env)", "git worktree add x", "ask"},
		{"deny Read(.env)", "git -c diff.external=cat status", "ask"},
		{"deny Read(.env)", "git $X", "ask"},
		{"ask Read(.env)", "git show HEAD:.env", "ask"},
		{"ask Read(.env)", "git diff", "ask"},
		{"deny Read(.env)", "git show HEAD:src/main.go", "allow"},
		{"deny Read(.env)", "git show HEAD -- src/main.go", "allow"},
		{"deny Read(.env)", "git diff HEAD~2 -- src/main.go a.txt", "allow"},
		{"deny Read(.env)", "git diff a.txt", "allow"},
		{"deny Read(.env)", "git diff --stat", "allow"},
		{"deny Read(.env)", "git log --oneline -n 5", "allow"},
		{"deny Read(.env)", "git log -5 main..dev", "allow"},
		{"deny Read(.env)", "git status -sb", "allow"},
		{"deny Read(.env)", "git blame src/main.go", "allow"},
		{"deny Read(.env)", "git rev-parse --show-toplevel", "allow"},
		{"deny Read(.env)", "git ls-files -o", "allow"},
		{"deny Read(/src/**)", "git diff -- sub", "allow"},
		{"deny Edit(.env)", "git diff", "allow"},
		{"deny Read(/$OUT/**)", "git diff", "allow"},
	} {
		for _, mode := range []Mode{Default, Yolo} {
			if c.want == "allow" && mode == Yolo && strings.Contains(c.call, "$") {
				continue
			}
			o := w.options(mode)
			o.Rules = w.rules(c.rules)
			p, _, err := New(o)
			if err != nil {
				t.Fatal(err)
			}
			if got := p.Decide(t.Context(), w.request(t, "sh "+c.call)); decisions[got.Decision] != c.want {
				t.Errorf("%s, %s: %s: got %s (%s), want %s", mode, c.rules, c.call, decisions[got.Decision], got.Reason, c.want)
			}
		}
	}
}

// TestGitShowsNames: in yolo, work with git that shows names alone goes on
// beside a rule that protects files.
func TestGitShowsNames(t *testing.T) {
	w := newWorld(t)
	o := w.options(Yolo)
	o.Rules = w.rules("deny Read(.env)")
	p, _, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, call := range []string{
		"git add -A", "git commit -am 'a b'", "git push -u origin main", "git pull --rebase", "git checkout -b x", "git switch main",
		"git branch -vv", "git stash", "git stash list", "git stash pop", "git reset --hard HEAD~1", "git tag -a v1 -m x", "git remote -v",
		"git fetch --all", "git merge --no-ff x", "git restore --staged .env",
	} {
		if got := p.Decide(t.Context(), w.request(t, "sh "+call)); got.Decision != sched.Allow {
			t.Errorf("%s: %s (%s)", call, decisions[got.Decision], got.Reason)
		}
	}
}

// TestGitBelowTheRoot: a whole work tree below the root came with the files or
// was made by a call, so its settings are nobody's.
func TestGitBelowTheRoot(t *testing.T) {
	w := newWorld(t)
	w.put(t, "ws/sub/repo/.git/HEAD", "ref: refs/heads/x\n")
	p, _, err := New(w.options(AutoEdit))
	if err != nil {
		t.Fatal(err)
	}
	for call, want := range map[string]string{"shin . git log": "allow", "shin sub/repo git log": "ask"} {
		if got := p.Decide(t.Context(), w.request(t, call)); decisions[got.Decision] != want {
			t.Errorf("%s: %s (%s), want %s", call, decisions[got.Decision], got.Reason, want)
		}
	}
}
