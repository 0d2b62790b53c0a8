//go:build amd64 || arm64

package keeper

import (
	"syscall"
	"time"
)

// A Proc is a process as a look at /proc found it.
type Proc struct {
	pid, parent    int
	group, session int
	state          byte
	started        uint64 // clock ticks since boot: with pid, its identity
}

// PID, Parent, Group and Session are its ids, in that order of meaning.
func (p Proc) PID() int     { return p.pid }
func (p Proc) Parent() int  { return p.parent }
func (p Proc) Group() int   { return p.group }
func (p Proc) Session() int { return p.session }

// Zombie says whether it has ended and only waits to be reaped.
func (p Proc) Zombie() bool { return p.state == 'Z' || p.state == 'X' }

// Scan gives every process that /proc shows, in no order. It is empty when
// /proc is not mounted.
func Scan() []Proc {
	var s scanner
	return append([]Proc(nil), s.scan(scanLimit)...)
}

// Descendants gives those of all that root is an ancestor of.
func Descendants(all []Proc, root int) []Proc {
	s := scanner{all: all}
	return s.below(root)
}

// A scanner reads /proc again and again without new memory.
type scanner struct {
	all  []Proc
	dir  [32 << 10]byte
	stat [1 << 10]byte
}

// scanLimit is more than a look at /proc takes unless the machine is overrun.
const scanLimit = 10 * time.Second

// scan gives what a look of at most limit finds.
func (s *scanner) scan(limit time.Duration) []Proc {
	until := time.Now().Add(limit)
	s.all = s.all[:0]
	fd, err := syscall.Open("/proc", syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer syscall.Close(fd)
	for {
		n, err := syscall.ReadDirent(fd, s.dir[:])
		if err != nil || n <= 0 || time.Now().After(until) {
			return s.all
		}
		_, _, names := syscall.ParseDirent(s.dir[:n], -1, nil)
		for _, name := range names {
			if pid := number(name); pid > 0 && time.Now().Before(until) {
				if p, ok := s.read(pid); ok {
					s.all = append(s.all, p)
				}
			}
		}
	}
}

// children gives the processes whose parent is root.
func (s *scanner) children(root int) (list []Proc) {
	for _, p := range s.scan(scanLimit) {
		if p.parent == root {
			list = append(list, p)
		}
	}
	return list
}

// descendants gives those of the caller's that a look of at most limit finds.
func (s *scanner) descendants(limit time.Duration) []Proc {
	s.scan(limit)
	return s.below(syscall.Getpid())
}

// below gives the processes of s.all below root, parents before their children.
func (s *scanner) below(root int) (list []Proc) {
	children := make(map[int][]Proc, len(s.all))
	for _, p := range s.all {
		if p.pid != p.parent {
			children[p.parent] = append(children[p.parent], p)
		}
	}
	list = append(list, children[root]...)
	delete(children, root)
	for i := 0; i < len(list); i++ {
		// Each parent is expanded once: ids that were reused while /proc was
		// read cannot make a circle.
		list = append(list, children[list[i].pid]...)
		delete(children, list[i].pid)
	}
	return list
}

func (s *scanner) read(pid int) (Proc, bool) {
	b := readFile(procPath(pid, "/stat"), s.stat[:])
	return parseStat(pid, b)
}

// same reports whether p's id still means the process that was found.
func (p Proc) same() bool {
	var buf [1 << 10]byte
	q, ok := parseStat(p.pid, readFile(procPath(p.pid, "/stat"), buf[:]))
	return ok && q.started == p.started
}

// Command gives the command line, or the name of a process that has none, cut
// to 200 bytes; control characters become spaces.
func (p Proc) Command() string {
	var buf [200]byte
	b := readFile(procPath(p.pid, "/cmdline"), buf[:])
	if len(b) == 0 {
		b = readFile(procPath(p.pid, "/comm"), buf[:])
	}
	for i := range b {
		if b[i] < ' ' || b[i] == 0x7f {
			b[i] = ' '
		}
	}
	for len(b) > 0 && b[len(b)-1] == ' ' {
		b = b[:len(b)-1]
	}
	return string(b)
}

// parseStat reads /proc/PID/stat: "pid (name) state ppid pgrp session …", with
// the start time as field 22. The name may hold anything, ") " too.
func parseStat(pid int, b []byte) (p Proc, ok bool) {
	end := len(b) - 1
	for end >= 0 && b[end] != ')' {
		end--
	}
	if end < 0 || end+2 >= len(b) {
		return p, false
	}
	p.pid = pid
	field, start := 3, end+2
	for i := start; i <= len(b); i++ {
		if i < len(b) && b[i] != ' ' && b[i] != '\n' {
			continue
		}
		word := string(b[start:i])
		switch field {
		case 3:
			if word == "" {
				return p, false
			}
			p.state = word[0]
		case 4:
			p.parent = number(word)
		case 5:
			p.group = number(word)
		case 6:
			p.session = number(word)
		case 22:
			p.started = uint64(number(word))
			return p, true
		}
		field, start = field+1, i+1
	}
	return p, false
}

// number reads a decimal number; anything else is -1.
func number(s string) int {
	if s == "" || len(s) > 18 {
		return -1
	}
	n := 0
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return -1
		}
		n = n*10 + int(s[i]-'0')
	}
	return n
}

func procPath(pid int, name string) string {
	var digits [20]byte
	i := len(digits)
	for n := pid; ; n /= 10 {
		i--
		digits[i] = byte('0' + n%10)
		if n < 10 {
			return "/proc/" + string(digits[i:]) + name
		}
	}
}

// readFile reads as much of a small file as buf takes.
func readFile(path string, buf []byte) []byte {
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer syscall.Close(fd)
	n := 0
	for n < len(buf) {
		m, err := syscall.Read(fd, buf[n:])
		if err == syscall.EINTR {
			continue
		}
		if err != nil || m <= 0 {
			break
		}
		n += m
	}
	return buf[:n]
}
