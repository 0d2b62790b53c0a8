package shell

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func needs(t *testing.T, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("%s is not installed", p)
		}
	}
}

// Programs that want a person end by themselves, and the result says why and
// what to do instead.
func TestInteractivePrograms(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "long.txt"), []byte(strings.Repeat("line\n", 500)), 0o600); err != nil {
		t.Fatal(err)
	}
	repo := `git init -q . && git config user.email a@example.test && git config user.name a && git config commit.gpgsign false && ` +
		`for i in $(seq 60); do git commit -q --allow-empty -m "commit $i"; done; `
	tests := []struct{ program, line, output, waiting string }{
		{"vim", "vim long.txt", "", "vim waited for a person"},
		{"top", "top", "", "`top -b -n 1`"},
		{"python3", `python3 -c 'input("name? ")'`, "name? ", "reads an answer from stdin"},
		{"less", "less long.txt | tail -n 1", "line\n", ""},
		// BUG-CX-10: no pager waits for keys, however many lines there are.
		{"git", repo + "git log --oneline | wc -l; git log | grep -c '^commit '; git --no-pager -c core.pager=less log --oneline | wc -l", "60\n60\n60\n", ""},
		{"git", "git rebase -i HEAD~2", "", "GIT_SEQUENCE_EDITOR"},
		{"git", "git commit --allow-empty", "", "`git commit -m`"},
		{"git", "git -c credential.helper= clone -q http://127.0.0.1:1/x.git", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.line[max(0, len(tt.line)-30):], func(t *testing.T) {
			needs(t, tt.program)
			res, err := New(Options{Idle: 600 * time.Millisecond}).Run(testContext(t), Command{Line: tt.line, Dir: dir, Timeout: 40 * time.Second})
			if err != nil || res.TimedOut {
				t.Fatalf("got %+v, %v", res, err)
			}
			if !strings.Contains(res.Output, tt.output) || !strings.Contains(res.Waiting, tt.waiting) || tt.waiting == "" && res.Waiting != "" {
				t.Errorf("output %q, waiting %q, want %q and %q", res.Output, res.Waiting, tt.output, tt.waiting)
			}
		})
	}
}

// A program that waits at a terminal which the command made is found and ended
// long before its time is up.
func TestWaitsAtTerminal(t *testing.T) {
	needs(t, "script")
	dir := t.TempDir()
	tests := []struct{ name, program, line, want string }{
		{"read", "bash", "script -qec 'read x' /dev/null </dev/zero", "bash waited for a person"},
		{"editor", "vim", "script -qec 'vim -u NONE x' /dev/null < <(sleep 300)", "vim waited for a person"},
		{"pager", "less", "seq 1000 >n; script -qec 'less n' /dev/null < <(sleep 300)", "less waited for a person"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			needs(t, tt.program)
			if tt.name == "read" {
				tt.line = "script -qec 'bash -c \"read x\"' /dev/null < <(sleep 300)"
			}
			mark := newMark()
			res, err := New(Options{Idle: 400 * time.Millisecond}).Run(testContext(t), Command{Line: tt.line, Dir: dir, Env: append(os.Environ(), "MARK="+mark)})
			if err != nil || res.Cancelled || res.TimedOut || !strings.Contains(res.Waiting, tt.want) {
				t.Errorf("got %+v, %v, want one that %s", res, err, tt.want)
			}
			if left := marked(mark); len(left) > 0 {
				t.Errorf("still running after Run: %q", left)
			}
		})
	}
	// Being quiet is not waiting for a person.
	t.Run("sleeper", func(t *testing.T) {
		t.Parallel()
		res, err := New(Options{Idle: 100 * time.Millisecond}).Run(testContext(t), Command{Line: "script -qec 'sleep 1' /dev/null < <(sleep 1.5); sleep 0.5"})
		if err != nil || res.Waiting != "" || res.ExitCode != 0 {
			t.Errorf("got %+v, %v", res, err)
		}
	})
}

func TestWantedPerson(t *testing.T) {
	far := strings.Repeat("x", 1<<20)
	tests := []struct {
		output string
		code   int
		want   bool
	}{
		{"sudo: a terminal is required to read the password; either use", 1, true},
		{"fatal: could not read Username for 'https://example.test': terminal prompts disabled\n", 128, true},
		{far + "not a tty", 1, true},
		{far + "not a tty" + far, 1, false},
		{"not a tty", 0, false},
		{"build failed", 1, false},
		{"", 1, false},
	}
	for _, tt := range tests {
		if got := wantedPerson(tt.output, tt.code) != ""; got != tt.want {
			t.Errorf("%.60q with exit code %d: %v, want %v", tt.output, tt.code, got, tt.want)
		}
	}
}
