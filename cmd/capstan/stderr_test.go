package main

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A reader takes what is written, one piece after each value it is sent.
type reader struct{ takes chan struct{} }

func (r *reader) Write(b []byte) (int, error) {
	<-r.takes
	return len(b), nil
}

// Whoever reads slowly is waited for, but not when the time of the run is over,
// or after a signal; the next run has a time of its own.
func TestPatient(t *testing.T) {
	const wall, day = 10 * time.Second, 24 * time.Hour
	for name, tc := range map[string]struct {
		limit time.Duration
		reads time.Duration // after which a piece is read; 0: none is
		wait  time.Duration // before it is written
		ends  time.Duration // when the context ends; 0: it does not
		again bool          // the limit is taken back after the wait
		err   error
		took  time.Duration
	}{
		"no limit":                  {reads: day, took: day},
		"in time":                   {limit: wall, reads: 9 * time.Second, took: 9 * time.Second},
		"never":                     {limit: wall, err: errLate, took: wall + readGrace},
		"written when it was over":  {limit: wall, wait: day, err: errLate, took: readGrace},
		"read when it was over":     {limit: wall, wait: day, reads: readGrace / 2, took: readGrace / 2},
		"over, and the next run":    {limit: wall, wait: day, again: true, reads: day, took: day},
		"not over, and the next":    {limit: wall, wait: time.Second, again: true, reads: day, took: day},
		"a signal":                  {limit: wall, ends: time.Second, err: errGone, took: time.Second + readGrace},
		"a signal and no limit":     {ends: time.Second, err: errGone, took: time.Second + readGrace},
		"a signal, and it is there": {ends: time.Second, reads: time.Second + readGrace/2, took: time.Second + readGrace/2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				r := &reader{make(chan struct{})}
				p := patientOf(ctx, r)
				p.waitFor(tc.limit)
				time.Sleep(tc.wait)
				if tc.again {
					p.waitFor(0)
				}
				begun := time.Now()
				if tc.ends > 0 {
					time.AfterFunc(tc.ends, cancel)
				}
				if tc.reads > 0 {
					time.AfterFunc(tc.reads, func() { r.takes <- struct{}{} })
				}
				_, err := p.Write([]byte("a piece"))
				if took := time.Since(begun); took != tc.took || !errors.Is(err, tc.err) || (err == nil) != (tc.err == nil) {
					t.Errorf("%v after %v, want %v after %v", err, took, tc.err, tc.took)
				}
				if tc.err != nil {
					if _, again := p.Write(nil); !errors.Is(again, tc.err) {
						t.Errorf("then %v", again)
					}
				}
				p.close()
				close(r.takes)
			})
		})
	}
}

// A limit that is set while something is written counts for it.
func TestPatientLimitDuringWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reader{make(chan struct{})}
		p := patientOf(t.Context(), r)
		time.AfterFunc(time.Minute, func() { p.waitFor(time.Second) })
		begun := time.Now()
		_, err := p.Write([]byte("a piece"))
		if diff := cmp.Diff(time.Minute+time.Second+readGrace, time.Since(begun)); !errors.Is(err, errLate) || diff != "" {
			t.Errorf("%v: %s", err, diff)
		}
		p.close()
		close(r.takes)
	})
}
