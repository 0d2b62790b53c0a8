package session

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"capstan/internal/msg"
)

// One line without a sync: what a message costs before it is acted on.
func BenchmarkAppend(b *testing.B) {
	l := newStore(b).Create(Header{})
	m := says(strings.Repeat("Some words of an answer. ", 40))
	b.ReportAllocs()
	for b.Loop() {
		if err := l.Message(m); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	if err := l.Close(); err != nil {
		b.Fatal(err)
	}
}

// The same with the disk's own time, as before a mutating call.
func BenchmarkAppendSynced(b *testing.B) {
	l := newStore(b).Create(Header{})
	for b.Loop() {
		if err := l.Start(Start{ID: "c", Name: "write_file", Mutates: true}); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	if err := l.Close(); err != nil {
		b.Fatal(err)
	}
}

func BenchmarkList1000(b *testing.B) {
	s := newStore(b)
	log := contents(b, write(b, s, story()...))
	long := append(log, strings.Repeat(string(log[strings.IndexByte(string(log), '\n')+1:]), 20)...)
	for i := range 999 {
		if err := os.WriteFile(filepath.Join(s.dir, fmt.Sprintf("%08x-0000-4000-8000-000000000000%s", i, suffix)), long, 0o600); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if l, err := s.List(false); err != nil || len(l) != 1000 {
			b.Fatal(len(l), err)
		}
	}
}

func BenchmarkResume2000(b *testing.B) {
	s := newStore(b)
	path := write(b, s, func(l *Log) error {
		var errs []error
		for i := range 500 {
			id := fmt.Sprintf("c%d", i)
			errs = append(errs,
				l.Message(user("Please look at the next file.")),
				l.Message(calls(msg.Call{ID: id, Name: "read_file", Args: `{"path":"some/where/file.go"}`})),
				l.Start(Start{ID: id, Name: "read_file"}),
				l.Result("", ok(id, "read_file", strings.Repeat("a line of a file\n", 100))),
				l.Message(says("Here is what I found.")),
				l.EndTurn(TurnEnd{Reason: "finished"}))
		}
		return errors.Join(errs...)
	})
	b.ReportAllocs()
	for b.Loop() {
		l, st, err := s.Resume(idOf(path))
		if err != nil || len(st.Messages) != 2000 {
			b.Fatal(err)
		}
		if err := l.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
