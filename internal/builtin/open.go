package builtin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// A handle is an open regular file.
type handle struct {
	io.ReadCloser
	size int64
}

// notRegular says what a path is when it is no file.
type notRegular struct{ path, what string }

func (e *notRegular) Error() string { return e.path + " is " + e.what + ", not a file" }

// errMoved is what opening a resolved path ends with when it is not what it
// was when the call was judged.
var errMoved = errors.New("a directory or link on the way to it was exchanged while the call was being prepared; try again")

// kindOf names what is not a regular file, and is "" for one.
func kindOf(m fs.FileMode) string {
	switch {
	case m.IsRegular():
		return ""
	case m.IsDir():
		return "a directory"
	case m&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	case m&fs.ModeDevice != 0:
		return "a device"
	case m&fs.ModeSymlink != 0:
		return "a symbolic link"
	}
	return "something unusual"
}

// open opens the regular file at a path that resolve returned. It follows no
// symbolic link anywhere on it, opens no device and waits for nobody.
func (f *files) open(path string) (*handle, error) {
	if !f.portable {
		if h, err := openNoLinks(path); !errors.Is(err, errors.ErrUnsupported) {
			return h, err
		}
	}
	return openPortable(path)
}

// openPortable is open for systems that cannot refuse links by themselves: it
// looks before and after.
func openPortable(path string) (*handle, error) {
	before, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if what := kindOf(before.Mode()); what != "" {
		return nil, &notRegular{path, what}
	}
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	after, err := file.Stat()
	if err == nil && !os.SameFile(before, after) {
		err = fmt.Errorf("opening %s: %w", path, errMoved)
	}
	if err == nil {
		var now string
		if now, err = follow(path); err == nil && now != path {
			err = fmt.Errorf("opening %s: %w", path, errMoved)
		}
	}
	if err != nil {
		_ = file.Close() // only read
		return nil, err
	}
	return &handle{file, after.Size()}, nil
}

// errTooBig is slurp's answer to a file that outgrows its limit.
var errTooBig = errors.New("the file is larger than the limit")

// slurp reads a file to its end, at most limit bytes. Files in /proc claim to
// be empty, so a file's size is a guess only.
func slurp(ctx context.Context, h *handle, limit int64) ([]byte, error) {
	if h.size > limit {
		return nil, errTooBig
	}
	buf := make([]byte, 0, h.size+1)
	for {
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		end := min(cap(buf), len(buf)+chunk)
		n, err := h.Read(buf[len(buf):end])
		buf = buf[:len(buf)+n]
		switch {
		case int64(len(buf)) > limit:
			return nil, errTooBig
		case errors.Is(err, io.EOF):
			return buf, nil
		case err != nil:
			return nil, err
		case ctx.Err() != nil:
			return nil, ctx.Err()
		}
	}
}

// chunk is how much is read between two looks at the context, in bytes.
const chunk = 1 << 20
