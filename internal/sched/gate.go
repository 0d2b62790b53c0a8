package sched

import (
	"context"
	"slices"
	"sync"

	"capstan/internal/tool"
)

// gate decides when an admitted call may start. It is the only lock of the
// scheduler: nothing is held while waiting for something else, because a call
// starts only when all that it needs is free at once.
//
// A call starts when
//   - it has been allowed;
//   - no earlier call of its own group that touches one of its paths in a
//     conflicting way is unfinished: calls on one path keep the order in which
//     they were submitted;
//   - its group has room: an exclusive call is alone in it (see group);
//   - no running call of another group conflicts with its paths;
//   - a slot is free, unless it waits for others itself.
//
// Calls that could start but for a path or a slot get it in the order in which
// they were allowed.
type gate struct {
	mu      sync.Mutex
	slots   int       // free ones
	waiting []*ticket // allowed, not started, in the order in which they were allowed
	paths   map[string]*pathState
}

// pathState counts the running calls that touch a path.
type pathState struct{ readers, writers int }

// group is one model turn or one program. Within it, an exclusive call waits
// for those that run and holds back those submitted after it (ruling 8).
type group struct {
	// inOrder is true for a model's turn, where an exclusive call counts from
	// the moment it is submitted, and waits for all submitted before it. In a
	// program it counts once it is allowed, so that nothing waits behind a
	// question to a person.
	inOrder   bool
	live      []*ticket // submitted, unfinished, in submission order
	running   int
	exclusive int // of the running ones
	next      int
}

// ticket is a call's place in the gate.
type ticket struct {
	group   *group
	seq     int // within the group
	access  tool.Access
	waits   bool // needs no slot
	allowed bool
	started chan struct{}
	on      bool // started

	slot      bool
	holding   bool // its paths
	abandoned bool
}

// join takes the call's place, at submission.
func (g *gate) join(t *ticket) {
	g.mu.Lock()
	defer g.mu.Unlock()
	t.seq = t.group.next
	t.group.next++
	t.started = make(chan struct{})
	t.group.live = append(t.group.live, t)
}

// move changes what a call touches, when a hook rewrote its arguments.
func (g *gate) move(t *ticket, a tool.Access) {
	g.mu.Lock()
	defer g.mu.Unlock()
	t.access = a
	g.dispatch()
}

// enter says that the call is allowed, and waits until it may start.
func (g *gate) enter(ctx context.Context, t *ticket) error {
	g.mu.Lock()
	t.allowed = true
	g.waiting = append(g.waiting, t)
	g.dispatch()
	g.mu.Unlock()
	select {
	case <-t.started:
		return nil
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if t.on {
		return nil // it won the race; its body sees the context
	}
	g.waiting = slices.DeleteFunc(g.waiting, func(o *ticket) bool { return o == t })
	return ctx.Err()
}

// leave ends the call's place, whether it ran or was refused.
func (g *gate) leave(t *ticket) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.release(t)
	if t.holding {
		t.holding = false
		g.hold(t.access, -1)
	}
	g.dispatch()
}

// abandon gives back everything but the paths of a call whose body does not
// end.
func (g *gate) abandon(t *ticket) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.release(t)
	g.dispatch()
}

func (g *gate) release(t *ticket) {
	if i := slices.Index(t.group.live, t); i >= 0 {
		t.group.live = slices.Delete(t.group.live, i, i+1)
	}
	if t.slot {
		t.slot = false
		g.slots++
	}
	if t.on {
		t.on = false
		t.group.running--
		if !t.access.Overlap {
			t.group.exclusive--
		}
	}
}

// dispatch starts every waiting call that may start.
func (g *gate) dispatch() {
	var passedOver []*ticket // kept from starting by a path only: nobody overtakes them on it
	kept := g.waiting[:0]
	for _, t := range g.waiting {
		switch {
		case !t.waits && g.slots == 0, !t.group.admits(t):
			kept = append(kept, t)
		case g.busy(t) || overtakes(t, passedOver):
			passedOver = append(passedOver, t)
			kept = append(kept, t)
		default:
			g.start(t)
		}
	}
	clear(g.waiting[len(kept):])
	g.waiting = kept
}

func (g *gate) start(t *ticket) {
	t.on, t.holding = true, true
	t.group.running++
	if !t.access.Overlap {
		t.group.exclusive++
	}
	if !t.waits {
		t.slot = true
		g.slots--
	}
	g.hold(t.access, 1)
	close(t.started)
}

func (g *gate) hold(a tool.Access, n int) {
	count := func(path string, readers, writers int) {
		if g.paths == nil {
			g.paths = map[string]*pathState{}
		}
		s := g.paths[path]
		if s == nil {
			s = &pathState{}
			g.paths[path] = s
		}
		s.readers += readers
		s.writers += writers
		if *s == (pathState{}) {
			delete(g.paths, path)
		}
	}
	for _, p := range a.Reads {
		count(p, n, 0)
	}
	for _, p := range a.Writes {
		count(p, 0, n)
	}
}

// busy says whether a running call conflicts with the paths of t.
func (g *gate) busy(t *ticket) bool {
	for _, p := range t.access.Writes {
		if g.paths[p] != nil {
			return true
		}
	}
	for _, p := range t.access.Reads {
		if s := g.paths[p]; s != nil && s.writers > 0 {
			return true
		}
	}
	return false
}

func overtakes(t *ticket, others []*ticket) bool {
	return slices.ContainsFunc(others, func(o *ticket) bool { return conflict(t.access, o.access) })
}

// admits says whether t may start as far as its own group is concerned.
func (gr *group) admits(t *ticket) bool {
	alone := !t.access.Overlap
	if gr.exclusive > 0 || alone && gr.running > 0 {
		return false
	}
	named := len(t.access.Reads)+len(t.access.Writes) > 0
	for _, o := range gr.live {
		if o.seq >= t.seq {
			break
		}
		if o.on {
			if named && conflict(t.access, o.access) {
				return false
			}
			continue
		}
		counts := gr.inOrder || o.allowed // from when an exclusive call holds back others
		if counts && !o.access.Overlap || gr.inOrder && alone || named && conflict(t.access, o.access) {
			return false
		}
	}
	return true
}

// conflict says whether two calls touch a path of which one writes it.
func conflict(a, b tool.Access) bool {
	return meet(a.Writes, b.Writes) || meet(a.Writes, b.Reads) || meet(a.Reads, b.Writes)
}

func meet(a, b []string) bool {
	return slices.ContainsFunc(a, func(p string) bool { return slices.Contains(b, p) })
}
