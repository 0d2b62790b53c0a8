package builtin

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"capstan/internal/tool"
)

// Two sessions, as two processes have them, edit one file at once: what is
// reported as done is in the file.
func TestSessionsLoseNothing(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there are no file locks here")
	}
	s := newSession(t)
	const lines, each = 40, 4
	var text strings.Builder
	for i := range lines {
		fmt.Fprintf(&text, "line %d: 0\n", i)
	}
	s.write("f", text.String())
	var mu sync.Mutex
	done := map[int]int{}
	var group sync.WaitGroup
	for worker := range 4 {
		group.Go(func() {
			tools := map[string]tool.Tool{}
			for _, tl := range All(Options{Dir: s.dir}) {
				tools[tl.Spec().Name] = tl
			}
			for i := range lines / 4 {
				n := worker*lines/4 + i
				for k := range each {
					call(t, tools["read_file"], tool.FromModel, obj{"file_path": "f"})
					r := call(t, tools["edit"], tool.FromModel, obj{"file_path": "f",
						"old_string": fmt.Sprintf("line %d: %d\n", n, k), "new_string": fmt.Sprintf("line %d: %d\n", n, k+1)})
					if r.Status != tool.Success {
						break // it says why; the next line is another one
					}
					mu.Lock()
					done[n] = k + 1
					mu.Unlock()
				}
			}
		})
	}
	group.Wait()
	got, err := os.ReadFile(s.path("f"))
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for n := range lines {
		total += done[n]
		if want := fmt.Sprintf("line %d: %d\n", n, done[n]); !strings.Contains(string(got), want) {
			t.Errorf("an edit that was reported as done is lost: want %q", want)
		}
	}
	if total == 0 {
		t.Error("no edit succeeded")
	}
	s.clean("", "f")
}

// A write clears the bits that let a file run with another's rights.
func TestWriteClearsSetuid(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there are no such bits here")
	}
	s := newSession(t)
	s.write("f", "a\n")
	if err := os.Chmod(s.path("f"), 0o755|os.ModeSetuid); err != nil {
		t.Fatal(err)
	}
	s.ok("read_file", obj{"file_path": "f"})
	out := s.ok("edit", obj{"file_path": "f", "old_string": "a", "new_string": "b"})
	info, err := os.Stat(s.path("f"))
	if err != nil || info.Mode() != 0o755 || !strings.Contains(out, "set-user-id") {
		t.Errorf("mode %v, %v: %s", info.Mode(), err, out)
	}
}

// A costly pattern is matched in small pieces, between which a search can end.
func TestCostlyPattern(t *testing.T) {
	cheap, err := newPattern("needle")
	if err != nil {
		t.Fatal(err)
	}
	costly, err := newPattern(`((((x{1,100}){1,10})))y`)
	if err != nil {
		t.Fatal(err)
	}
	if cheap.piece != maxLine || costly.piece > 128<<10 {
		t.Errorf("pieces of %d and %d bytes", cheap.piece, costly.piece)
	}
	if _, err := newPattern(strings.Repeat("x", maxPattern+1)); err == nil {
		t.Error("a pattern without end was taken")
	}
	s := newSession(t)
	s.write("long.txt", strings.Repeat("x", 4<<20)+"needle\n")
	s.f.searchTime = time.Millisecond
	r := s.call("grep_search", obj{"pattern": `((((x{1,100}){1,10})))y`, "path": "long.txt"})
	if r.Status != tool.Success || !strings.Contains(r.Text(), "the search was ended after") {
		t.Errorf("%s: %s", r.Status, r.Text())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	found := search{files: s.f, pattern: costly, lines: newListing(tool.FromModel)}
	if n := found.scan(ctx, &searched{}, []byte(strings.Repeat("x\n", 1000)), 1); n != 0 {
		t.Errorf("a cancelled search looked at %d lines", n)
	}
}

// A line that is too long for one go is reported once, and not for what only
// its parts begin or end with.
func TestLongLines(t *testing.T) {
	s := newSession(t)
	s.write("long.txt", "first\na"+strings.Repeat("x", 200_000)+"needle"+strings.Repeat("x", 200_000)+"z\nlast needle\n")
	words := make([]string, 900)
	for i := range words {
		words[i] = fmt.Sprintf("word%dq", i)
	}
	large := strings.Join(words, "|")
	for pattern, want := range map[string]string{
		"needle|" + large: "2 3",
		"^x|" + large:     "",
		"x$|" + large:     "",
		"xz|" + large:     "2",
	} {
		var got []string
		r := s.call("grep_search", obj{"pattern": pattern, "path": "long.txt"})
		var found struct{ Matches []match }
		if err := json.Unmarshal(r.Data, &found); err != nil {
			t.Fatal(err)
		}
		for _, m := range found.Matches {
			got = append(got, fmt.Sprint(m.Line))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%.20s…: lines %v, want %q", pattern, got, want)
		}
		if skipped := strings.Contains(r.Text(), "too long for a pattern"); skipped != strings.ContainsAny(pattern, "^$") {
			t.Errorf("%.20s…: %s", pattern, r.Text())
		}
	}
}

// A file that another process has locked is not waited for without end.
func TestLockedFile(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there are no file locks here")
	}
	s := newSession(t)
	s.write("f", "a\n")
	h, err := os.Open(s.path("f"))
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if err := lock(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	s.ok("read_file", obj{"file_path": "f"})
	s.fails("edit f: another process has locked the file and does not let go; nothing was changed", "edit", obj{"file_path": "f", "old_string": "a", "new_string": "b"})
	s.holds("f", "a\n")
	s.clean("", "f")
}
