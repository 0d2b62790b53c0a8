//go:build linux && (amd64 || arm64)

package keeper

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// BUG-CX-03: whatever went wrong before, pid 0, 1 and -1, the own process and
// the own group are never signalled. (The signal would end this test.)
func TestSignalRefuses(t *testing.T) {
	for _, pid := range []int{0, 1, -1, -5, os.Getpid()} {
		if err := (Proc{pid: pid, parent: os.Getpid()}).Signal(syscall.SIGKILL); err != syscall.EPERM {
			t.Errorf("signalling process %d: %v, want EPERM", pid, err)
		}
	}
	for _, group := range []int{0, 1, -1, syscall.Getpgrp()} {
		if err := signalGroup(group, syscall.SIGKILL); err != syscall.EPERM {
			t.Errorf("signalling group %d: %v, want EPERM", group, err)
		}
	}
}

// A process id that another process has taken since is not signalled.
func TestSignalSparesAnother(t *testing.T) {
	cmd := exec.Command("sleep", "300")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	var s scanner
	p, ok := s.read(cmd.Process.Pid)
	if !ok || p.parent != os.Getpid() {
		t.Fatalf("found %+v, %v", p, ok)
	}
	other := p
	other.parent, other.started = 1, p.started+1
	if err := other.Signal(syscall.SIGKILL); err != syscall.ESRCH {
		t.Errorf("signalling another process's id: %v, want ESRCH", err)
	}
	if err := cmd.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the process is gone: %v", err)
	}
	p.parent = 1 // reached through its descriptor, not as a child
	if err := p.Signal(syscall.SIGKILL); err != 0 {
		t.Errorf("signalling the process itself: %v", err)
	}
}

func TestParseStat(t *testing.T) {
	tail := " 0 -1 4194304 99 0 0 0 0 0 0 0 20 0 1 0 4242 5 6 7\n"
	tests := []struct {
		stat string
		want Proc
		ok   bool
	}{
		{"7 (sleep) S 5 6 4" + tail, Proc{pid: 7, parent: 5, group: 6, session: 4, state: 'S', started: 4242}, true},
		{"7 (a) R 1 (b) ) Z 5 6 4" + tail, Proc{pid: 7, parent: 5, group: 6, session: 4, state: 'Z', started: 4242}, true},
		{"7 (sleep) S 5 6", Proc{}, false},
		{"7 (sleep)", Proc{}, false},
		{"7 (sleep) ", Proc{}, false},
		{"", Proc{}, false},
	}
	for _, tt := range tests {
		got, ok := parseStat(7, []byte(tt.stat))
		if !ok {
			got = Proc{}
		}
		if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(Proc{})); ok != tt.ok || diff != "" {
			t.Errorf("%q: ok %v, want %v (-want +got):\n%s", tt.stat, ok, tt.ok, diff)
		}
	}
}

func TestDescendants(t *testing.T) {
	all := []Proc{{pid: 5, parent: 3}, {pid: 2, parent: 1}, {pid: 3, parent: 2}, {pid: 4, parent: 2}, {pid: 9, parent: 8}, {pid: 8, parent: 9}, {pid: 7, parent: 7}}
	var got []int
	for _, p := range Descendants(all, 1) {
		got = append(got, p.pid)
	}
	if diff := cmp.Diff([]int{2, 3, 4, 5}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := Descendants(all, 9); len(got) != 2 { // a circle ends
		t.Errorf("below a circle: %+v", got)
	}
}

// The keeper takes the process over before the rest of a binary initialises:
// what comes before it is the runtime and its own few imports, whatever else
// the binary links. This is what its start costs.
func TestTakesOverEarly(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a binary")
	}
	dir := t.TempDir()
	binary := filepath.Join(dir, "binary")
	main := filepath.Join(dir, "main.go")
	src := "package main\nimport (\n\t_ \"capstan/internal/shell\"\n\t_ \"net/http\"\n)\nfunc main() {}\n"
	if err := os.WriteFile(main, []byte(src), 0o600); err != nil {
		t.Fatal(err)
	}
	// A package of this module may import what is internal to it.
	overlay := filepath.Join(dir, "overlay.json")
	place, err := filepath.Abs("overlaytest/main.go")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(overlay, []byte(`{"Replace":{"`+place+`":"`+main+`"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-overlay", overlay, "-o", binary, "./overlaytest")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building: %v\n%s", err, out)
	}
	trace := func(args ...string) []string {
		cmd := exec.Command(binary, args...)
		cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("running: %v\n%s", err, out)
		}
		var names []string
		for _, m := range regexp.MustCompile(`(?m)^init (\S+)`).FindAllStringSubmatch(string(out), -1) {
			names = append(names, m[1])
		}
		return names
	}
	whole, before := trace(), trace(Marker) // without a control pipe it ends at once
	for _, heavy := range []string{"os", "fmt", "net/http", "capstan/internal/shell/keeper"} {
		for _, name := range before {
			if name == heavy {
				t.Errorf("package %s is initialised before the keeper takes over", heavy)
			}
		}
	}
	if len(before) > 25 || len(before) >= len(whole)/2 {
		t.Errorf("%d of %d packages are initialised before the keeper takes over:\n%s", len(before), len(whole), strings.Join(before, "\n"))
	}
}
