package policy

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

const (
	maxListed  = 5000 // names that are looked at for the wildcards of one word
	maxMatches = 500  // of them that may match
)

// operand resolves a word as the file, or with wildcards the files, that a
// command is given. They may not be all when it returns false: when something in
// it is computed, or when the name of a file would be taken for an option, and
// not any option is harmless.
func (w *shellWalk) operand(x word, harmless bool) ([]string, bool) {
	if !x.glob || x.s == "{}" || strings.Contains(x.s, dynamic) {
		x.glob = false
		return w.paths(x)
	}
	if strings.ContainsAny(x.s, "{}") {
		return nil, false
	}
	s := x.s
	if x.tilde {
		if w.place.home == "" || w.lost || !strings.HasPrefix(s, "~/") {
			return nil, false
		}
		s = w.place.home + s[1:]
	}
	bases, known := w.dirs, !w.lost && !w.strayed && !w.rerooted
	if filepath.IsAbs(s) {
		bases, known = []string{string(filepath.Separator)}, !w.lost && !w.rerooted
	}
	var out []string
	e := expansion{left: maxListed}
	for _, base := range bases {
		found, ok := e.below(base, strings.Split(strings.Trim(s, "/"), "/"))
		if !ok || len(out)+len(found) > maxMatches {
			return nil, false
		}
		if len(found) == 0 { // then it is no pattern
			found = []string{base + string(filepath.Separator) + s}
		}
		for _, path := range found {
			real, err := resolve(path)
			if err != nil {
				return nil, false
			}
			out = append(out, real)
		}
	}
	return out, known && (harmless || !e.option)
}

// An expansion finds what a pattern of the shell matches, or more.
type expansion struct {
	left   int  // names that may still be looked at
	option bool // the first part of a match looks like an option
	inner  bool // not in the first part any more
}

func (e *expansion) below(dir string, parts []string) ([]string, bool) {
	part, rest := parts[0], parts[1:]
	var names []string
	if strings.ContainsAny(part, "*?[") {
		f, err := os.Open(dir)
		if err != nil {
			return nil, os.IsNotExist(err)
		}
		listed, err := f.Readdirnames(e.left + 1)
		f.Close()
		if e.left -= len(listed); e.left < 0 || err != nil && len(listed) > 0 {
			return nil, false
		}
		pattern := part
		if strings.Contains(part, "[") { // what a set means depends on the language: any
			pattern = "*"
		}
		for _, name := range listed {
			if strings.HasPrefix(name, ".") && !strings.HasPrefix(part, ".") {
				continue
			}
			if doublestar.MatchUnvalidated(pattern, name) {
				names = append(names, name)
			}
		}
	} else {
		names = []string{part}
	}
	inner := e.inner
	var out []string
	for _, name := range names {
		e.option = e.option || !inner && strings.HasPrefix(name, "-")
		next := dir + string(filepath.Separator) + name
		if len(rest) == 0 {
			if exists(next) {
				out = append(out, next)
			}
			continue
		}
		e.inner = true
		more, ok := e.below(next, rest)
		if e.inner = inner; !ok {
			return nil, false
		}
		if out = append(out, more...); len(out) > maxMatches {
			return nil, false
		}
	}
	return out, true
}
