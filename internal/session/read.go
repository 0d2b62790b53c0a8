package session

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"capstan/internal/msg"
)

// reader turns the bytes of a log into events. Whatever the bytes are, it
// returns every event that is there, in the log's order, which alone counts.
type reader struct {
	files files
	event func(event) // gets each event
	note  func(format string, a ...any)

	lines   int
	damaged []int // numbers of lines that are no event
	since   int   // damaged lines since the last event
	seq     int64 // the highest so far
	endsCut bool  // the last line has no end
	unknown int   // events of a kind that a later version writes
}

// maxSeq bounds what a log may claim, so that counting on never overflows.
const maxSeq = 1 << 48

// read reads to the end. Its error is one of reading, or a format that this
// version does not know; damage is none.
func (r *reader) read(in io.Reader) error {
	br := bufio.NewReaderSize(in, 64<<10)
	for {
		line, long, err := readLine(br)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		atEnd := err != nil
		if atEnd && len(line) == 0 {
			break
		}
		r.lines++
		r.endsCut = atEnd
		if err := r.line(line, long); err != nil {
			return err
		}
		if atEnd {
			break
		}
	}
	r.report()
	return nil
}

// readLine returns the next line without its end, and at most maxLine of it.
// The error is io.EOF when the line has no end.
func readLine(br *bufio.Reader) (line []byte, long bool, err error) {
	for {
		piece, err := br.ReadSlice('\n')
		if err == nil {
			piece = piece[:len(piece)-1]
		}
		if room := maxLine - len(line); len(piece) > room {
			piece, long = piece[:room], true
		}
		line = append(line, piece...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, long, err
		}
	}
}

// errNewer refuses a log of a later version before anything of it is misread.
var errNewer = errors.New("a newer Capstan wrote this session")

func (r *reader) line(line []byte, long bool) error {
	// A crash of the machine can leave zero bytes where a line was to come.
	clean := bytes.Trim(line, "\x00 \t\r")
	if len(clean) == 0 && len(line) == len(bytes.Trim(line, "\x00")) {
		return nil // an empty line
	}
	var e event
	if long || json.Unmarshal(clean, &e) != nil || e.Kind == "" || e.Seq < 0 || e.Seq > maxSeq || e.Turn < 0 || e.Turn > maxSeq {
		r.damage()
		return nil
	}
	if e.Header != nil && e.Header.Format > Format {
		return fmt.Errorf("%w (format %d, this one reads %d): update Capstan", errNewer, e.Header.Format, Format)
	}
	if err := r.load(&e); err != nil {
		r.note("line %d: %v", r.lines, err)
		r.damage()
		return nil
	}
	if gap := e.Seq - r.seq - 1 - int64(r.since); gap > 0 {
		r.note("%s missing before line %d", count(int(gap), "event is", "events are"), r.lines)
	}
	r.seq, r.since = max(r.seq, e.Seq), 0
	if !e.Kind.known() {
		r.unknown++
		return nil
	}
	r.event(e)
	return nil
}

func (r *reader) damage() {
	r.damaged = append(r.damaged, r.lines)
	r.since++
}

// load fetches what lies in files. A part whose file is missing or was changed
// becomes a line that says so.
func (r *reader) load(e *event) error {
	if e.Whole != nil {
		data, err := r.files.get(*e.Whole)
		if err != nil {
			return fmt.Errorf("the file of a long event cannot be used: %w", err)
		}
		whole := event{}
		if err := json.Unmarshal(data, &whole); err != nil || whole.Kind != e.Kind || whole.Seq != e.Seq || whole.Whole != nil {
			return errors.New("the file of a long event belongs to another one")
		}
		*e = whole
	}
	if len(e.Blobs) == 0 {
		return nil
	}
	blobs := map[int]blob{}
	for _, b := range e.Blobs {
		blobs[b.Part] = b
	}
	n := -1
	e.mapParts(func(p msg.Part) msg.Part {
		n++
		b, ok := blobs[n]
		if !ok {
			return p
		}
		data, err := r.files.get(b)
		if err != nil {
			r.note("line %d: %s is lost: %v", r.lines, describe(p, b.Bytes), err)
			return msg.TextPart("[" + describe(p, b.Bytes) + ", lost]")
		}
		p.Data = data
		return p
	})
	return nil
}

// report tells of what is in the log but was not used.
func (r *reader) report() {
	if n := len(r.damaged); n > 0 {
		at := make([]string, 0, 5)
		for _, l := range r.damaged[:min(n, 5)] {
			at = append(at, strconv.Itoa(l))
		}
		if n > 5 {
			at = append(at, "…")
		}
		r.note("%s damaged and skipped (line %s)", count(n, "line is", "lines are"), strings.Join(at, ", "))
	}
	if r.unknown > 0 {
		r.note("%s of a kind that this version does not know, skipped", count(r.unknown, "event is", "events are"))
	}
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

func describe(p msg.Part, bytes int64) string {
	return fmt.Sprintf("%s %s, %d bytes", p.Kind, p.MIMEType, bytes)
}

// openLog opens a log to read. Anything but a regular file would be a trap: a
// pipe under that name never ends.
func openLog(path string) (*os.File, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is no regular file")
	}
	return os.Open(path)
}
