//go:build unix

package policy

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"capstan/internal/sched"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pieces are what lines for the oracle are made of. None of them names a place
// outside the directory, or ends another process.
var pieces = []string{
	" ", " ", " ", "\n", ";", " && ", " || ", " | ", " |& ", "(", ")", " { ", "; } ", "$(", ")", "`", "`", "'", "'", `"`, `"`, `\`, "\\\n", "$", "${", "}", "#", " # ",
	"<<E\n", "\nE\n", "<<'E'\n", "<<-E\n", "<<<", " < ", " > ", " >> ", " >| ", " <(", " >(", " 2>&1 ", " >&", "$((", "))", "((", "[[ ", " ]]", "[ ", " ]", " -v ", " -eq ", "a[", "]", " ! ", "\r", "\t",
	"if ", "; then ", "; else ", "; fi", "for X in ", "; do ", "; done", "while ", "until ", "case f1 in ", ";; ", " esac", "f1) ", "*) ", "f() { ", "function f { ", "f ", "select X in ",
	"X=", "Y=", "X=rm", "X=secret", "TOKEN", "$TOKEN", "$X", `"$X"`, "${X}", "${X:-", "${X@P}", "${!X}", "$'\\x72m'", "$'", `$"`, "~", "$HOME", "*", "?", "[", "{", ",", "}", "..f",
	"rm ", "rm ", "'r'm ", `r\m `, `r""m `, "r? ", "touch ", "touch ", "git ", "cat ", "cat ", "head ", "ls ", "grep ", "sed ", "awk ", "sort ", "uniq ", "tee ", "cp ", "find . ", "wc ", "sort -o f9 ",
	"f1 ", "f2 ", "secret ", "sec* ", "secre? ", "d/f ", "d ", "./secret ", "d/../secret ", "cd d", "cd d && ", "cd ",
	"echo ", "printf ", "printf -v ", "eval ", "sh -c ", "bash -c ", "bash -lc ", "bash ", "env ", "env X=1 ", "xargs ", "timeout 1 ", "nice ", "nohup ", "command ", "builtin ", "exec ", "time ",
	"read X ", "read ", "export ", "export X=1 ", "unset ", "local ", "declare ", "declare -i ", "let ", "test ", "test -v ", "alias f=rm", "shopt -s expand_aliases\n", "trap ", " EXIT", "source ", ". ", "set -e", "set -- ", "true ", "false ",
	"key ", "d/key ", "cd -- d;", "cd -P d;", "pushd d;", "command cd ", "env -C d ", "cd d/..;", "{secret,f1} ", "~+/", "$PWD/", "/proc/self/cwd/", "set -x;", "export;", "declare;", "$_", "${Z?$TOKEN}", "${b[X]}", "${X:Y}", "b[X]=1 ", "unset ", "X='a[$(rm f1)]';", "test $TOKEN -eq 1 ",
	"-n ", "-i ", "-e ", "-exec ", "{} ", `\; `, "+ ", "-delete", "1p ", "'1w f9' ", "'{print}' ", "'{print > \"f9\"}' ", "'BEGIN{system(\"rm f1\")}' ", "s/x/rm/e ", "-- ", "x", "1",
}

// lineOf makes a line of the bytes of a fuzzer: each picks one piece.
func lineOf(seed []byte) string {
	var b strings.Builder
	for _, c := range seed[:min(len(seed), 40)] {
		b.WriteString(pieces[int(c)%len(pieces)])
	}
	return b.String()
}

// An oracle runs lines in a real bash. The commands that change something are
// stubs which record that they ran; those that read are real.
type oracle struct {
	world
	bash, bin, log string
	policies       map[string]*Policy
}

const (
	secretText  = "s3cr3t-in-a-file"
	tokenText   = "s3cr3t-in-the-environment"
	keyText     = "s3cr3t-in-a-directory"
	outsideText = "s3cr3t-outside"
)

func newOracle(t testing.TB) *oracle {
	t.Helper()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash to compare with")
	}
	o := &oracle{world: newWorld(t), bash: bash, policies: map[string]*Policy{}}
	o.bin, o.log = filepath.Join(o.base, "bin"), filepath.Join(o.base, "log")
	if err := os.Mkdir(o.bin, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"rm", "touch", "git", "f"} {
		stub := "#!/bin/sh\necho ${0##*/} >>" + o.log + "\n"
		if err := os.WriteFile(filepath.Join(o.bin, name), []byte(stub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"cat", "head", "ls", "grep", "sed", "awk", "sort", "uniq", "tee", "cp", "find", "wc", "sh", "bash", "env", "xargs", "timeout", "nice", "nohup"} {
		if real, err := exec.LookPath(name); err == nil {
			if err := os.Symlink(real, filepath.Join(o.bin, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, c := range map[string]struct {
		mode  Mode
		rules string
	}{
		"default": {Default, ""}, "no rm": {Yolo, "deny Bash(rm:*)"}, "no secret": {Yolo, "deny Read(secret)"}, "no f9": {Yolo, "deny Edit(f9)"}, "no key": {Yolo, "deny Read(/d/key)"},
		"cat": {Default, "allow Bash(cat:*); allow Bash(cd:*); allow Bash(pushd:*); allow Bash(env:*)"},
	} {
		opt := Options{Mode: c.mode, Dir: o.ws, Home: o.home, Rules: o.rules(c.rules), Environ: []string{"PATH", "HOME", "TOKEN"}}
		if o.policies[name], _, err = New(opt); err != nil {
			t.Fatal(err)
		}
	}
	return o
}

// reset lays the workspace out anew.
func (o *oracle) reset(t testing.TB) {
	if err := os.RemoveAll(o.ws); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(o.ws, "d"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"f1": "x\n", "f2": "a[$(rm f1)]\n", "secret": secretText + "\n", "d/f": "y\n", "d/key": keyText + "\n", "../outside/x": outsideText + "\n"} {
		if err := os.WriteFile(filepath.Join(o.ws, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../outside", filepath.Join(o.ws, "l")); err != nil {
		t.Fatal(err)
	}
	os.Remove(o.log)
}

// run runs a line, and says what it did; ok is false when it did not end in time.
func (o *oracle) run(t testing.TB, line string) (ran, output string, ok bool) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, o.bash, "-c", line)
	cmd.Dir = o.ws
	cmd.Env = []string{"PATH=" + o.bin, "HOME=" + o.home, "TOKEN=" + tokenText, "FUNCNEST=5", "LC_ALL=C"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	var out bytes.Buffer
	both := &limited{buf: &out} // one writer, so that os/exec copies in one goroutine
	cmd.Stdout, cmd.Stderr = both, both
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || ctx.Err() != nil {
		return "", "", false
	}
	log, _ := os.ReadFile(o.log)
	return string(log), out.String(), true
}

// limited keeps the beginning of an output.
type limited struct{ buf *bytes.Buffer }

func (l *limited) Write(b []byte) (int, error) {
	if l.buf.Len() < 1<<20 {
		l.buf.Write(b)
	}
	return len(b), nil
}

// changed says whether the files of the workspace are other ones than at first.
func (o *oracle) changed(t testing.TB) string {
	var b strings.Builder
	err := filepath.WalkDir(o.ws, func(p string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			text, _ := os.ReadFile(p)
			rel, _ := filepath.Rel(o.ws, p)
			b.WriteString(rel + "=" + string(text) + ";")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// check runs a line when some policy lets it run, and compares what it did with
// what that policy forbids.
func (o *oracle) check(t testing.TB, line string) (allowed int) {
	t.Helper()
	o.reset(t)
	before := o.changed(t)
	verdicts := map[string]bool{}
	for name, p := range o.policies {
		req := o.request(t, "sh x")
		req.Call.Args = marshal(t, map[string]string{"command": line})
		if p.Decide(t.Context(), req).Decision == sched.Allow {
			verdicts[name] = true
		}
	}
	if len(verdicts) == 0 {
		return 0
	}
	ran, output, ok := o.run(t, line)
	if !ok {
		return 0
	}
	after := o.changed(t)
	has := func(name string) bool { return strings.Contains("\n"+ran, "\n"+name+"\n") }
	for name, broken := range map[string]string{
		"default":   first(ran != "", "ran "+ran, after != before, "changed files to "+after, strings.Contains(output, tokenText), "showed the environment", strings.Contains(output, outsideText), "read what is outside"),
		"no rm":     first(has("rm"), "ran rm"),
		"no secret": first(strings.Contains(output, secretText) || strings.Count(after, secretText) > 1, "read the secret"),
		"no key":    first(strings.Contains(output, keyText) || strings.Count(after, keyText) > 1, "read the key"),
		"cat":       first(strings.Contains(output, outsideText), "read what is outside"),
		"no f9":     first(strings.Contains(";"+after, ";f9="), "wrote f9"),
	} {
		if verdicts[name] && broken != "" {
			t.Errorf("policy %q allowed %q, which %s", name, line, broken)
		}
	}
	return len(verdicts)
}

// first returns the text behind the first condition that holds.
func first(pairs ...any) string {
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i].(bool) {
			return pairs[i+1].(string)
		}
	}
	return ""
}

// Whatever a real bash runs, reads, writes and shows was judged: the lines of the
// table, and lines put together at random.
func TestBash(t *testing.T) {
	o := newOracle(t)
	for _, line := range []string{
		"rm f1", "cat secret", "echo $TOKEN", "echo x > f9", "echo \"$\\\n(rm f1)\"", "X=rm; $X f1", "cat se*", "cat secre?", "X=secret; cat $X", "cat d/../secret", "cd d && cat ../secret",
		"read X < f2; [[ $X -eq 0 ]]", "read X < f2; test -v \"$X\"", "read X < f2; echo $((X))", "alias f=rm\nf f1", "shopt -s expand_aliases\nalias f=rm\nf f1",
		"f() { rm f1; }; f", "for X in rm; do $X f1; done", "cat <<E\n$(rm f1)\nE", "sed '1w f9' f1", "awk 'BEGIN{system(\"rm f1\")}'", "sort -o f9 f1", "uniq f1 f9", "find . -exec rm {} +",
		"find . -name secret -exec cat {} +", "echo secret | xargs cat", "bash -c 'cat secret'", "grep -r . .", "tee f9 < f1", "cp f1 f9", "cp secret d", "X=$TOKEN; echo $X", "for X in $TOKEN; do echo $X; done",
		"cat {secret,f1}", "cat ~+/secret", "cat ~+/d/key", "cd -- d && cat key", "cd -P d; cat key", "pushd d; cat key", "cd d*; cat key", "cd $PWD/d; cat key", "builtin cd d; cat key", "env -C d cat key", "env --chdir d cat key",
		"cd d && cat /proc/self/cwd/key", "for X in 1 2; do cat key; cd d; done", "for X in 1 2; do cat ../outside/x; command cd d; done", "f() { cat key; }; command cd d; f", "X=cd; $X d; cat key", "(cd d); cat key", "cd l && cd ../d && cat key",
		"ls; export", "declare | cat", "test \"$TOKEN\" -eq 1", "set -x; X=$TOKEN", "X=${Z:?$TOKEN}", "test -n \"$TOKEN\"; echo $_", "[[ $TOKEN =~ .* ]]; echo $BASH_REMATCH",
		"cat ../outside/x", "cat {../outside/x,f1}", "cat ~+/../outside/x", "pushd ..; cat outside/x", "cd ~+/..; cat outside/x", "cd l && cat ../ws/f1", "for X in 1 2; do cat outside/x; cd ..; done", "for X in 1 2; do (cd d && cat f); done",
		"Y='$'; X=\"$Y(rm f1)\"; : \"${X@P}\"", "Y='$'; X=\"a[$Y(rm f1)]\"; echo ${!X}", "Y='$'; X=\"a[$Y(rm f1)]\"; echo ${f:X}", "Y='$'; X=\"a[$Y(rm f1)]\"; b[X]=1", "Y='$'; X=\"a[$Y(rm f1)]\"; echo ${b[X]}",
		"Y='$'; X=\"a[$Y(rm f1)]\"; declare -i n=X", "Y='$'; read \"a[$Y(rm f1)]\" <<< 1", "Y='$'; unset \"a[$Y(rm f1)]\"", "Y='$'; printf \"-va[$Y(rm f1)]\" x", "Y='$'; : ${X:=\"a[$Y(rm f1)]\"}; echo $((X))", "Y='$'; X=\"-v a[$Y(rm f1)]\"; [ $X ]",
		"f() { cat f1; }; cd d; f", "if false; then f() { ls; }; fi; f", "cat < secret", "while read X; do echo $X; done < secret", "echo \"$(<secret)\"", "printf -v 'a[$(rm f1)]' x", "cat f1 # \\\nrm f1",
	} {
		o.check(t, line)
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	allowed := 0
	for range 200 {
		seed := make([]byte, 3+rnd.IntN(12))
		for i := range seed {
			seed[i] = byte(rnd.IntN(256))
		}
		allowed += min(1, o.check(t, lineOf(seed)))
	}
	t.Logf("%d of 200 random lines ran", allowed)
}

func FuzzBash(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3})
	o := newOracle(f)
	f.Fuzz(func(t *testing.T, seed []byte) { o.check(t, lineOf(seed)) })
}
