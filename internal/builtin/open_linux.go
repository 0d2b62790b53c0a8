package builtin

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// linkFree says whether an absolute path exists and leads through no symbolic
// link: one question to the kernel instead of one for each component.
func linkFree(path string) bool {
	fd, err := openat2(path, unix.O_PATH)
	if err != nil {
		return false
	}
	_ = unix.Close(fd)
	return true
}

func openat2(path string, flags uint64) (int, error) {
	how := unix.OpenHow{Flags: flags | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS}
	for {
		fd, err := unix.Openat2(unix.AT_FDCWD, path, &how)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

// openNoLinks is open with the kernel's own refusal of links. Its error is
// errors.ErrUnsupported where the kernel, or a filter before it, has no
// openat2.
func openNoLinks(path string) (*handle, error) {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil { // opening a device can already do something
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	if what := kindOf(modeOf(st.Mode)); what != "" {
		return nil, &notRegular{path, what}
	}
	fd, err := openat2(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY)
	switch {
	case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EPERM):
		return nil, errors.ErrUnsupported
	case errors.Is(err, unix.ELOOP):
		return nil, fmt.Errorf("opening %s: %w", path, errMoved)
	case err != nil:
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	if err := unix.Fstat(fd, &st); err != nil {
		_ = unix.Close(fd)
		return nil, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	if what := kindOf(modeOf(st.Mode)); what != "" {
		_ = unix.Close(fd)
		return nil, &notRegular{path, what}
	}
	return &handle{descriptor(fd), st.Size}, nil
}

// modeOf keeps of a mode what kindOf asks for.
func modeOf(m uint32) fs.FileMode {
	switch m & unix.S_IFMT {
	case unix.S_IFREG:
		return 0
	case unix.S_IFDIR:
		return fs.ModeDir
	case unix.S_IFIFO:
		return fs.ModeNamedPipe
	case unix.S_IFSOCK:
		return fs.ModeSocket
	case unix.S_IFLNK:
		return fs.ModeSymlink
	case unix.S_IFCHR, unix.S_IFBLK:
		return fs.ModeDevice
	}
	return fs.ModeIrregular
}

// A descriptor reads without Go's poller, which would wait for files of /proc
// that have nothing to say.
type descriptor int

func (d descriptor) Read(p []byte) (int, error) {
	for {
		n, err := unix.Read(int(d), p)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return 0, fmt.Errorf("reading: %w", err)
		case n == 0 && len(p) > 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
}

func (d descriptor) Close() error { return unix.Close(int(d)) }

// openDirNoLinks is openNoLinks for a directory.
func openDirNoLinks(path string) (*os.File, error) {
	fd, err := openat2(path, unix.O_RDONLY|unix.O_DIRECTORY)
	switch {
	case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EPERM):
		return nil, errors.ErrUnsupported
	case errors.Is(err, unix.ELOOP):
		return nil, fmt.Errorf("opening %s: %w", path, errMoved)
	case errors.Is(err, unix.ENOTDIR):
		return nil, &notDir{path}
	case err != nil:
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}
