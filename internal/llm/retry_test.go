package llm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"capstan/internal/msg"
)

// attempts gives one list of events or an error for each request.
type attempts struct {
	list [][]any
	made int
}

func (a *attempts) once() iter.Seq2[Event, error] {
	a.made++
	now := a.list[min(a.made, len(a.list))-1]
	return func(yield func(Event, error) bool) {
		for _, x := range now {
			switch x := x.(type) {
			case error:
				yield(nil, x)
				return
			case Event:
				if !yield(x, nil) {
					return
				}
			}
		}
	}
}

// script runs Repeat and writes what came, with the time of each. What is added
// to a wait by chance is not in the times.
func script(ctx context.Context, e *Endpoint, a *attempts) []string {
	var out []string
	start := time.Now()
	var more, added time.Duration
	for event, err := range e.Repeat(ctx, a.once) {
		if ctx.Err() == nil { // else the wait was cut short
			more += added
		}
		added = 0
		s := fmt.Sprintf("%T", event)
		if err != nil {
			var own *Error
			if !errors.As(err, &own) {
				return append(out, "not an Error: "+err.Error())
			}
			s = "error " + string(own.Kind)
		}
		if r, ok := event.(Retry); ok {
			s = fmt.Sprintf("Retry %d %s", r.Attempt, r.Err.Kind)
			if r.After > longestAsked {
				s += " too long"
			}
		}
		out = append(out, fmt.Sprintf("%s %s", (time.Since(start)-more).Round(time.Second), strings.TrimPrefix(s, "llm.")))
		if r, ok := event.(Retry); ok && r.Err.RetryAfter > 0 {
			added = r.After - r.Err.RetryAfter
		}
	}
	return out
}

func TestRepeat(t *testing.T) {
	overloaded := &Error{Kind: ErrOverloaded}
	asks := func(d time.Duration) error { return &Error{Kind: ErrRateLimit, RetryAfter: d} }
	call := Call{Call: msg.Call{ID: "a"}}
	done := Done{Finish: FinishStop}
	tests := []struct {
		name    string
		retries int
		list    [][]any
		want    []string
	}{
		{"at once", 0, [][]any{{Text{"a"}, done, Text{"never"}}}, []string{"0s Text", "0s Done"}},
		{"as long as it asks", 0, [][]any{{asks(7 * time.Second)}, {asks(90 * time.Second)}, {done}},
			[]string{"0s Retry 2 rate_limit", "7s Retry 3 rate_limit", "1m37s Done"}},
		{"longer than anybody waits", 0, [][]any{{asks(time.Hour)}}, []string{"0s error rate_limit"}},
		{"after text, in the middle (BUG-SD-15)", 0, [][]any{{Text{"a"}, asks(time.Second)}, {Text{"b"}, done}},
			[]string{"0s Text", "0s Retry 2 rate_limit", "1s Text", "1s Done"}},
		{"not after a call (BUG-SD-13)", 0, [][]any{{Text{"a"}, call, overloaded}}, []string{"0s Text", "0s Call", "0s error overloaded"}},
		{"an end without Done (BUG-SD-15)", -1, [][]any{{Text{"a"}}}, []string{"0s Text", "0s error network"}},
		{"what waiting does not mend", 0, [][]any{{&Error{Kind: ErrAuth}}}, []string{"0s error auth"}},
		{"spent", 0, [][]any{{&Error{Kind: ErrQuota, RetryAfter: time.Second}}}, []string{"0s error quota"}},
		{"never", -1, [][]any{{overloaded}}, []string{"0s error overloaded"}},
		{"once", 1, [][]any{{asks(time.Second)}}, []string{"0s Retry 2 rate_limit", "1s error rate_limit"}},
		{"any other error is the network's (BUG-SD-16)", -1, [][]any{{errors.New("wsarecv: An existing connection was forcibly closed")}}, []string{"0s error network"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got := script(t.Context(), &Endpoint{Retries: tt.retries}, &attempts{list: tt.list})
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		})
	}
}

// A wait that is asked for is kept, and a little more, so that not all who were
// told the same come back at once.
func TestRepeatAsked(t *testing.T) {
	for _, tt := range []struct{ asked, most time.Duration }{{time.Millisecond, 1100 * time.Microsecond}, {5 * time.Second, 5500 * time.Millisecond}, {2 * time.Minute, 121 * time.Second}} {
		seen := map[time.Duration]bool{}
		for range 50 {
			wait, ok := (&Endpoint{}).wait(1, &Error{Kind: ErrRateLimit, RetryAfter: tt.asked})
			if !ok || wait < tt.asked || wait > tt.most {
				t.Fatalf("waits %v where %v was asked for", wait, tt.asked)
			}
			seen[wait] = true
		}
		if len(seen) < 10 {
			t.Errorf("of %v: only %d different waits in 50", tt.asked, len(seen))
		}
	}
}

