package sched

import (
	"cmp"
	"context"
	"math"
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
//   - its group has room: an exclusive call is alone in it, and calls on one
//     path keep the order in which they were submitted (see group);
//   - no running call of another group conflicts with its paths;
//   - a slot is free, unless it waits for others itself.
//
// Calls that could start but for a path or a slot get it in the order in which
// they were allowed. docs/design/calls.md says why it is like this.
type gate struct {
	mu       sync.Mutex
	slots    int       // free ones; negative when calls took theirs back that others have
	waiting  []*ticket // allowed, not started, in the order in which they were allowed
	slotless int       // those of waiting that need no slot
	busy     paths     // of the running calls
	kept     paths     // of the calls that one pass of dispatch kept from starting by a path only
	pass     int
}

// enter says that the call is allowed, and waits until it may start.
func (g *gate) enter(ctx context.Context, t *ticket) error {
	g.mu.Lock()
	t.allowed = true
	g.waiting = append(g.waiting, t)
	if t.waits {
		g.slotless++
	}
	g.dispatch()
	if t.on {
		g.mu.Unlock()
		return nil
	}
	t.started = make(chan struct{})
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
	if t.waits {
		g.slotless--
	}
	return ctx.Err()
}

// join takes the call's place, at submission.
func (g *gate) join(t *ticket) {
	g.mu.Lock()
	defer g.mu.Unlock()
	t.group.join(t)
}

// move changes what a call touches, when a hook rewrote its arguments. It keeps
// its place.
func (g *gate) move(t *ticket, a tool.Access) {
	g.mu.Lock()
	defer g.mu.Unlock()
	t.group.move(t, a)
	g.dispatch()
}

// leave ends the call's place, whether it ran or was refused.
func (g *gate) leave(t *ticket) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.release(t)
	if t.holding {
		t.holding = false
		g.busy.add(t.access, -1)
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
	t.group.leave(t)
	if t.slot {
		t.slot = false
		g.slots++
	}
}

// yield lends the slot of a running call to others until retake; so many calls
// of one as of the other. What else the call has, it keeps.
func (g *gate) yield(t *ticket) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if t.lent++; t.lent > 1 || !t.slot {
		return
	}
	t.slot = false
	g.slots++
	g.dispatch()
}

// retake takes the slot back at once, even if that makes one more than there
// are: then the next ones to end free none. Waiting for one could wait for ever,
// for the call that has it may wait for this one: two calls of a server that does
// one after the other.
func (g *gate) retake(t *ticket) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if t.lent--; t.lent > 0 || !t.on || t.waits {
		return // it has ended meanwhile, or never had one
	}
	t.slot = true
	g.slots--
}

// dispatch starts every waiting call that may start.
func (g *gate) dispatch() {
	g.pass++
	clear(g.kept)
	left := g.waiting[:0]
	for i, t := range g.waiting {
		if g.slots <= 0 && g.slotless == 0 {
			left = append(left, g.waiting[i:]...)
			break
		}
		switch {
		case !t.waits && g.slots <= 0, !t.group.admits(t, g.pass):
			left = append(left, t)
		case g.busy.conflict(t.access) || g.kept.conflict(t.access): // nobody overtakes on a path
			g.kept.add(t.access, 1)
			left = append(left, t)
		default:
			g.start(t)
		}
	}
	clear(g.waiting[len(left):])
	g.waiting = left
}

func (g *gate) start(t *ticket) {
	t.group.start(t)
	t.holding = true
	g.busy.add(t.access, 1)
	if t.waits {
		g.slotless--
	} else {
		t.slot = true
		g.slots--
	}
	if t.started != nil {
		close(t.started)
	}
}

// ticket is a call's place in the gate.
type ticket struct {
	group   *group
	seq     int // within the group
	access  tool.Access
	waits   bool // needs no slot
	allowed bool
	on      bool          // started, and not finished
	started chan struct{} // closed then, if somebody waits for it

	slot      bool
	lent      int  // how often it gave its slot to others and has not taken it back
	holding   bool // its paths
	abandoned bool
}

// group is one model turn or one program. Within it, an exclusive call waits
// for those that run and holds back those submitted after it (ruling 8), and
// calls on one path run in the order in which they were submitted, whatever
// they wait for.
type group struct {
	// inOrder is true for a model's turn, where an exclusive call counts from
	// the moment it is submitted, and waits for all submitted before it. In a
	// program it counts once it is allowed, so that nothing waits behind a
	// question to a person.
	inOrder   bool
	live      []*ticket // submitted, unfinished, in submission order
	paths     map[string]*queue
	running   int
	exclusive int // of the running ones
	pending   int // exclusive ones that have not started
	next      int

	// What one pass of dispatch needs to know of live, computed once for it.
	pass      int
	firstIdle int // the seq of the first that has not started
	firstHold int // the seq of the first of them that holds back later ones
}

