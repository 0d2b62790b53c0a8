package builtin

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"capstan/internal/tool"
)

// maxLinks is how many symbolic links one path may lead through, as in Linux.
const maxLinks = 40

// resolve returns the absolute path that p means, with every symbolic link
// followed in the order in which the kernel would: a `..` after a link leaves
// the link's target, and a link to a file that does not exist yet means that
// file. What does not exist is kept as it is written.
func (f *files) resolve(p string) (string, error) {
	switch {
	case p == "":
		return "", errors.New("the path is empty")
	case strings.IndexByte(p, 0) >= 0:
		return "", fmt.Errorf("the path %q holds a NUL byte", p)
	}
	if !filepath.IsAbs(p) {
		p = f.place.Dir() + string(filepath.Separator) + p
	}
	if !f.portable && !strings.Contains(p, "..") {
		if clean := filepath.Clean(p); linkFree(clean) {
			return clean, nil
		}
	}
	return follow(p)
}

// follow resolves an absolute path component by component.
func follow(p string) (string, error) {
	vol := filepath.VolumeName(p)
	done, rest := vol+string(filepath.Separator), p[len(vol):]
	for links := 0; rest != ""; {
		var part string
		part, rest = cutPath(rest)
		switch part {
		case "", ".":
			continue
		case "..":
			done = filepath.Dir(done)
			continue
		}
		next := filepath.Join(done, part)
		fi, err := os.Lstat(next)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return "", fmt.Errorf("resolving %s: %w", p, err)
		case fi.Mode()&fs.ModeSymlink != 0:
			if links++; links > maxLinks {
				return "", fmt.Errorf("resolving %s: its symbolic links lead in a circle (at %s)", p, next)
			}
			target, err := os.Readlink(next)
			if err != nil {
				return "", fmt.Errorf("resolving %s: %w", p, err)
			}
			if filepath.IsAbs(target) {
				v := filepath.VolumeName(target)
				done, target = v+string(filepath.Separator), target[len(v):]
			}
			rest = target + string(filepath.Separator) + rest
			continue
		}
		done = next
	}
	return done, nil
}

// cutPath splits a path at its first separator.
func cutPath(p string) (part, rest string) {
	for i := range len(p) {
		if os.IsPathSeparator(p[i]) {
			return p[:i], p[i+1:]
		}
	}
	return p, ""
}

// touched resolves the path of a call for Access. ok is false when nothing can
// be said about it; then the call is judged as reaching anywhere, and its body
// fails with the reason.
func (f *files) touched(p string) (path string, ok bool) {
	path, err := f.resolve(p)
	return path, err == nil
}

// judged returns the one path that a call was judged and locked by, so that
// what is opened is what was approved even when a symbolic link has been
// swapped in between. p is that path as the call spells it: when it had no
// meaning then, it has none now.
func (f *files) judged(a tool.Access, p string) (string, error) {
	if paths := slices.Concat(a.Reads, a.Writes); len(paths) == 1 {
		return paths[0], nil
	}
	if _, err := f.resolve(p); err != nil {
		return "", err
	}
	return "", fmt.Errorf("resolving %s: %w", p, errMoved)
}

// why says in a model's words what went wrong with a path.
func (f *files) why(p string, err error) string {
	var odd *notRegular
	switch {
	case errors.As(err, &odd):
		return fmt.Sprintf("%s is %s, not a file", p, odd.what)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Sprintf("%s does not exist%s", p, f.near(p))
	case errors.Is(err, fs.ErrPermission):
		return fmt.Sprintf("%s: permission denied", p)
	}
	return err.Error()
}

// near names files that a wrong path may have meant.
func (f *files) near(p string) string {
	if strings.HasPrefix(p, "~") {
		return " (`~` is not expanded: give the whole path)"
	}
	path, err := f.resolve(p)
	if err != nil {
		return ""
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return fmt.Sprintf(" (nor does its directory; the working directory is %s)", f.place.Dir())
	}
	defer func() { _ = dir.Close() }()
	names, _ := dir.Readdirnames(2000)
	want := stem(filepath.Base(path))
	var like []string
	for _, n := range names {
		if s := stem(n); want != "" && s != "" && (strings.Contains(s, want) || strings.Contains(want, s)) && len(like) < 3 {
			like = append(like, n)
		}
	}
	if len(like) == 0 {
		return ""
	}
	return "; in that directory there is " + strings.Join(like, ", ")
}

func stem(name string) string {
	return strings.ToLower(strings.TrimSuffix(name, filepath.Ext(name)))
}
