package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"capstan/internal/msg"
	"capstan/internal/tool"
)

// BUG-MC-11: progress moves the deadline, up to a bound that it does not move;
// both are in the text.
func TestDeadlineOfACall(t *testing.T) {
	for _, test := range []struct {
		every, stopAfter time.Duration // of progress
		ends             time.Duration
		says             string
	}{
		{time.Hour, 0, 10 * time.Second, "no result and no progress for 10s"},
		{9 * time.Second, 60 * time.Second, 64 * time.Second, "it reported some 6 times"},
		{time.Second, time.Hour, 100 * time.Second, "more than 1m40s in all"},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWatch(10*time.Second, 100*time.Second)
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			shown := 0
			inv := &tool.Invocation{Progress: func(msg.Part) { shown++ }, Yield: unlent}
			fs := newFlights()
			_, f := fs.begin(ctx, w.alive, func(p progress) { w.show(inv, p) }, inv.Yield)
			defer f.land()
			w.start(cancel)
			defer w.stop()
			begun := time.Now()
			for ctx.Err() == nil {
				select {
				case <-time.After(test.every):
					if time.Since(begun) <= test.stopAfter {
						fs.progressed("capstan-1", progress{done: 1})
						fs.progressed("another's", progress{done: 2})
					}
				case <-ctx.Done():
				}
			}
			err := context.Cause(ctx)
			if took := time.Since(begun); took != test.ends || !errors.Is(err, errTimeout) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("every %v: ended after %v: %v", test.every, took, err)
			}
		})
	}
}

// While a server waits for a person, its calls do not time out.
func TestHeldCallsDoNotTimeOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatch(10*time.Second, time.Hour)
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		fs := newFlights()
		_, f := fs.begin(ctx, w.alive, func(progress) {}, unlent)
		defer f.land()
		w.start(cancel)
		defer w.stop()
		release := fs.hold(5 * time.Second)
		time.Sleep(9 * time.Minute)
		release()
		if err := context.Cause(ctx); err != nil {
			t.Errorf("it timed out: %v", err)
		}
		time.Sleep(11 * time.Second)
		if err := context.Cause(ctx); !errors.Is(err, errTimeout) {
			t.Errorf("it did not time out after the answer: %v", err)
		}
	})
}

// A question of a server lends the slot of one of its calls: of which nobody can
// know, but always of as many as there are questions, and of none once it is
// answered. The first call that ends while it lends passes that on.
func TestQuestionsLendSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs, lent := newFlights(), map[string]int{}
		begin := func(name string) *flight {
			_, f := fs.begin(t.Context(), func() {}, func(progress) {}, func() func() {
				lent[name]++
				return func() { lent[name]-- }
			})
			return f
		}
		want := func(a, b, c int) {
			t.Helper()
			if diff := cmp.Diff([]int{a, b, c}, []int{lent["a"], lent["b"], lent["c"]}); diff != "" {
				t.Errorf("lent (-want +got):\n%s", diff)
			}
		}
		a, b := begin("a"), begin("b")
		want(0, 0, 0)
		first := fs.hold(time.Second)
		want(1, 0, 0)
		second, third := fs.hold(time.Second), fs.hold(time.Second)
		want(1, 1, 0)
		c := begin("c")
		a.land()
		want(0, 1, 1)
		second()
		want(0, 1, 1)
		third()
		want(0, 1, 0)
		b.land()
		want(0, 0, 1)
		first()
		want(0, 0, 0)
		c.land()
		want(0, 0, 0)
	})
}

// A person may take longer than the timeout of a call.
func TestElicitationHoldsTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var live *sdk.ServerSession
		reg := &tool.Registry{}
		m := New(Options{Registry: reg, dial: func(Config) (sdk.Transport, error) {
			here, there := sdk.NewInMemoryTransports()
			s, err := goodServer().Connect(context.Background(), here, nil)
			live = s
			return renaming{there}, err
		}, Elicit: func(context.Context, string, *sdk.ElicitParams) (*sdk.ElicitResult, error) {
			time.Sleep(10 * time.Minute)
			return &sdk.ElicitResult{Action: "decline"}, nil
		}})
		if err := m.Start(Config{Name: "s", Timeout: 10 * time.Second}); err != nil {
			t.Fatal(err)
		}
		m.Wait(t.Context())
		r := &rig{m, t, reg, t.Context()}
		if got := r.call("mcp__s__ask", `{}`).Text(); got != "decline" {
			t.Errorf("%q", got)
		}
		m.Close()
		live.Wait()
	})
}

func TestProgressIsShownTenTimesASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatch(time.Minute, time.Hour)
		var shown []string
		inv := &tool.Invocation{Progress: func(p msg.Part) { shown = append(shown, p.Text) }}
		for i := range 1000 {
			w.show(inv, progress{float64(i), 1000, "x\x1b[2Jy"})
			time.Sleep(time.Millisecond)
		}
		if len(shown) != 10 || shown[1] != "100/1000 x[2Jy" {
			t.Errorf("%d: %q", len(shown), shown)
		}
	})
}

// renaming gives messages their real methods, as every transport of ours does.
type renaming struct{ sdk.Transport }

func (r renaming) Connect(ctx context.Context) (sdk.Connection, error) {
	c, err := r.Transport.Connect(ctx)
	return renamingConn{c}, err
}

type renamingConn struct{ sdk.Connection }

func (c renamingConn) Write(ctx context.Context, m jsonrpc.Message) error {
	return c.Connection.Write(ctx, outgoing(ctx, m))
}

// A server that keeps crashing is restarted with growing pauses, then only when
// somebody needs it; its tools stay (BUG-MC-01).
func TestRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex // of these
		var times []string
		begun := time.Now()
		works := true
		var live *sdk.ServerSession
		reg := &tool.Registry{}
		m := New(Options{Registry: reg, Backoff: time.Second, dial: func(Config) (sdk.Transport, error) {
			mu.Lock()
			defer mu.Unlock()
			times = append(times, time.Since(begun).Round(time.Second).String())
			if !works {
				return nil, errors.New("out of order")
			}
			here, there := sdk.NewInMemoryTransports()
			s, err := goodServer().Connect(context.Background(), here, nil)
			live = s
			return renaming{there}, err
		}})
		if err := m.Start(Config{Name: "s"}); err != nil {
			t.Fatal(err)
		}
		if missing := m.Wait(t.Context()); len(missing) > 0 {
			t.Fatal(missing)
		}
		set := func(ok bool) *sdk.ServerSession {
			mu.Lock()
			defer mu.Unlock()
			works = ok
			return live
		}
		set(false).Close()
		time.Sleep(10 * time.Minute)
		mu.Lock()
		if diff := cmp.Diff([]string{"0s", "1s", "3s", "7s", "15s", "31s"}, times); diff != "" {
			t.Errorf("attempts (-want +got):\n%s", diff)
		}
		mu.Unlock()
		if st := m.Status()[0]; st.State != Failed || st.Why != "out of order" || len(reg.Tools()) != 8 {
			t.Errorf("%+v, %d tools", st, len(reg.Tools()))
		}
		// Somebody needs it: one attempt, and no other for a while.
		for range 3 {
			if _, err := m.acquire(t.Context(), "s"); err == nil || err.Error() != "MCP server s cannot be used: out of order" {
				t.Errorf("%v", err)
			}
		}
		mu.Lock()
		if n := len(times); n != 7 {
			t.Errorf("%d attempts", n)
		}
		mu.Unlock()
		set(true)
		time.Sleep(2 * time.Minute)
		if _, err := m.Ping(t.Context(), "s"); err != nil {
			t.Error(err)
		}
		// A while of good behaviour, and the pauses begin anew.
		time.Sleep(2 * time.Minute)
		mu.Lock()
		begun, times = time.Now(), nil
		mu.Unlock()
		set(true).Close()
		time.Sleep(time.Minute)
		mu.Lock()
		if diff := cmp.Diff([]string{"1s"}, times); diff != "" {
			t.Errorf("attempts after it was well (-want +got):\n%s", diff)
		}
		mu.Unlock()
		m.Close()
		set(true).Wait()
	})
}