// queue is the unfinished calls of a group that touch a path, in submission
// order.
type queue struct{ readers, writers []*ticket }

func (gr *group) join(t *ticket) {
	t.seq = gr.next
	gr.next++
	gr.live = append(gr.live, t)
	gr.enqueue(t)
}

func (gr *group) move(t *ticket, a tool.Access) {
	gr.dequeue(t)
	t.access = a
	gr.enqueue(t)
}

func (gr *group) start(t *ticket) {
	t.on = true
	gr.running++
	if !t.access.Overlap {
		gr.exclusive++
		gr.pending--
	}
}

func (gr *group) leave(t *ticket) {
	i, ok := slices.BinarySearchFunc(gr.live, t, bySeq)
	if !ok {
		return
	}
	gr.live = slices.Delete(gr.live, i, i+1)
	gr.dequeue(t)
	if t.on {
		t.on = false
		gr.running--
		if !t.access.Overlap {
			gr.exclusive--
		}
	}
}

func (gr *group) enqueue(t *ticket) {
	if !t.access.Overlap && !t.on {
		gr.pending++
	}
	gr.eachQueue(t, func(list *[]*ticket) {
		i, _ := slices.BinarySearchFunc(*list, t, bySeq)
		*list = slices.Insert(*list, i, t)
	})
}

func (gr *group) dequeue(t *ticket) {
	if !t.access.Overlap && !t.on {
		gr.pending--
	}
	gr.eachQueue(t, func(list *[]*ticket) {
		i, _ := slices.BinarySearchFunc(*list, t, bySeq)
		*list = slices.Delete(*list, i, i+1)
	})
}

// eachQueue calls f for each place that t has in the queues of its paths.
func (gr *group) eachQueue(t *ticket, f func(list *[]*ticket)) {
	if len(t.access.Reads)+len(t.access.Writes) == 0 {
		return
	}
	if gr.paths == nil {
		gr.paths = map[string]*queue{}
	}
	at := func(p string, writes bool) {
		q := gr.paths[p]
		if q == nil {
			q = &queue{}
			gr.paths[p] = q
		}
		if writes {
			f(&q.writers)
		} else {
			f(&q.readers)
		}
		if len(q.readers)+len(q.writers) == 0 {
			delete(gr.paths, p)
		}
	}
	for _, p := range t.access.Reads {
		at(p, false)
	}
	for _, p := range t.access.Writes {
		at(p, true)
	}
}

// admits says whether t may start as far as its own group is concerned.
func (gr *group) admits(t *ticket, pass int) bool {
	alone := !t.access.Overlap
	if gr.exclusive > 0 || alone && gr.running > 0 {
		return false
	}
	if gr.pending > 0 {
		gr.look(pass)
		if gr.firstHold < t.seq || alone && gr.inOrder && gr.firstIdle < t.seq {
			return false
		}
	}
	for _, p := range t.access.Reads {
		if ahead(gr.paths[p].writers, t) {
			return false
		}
	}
	for _, p := range t.access.Writes {
		if q := gr.paths[p]; ahead(q.writers, t) || ahead(q.readers, t) {
			return false
		}
	}
	return true
}

// look finds out who comes first. What a pass starts meanwhile changes nothing
// for the rest of it: it then runs, and running and exclusive say so.
func (gr *group) look(pass int) {
	if gr.pass == pass {
		return
	}
	gr.pass, gr.firstIdle, gr.firstHold = pass, math.MaxInt, math.MaxInt
	for _, t := range gr.live {
		if t.on {
			continue
		}
		gr.firstIdle = min(gr.firstIdle, t.seq)
		if !t.access.Overlap && (gr.inOrder || t.allowed) {
			gr.firstHold = t.seq
			return
		}
	}
}

func ahead(list []*ticket, t *ticket) bool { return len(list) > 0 && list[0].seq < t.seq }

func bySeq(a, b *ticket) int { return cmp.Compare(a.seq, b.seq) }

// paths counts the calls that touch each path.
type paths map[string]use

type use struct{ readers, writers int }

func (ps *paths) add(a tool.Access, n int) {
	if *ps == nil {
		*ps = paths{}
	}
	count := func(p string, readers, writers int) {
		u := (*ps)[p]
		u.readers += readers
		u.writers += writers
		if u == (use{}) {
			delete(*ps, p)
		} else {
			(*ps)[p] = u
		}
	}
	for _, p := range a.Reads {
		count(p, n, 0)
	}
	for _, p := range a.Writes {
		count(p, 0, n)
	}
}

// conflict says whether one of them touches a path of a and one of the two
// writes it.
func (ps paths) conflict(a tool.Access) bool {
	for _, p := range a.Writes {
		if ps[p] != (use{}) {
			return true
		}
	}
	for _, p := range a.Reads {
		if ps[p].writers > 0 {
			return true
		}
	}
	return false
}
