package policy

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// A pathPattern is the path in a rule's parentheses. Like an entry of a
// .gitignore file it also matches everything below what it matches:
//
//	//etc/hosts    absolute
//	=//etc         absolute, and nothing below it
//	~/notes        in the home directory
//	/src/**        in the project's root
//	src/*.go       in the working directory
//	./.env         in the working directory
//	.env           of that name, anywhere in the workspace
type pathPattern struct {
	bases []string // resolved directories (or the one file that is meant)
	glob  string   // below a base; empty means all of it
	twins []twin   // whose copies are meant like the files themselves
	exact bool     // what is below the base is not meant
}

// exactly is what stands before the absolute path of a pattern that means just this
// path: what a person says yes to for a directory, or for a file that is not there
// yet, must not open what is below it.
const exactly = "="

// parsePathPattern reads a pattern. One that protects holds for a relative path in
// the root of the workspace too: the settings that it stands in are found from any
// directory below, and must not lose what they forbid there.
func parsePathPattern(spec string, pl *place, protects bool) (*pathPattern, error) {
	pp := &pathPattern{}
	if path, ok := strings.CutPrefix(spec, exactly); ok && strings.HasPrefix(path, "//") {
		spec, pp.exact = path, true
	}
	rest, anywhere, relative := spec, false, false
	var anchor string
	switch {
	case strings.HasPrefix(spec, "!"):
		return nil, errors.New("a rule cannot be negated with !; write the exception into another list, or the name as \\!name")
	case strings.HasPrefix(spec, "//"):
		rest, anchor = spec[2:], string(filepath.Separator)
		if runtime.GOOS == "windows" {
			anchor, rest, _ = strings.Cut(rest, "/")
			anchor += `\`
		}
	case spec == "~" || strings.HasPrefix(spec, "~/"):
		if pl.home == "" {
			return nil, errors.New("there is no home directory that ~ could stand for")
		}
		rest, anchor = spec[1:], pl.home
	case strings.HasPrefix(spec, "/"):
		anchor = pl.roots[0]
	default:
		anchor, relative = pl.dir, true
		anywhere = !strings.Contains(strings.TrimSuffix(spec, "/"), "/")
	}
	fixed, glob, err := splitGlob(rest)
	if err != nil {
		return nil, err
	}
	if anywhere && fixed != ".." && fixed != "." {
		pp.bases = append([]string{pl.dir}, pl.roots...)
		pp.glob = "**/" + fold(strings.TrimSuffix(rest, "/"))
		return pp, nil
	}
	if pp.exact && glob != "" {
		return nil, fmt.Errorf("%s//PATH means one path, so it cannot have a wildcard; write \\* for the character itself", exactly)
	}
	anchors := []string{anchor}
	if protects && relative && pl.dir != pl.roots[0] {
		anchors = append(anchors, pl.roots[0])
	}
	for _, anchor := range anchors {
		base, err := resolveFar(filepath.Join(anchor, filepath.FromSlash(fixed)))
		if err != nil {
			return nil, fmt.Errorf("following %s: %w", show(spec), plain(err))
		}
		pp.bases = append(pp.bases, base)
	}
	pp.glob = fold(glob)
	return pp, nil
}

// splitGlob splits a pattern into its leading components without wildcards,
// unescaped, and the rest.
func splitGlob(s string) (fixed, glob string, err error) {
	parts := strings.FieldsFunc(s, func(r rune) bool { return r == '/' })
	for i, part := range parts {
		plain, literal, err := unescape(part)
		switch {
		case err != nil:
			return "", "", err
		case literal && glob == "":
			fixed = path.Join(fixed, plain)
			continue
		case plain == "..":
			return "", "", errors.New("`..` cannot follow a wildcard")
		case glob == "":
			glob = strings.Join(parts[i:], "/")
		}
	}
	if !doublestar.ValidatePattern(glob) {
		return "", "", errors.New("the path has a malformed wildcard, such as a [ without its ]")
	}
	return fixed, glob, nil
}

// unescape removes the backslashes of one component, and says whether it is
// free of wildcards.
func unescape(part string) (plain string, literal bool, err error) {
	var b strings.Builder
	literal = true
	for i := 0; i < len(part); i++ {
		switch part[i] {
		case '\\':
			if i++; i == len(part) {
				return "", false, errors.New("the path ends a name with a backslash")
			}
		case '*', '?', '[':
			literal = false
		case '{', '}':
			return "", false, errors.New("braces are no wildcards here: write one rule for each alternative, or \\{ for the character itself")
		}
		b.WriteByte(part[i])
	}
	return b.String(), literal, nil
}

// matches says whether the resolved path, or a directory that holds it, is
// meant.
func (pp *pathPattern) matches(p string) bool {
	return pp.means(p) || slices.ContainsFunc(pp.originals(p), pp.means)
}

// means is matches for a path that is no copy.
func (pp *pathPattern) means(p string) bool {
	for _, base := range pp.bases {
		rel, ok := below(base, p)
		switch {
		case !ok || pp.exact && rel != "":
			continue
		case pp.glob == "":
			return true
		}
		for rel = fold(rel); ; rel = rel[:strings.LastIndexByte(rel, '/')] {
			if doublestar.MatchUnvalidated(pp.glob, rel) {
				return true
			}
			if !strings.Contains(rel, "/") {
				break
			}
		}
	}
	return false
}

// below says whether the pattern could match something inside the directory.
func (pp *pathPattern) below(dir string) bool {
	for _, t := range pp.twins {
		if _, ok := below(dir, t.copy); ok && pp.meansBelow(t.of) {
			return true
		}
	}
	return pp.meansBelow(dir) || slices.ContainsFunc(pp.originals(dir), pp.meansBelow)
}

// meansBelow is below for a directory that is no copy.
func (pp *pathPattern) meansBelow(dir string) bool {
	for _, base := range pp.bases {
		if _, ok := below(dir, base); ok {
			return true
		}
		if _, ok := below(base, dir); ok && pp.glob != "" {
			return true
		}
	}
	return false
}

// maxHeld is how many names are looked at for files that a pattern means.
const maxHeld = 5000

// holds says whether a directory has a file that the pattern means, or is too
// large to tell.
func (pp *pathPattern) holds(dir string) bool {
	left, found := maxHeld, false
	err := filepath.WalkDir(dir, func(p string, _ fs.DirEntry, err error) error {
		if left--; left < 0 {
			return fs.SkipAll
		}
		if err == nil && pp.matches(p) {
			found = true
			return fs.SkipAll
		}
		return nil // what cannot be read cannot be shown either
	})
	return found || left < 0 || err != nil
}

func fold(s string) string {
	if foldCase {
		return strings.ToLower(s)
	}
	return s
}

func isDir(p string) bool {
	info, err := os.Stat(p)
	return err == nil && info.IsDir()
}

func exists(p string) bool {
	_, err := os.Lstat(p)
	return err == nil
}

// escapePath writes an absolute path so that a rule means just that path.
func escapePath(p string) string {
	p = filepath.ToSlash(p)
	var b strings.Builder
	b.WriteString("/")
	if !strings.HasPrefix(p, "/") {
		b.WriteString("/")
	}
	for i := range len(p) {
		if strings.IndexByte(`\*?[]{}`, p[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(p[i])
	}
	return b.String()
}
