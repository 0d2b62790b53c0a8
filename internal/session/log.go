package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"unicode"

	"capstan/internal/msg"
)

// file is what a log needs of an open file; *os.File but in tests of faults.
type file interface {
	io.WriteCloser
	Sync() error
	Truncate(size int64) error
	Fd() uintptr
	Name() string
	Stat() (os.FileInfo, error)
}

func openFile(path string, flag int) (file, error) { return os.OpenFile(path, flag, 0o600) }

// maxQueue bounds the events that wait in memory while nothing can be written.
const maxQueue = 10_000

// A Log records one session. This process alone writes to it. Its methods may
// be called from several goroutines; each returns after its line was handed to
// the system, and after the line is on the disk where it says so.
//
// An error means that the event is not in the log yet, so its effect must not
// be relied on. The event is not lost either: it is written before the next
// one, because the log has to tell what the conversation really was. So what is
// handed in must not be changed afterwards. After a failed sync nothing can be
// promised any more, and every later method fails.
type Log struct {
	s    *Store
	path string
	head Header

	mu     sync.Mutex
	f      file // nil until the first event
	unlock func()
	size   int64   // where a failed write is cut back to
	cut    bool    // what stands there is a torn line of an earlier process
	junk   int64   // bytes behind size that could not be cut off
	queue  []event // not written yet
	seq    int64
	turn   int64
	inTurn bool
	titled bool
	broken error // set once, ends everything

	syncing sync.Mutex // held during fsync, taken before mu
	synced  int64      // the last event that is known to be on the disk
}

var errClosed = errors.New("the session log is closed")

// Create returns the log of a new session. The file is made with the first
// event, so a session in which nothing was said leaves nothing behind.
func (s *Store) Create(h Header) *Log {
	h.ID, h.Format = newID(), Format
	if h.Workspace == "" {
		h.Workspace = s.workspace
	}
	return &Log{s: s, head: h, path: filepath.Join(s.dir, h.ID+suffix)}
}

// ID returns the session's id.
func (l *Log) ID() string { return l.head.ID }

// Recorded reports whether there is anything in the log, and so a session that
// can be resumed.
func (l *Log) Recorded() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.size > 0
}

// Path returns the log's path. There may be no file there yet.
func (l *Log) Path() string { return l.path }

// Message records a message before it is acted on. One of role Tool is
// recorded as its results, as Result does.
func (l *Log) Message(m msg.Message) error {
	if m.Role == msg.Tool {
		var errs []error
		for _, r := range m.Results {
			errs = append(errs, l.Result("", r))
		}
		return errors.Join(errs...)
	}
	return l.add(event{Kind: kindMessage, Message: &m}, false)
}

// Start records that a call is about to run. When it may change something, the
// line is on the disk when Start returns.
func (l *Log) Start(c Start) error {
	return l.add(event{Kind: kindStart, Start: &c}, c.Mutates)
}

// Result records the outcome of a call; parentID is that of a nested one. Of a
// nested result the beginning is kept: it is there to tell what happened, no
// model gets it again.
func (l *Log) Result(parentID string, r msg.Result) error {
	if parentID != "" {
		r.Parts = abridge(r.Parts, l.s.clean)
	}
	return l.add(event{Kind: kindResult, Result: &result{Result: r, ParentID: parentID}}, false)
}

// EndTurn records that the turn is over. Everything is on the disk when it
// returns.
func (l *Log) EndTurn(e TurnEnd) error {
	return l.add(event{Kind: kindTurn, End: &e}, true)
}

// Set keeps a value of the session under a key, as JSON. A later one replaces
// it. Large ones, or ones that change often, do not belong here.
func (l *Log) Set(key string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("recording %q: %w", key, err)
	}
	return l.add(event{Kind: kindValue, Value: &value{key, data}}, false)
}

// Compact records that the model's view of the conversation so far is replaced
// by messages. The log keeps what was there.
func (l *Log) Compact(messages []msg.Message) error {
	return l.add(event{Kind: kindCompact, Compact: &compact{messages}}, true)
}

