package policy

import (
	"fmt"
	"path/filepath"
	"slices"
)

// A twin is a directory that holds a copy of another one's files, as a git work
// tree does of the one that it was made from: what protects a file in the one
// protects its copy in the other.
type twin struct{ copy, of string }

// Move puts the session into another directory: the workspace is roots from now
// on, which begin with the project's. Empty roots mean Workspace(dir). It counts
// for every call that is judged later; those that were judged stay as they are,
// and no call is judged half in one place.
//
// Rules are read again, so that a relative one means the files of the new place.
// Those that deny or ask hold for those of the first place too, and the files of
// a new workspace are protected as the first one's of the same path are, however
// a rule names them: also after another Move. An error changes nothing.
func (p *Policy) Move(dir string, roots []string) error {
	p.adding.Lock()
	defer p.adding.Unlock()
	pl, err := newPlace(dir, p.first.home, roots)
	if err != nil {
		return fmt.Errorf("moving to %s: %w", show(dir), err)
	}
	twins := p.twins
	if t := (twin{pl.roots[0], p.first.roots[0]}); t.copy != t.of && !slices.Contains(twins, t) {
		twins = append(slices.Clip(twins), t)
	}
	set := &ruleSet{place: pl}
	for _, text := range p.texts {
		rules, err := p.parseFor(text, pl, twins)
		switch {
		case err != nil && text.List == "allow":
			continue // it opens nothing there
		case err != nil:
			return fmt.Errorf("moving to %s: reading %s: %w", show(dir), text, err)
		}
		list := set.list(text.List)
		*list = append(*list, rules...)
	}
	p.twins = twins
	p.rules.Store(set)
	return nil
}

// parseFor reads one rule for a place. One that protects files is read for the
// first place too, and means their copies. The first that it returns is the
// rule itself.
func (p *Policy) parseFor(text Rule, pl *place, twins []twin) ([]*rule, error) {
	r, _, err := p.parse(text, pl)
	if err != nil {
		return nil, err
	}
	rules := []*rule{r}
	if r.path == nil || text.List == "allow" || len(twins) == 0 {
		return rules, nil
	}
	first, _, err := p.parse(text, p.first)
	if err != nil {
		return nil, err
	}
	first.path.twins = twins
	return append(rules, first), nil
}

// originals returns the paths for which a path stands as a copy.
func (pp *pathPattern) originals(path string) (out []string) {
	for _, t := range pp.twins {
		if rel, ok := below(t.copy, path); ok {
			out = append(out, filepath.Join(t.of, filepath.FromSlash(rel)))
		}
	}
	return out
}
