package shell

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"capstan/internal/shell/keeper"
)

// confined returns a runner whose commands may change one directory, and another
// that they may not.
func confined(t *testing.T, noNetwork bool) (r *Runner, mine, other string) {
	t.Helper()
	if how, ok := SandboxSupport(); !ok {
		t.Skip(how)
	}
	mine, other = t.TempDir(), t.TempDir()
	for _, dir := range []string{mine, other} {
		if err := os.WriteFile(filepath.Join(dir, "there"), []byte("kept"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return New(Options{Sandbox: &Sandbox{Writable: []string{mine, "/does/not/exist"}, NoNetwork: noNetwork}}), mine, other
}

// TestSandboxFiles: a confined command changes what it may and nothing else, by
// whatever way, and what it starts is confined too. It reads and runs what it
// likes. Without the layer, and for a command that is not confined, nothing holds.
func TestSandboxFiles(t *testing.T) {
	r, mine, other := confined(t, false)
	for line, allowed := range map[string]bool{
		"echo x > $MINE/new && mkdir -p $MINE/a/b && mv $MINE/new $MINE/a/b/ && rm -r $MINE/a": true,
		"echo x > /dev/null && cat $OTHER/there && ls $OTHER":                                  true,
		"echo x > $OTHER/new":                                    false,
		"echo x >> $OTHER/there":                                 false,
		"rm $OTHER/there":                                        false,
		"mkdir $OTHER/dir":                                       false,
		"mv $OTHER/there $MINE/":                                 false,
		"ln -s x $OTHER/link":                                    false,
		"ln $OTHER/there $MINE/hard && echo x > $MINE/hard":      false,
		"ln -s $OTHER $MINE/way; echo x > $MINE/way/new":         false,
		"truncate -s 0 $OTHER/there":                             keeper.LandlockVersion() < 3,
		"setsid sh -c 'echo x > $OTHER/new'; test -e $OTHER/new": false,
	} {
		env := append(os.Environ(), "MINE="+mine, "OTHER="+other)
		res, err := r.Run(testContext(t), Command{Line: line, Dir: mine, Env: env, Confined: true})
		if err != nil {
			t.Fatal(err)
		}
		if (res.ExitCode == 0) != allowed {
			t.Errorf("%s: exit code %d, %s", line, res.ExitCode, res.Output)
		}
		if !allowed && strings.Contains(res.Output, "ermission denied") && !strings.Contains(res.Confined, "only below "+mine) {
			t.Errorf("%s: no hint: %q, %s", line, res.Confined, res.Output)
		}
	}
	if b, err := os.ReadFile(filepath.Join(other, "there")); string(b) != "kept" && keeper.LandlockVersion() >= 3 {
		t.Errorf("%s, %v", b, err)
	}
	for _, free := range []Command{{Line: "echo x > " + other + "/free", Dir: mine}, {Line: "echo x > " + other + "/free", Dir: mine, Confined: true}} {
		run := r
		if free.Confined {
			run = New(Options{Portable: true, Sandbox: &Sandbox{Writable: []string{mine}}})
		}
		if res, err := run.Run(testContext(t), free); err != nil || res.ExitCode != 0 || res.Confined != "" {
			t.Errorf("%v, exit code %d, %s, %s", err, res.ExitCode, res.Output, res.Confined)
		}
	}
}

// TestSandboxNetwork: without a network no socket but a Unix one can be made; with
// one it can.
func TestSandboxNetwork(t *testing.T) {
	probe := "exec 3<>/dev/tcp/127.0.0.1/9"
	for _, none := range []bool{true, false} {
		r, mine, _ := confined(t, none)
		res, err := r.Run(testContext(t), Command{Argv: []string{"bash", "-c", probe}, Dir: mine, Confined: true})
		if err != nil {
			t.Fatal(err)
		}
		// Nobody listens there, so with a network the connection is refused.
		if denied := strings.Contains(res.Output, "ermission denied"); denied != none || none != strings.Contains(res.Confined, "there is no network") {
			t.Errorf("no network %t: %s; %s", none, res.Output, res.Confined)
		}
		if res, err := r.Run(testContext(t), Command{Line: "true", Dir: mine, Confined: true}); err != nil || res.ExitCode != 0 {
			t.Errorf("%v, %d %s", err, res.ExitCode, res.Output)
		}
	}
}

// TestSandboxSignals: a confined command ends what it started itself, and nothing
// else.
func TestSandboxSignals(t *testing.T) {
	r, mine, _ := confined(t, false)
	other := exec.Command("sleep", "600")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = other.Process.Kill()
		_ = other.Wait()
	}()
	for line, allowed := range map[string]bool{
		"sleep 600 & kill $!":                                true,
		"sh -c 'sleep 600 & echo $! > pid'; kill $(cat pid)": true,
		fmt.Sprintf("kill -0 %d", other.Process.Pid):         keeper.LandlockVersion() < 6,
		fmt.Sprintf("kill -0 %d", os.Getpid()):               keeper.LandlockVersion() < 6,
	} {
		res, err := r.Run(testContext(t), Command{Line: line, Dir: mine, Env: os.Environ(), Confined: true})
		if err != nil {
			t.Fatal(err)
		}
		if (res.ExitCode == 0) != allowed {
			t.Errorf("%s: exit code %d, %s", line, res.ExitCode, res.Output)
		}
	}
}

// TestSandboxDevices: what lies in the memory that processes share is no device.
func TestSandboxDevices(t *testing.T) {
	r, mine, _ := confined(t, false)
	f, err := os.CreateTemp("/dev/shm", "capstan-test-*")
	if err != nil {
		t.Skip(err)
	}
	_ = f.Close()
	defer os.Remove(f.Name())
	for line, allowed := range map[string]bool{
		"echo x > " + f.Name():                       false,
		"echo x > /dev/null && echo x > /dev/zero":   true,
		"echo x > /dev/stdout && echo x > /dev/fd/2": true,
	} {
		res, err := r.Run(testContext(t), Command{Line: line, Dir: mine, Env: os.Environ(), Confined: true})
		if err != nil {
			t.Fatal(err)
		}
		if (res.ExitCode == 0) != allowed {
			t.Errorf("%s: exit code %d, %s", line, res.ExitCode, res.Output)
		}
	}
}
