package builtin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/aymanbagabas/go-udiff"
)

// A change is what an edit or a write is about to do to one file.
type change struct {
	path    string // resolved
	shown   string // for a reader
	creates bool   // the file does not exist
	before  []byte // what it holds
	after   []byte
	old     string       // before and after as text, if they are
	new     string       //
	edits   []udiff.Edit // how old becomes new, if that is known
	notes   []string     // what the reader should know about it
}

// maxDiff is the largest text whose diff is worked out, in bytes.
const maxDiff = 1 << 20

// diff shows a change as a unified diff.
func (c *change) diff() string {
	from := c.shown
	if c.creates {
		from = "/dev/null"
	}
	switch {
	case c.edits != nil:
		s, err := udiff.ToUnified(from, c.shown, c.old, c.edits, udiff.DefaultContextLines)
		if err == nil {
			return s
		}
	case len(c.old) <= maxDiff && len(c.new) <= maxDiff:
		return udiff.Unified(from, c.shown, c.old, c.new)
	}
	return fmt.Sprintf("--- %s\n+++ %s\n(%s become %s)\n", from, c.shown, size(int64(len(c.before))), size(int64(len(c.after))))
}

// write puts the new content in place in one step: a reader sees the whole old
// file or the whole new one, and when anything goes wrong it is the old one
// and nothing is left lying around.
func (f *files) write(ctx context.Context, c *change) (err error) {
	dir, made, err := f.parent(c.path)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			made.undo()
		}
		made.close()
		_ = dir.Close() // a handle on a directory
	}()
	name := filepath.Base(c.path)
	was, old, err := f.mayReplace(dir, name, c)
	if err != nil {
		return err
	}
	if old != nil {
		defer func() { _ = old.Close() }() // nothing was written through it; this gives the lock back
	}
	temp, err := c.stage(dir, was)
	if err != nil {
		return err
	}
	if err = claim(ctx, dir, name, old); err == nil {
		err = f.unchanged(ctx, c)
	}
	if err == nil {
		if err = ctx.Err(); err == nil {
			err = c.publish(dir, temp, name)
		}
	}
	if err != nil {
		_ = dir.Remove(temp) // the first error is the one to tell
		return err
	}
	if d, err := dir.Open("."); err == nil {
		_ = d.Sync() // not every file system can
		_ = d.Close()
	}
	f.seen.note(c.path, c.after)
	return nil
}

// mayReplace looks at the file that is to be replaced. A rename would not ask
// whether the file itself may be written, so this does. The handle, if there is
// one, is for claim.
func (f *files) mayReplace(dir *os.Root, name string, c *change) (fs.FileInfo, *os.File, error) {
	if c.creates {
		return nil, nil, nil
	}
	was, err := dir.Lstat(name)
	if err != nil {
		return nil, nil, err
	}
	if what := kindOf(was.Mode()); what != "" {
		return nil, nil, &notRegular{c.path, what}
	}
	if was.Mode().Perm()&0o222 == 0 {
		return nil, nil, fmt.Errorf("it is read-only (mode %04o): chmod it first if it is meant to be changed", was.Mode().Perm())
	}
	h, err := dir.OpenFile(name, os.O_WRONLY|syscall.O_NONBLOCK, 0)
	if err != nil && !errors.Is(err, syscall.ETXTBSY) { // a running program can be replaced
		return nil, nil, err
	}
	if links(was) > 1 {
		c.notes = append(c.notes, "its other hard links keep the old content")
	}
	if was.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0 {
		c.notes = append(c.notes, "its set-user-id and set-group-id bits were cleared, as on every write")
	}
	return was, h, nil
}

// claim keeps other processes of ours from replacing the same file between the
// look at what it holds and the rename: each locks the file that it is about to
// replace, and whoever comes second finds that it has another file in hand.
func claim(ctx context.Context, dir *os.Root, name string, old *os.File) error {
	if old == nil {
		return nil
	}
	if err := lock(ctx, old); err != nil {
		return err
	}
	now, err := dir.Lstat(name)
	if err != nil {
		return err
	}
	if held, err := old.Stat(); err != nil || !os.SameFile(held, now) {
		return errWritten
	}
	return nil
}

var errWritten = errors.New("something else wrote the file in this moment; read it again")

