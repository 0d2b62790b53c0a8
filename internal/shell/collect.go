package shell

import (
	"fmt"
	"io"
	"sync"
	"unicode/utf8"
)

// A collector keeps decoded output within bounds: all of it up to keep bytes,
// beyond that a head and a tail of half as much each, and the whole in a spill
// if there is one.
type collector struct {
	keep  int
	spill func() (io.Writer, error)

	mu       sync.Mutex
	head     []byte
	tail     []byte // set once the output has passed keep; holds up to keep bytes, half of which count
	over     bool
	total    int64
	w        io.Writer
	spilled  bool
	spillErr error
}

func (c *collector) write(b []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total += int64(len(b))
	if !c.over && len(c.head)+len(b) <= c.keep {
		c.head = append(c.head, b...)
		return
	}
	if !c.over {
		c.overflow()
	}
	c.writeSpill(b)
	if room := c.keep/2 - len(c.head); room > 0 && len(c.tail) == 0 {
		room = min(room, len(b))
		c.head, b = append(c.head, b[:room]...), b[room:]
	}
	half := c.keep - c.keep/2
	b = b[max(0, len(b)-half):] // of a piece longer than the tail only the end matters
	if c.tail = append(c.tail, b...); len(c.tail) > 2*half {
		c.tail = append(c.tail[:0], c.tail[len(c.tail)-half:]...)
	}
}

// overflow moves from keeping all to keeping head and tail.
func (c *collector) overflow() {
	c.over = true
	if c.spill != nil {
		c.w, c.spillErr = c.spill()
		c.spilled = c.spillErr == nil
		c.writeSpill(c.head)
	}
	half := min(c.keep/2, len(c.head))
	c.tail = append(c.tail, c.head[half:]...)
	c.head = c.head[:half]
}

func (c *collector) writeSpill(b []byte) {
	if !c.spilled {
		return
	}
	if _, err := c.w.Write(b); err != nil {
		c.spilled, c.spillErr = false, err
	}
}

// fill puts what was collected into r.
func (c *collector) fill(r *Result) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r.Total, r.Spilled, r.SpillErr = c.total, c.spilled, c.spillErr
	if !c.over {
		r.Output = string(c.head)
		return
	}
	head, tail := c.head, c.tail
	if half := c.keep - c.keep/2; len(tail) > half {
		tail = tail[len(tail)-half:]
	}
	// Cut at the borders of characters; the text is valid UTF-8 as a whole.
	for len(head) > 0 && !utf8.Valid(head[max(0, len(head)-utf8.UTFMax):]) {
		if r, n := utf8.DecodeLastRune(head); r != utf8.RuneError || n > 1 {
			break
		}
		head = head[:len(head)-1]
	}
	for len(tail) > 0 && !utf8.RuneStart(tail[0]) {
		tail = tail[1:]
	}
	r.Omitted = c.total - int64(len(head)+len(tail))
	r.Output = fmt.Sprintf("%s\n[… %d bytes of output left out here …]\n%s", head, r.Omitted, tail)
}
