package builtin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"
)

// searched is what became of one file.
type searched struct {
	path   string
	hits   []match
	chars  int // in hits, in bytes
	more   int // matches that were only counted
	long   int // lines that were too long for the pattern
	binary bool
	err    error
	done   chan struct{}
}

// A search looks for a pattern in files, several at a time; what it finds comes
// in the order of the walk.
type search struct {
	files   *files
	pattern *pattern
	lines   *listing
	enough  atomic.Bool // further matches are only counted

	found                        []match
	searched, unreadable, binary int
	long                         int
	failed                       error // the last file's that could not be read
}

// run searches root, a file or a directory. It returns when nothing of it runs
// any more.
func (s *search) run(ctx context.Context, w *walk, root, glob string) error {
	workers := min(runtime.GOMAXPROCS(0), 8)
	jobs, order := make(chan *searched, workers), make(chan *searched, 8*workers)
	var group, merging sync.WaitGroup
	for range workers {
		group.Go(func() {
			buf := make([]byte, 256<<10)
			for r := range jobs {
				buf = s.file(ctx, r, buf)
				close(r.done)
			}
		})
	}
	merging.Go(func() {
		for r := range order {
			<-r.done
			s.add(r)
			s.enough.Store(s.lines.full())
		}
	})
	submit := func(path string) {
		r := &searched{path: path, done: make(chan struct{})}
		jobs <- r
		order <- r
	}
	ok := wanted(glob, root)
	w.visit = func(path string, d fs.DirEntry) {
		if ok(path, d) {
			submit(path)
		}
	}
	err := w.run(root)
	var single *notDir
	if errors.As(err, &single) && single.path == root {
		submit(root)
		err = nil
	}
	close(jobs)
	close(order)
	group.Wait()
	merging.Wait()
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err == nil && single != nil {
		err = s.failed // the one file: say why
	}
	return err
}

// maxLine is how much of a line is looked at in one piece, in bytes. A match
// that goes over the end of a piece is missed.
const maxLine = 8 << 20

// file searches one file as a stream. It returns the buffer, which may have
// grown.
func (s *search) file(ctx context.Context, r *searched, buf []byte) []byte {
	h, err := s.files.open(r.path)
	if err != nil {
		r.err = err
		return buf
	}
	defer func() { _ = h.Close() }() // only read
	line, held := 1, 0
	for first := true; ctx.Err() == nil; first = false {
		n, err := h.Read(buf[held:])
		held += n
		if first && err == nil && isBinary(buf[:held]) {
			s.odd(ctx, r, h, buf[:held])
			return buf
		}
		if err != nil && !errors.Is(err, io.EOF) {
			r.err = err
			return buf
		}
		if first && bytes.HasPrefix(buf[:held], []byte(utf8Mark.mark)) {
			held = copy(buf, buf[len(utf8Mark.mark):held])
		}
		end := bytes.LastIndexByte(buf[:held], '\n') + 1
		if errors.Is(err, io.EOF) || end == 0 && held >= maxLine {
			end = held
		}
		line += s.scan(ctx, r, buf[:end], line)
		held = copy(buf, buf[end:held])
		if errors.Is(err, io.EOF) {
			return buf
		}
		if held == len(buf) {
			buf = append(buf, make([]byte, len(buf))...)
		}
	}
	return buf
}

// odd searches a file that has NULs: UTF-16 is text, anything else is not.
func (s *search) odd(ctx context.Context, r *searched, h *handle, head []byte) {
	if e := markOf(head); (e == nil || e.order == nil) && guessUTF16(head) == nil || h.size > maxWhole {
		r.binary = true
		return
	}
	rest, err := slurp(ctx, h, maxWhole)
	if err != nil {
		r.err = err
		return
	}
	text, _ := decode(append(bytes.Clone(head), rest...))
	s.scan(ctx, r, []byte(text), 1)
}

// scan looks through whole lines, the first of which has the number line, and
// returns how many there are. It does so piece by piece, so that a search can be
// ended between them.
func (s *search) scan(ctx context.Context, r *searched, b []byte, line int) int {
	lines := 0
	for len(b) > 0 && ctx.Err() == nil {
		part := b
		if len(part) > s.pattern.piece {
			part = part[:s.pattern.piece]
			if end := bytes.LastIndexByte(part, '\n') + 1; end > 0 {
				part = part[:end]
			} else { // one line, longer than a piece
				part = b
				if end := bytes.IndexByte(b, '\n'); end >= 0 {
					part = b[:end+1]
				}
				s.matchLong(ctx, r, bytes.TrimSuffix(part, []byte("\n")), line+lines)
				lines += bytes.Count(part[len(part)-1:], []byte{'\n'})
				b = b[len(part):]
				continue
			}
		}
		s.match(r, part, line+lines)
		lines += bytes.Count(part, []byte{'\n'})
		b = b[len(part):]
	}
	return lines
}

// overlap is how much of a piece of a long line is looked at again with the
// next one. A match that is longer and lies across their border is missed.
const overlap = 4 << 10

// matchLong looks through a line that is too long for one go. A pattern that
// says what lies before or behind a match could be wrong about a part of it, so
// then the line is left out, and counted.
func (s *search) matchLong(ctx context.Context, r *searched, b []byte, line int) {
	if s.pattern.anchored {
		r.long++
		return
	}
	for ctx.Err() == nil {
		part := b[:min(len(b), s.pattern.piece)]
		if s.pattern.find(part, true) >= 0 {
			s.hit(r, part, line)
			return
		}
		if len(part) == len(b) {
			return
		}
		b = b[len(part)-overlap:]
	}
}

// match looks through one piece of whole lines.
func (s *search) match(r *searched, b []byte, line int) {
	unix := bytes.IndexByte(b, '\r') < 0
	for len(b) > 0 {
		i := s.pattern.find(b, unix)
		if i < 0 {
			break
		}
		line += bytes.Count(b[:i], []byte{'\n'})
		found := lineAt(b, i)
		s.hit(r, found, line)
		line++
		b = b[min(i+len(found)+1, len(b)):]
	}
}

// hit keeps one line that matched, or counts it.
func (s *search) hit(r *searched, found []byte, line int) {
	if s.enough.Load() || len(r.hits) >= s.lines.maxLines || r.chars >= s.lines.max {
		r.more++
		return
	}
	m := match{Line: line, Text: s.clip(found)}
	r.chars += len(m.Text)
	r.hits = append(r.hits, m)
}

// clipChars is how much of a long line is shown around its match.
const clipChars = 400

// clip makes a line fit to be shown: valid UTF-8, and of a long one only the
// part around the match.
func (s *search) clip(line []byte) string {
	line = bytes.TrimSuffix(line, []byte("\r"))
	if len(line) > clipChars {
		at := 0
		if loc := s.pattern.re.FindIndex(line[:min(len(line), s.pattern.piece)]); loc != nil {
			at = max(0, min(loc[0]-clipChars/4, len(line)-clipChars))
		}
		end := min(at+clipChars, len(line))
		for at > 0 && at < end && !utf8.RuneStart(line[at]) {
			at++
		}
		for end < len(line) && end > at && !utf8.RuneStart(line[end]) {
			end--
		}
		short := string(line[at:end])
		if at > 0 {
			short = "…" + short
		}
		if end < len(line) {
			short += fmt.Sprintf("… [line of %s]", size(int64(len(line))))
		}
		return strings.ToValidUTF8(short, "\uFFFD")
	}
	return strings.ToValidUTF8(string(line), "\uFFFD")
}
