package builtin

import (
	"path/filepath"
	"sync/atomic"
)

// A Place is where the tools of one session work. It can change while they do:
// each call resolves its paths once, and keeps to them. It is safe for concurrent
// use; the zero Place is nowhere.
type Place struct{ at atomic.Pointer[spot] }

type spot struct {
	dir   string // links resolved
	roots []string
}

// NewPlace returns the Place of a working directory, absolute, and the
// workspace's roots, absolute and with links resolved.
func NewPlace(dir string, roots []string) *Place {
	p := &Place{}
	p.Move(dir, roots)
	return p
}

// Move puts the session elsewhere, for the calls that come later.
func (p *Place) Move(dir string, roots []string) {
	dir = filepath.Clean(dir)
	if real, err := follow(dir); err == nil { // else every call will say so
		dir = real
	}
	p.at.Store(&spot{dir, roots})
}

// Dir returns the working directory, with links resolved.
func (p *Place) Dir() string { return p.now().dir }

// Roots returns the workspace's roots, the project's first.
func (p *Place) Roots() []string { return p.now().roots }

func (p *Place) now() *spot {
	if p != nil {
		if at := p.at.Load(); at != nil {
			return at
		}
	}
	return &spot{}
}