// Close writes what is left, and gives the log free. The first call alone does
// something.
func (l *Log) Close() error {
	l.syncing.Lock()
	defer l.syncing.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if errors.Is(l.broken, errClosed) {
		return nil
	}
	err := l.broken
	if err == nil {
		err = l.flush()
	}
	if n := len(l.queue); n > 0 {
		err = fmt.Errorf("%s not in it: %w", count(n, "event is", "events are"), err)
	}
	if l.f != nil {
		if err == nil {
			err = l.f.Sync()
		}
		l.unlock()
		err = errors.Join(err, l.f.Close())
	}
	l.broken = errClosed
	return l.explain(err)
}

// add gives e its place in the order and writes it.
func (l *Log) add(e event, sync bool) error {
	l.mu.Lock()
	seq, err := l.append(e)
	l.mu.Unlock()
	if err == nil && sync {
		err = l.sync(seq)
	}
	return l.explain(err)
}

func (l *Log) explain(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("writing the session log %s: %w", l.path, err)
}

func (l *Log) append(e event) (int64, error) {
	if l.broken != nil {
		return 0, l.broken
	}
	l.place(&e)
	l.queue = append(l.queue, e)
	err := l.flush()
	if err != nil && len(l.queue) > maxQueue {
		l.broken = fmt.Errorf("nothing could be written for too long: %w", err)
	}
	return e.Seq, err
}

// flush writes what waits, in order.
func (l *Log) flush() error {
	var refused error
	for len(l.queue) > 0 {
		if err := l.open(); err != nil {
			return err
		}
		e := l.queue[0]
		line, err := l.line(e)
		if errors.Is(err, errTooLarge) {
			refused = err
			line, err = l.encode(event{Kind: kindRepair, Seq: e.Seq, Turn: e.Turn, Time: e.Time,
				Repair: &repair{Notes: []string{fmt.Sprintf("a %s was not recorded: %v", e.Kind, refused)}}})
		}
		if err == nil {
			err = l.write(line)
		}
		if err != nil {
			return err
		}
		l.queue[0] = event{}
		l.queue = l.queue[1:]
	}
	return refused
}

// place sets what follows from where an event stands.
func (l *Log) place(e *event) {
	if m := e.Message; m != nil && m.Role == msg.User {
		if !l.inTurn {
			l.turn++
			l.inTurn = true
		}
		if !l.titled {
			e.Title = titleOf(l.s.clean(m.Text()))
			l.titled = e.Title != ""
		}
	}
	if e.Kind == kindTurn {
		l.inTurn = false
	}
	l.seq++
	e.Seq, e.Turn, e.Time = l.seq, l.turn, l.s.now().UTC()
}

// titleOf returns the first line of a text, without what would disturb a
// terminal, cut to 120 characters.
func titleOf(text string) string {
	for line := range strings.Lines(text) {
		line = strings.Join(strings.FieldsFunc(line, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }), " ")
		if r := []rune(line); len(r) > 120 {
			line = string(r[:119]) + "…"
		}
		if line != "" {
			return line
		}
	}
	return ""
}

// line returns e as it is written, its secrets replaced and its large parts in
// files.
func (l *Log) line(e event) ([]byte, error) {
	d := l.s.files(l.path)
	var n int
	var err error
	e.mapParts(func(p msg.Part) msg.Part {
		if len(p.Data) > 0 && err == nil {
			var b blob
			b, err = d.put(l.cleanData(p), extOf(p.MIMEType))
			b.Part = n
			e.Blobs = append(e.Blobs, b)
			p.Data = nil
		}
		n++
		return l.cleanState(p)
	})
	if err != nil {
		return nil, fmt.Errorf("keeping a part: %w", err)
	}
	line, err := l.encode(e)
	if err != nil || len(line) <= maxInline {
		return line, err
	}
	b, err := d.put(line, wholeExt)
	if err != nil {
		return nil, fmt.Errorf("keeping a long event: %w", err)
	}
	return l.encode(event{Kind: e.Kind, Seq: e.Seq, Turn: e.Turn, Time: e.Time, Title: e.Title, Whole: &b})
}

