package terminal

import "golang.org/x/sys/unix"

// flushInput flushes the read queue only (FREAD).
func flushInput(fd int) { _ = unix.IoctlSetPointerInt(fd, unix.TIOCFLUSH, 1) }