// Everybody who names a server that failed waits for the attempt that the first
// of them has begun.
func TestNamedTwiceAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := 0 // the manager makes one after the other
		var live *sdk.ServerSession
		m := New(Options{Registry: &tool.Registry{}, Backoff: time.Second, dial: func(Config) (sdk.Transport, error) {
			if tries++; tries == 1 {
				return nil, errors.New("not yet")
			}
			time.Sleep(10 * time.Second)
			here, there := sdk.NewInMemoryTransports()
			s, err := goodServer().Connect(context.Background(), here, nil)
			live = s
			return renaming{there}, err
		}})
		if err := m.Start(Config{Name: "s"}); err != nil {
			t.Fatal(err)
		}
		if missing := m.Wait(t.Context()); len(missing) != 1 {
			t.Fatalf("it should have failed: %v", missing)
		}
		time.Sleep(time.Minute)
		var wg sync.WaitGroup
		for i := range 3 {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * time.Second)
				begun := time.Now()
				if missing := m.Wait(t.Context(), "s"); len(missing) > 0 || time.Since(begun) != time.Duration(10-i)*time.Second {
					t.Errorf("caller %d: %v after %v", i, missing, time.Since(begun))
				}
			})
		}
		wg.Wait()
		m.Close()
		live.Wait()
	})
}

// deaf is a server that hears and says nothing.
type deaf struct{}

func (deaf) Write(b []byte) (int, error) { return len(b), nil }
func (deaf) Close() error                { return nil }

// Nobody waits longer for a server than its start-up timeout from its start.
func TestWaitIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := New(Options{Registry: &tool.Registry{}, dial: func(Config) (sdk.Transport, error) {
			nothing, _ := io.Pipe()
			return &sdk.IOTransport{Reader: nothing, Writer: deaf{}}, nil
		}})
		var configs []Config
		for i := range 50 {
			configs = append(configs, Config{Name: fmt.Sprint("s", i), StartupTimeout: 20 * time.Second})
		}
		begun := time.Now()
		if err := m.Start(configs...); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took != 0 {
			t.Errorf("Start took %v", took)
		}
		time.Sleep(5 * time.Second)
		if missing := m.Wait(t.Context()); len(missing) != 50 || time.Since(begun) != 20*time.Second {
			t.Errorf("%d are missing after %v", len(missing), time.Since(begun))
		}
		m.Close()
	})
}

// Whoever waits for a server that has said that its tools changed gets the new
// ones, without the pause that gathers a burst; nobody else is held up.
func TestWaitForWhatChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var live *sdk.ServerSession
		reg := &tool.Registry{}
		server := goodServer()
		m := New(Options{Registry: reg, dial: func(Config) (sdk.Transport, error) {
			here, there := sdk.NewInMemoryTransports()
			s, err := server.Connect(context.Background(), here, nil)
			live = s
			return renaming{there}, err
		}})
		if err := m.Start(Config{Name: "s"}); err != nil {
			t.Fatal(err)
		}
		m.Wait(t.Context())
		r := &rig{m, t, reg, t.Context()}
		before := len(r.names())
		for n := range 3 {
			r.call("mcp__s__grow", fmt.Sprintf(`{"text":"fresh%d"}`, n))
			for !m.Changing("s") {
				time.Sleep(time.Millisecond) // the SDK's server gathers too
			}
			if got := len(r.names()); got != before+n {
				t.Fatalf("%d tools before it was waited for, want %d", got, before+n)
			}
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			m.Wait(ended, "s") // returns
			begun := time.Now()
			if missing := m.Wait(t.Context(), "s"); len(missing) > 0 || time.Since(begun) != 0 {
				t.Errorf("after %v: %v", time.Since(begun), missing)
			}
			if got := len(r.names()); got != before+n+1 || m.Changing("s") {
				t.Errorf("%d tools, want %d; still changing: %v", got, before+n+1, m.Changing("s"))
			}
		}
		m.Close()
		live.Wait()
	})
}
