package session

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Read returns the session whose id begins with prefix. It changes nothing and
// works while another process writes; an event that is being written then may
// be missing.
func (s *Store) Read(prefix string) (*State, error) {
	path, err := s.find(prefix)
	if err != nil {
		return nil, err
	}
	f, _, err := s.fold(path)
	if err != nil {
		return nil, err
	}
	return f.finish(), nil
}

// errSub is why a subagent's log is not resumed.
var errSub = errors.New("it is the transcript of a subagent, which ended with its session")

// Resume opens the session whose id begins with prefix to go on with it. What a
// crash left behind is repaired, and the repair recorded: State.Notes tells of
// it. ErrBusy means that another process has the session open. The caller
// closes the Log.
func (s *Store) Resume(prefix string) (*Log, *State, error) {
	path, err := s.find(prefix)
	if err != nil {
		return nil, nil, err
	}
	if session, ok := isSub(path); ok {
		return nil, nil, fmt.Errorf("resuming %s: %w: resume %s", idOf(path), errSub, session)
	}
	l, st, err := s.resume(path)
	if err != nil {
		return nil, nil, fmt.Errorf("resuming session %s: %w", idOf(path), err)
	}
	return l, st, nil
}

func (s *Store) resume(path string) (_ *Log, _ *State, err error) {
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
		return nil, nil, errors.Join(err, fs.ErrInvalid)
	}
	f, err := s.sys.open(path, os.O_WRONLY|os.O_APPEND)
	if err != nil {
		return nil, nil, fmt.Errorf("%w (it can still be shown and exported)", err)
	}
	unlock, err := lock(f, s.sys.lock)
	if err != nil {
		_ = f.Close()
		return nil, nil, err
	}
	l := &Log{s: s, path: path, f: f, unlock: unlock}
	defer func() {
		if err != nil {
			unlock()
			_ = f.Close()
		}
	}()
	// Whoever else holds a link to the file, it is ours alone to read.
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, nil, err
	}
	s.files(path).sweep()
	fold, r, err := s.fold(path)
	if err != nil {
		return nil, nil, err
	}
	st := fold.finish()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	l.head = st.Header
	l.head.ID = st.ID
	l.size, l.cut = info.Size(), r.endsCut
	l.seq, l.turn, l.inTurn, l.titled = r.seq, int64(st.Turns), st.Unfinished, st.Title != ""
	return l, st, l.recordRepair(fold, r)
}

// recordRepair writes down what was repaired, so that the next reader finds it
// in the log instead of finding it out again.
func (l *Log) recordRepair(f *folder, r *reader) error {
	last := 0
	if n := len(r.damaged); n > 0 {
		last = r.damaged[n-1]
	}
	if last > f.told {
		e := event{Kind: kindRepair, Repair: &repair{Notes: f.state.Notes, Line: last}}
		if err := l.add(e, false); err != nil {
			return err
		}
	}
	for _, c := range f.state.Repaired {
		e := event{Kind: kindResult, Result: &result{Result: c, Repaired: true}}
		if err := l.add(e, false); err != nil {
			return err
		}
	}
	return nil
}

// fold reads a log.
func (s *Store) fold(path string) (*folder, *reader, error) {
	in, err := openLog(path)
	if err != nil {
		return nil, nil, fmt.Errorf("reading session %s: %w", idOf(path), err)
	}
	defer in.Close()
	f, r, err := s.foldFrom(in, path)
	if err != nil {
		return nil, nil, fmt.Errorf("reading session %s: %w", idOf(path), err)
	}
	if info, err := in.Stat(); err == nil {
		f.state.Bytes = info.Size()
	}
	return f, r, nil
}

func (s *Store) foldFrom(in io.Reader, path string) (*folder, *reader, error) {
	f := newFolder()
	r := &reader{files: s.files(path), event: f.add, note: f.note}
	if err := r.read(in); err != nil {
		return nil, nil, err
	}
	st := &f.state
	st.ID, st.Path = idOf(path), path
	st.Workspace, st.Dir, st.Model = st.Header.Workspace, st.Header.Dir, st.Header.Model
	var err error
	if st.Agents, err = agents(path); err != nil {
		f.note("the transcripts of subagents cannot be listed: %v", err)
	}
	if st.Header.Format == 0 {
		f.note("the header is missing: where the session was held is not known")
	}
	st.Header.ID = st.ID
	return f, r, nil
}
