package policy

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
)

// foldCase says that file names which differ in case name the same file.
const foldCase = runtime.GOOS == "darwin" || runtime.GOOS == "windows"

// A place is where a run happens: every path resolved.
type place struct {
	dir   string   // the working directory
	home  string   // "" when there is none
	roots []string // the workspace, the project's root first
}

func newPlace(dir, home string, roots []string) (*place, error) {
	if !filepath.IsAbs(dir) {
		return nil, fmt.Errorf("the working directory %q is not an absolute path", dir)
	}
	real, err := realDir(dir)
	if err != nil {
		return nil, fmt.Errorf("finding the working directory: %w", err)
	}
	pl := &place{dir: real}
	if filepath.IsAbs(home) {
		if pl.home, err = resolveFar(home); err != nil {
			return nil, fmt.Errorf("finding the home directory: %w", err)
		}
	}
	if len(roots) == 0 {
		root, err := Workspace(dir)
		if err != nil {
			return nil, err
		}
		roots = []string{root}
	}
	for _, r := range roots {
		if !filepath.IsAbs(r) {
			return nil, fmt.Errorf("the workspace directory %q is not an absolute path", r)
		}
		root, err := realDir(r)
		if err != nil {
			return nil, fmt.Errorf("finding a workspace directory: %w", err)
		}
		pl.roots = append(pl.roots, root)
	}
	return pl, nil
}

func (pl *place) inside(path string) bool { return within(pl.roots, path) }

func within(dirs []string, path string) bool {
	for _, d := range dirs {
		if _, ok := below(d, path); ok {
			return true
		}
	}
	return false
}

// below returns path relative to dir, with slashes, and whether it lies there.
// Dir itself is "".
func below(dir, path string) (rel string, ok bool) {
	if foldCase {
		if len(path) >= len(dir) && strings.EqualFold(path[:len(dir)], dir) {
			path = dir + path[len(dir):]
		}
	}
	rest, ok := strings.CutPrefix(path, dir)
	switch {
	case !ok:
		return "", false
	case rest == "":
		return "", true
	case strings.HasSuffix(dir, string(filepath.Separator)): // the root of a file system
		return filepath.ToSlash(rest), true
	case os.IsPathSeparator(rest[0]):
		return filepath.ToSlash(rest[1:]), true
	}
	return "", false
}

// sensitiveNames are files and directories inside a workspace that change what
// runs later: hooks, settings of tools that start commands, start-up files of
// shells. Writing them always asks, also in approval mode auto-edit.
var sensitiveNames = map[string]bool{
	".git": true, ".gitconfig": true, ".gitmodules": true, ".husky": true, ".pre-commit-config.yaml": true,
	".capstan": true, ".mcp.json": true, ".claude": true, ".claude.json": true, ".qwen": true, ".gemini": true, ".codex": true,
	".vscode": true, ".idea": true, ".devcontainer": true, ".envrc": true, ".ssh": true, ".npmrc": true,
	".profile": true, ".bashrc": true, ".bash_profile": true, ".bash_login": true, ".bash_logout": true, ".bash_aliases": true,
	".zshrc": true, ".zshenv": true, ".zprofile": true, ".zlogin": true, ".zlogout": true, ".kshrc": true, ".cshrc": true,
	".tcshrc": true, ".inputrc": true, ".xprofile": true, ".xinitrc": true, "config.fish": true,
}

// sensitive returns the part of the path, below the workspace, that makes it
// sensitive.
func (pl *place) sensitive(path string) string {
	for _, root := range pl.roots {
		rel, ok := below(root, path)
		if !ok {
			continue
		}
		for part := range strings.SplitSeq(rel, "/") {
			if name := strings.ToLower(part); sensitiveNames[name] {
				return part
			}
		}
	}
	return ""
}

// maxLinks is how many symbolic links one path may lead through, as in Linux
// and for the tools that open files.
const maxLinks = 40

// errProcess says that a path leads through what a process has open, such as
// /proc/self/cwd or /dev/fd/3: another one has other files there.
var errProcess = errors.New("it leads to what a process has open, and so elsewhere for each one")

// inProcess says whether an entry of a resolved directory is such a way.
func inProcess(dir, name string) bool {
	rest, ok := strings.CutPrefix(dir, "/proc/")
	if !ok || !slices.Contains([]string{"cwd", "root", "exe", "fd", "map_files"}, name) {
		return false
	}
	pid, task, has := strings.Cut(rest, "/task/")
	return strings.Trim(pid, "0123456789") == "" && (!has || strings.Trim(task, "0123456789") == "")
}