// stage writes the new content to a file beside the old one.
func (c *change) stage(dir *os.Root, was fs.FileInfo) (temp string, err error) {
	temp = fmt.Sprintf(".capstan-%016x.tmp", rand.Uint64())
	mode := fs.FileMode(0o666)
	if was != nil {
		mode = 0o600 // until it has the old one's owner and mode, nobody else reads it
	}
	h, err := dir.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return "", err
	}
	if was != nil {
		if !keepOwner(h, was) {
			c.notes = append(c.notes, "its owner or group could not be kept")
		}
		err = h.Chmod(was.Mode() & (fs.ModePerm | fs.ModeSticky))
	}
	if err == nil {
		_, err = h.Write(c.after)
	}
	if err == nil {
		err = h.Sync()
	}
	if e := h.Close(); err == nil {
		err = e
	}
	if err != nil {
		_ = dir.Remove(temp) // the first error is the one to tell
		return "", err
	}
	return temp, nil
}

// unchanged fails when somebody else wrote the file since the change was
// worked out.
func (f *files) unchanged(ctx context.Context, c *change) error {
	if c.creates {
		return nil // publish finds out
	}
	now, err := f.load(ctx, c.path)
	if err == nil && !bytes.Equal(now, c.before) {
		err = errWritten
	}
	return err
}

// publish gives the staged file its name.
func (c *change) publish(dir *os.Root, temp, name string) error {
	if !c.creates {
		return dir.Rename(temp, name)
	}
	err := dir.Link(temp, name) // unlike rename, it never replaces
	switch {
	case err == nil:
		return dir.Remove(temp)
	case errors.Is(err, fs.ErrExist):
		return errors.New("something else created the file in this moment; read it first")
	}
	if _, err := dir.Lstat(name); err == nil { // a file system without hard links
		return errors.New("something else created the file in this moment; read it first")
	}
	return dir.Rename(temp, name)
}

// directories that were made for a file.
type madeDirs struct {
	in    *os.Root
	names []string // outermost first
}

func (m *madeDirs) undo() {
	for _, n := range slices.Backward(m.names) {
		_ = m.in.Remove(n) // fails when something else moved in: then it stays
	}
}

func (m *madeDirs) close() { _ = m.in.Close() }

// parent opens the directory of a file, after making those that are missing.
func (f *files) parent(path string) (*os.Root, *madeDirs, error) {
	at, missing := filepath.Dir(path), []string(nil)
	for {
		_, err := os.Lstat(at)
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) || at == filepath.Dir(at) {
			return nil, nil, err
		}
		missing = append(missing, filepath.Base(at))
		at = filepath.Dir(at)
	}
	root, err := f.openRoot(at)
	if err != nil {
		return nil, nil, err
	}
	made := &madeDirs{in: root}
	slices.Reverse(missing)
	for i := range missing {
		name := filepath.Join(missing[:i+1]...)
		if err = root.Mkdir(name, 0o777); err == nil {
			made.names = append(made.names, name)
		} else if errors.Is(err, fs.ErrExist) {
			err = nil
		} else {
			break
		}
	}
	var dir *os.Root
	if err == nil {
		dir, err = root.OpenRoot(filepath.Join(append([]string{"."}, missing...)...))
	}
	if err != nil {
		made.undo()
		made.close()
		return nil, nil, err
	}
	return dir, made, nil
}

// openRoot opens a resolved directory so that nothing done through it can leave
// it.
func (f *files) openRoot(dir string) (*os.Root, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	if err := f.sameDir(root, dir); err != nil {
		_ = root.Close()
		return nil, err
	}
	return root, nil
}

func (f *files) sameDir(root *os.Root, dir string) error {
	d, err := f.openDir(dir)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }() // only looked at
	want, err := d.Stat()
	if err != nil {
		return err
	}
	if got, err := root.Stat("."); err != nil || !os.SameFile(want, got) {
		return fmt.Errorf("opening %s: %w", dir, errMoved)
	}
	return nil
}

// maxEdit is the largest file that edit and write_file replace, in bytes. It
// is what read_file reads to its end.
const maxEdit = maxCounted

// load reads the file at a resolved path for a change.
func (f *files) load(ctx context.Context, path string) ([]byte, error) {
	h, err := f.open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = h.Close() }() // only read
	b, err := slurp(ctx, h, maxEdit)
	if errors.Is(err, errTooBig) {
		err = fmt.Errorf("it has %s; at most %s can be changed with this tool", size(h.size), size(maxEdit))
	}
	return b, err
}

// uniformCRLF says whether every line of a text ends in a carriage return and
// a line feed, and there is one.
func uniformCRLF(s string) bool {
	n := strings.Count(s, "\n")
	return n > 0 && n == strings.Count(s, "\r\n")
}

// bareLF says whether a text has line feeds and none after a carriage return.
func bareLF(s string) bool { return strings.Contains(s, "\n") && !strings.Contains(s, "\r\n") }
