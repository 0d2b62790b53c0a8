//go:build linux || darwin

package terminal

import (
	"context"
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// portableOnly says that this file's ways to wait are not to be had.
const portableOnly = false

func openTTY() (*os.File, error) { return os.OpenFile("/dev/tty", os.O_RDWR, 0) }

// inBackground says whether reading would stop the process: another process
// group owns the terminal.
func inBackground(tty *os.File) (background bool) {
	_ = withFd(tty, func(fd int) {
		group, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
		background = err == nil && group != unix.Getpgrp()
	})
	return background
}

// flush throws away what was typed and not read yet.
func (a *Approver) flush() {
	if a.portable {
		a.drain()
		return
	}
	_ = withFd(a.opt.In, flushInput)
}

// readLine waits for a line, or for the end of the context.
func (a *Approver) readLine(ctx context.Context) (string, error) {
	if a.portable {
		return a.nextLine(ctx)
	}
	var line lineReader
	buf := make([]byte, 1024)
	for {
		var n int
		err := wait(ctx, a.opt.In, false, func(fd int) (err error) {
			n, err = unix.Read(fd, buf)
			return err
		})
		switch {
		case err != nil:
			return "", err
		case n <= 0:
			return "", io.EOF
		}
		if s, done, err := line.add(buf[:n]); done || err != nil {
			return s, err
		}
	}
}

// write writes to the terminal, which may take as long as it likes (Ctrl-S
// stops it), until the context ends.
func (a *Approver) write(ctx context.Context, s string) error {
	if a.portable {
		_, err := a.opt.Out.WriteString(s)
		return err
	}
	for b := []byte(s); len(b) > 0; {
		var n int
		// As little as a terminal that says it is ready takes without blocking.
		err := wait(ctx, a.opt.Out, true, func(fd int) (err error) {
			n, err = unix.Write(fd, b[:min(len(b), 128)])
			return err
		})
		if err != nil {
			return err
		}
		b = b[max(n, 0):]
	}
	return nil
}

// newline is for after the context's end: it writes when that is possible at
// once.
func (a *Approver) newline() {
	_ = withFd(a.opt.Out, func(fd int) {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
		if n, err := unix.Poll(fds, 0); n == 1 && err == nil && fds[0].Revents&unix.POLLOUT != 0 {
			_, _ = unix.Write(fd, []byte("\n"))
		}
	})
}

// wait calls do once the file is ready, and again when it was not ready after
// all. The end of the context wakes it through a pipe.
func wait(ctx context.Context, file *os.File, write bool, do func(fd int) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	woken := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		_ = w.Close()
		close(woken)
	})
	defer func() {
		if stop() {
			_ = w.Close()
		} else {
			<-woken
		}
	}()
	var result error
	err = withFd(r, func(wake int) {
		err := withFd(file, func(fd int) { result = ready(ctx, fd, wake, write, do) })
		result = errors.Join(result, err)
	})
	if err != nil {
		return err
	}
	return result
}

func ready(ctx context.Context, fd, wake int, write bool, do func(fd int) error) error {
	if fd >= unix.FD_SETSIZE || wake >= unix.FD_SETSIZE {
		return errors.New("too many files are open to ask on the terminal")
	}
	for {
		var reads, writes unix.FdSet
		reads.Set(wake)
		if write {
			writes.Set(fd)
		} else {
			reads.Set(fd)
		}
		// select, for poll does not know terminals on every system.
		_, err := unix.Select(max(fd, wake)+1, &reads, &writes, nil, nil)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return err
		case reads.IsSet(wake):
			return ctx.Err()
		}
		switch err := do(fd); {
		case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EIO) && !write:
			return io.EOF // the terminal hung up
		default:
			return err
		}
	}
}