// maxSteps is how many names one path may have, those of its links' targets
// included. Links that repeat a/../ a thousand times each would make every
// rule through them take a second.
const maxSteps = 1000

// errLinks says that a path cannot be followed to its end.
var errLinks = fmt.Errorf("it leads through more than %d symbolic links or %d names, maybe in a circle", maxLinks, maxSteps)

// resolve follows every symbolic link of an absolute path, one component after
// the other as the kernel does, so that `link/..` is the parent of the link's
// target. What does not exist yet is kept as it is below its deepest existing
// ancestor (BUG-PP-01). What cannot be looked at is an error, for it could
// lead anywhere. The tools that open files resolve in the same way.
func resolve(path string) (string, error) {
	at, _, err := follow(path)
	return at, err
}

// follow is resolve; with an error it returns how far it came, and what is
// left of the path.
func follow(path string) (at, left string, err error) {
	vol := filepath.VolumeName(path)
	return followFrom(vol+string(filepath.Separator), path[len(vol):])
}

// resolveIn is resolve for a path below a directory that is resolved already.
func resolveIn(dir, rel string) (string, error) {
	at, _, err := followFrom(dir, rel)
	return at, err
}

func followFrom(at, path string) (_, left string, err error) {
	rest := splitPath(path)
	for links, steps := 0, 1; len(rest) > 0; rest, steps = rest[1:], steps+1 {
		if steps > maxSteps {
			return at, filepath.Join(rest...), &fs.PathError{Op: "resolve", Path: path, Err: errLinks}
		}
		switch rest[0] {
		case ".":
			continue
		case "..":
			at = filepath.Dir(at)
			continue
		}
		if inProcess(at, rest[0]) {
			return at, filepath.Join(rest...), &fs.PathError{Op: "resolve", Path: path, Err: errProcess}
		}
		next := filepath.Join(at, rest[0])
		info, err := os.Lstat(next)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return at, filepath.Join(rest...), err
		case info.Mode()&fs.ModeSymlink != 0:
			if links++; links > maxLinks {
				return at, filepath.Join(rest...), &fs.PathError{Op: "resolve", Path: path, Err: errLinks}
			}
			target, err := os.Readlink(next)
			if err != nil {
				return at, filepath.Join(rest...), err
			}
			if filepath.IsAbs(target) {
				at = filepath.VolumeName(target) + string(filepath.Separator)
				target = target[len(filepath.VolumeName(target)):]
			}
			rest = slices.Concat(rest[:1], splitPath(target), rest[1:])
			continue
		}
		at = next
	}
	return at, "", nil
}

// resolveFar is resolve for a path of which a part may not be open to the
// user: that part is kept as it is written, for no tool can follow it either.
// A rule about such files stays in force.
func resolveFar(path string) (string, error) {
	at, left, err := follow(path)
	if errors.Is(err, errLinks) {
		return "", err
	}
	return filepath.Join(at, left), nil
}

func splitPath(p string) []string {
	return strings.FieldsFunc(p, func(r rune) bool { return r < 0x80 && os.IsPathSeparator(uint8(r)) })
}

// plain spells the path of an error out.
func plain(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return &fs.PathError{Op: at.Op, Path: show(at.Path), Err: at.Err}
	}
	return err
}

// realDir resolves a path that has to be a directory.
func realDir(dir string) (string, error) {
	real, err := resolve(dir)
	if err != nil {
		return "", plain(err)
	}
	info, err := os.Stat(real)
	if err != nil {
		return "", plain(err)
	}
	if !info.IsDir() {
		return "", plain(&fs.PathError{Op: "open", Path: dir, Err: syscall.ENOTDIR})
	}
	return real, nil
}

// isWorkTree says whether a directory is the top of a git work tree of this
// user. An empty directory or a stray file that happens to be called .git is
// none.
func isWorkTree(dir string) bool { return isWorkTreeOf(os.Geteuid(), dir) }

// isWorkTreeOf asks for another user. A .git that neither this user nor the
// system's administrator made does not count: whoever can write to /tmp would
// otherwise make it the workspace, with its settings, of all that people do
// below it.
func isWorkTreeOf(uid int, dir string) bool {
	git := filepath.Join(dir, ".git")
	for _, stat := range []func(string) (fs.FileInfo, error){os.Lstat, os.Stat} { // a link has an owner of its own
		if info, err := stat(git); err != nil || !ownedBy(uid, info) {
			return false
		}
	}
	info, err := os.Stat(git)
	if err != nil {
		return false
	}
	if info.IsDir() {
		return exists(filepath.Join(git, "HEAD"))
	}
	text, err := smallFile(git)
	return err == nil && bytes.HasPrefix(text, []byte("gitdir:"))
}
