package session

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"time"
)

// Info is what a list tells of a session.
type Info struct {
	ID        string    `json:"id"`
	Path      string    `json:"path"`
	Workspace string    `json:"workspace"`
	Dir       string    `json:"dir"`             // where the user stood
	Title     string    `json:"title,omitempty"` // the first line that the user wrote
	Model     string    `json:"model,omitempty"` // that it began with
	Turns     int       `json:"turns"`           // begun
	Created   time.Time `json:"created,omitzero"`
	Updated   time.Time `json:"updated,omitzero"` // the last event
	Bytes     int64     `json:"bytes"`            // of the log
}

// peeked is what the two ends of a log tell.
type peeked struct {
	Info
	header Header
}

// List returns the sessions of the workspace, or of all workspaces, the newest
// first. It reads the beginning and the end of each log only. A log that cannot
// be read costs itself only: it is listed with what is known, its file's time.
func (s *Store) List(all bool) ([]Info, error) {
	dirs, err := s.dirs()
	if err != nil {
		return nil, err
	}
	if !all {
		dirs = dirs[:1]
	}
	infos := []Info{}
	for _, d := range dirs {
		paths, err := logs(d)
		if err != nil {
			return nil, err
		}
		for _, p := range paths {
			infos = append(infos, peek(p))
		}
	}
	slices.SortFunc(infos, newerFirst)
	return infos, nil
}

// Newest returns the workspace's session that was used last, for --continue: one
// with a beginning and a message, for with another there is nothing to go on.
// It looks into the few files of that kind that were written last only: their
// order is right, unless a copy or a backup has touched them.
func (s *Store) Newest() (Info, error) {
	paths, err := logs(s.dir)
	if err != nil {
		return Info{}, err
	}
	written := map[string]time.Time{}
	for _, p := range paths {
		if info, err := os.Lstat(p); err == nil {
			written[p] = info.ModTime()
		}
	}
	slices.SortStableFunc(paths, func(a, b string) int { return written[b].Compare(written[a]) })
	const most = 8
	infos := make([]Info, 0, most)
	for _, p := range paths {
		if len(infos) == most {
			break
		}
		if i := peek(p); !i.Created.IsZero() && i.Turns > 0 {
			infos = append(infos, i)
		}
	}
	if len(infos) == 0 {
		return Info{}, fmt.Errorf("%w: none was held in %s yet", ErrNotFound, s.workspace)
	}
	return slices.MinFunc(infos, newerFirst), nil
}

func newerFirst(a, b Info) int {
	return cmp.Or(b.Updated.Compare(a.Updated), cmp.Compare(a.ID, b.ID))
}

// summary is what a list needs of an event.
type summary struct {
	Kind   kind      `json:"kind"`
	Turn   int64     `json:"turn"`
	Time   time.Time `json:"time"`
	Title  string    `json:"title"`
	Header *Header   `json:"header"`
}

// The sizes of what is read of a log for a list: enough for most, and at most
// enough for two of the longest lines that are written.
const (
	peekFirst = 4 << 10
	peekMost  = 2*maxInline + peekFirst
)

// peek reads the two ends of a log.
func peek(path string) Info { return look(path).Info }

func look(path string) peeked {
	i := peeked{Info: Info{ID: idOf(path), Path: path}}
	f, err := openLog(path)
	if err != nil {
		return i
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return i
	}
	i.Bytes, i.Updated = info.Size(), info.ModTime().UTC()
	for n := int64(peekFirst); !i.head(f, n) && n < min(i.Bytes, peekMost); n *= 8 {
	}
	for n := int64(peekFirst); !i.tail(f, n) && n < min(i.Bytes, peekMost); n *= 8 {
	}
	return i
}

// head looks at the first n bytes, and reports whether more would tell nothing
// new.
func (i *peeked) head(f *os.File, n int64) bool {
	for _, line := range whole(f, 0, min(n, i.Bytes)) {
		var e summary
		if json.Unmarshal(line, &e) != nil {
			continue
		}
		if e.Header != nil {
			i.Created, i.Workspace, i.Dir, i.Model = e.Time, e.Header.Workspace, e.Header.Dir, e.Header.Model
			i.header = *e.Header
		}
		if e.Title != "" {
			i.Title = e.Title
			return true
		}
	}
	return false
}

// tail looks at the last n bytes, and reports whether there was an event.
func (i *Info) tail(f *os.File, n int64) bool {
	from := max(0, i.Bytes-n)
	lines := whole(f, from, i.Bytes-from)
	if from > 0 && len(lines) > 0 {
		lines = lines[1:] // most likely the end of a line only
	}
	for _, line := range slices.Backward(lines) {
		var e summary
		if json.Unmarshal(line, &e) == nil && e.Kind != "" && !e.Time.IsZero() {
			i.Turns, i.Updated = int(e.Turn), e.Time
			return true
		}
	}
	return false
}

// whole returns the lines of a piece of f that have an end there.
func whole(f io.ReaderAt, from, n int64) [][]byte {
	buf := make([]byte, n)
	got, _ := f.ReadAt(buf, from)
	lines := bytes.Split(buf[:got], []byte("\n"))
	return lines[:len(lines)-1]
}