// Waits double, are cut short by chance, and end. The request is sent 6 times.
func TestRepeatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := map[time.Duration]bool{}
		for range 20 {
			a := &attempts{list: [][]any{{&Error{Kind: ErrOverloaded}}}}
			want := firstWait
			for event := range (&Endpoint{}).Repeat(t.Context(), a.once) {
				r, ok := event.(Retry)
				if !ok {
					continue
				}
				if r.After > want || r.After < want/2 {
					t.Errorf("wait %v before attempt %d, want %v to %v", r.After, r.Attempt, want/2, want)
				}
				seen[r.After] = true
				want = min(2*want, longestWait)
			}
			if a.made != 1+DefaultRetries {
				t.Errorf("%d requests", a.made)
			}
		}
		if len(seen) < 20 {
			t.Errorf("the waits are hardly random: %d different ones of 100", len(seen))
		}
	})
}

// Cancelling ends a wait at once; leaving the loop makes no further request.
func TestRepeatEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(3*time.Second, cancel)
		a := &attempts{list: [][]any{{&Error{Kind: ErrRateLimit, RetryAfter: time.Minute}}}}
		if diff := cmp.Diff([]string{"0s Retry 2 rate_limit", "3s error cancelled"}, script(ctx, &Endpoint{}, a)); diff != "" || a.made != 1 {
			t.Errorf("%d requests (-want +got):\n%s", a.made, diff)
		}
		for range (&Endpoint{}).Repeat(t.Context(), a.once) {
			break
		}
		if a.made != 2 {
			t.Errorf("%d requests", a.made)
		}
	})
}

// silent is a server that stops: before its answer, or in the middle of it.
type silent struct{ before bool }

func (s silent) RoundTrip(r *http.Request) (*http.Response, error) {
	if s.before {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	in, out := io.Pipe()
	go func() {
		_, _ = io.WriteString(out, "data: 1\n\n")
		<-r.Context().Done()
		out.CloseWithError(r.Context().Err())
	}()
	return &http.Response{StatusCode: 200, Body: in, Request: r}, nil
}

// A server that falls silent is given up after the limit, a slow reader is not.
func TestIdle(t *testing.T) {
	for _, before := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			e := &Endpoint{Name: "test", BaseURL: "http://test", Idle: time.Minute, Transport: silent{before}}
			start := time.Now()
			resp, err := e.Do(t.Context(), "/x", []byte("{}"), nil)
			want := time.Minute
			if err == nil {
				_, _ = resp.Body.Read(make([]byte, 4))
				time.Sleep(10 * time.Minute) // the reader does something else
				want += 10 * time.Minute
				_, err = io.ReadAll(resp.Body)
				err = e.Failure(t.Context(), err)
				resp.Body.Close()
			}
			var own *Error
			if !errors.As(err, &own) || own.Kind != ErrNetwork || !strings.Contains(err.Error(), "nothing came for 1m0s") {
				t.Errorf("before %v: %v", before, err)
			}
			if d := time.Since(start); d != want {
				t.Errorf("before %v: after %v, want %v", before, d, want)
			}
			synctest.Wait()
		})
	}
}

// paced is a server that sends one text again and again.
type paced struct {
	every time.Duration
	text  string
}

func (s paced) RoundTrip(r *http.Request) (*http.Response, error) {
	in, out := io.Pipe()
	go func() {
		for i := 0; ; i++ {
			select {
			case <-r.Context().Done():
				out.CloseWithError(r.Context().Err())
				return
			case <-time.After(s.every):
			}
			// A piece ends anywhere, in a comment too.
			if _, err := io.WriteString(out, s.text[i%len(s.text):][:1]); err != nil {
				return
			}
		}
	}()
	return &http.Response{StatusCode: 200, Body: in, Request: r}, nil
}

// Comments and blank lines keep an answer from counting as silent, but not for
// ever.
func TestIdleWithSignsOfLife(t *testing.T) {
	for _, tt := range []struct {
		text string
		want time.Duration // 0: as long as it is read
	}{
		{": OPENROUTER PROCESSING\n\n", 3*time.Minute + 5*time.Second},
		{"\r\n", 3*time.Minute + 5*time.Second},
		{": wait\n\ndata: x\n\n", 0},
		{"x: no comment\n", 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			e := &Endpoint{Name: "test", BaseURL: "http://test", Idle: time.Minute, Transport: paced{5 * time.Second, tt.text}}
			resp, err := e.Do(t.Context(), "/x", []byte("{}"), nil)
			if err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			for err == nil && time.Since(start) < time.Hour {
				_, err = resp.Body.Read(make([]byte, 8))
			}
			took := time.Since(start)
			resp.Body.Close()
			if tt.want == 0 {
				if err != nil {
					t.Errorf("%q: after %v: %v", tt.text, took, err)
				}
				return
			}
			own := e.Failure(t.Context(), err)
			if took != tt.want || !strings.HasPrefix(own.Error(), "test: the endpoint fell silent: nothing but signs of life came for 3m0s\n") {
				t.Errorf("%q: after %v: %v", tt.text, took, own)
			}
		})
	}
}
