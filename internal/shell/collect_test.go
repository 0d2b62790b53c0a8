package shell

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Output is head and tail around what is left out, whatever the pieces.
func TestCollector(t *testing.T) {
	text := strings.Repeat("0123456789", 10)
	for _, keep := range []int{10, 11, 99, 100, 101} {
		for _, piece := range []int{1, 7, 60, 100} {
			var spill bytes.Buffer
			c := collector{keep: keep, spill: func() (io.Writer, error) { return &spill, nil }}
			for rest := text; rest != ""; rest = rest[min(piece, len(rest)):] {
				c.write([]byte(rest[:min(piece, len(rest))]))
			}
			var got Result
			c.fill(&got)
			want := Result{Output: text, Total: 100}
			if keep < 100 {
				head, tail := keep/2, keep-keep/2
				want = Result{Total: 100, Omitted: int64(100 - keep), Spilled: true,
					Output: fmt.Sprintf("%s\n[… %d bytes of output left out here …]\n%s", text[:head], 100-keep, text[100-tail:])}
				if spill.String() != text {
					t.Errorf("keep %d, pieces of %d: the spill holds %q", keep, piece, spill.String())
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("keep %d, pieces of %d (-want +got):\n%s", keep, piece, diff)
			}
		}
	}
}

// No character is cut, and every byte is kept or counted.
func TestCollectorCutsBetweenCharacters(t *testing.T) {
	text := strings.Repeat("ä你😀", 20)
	for keep := 4; keep < 60; keep++ {
		c := collector{keep: keep}
		c.write([]byte(text))
		var got Result
		c.fill(&got)
		head, tail, ok := strings.Cut(got.Output, fmt.Sprintf("\n[… %d bytes of output left out here …]\n", got.Omitted))
		if !ok || !strings.HasPrefix(text, head) || !strings.HasSuffix(text, tail) || len(head)+len(tail)+int(got.Omitted) != len(text) ||
			strings.ToValidUTF8(got.Output, "") != got.Output {
			t.Errorf("keep %d: %q", keep, got.Output)
		}
	}
}

type full struct{ n int }

func (w *full) Write(b []byte) (int, error) {
	if w.n -= len(b); w.n < 0 {
		return 0, errors.New("disk full")
	}
	return len(b), nil
}

// A spill that fails costs the spill, not the command or its output.
func TestCollectorSpillFails(t *testing.T) {
	for name, spill := range map[string]func() (io.Writer, error){
		"at the start": func() (io.Writer, error) { return nil, errors.New("disk full") },
		"at once":      func() (io.Writer, error) { return &full{}, nil },
		"later":        func() (io.Writer, error) { return &full{n: 20}, nil },
	} {
		c := collector{keep: 10, spill: spill}
		for range 10 {
			c.write([]byte("0123456789"))
		}
		var got Result
		c.fill(&got)
		if got.Spilled || got.SpillErr == nil || got.SpillErr.Error() != "disk full" || got.Omitted != 90 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
