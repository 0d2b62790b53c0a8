package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// A flight is one request of ours on its way.
type flight struct {
	of     *flights
	cancel context.CancelCauseFunc
	token  string
	note   func(progress)
	alive  func() // moves the deadline
	yield  func() (resume func())
	resume func() // not nil while its slot is lent; guarded by flights.mu
	seq    int

	mu sync.Mutex
	id jsonrpc.ID
}

type flightKey struct{}

// progress is what a server says of how far a call is.
type progress struct {
	done, total float64
	message     string
}

// flights are the open requests of one connection, by the ids and progress
// tokens that a server may name them by.
type flights struct {
	mu        sync.Mutex
	seq       int
	questions int // of the server that wait for a person or a model
	byToken   map[string]*flight
	byID      map[jsonrpc.ID]*flight
}

func newFlights() *flights {
	return &flights{byToken: map[string]*flight{}, byID: map[jsonrpc.ID]*flight{}}
}

// begin registers a request. The context carries it to the transport and is
// cancelled when the server cancels it. land must be called at the end.
func (fs *flights) begin(ctx context.Context, alive func(), note func(progress), yield func() func()) (context.Context, *flight) {
	ctx, cancel := context.WithCancelCause(ctx)
	fs.mu.Lock()
	fs.seq++
	f := &flight{of: fs, cancel: cancel, note: note, alive: alive, yield: yield, seq: fs.seq}
	f.token = fmt.Sprintf("capstan-%d", fs.seq)
	fs.byToken[f.token] = f
	fs.mu.Unlock()
	return context.WithValue(ctx, flightKey{}, f), f
}

func (f *flight) sent(id jsonrpc.ID) {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	if f.of.byToken[f.token] == f {
		f.id = id
		f.of.byID[id] = f
	}
}

// land ends the flight: nothing is told of it any more.
func (f *flight) land() {
	f.of.mu.Lock()
	delete(f.of.byToken, f.token)
	delete(f.of.byID, f.id)
	if f.resume != nil {
		f.resume()
		f.of.lend() // if it was another one that waited for the answer
	}
	f.of.mu.Unlock()
	f.mu.Lock() // waits for a note that is being told
	f.note = nil
	f.mu.Unlock()
	f.cancel(nil)
}

// progressed passes a server's progress on to the call that it names.
func (fs *flights) progressed(token any, p progress) {
	s, _ := token.(string)
	fs.mu.Lock()
	f := fs.byToken[s]
	fs.mu.Unlock()
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.note != nil {
		f.alive()
		f.note(p)
	}
}

// lend sees to it that as many calls have lent their slots as there are open
// questions. No server says which call it asks for, but one slot is like the
// other, so the oldest calls lend theirs. The caller holds mu.
func (fs *flights) lend() {
	open := slices.SortedFunc(maps.Values(fs.byToken), func(a, b *flight) int { return cmp.Compare(a.seq, b.seq) })
	for i, f := range open {
		switch lent := f.resume != nil; {
		case i < fs.questions && !lent:
			f.resume = f.yield()
		case i >= fs.questions && lent:
			f.resume()
			f.resume = nil
		}
	}
}

// ask counts a question of the server.
func (fs *flights) ask(n int) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.questions += n
	fs.lend()
}

// hold keeps all open calls alive until the function that it returns is called,
// and lends a slot: while a server waits for a person or a model, so do its
// calls.
func (fs *flights) hold(every time.Duration) (release func()) {
	fs.ask(+1)
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			fs.mu.Lock()
			open := slices.Collect(maps.Values(fs.byToken))
			fs.mu.Unlock()
			for _, f := range open {
				f.alive()
			}
			select {
			case <-tick.C:
			case <-stop:
				return
			}
		}
	}()
	return func() {
		close(stop)
		<-done
		fs.ask(-1)
	}
}

// errCancelledByServer marks calls that the server gave up (BUG-MC-23).
var errCancelledByServer = errors.New("the server cancelled the call")

// cancelled ends the call that the server says it has given up.
func (fs *flights) cancelled(rawID any, reason string) {
	id, err := jsonrpc.MakeID(rawID)
	if err != nil {
		return
	}
	fs.mu.Lock()
	f := fs.byID[id]
	fs.mu.Unlock()
	if f == nil {
		return
	}
	err = errCancelledByServer
	if reason != "" {
		err = fmt.Errorf("%w: %s", errCancelledByServer, excerpt(reason, 500))
	}
	f.cancel(err)
}