func (l *Log) encode(e event) ([]byte, error) {
	line, err := encode(e)
	if err != nil {
		return nil, err
	}
	return append(redactLine(line, l.s.secrets()), '\n'), nil
}

func (s *Store) secrets() cleaner { return cleaner{s.redact} }

// clean replaces the secrets in a string.
func (s *Store) clean(t string) string { return s.secrets().all(t) }

func (l *Log) cleanData(p msg.Part) []byte {
	if !textual(p.MIMEType, p.Data) {
		return p.Data
	}
	return []byte(l.s.clean(string(p.Data)))
}

// cleanState drops the provider's state of a part that holds a secret: a
// signature over a text that is no longer the same is worse than none.
func (l *Log) cleanState(p msg.Part) msg.Part {
	if len(p.State) == 0 {
		return p
	}
	if raw, err := encode(p); err != nil || !bytes.Equal(redactLine(raw, l.s.secrets()), raw) {
		p.State = nil
	}
	return p
}

// open makes the file of a new session.
func (l *Log) open() error {
	if l.f != nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(l.path), 0o700); err != nil {
		return err
	}
	f, err := l.s.sys.open(l.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return err
	}
	unlock, err := lock(f, l.s.sys.lock)
	if err != nil {
		_ = f.Close()
		_ = os.Remove(l.path)
		return err
	}
	l.f, l.unlock = f, unlock
	head := event{Kind: kindHeader, Header: &l.head, Time: l.queue[0].Time}
	l.queue = append([]event{head}, l.queue...)
	l.s.sys.syncDir(filepath.Dir(l.path))
	l.s.sys.syncDir(l.s.root)
	return nil
}

// write appends a line. When it fails, no piece of the line stays behind if
// that can be helped; else the next write ends it first.
func (l *Log) write(line []byte) error {
	if l.cut || l.junk > 0 {
		line = append([]byte{'\n'}, line...)
	}
	n, err := l.f.Write(line)
	l.junk += int64(n)
	if err != nil && n == len(line)-1 {
		// Only the end of the line is missing: the event is there.
		l.size += l.junk
		l.cut, l.junk = true, 0
		return nil
	}
	if err != nil {
		if l.junk > 0 && l.f.Truncate(l.size) == nil {
			l.junk = 0
		}
		return err
	}
	l.size += l.junk
	l.cut, l.junk = false, 0
	return nil
}

// sync returns when event seq is on the disk. Calls that come while another
// one syncs share the next one.
func (l *Log) sync(seq int64) error {
	l.syncing.Lock()
	defer l.syncing.Unlock()
	if l.synced >= seq {
		return nil
	}
	l.mu.Lock()
	f, last, err := l.f, l.seq, l.broken
	if err == nil && len(l.queue) > 0 {
		err = errors.New("an earlier event is not written yet")
	}
	l.mu.Unlock()
	if err != nil {
		return err
	}
	if err := l.settle(f); err != nil {
		l.mu.Lock()
		l.broken = err
		l.mu.Unlock()
		return err
	}
	l.synced = last
	return nil
}

// settle syncs the file, and looks whether it is still where it was: what is
// written to a file that was removed is gone with this process.
func (l *Log) settle(f file) error {
	if err := f.Sync(); err != nil {
		// The system may have dropped the data and call the next sync a
		// success, so no later one can be believed.
		return fmt.Errorf("the disk failed, this session cannot be resumed safely: %w", err)
	}
	ours, err := f.Stat()
	if err != nil {
		return err
	}
	if there, err := os.Lstat(l.path); err != nil || !os.SameFile(ours, there) {
		return errors.New("somebody removed it or put another file in its place, this session cannot be resumed; start a new one")
	}
	return nil
}
