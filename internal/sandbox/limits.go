package sandbox

import (
	"fmt"
	"time"
)

// Limits bound one program. They are fixed: no setting, flag or environment
// variable changes them; tests pass smaller ones. Sizes are bytes.
type Limits struct {
	Source       int           // the program's text
	ControlFrame int           // a frame that carries neither text nor a value nor media
	Body         int           // the arguments of a call, the value or text of a result, one printed item
	Media        int           // printed images and audio, in number
	MediaBytes   int           // printed images and audio, decoded, in total
	Memory       int           // the JavaScript heap
	Stack        int           // the JavaScript stack
	CPU          time.Duration // CPU time of the child, from the moment that the program is handed over
	Calls        int           // nested calls; the next one rejects with CALL_LIMIT
	Outstanding  int           // nested calls with the Host at once; further ones wait in the guest, in order
	Output       int64         // printed text; text() beyond it throws OUTPUT_LIMIT
	Watchdog     time.Duration // added to four times CPU: how long a child may be silent while it is owed nothing
	Startup      time.Duration // how long a child may take to say that it has started
	Teardown     time.Duration // how long a child may take to end once its program has
}

// DefaultLimits are the limits of every program outside tests, and the largest
// that Validate accepts.
func DefaultLimits() Limits {
	return Limits{
		Source:       128 << 10,
		ControlFrame: 1 << 20,
		Body:         16 << 20,
		Media:        16,
		MediaBytes:   10 << 20,
		Memory:       64 << 20,
		Stack:        512 << 10,
		CPU:          30 * time.Second,
		Calls:        10_000,
		Outstanding:  256,
		Output:       16 << 20,
		Watchdog:     10 * time.Second,
		Startup:      10 * time.Second,
		Teardown:     5 * time.Second,
	}
}

// WithDefaults fills the zero fields of l.
func (l Limits) WithDefaults() Limits {
	d := DefaultLimits()
	fill(&l.Source, d.Source)
	fill(&l.ControlFrame, d.ControlFrame)
	fill(&l.Body, d.Body)
	fill(&l.Media, d.Media)
	fill(&l.MediaBytes, d.MediaBytes)
	fill(&l.Memory, d.Memory)
	fill(&l.Stack, d.Stack)
	fill(&l.CPU, d.CPU)
	fill(&l.Calls, d.Calls)
	fill(&l.Outstanding, d.Outstanding)
	fill(&l.Output, d.Output)
	fill(&l.Watchdog, d.Watchdog)
	fill(&l.Startup, d.Startup)
	fill(&l.Teardown, d.Teardown)
	return l
}

// Validate refuses limits that are negative or above the defaults.
func (l Limits) Validate() error {
	d := DefaultLimits()
	for _, f := range []struct {
		name       string
		got, limit int64
	}{
		{"Source", int64(l.Source), int64(d.Source)},
		{"ControlFrame", int64(l.ControlFrame), int64(d.ControlFrame)},
		{"Body", int64(l.Body), int64(d.Body)},
		{"Media", int64(l.Media), int64(d.Media)},
		{"MediaBytes", int64(l.MediaBytes), int64(d.MediaBytes)},
		{"Memory", int64(l.Memory), int64(d.Memory)},
		{"Stack", int64(l.Stack), int64(d.Stack)},
		{"CPU", int64(l.CPU), int64(d.CPU)},
		{"Calls", int64(l.Calls), int64(d.Calls)},
		{"Outstanding", int64(l.Outstanding), int64(d.Outstanding)},
		{"Output", l.Output, d.Output},
		{"Watchdog", int64(l.Watchdog), int64(d.Watchdog)},
		{"Startup", int64(l.Startup), int64(d.Startup)},
		{"Teardown", int64(l.Teardown), int64(d.Teardown)},
	} {
		if f.got < 1 || f.got > f.limit {
			return fmt.Errorf("limit %s is %d; it must be from 1 to %d", f.name, f.got, f.limit)
		}
	}
	return nil
}

func fill[T int | int64 | time.Duration](field *T, def T) {
	if *field == 0 {
		*field = def
	}
}
