// Command mutants breaks the code on purpose, one small patch at a time, and
// checks that the tests notice. It works on a copy of the repository:
//
//	go run ./script/mutants            all of script/mutants/*.patch
//	go run ./script/mutants gate       those whose name holds "gate"
//
// A patch is in git's format. The text before it says what it breaks, and has a
// line "Test: PACKAGE [PACKAGE...] [-run REGEXP]" with the tests that must fail.
// A line "First: PACKAGE -run REGEXP -update" names a test that makes committed
// files anew and that is run before, so that the change reaches what is made of
// the changed file.
//
// Patches that do not apply to the code as it is are listed before any is tried,
// and none is. TestPatchesApply fails for them too, so they are made anew with
// the change of the code that they break.
package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, want []string) error {
	patches, err := filepath.Glob("script/mutants/*.patch")
	if err != nil || len(patches) == 0 {
		return fmt.Errorf("no patches: run this from the root of the repository")
	}
	patches = slices.DeleteFunc(patches, func(p string) bool { return !wanted(nameOf(p), want) })
	if len(patches) == 0 {
		return fmt.Errorf("no mutant's name holds %s", strings.Join(want, " or "))
	}
	dir, err := workDir()
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := copyTree(ctx, dir); err != nil {
		return fmt.Errorf("copying the tree: %w", err)
	}
	if err := applicable(ctx, dir, patches); err != nil {
		return err
	}
	var survived []string
	for _, p := range patches {
		name := nameOf(p)
		start := time.Now()
		verdict, detail := try(ctx, dir, p)
		fmt.Printf("%-9s %-40s %5.1fs\n", verdict, name, time.Since(start).Seconds())
		if verdict != "caught" {
			survived = append(survived, name)
			fmt.Println(detail)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	fmt.Printf("%d mutants, %d caught\n", len(patches), len(patches)-len(survived))
	if len(survived) > 0 {
		return fmt.Errorf("not caught: %s", strings.Join(survived, ", "))
	}
	return nil
}

func nameOf(patch string) string { return strings.TrimSuffix(filepath.Base(patch), ".patch") }

// applicable reports, in one error, the patches that cannot be tried on the tree
// in dir: they do not apply to it or do not say which tests must fail. Each is
// looked at alone, since several in one run of git would build on each other.
func applicable(ctx context.Context, dir string, patches []string) error {
	var faults []string
	for _, p := range patches {
		text, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		if len(header(text, "Test: ")) == 0 {
			faults = append(faults, nameOf(p)+": "+errNoTest.Error())
			continue
		}
		abs, err := filepath.Abs(p)
		if err != nil {
			return err
		}
		if out, err := command(ctx, dir, "git", "apply", "--check", "--whitespace=nowarn", abs); ctx.Err() != nil {
			return ctx.Err()
		} else if err != nil {
			out, _, _ = strings.Cut(cmp.Or(strings.TrimSpace(out), err.Error()), "\n")
			faults = append(faults, nameOf(p)+": "+out)
		}
	}
	if len(faults) == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d patches cannot be tried; make them anew for the code as it is:\n\t%s", len(faults), len(patches), strings.Join(faults, "\n\t"))
}

var errNoTest = errors.New("it has no line \"Test: PACKAGE\"")

// workDir makes the directory of the copy. Its name is always the same for one
// repository, since the compiler's cache knows files by their path.
func workDir() (string, error) {
	root, err := os.Getwd()
	if err != nil {
		return "", err
	}
	h := fnv.New32a()
	h.Write([]byte(root))
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("capstan-mutants-%08x", h.Sum32()))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", fmt.Errorf("%w (remove it when no other run uses it)", err)
	}
	return dir, nil
}

func wanted(name string, want []string) bool {
	for _, w := range want {
		if strings.Contains(name, w) {
			return true
		}
	}
	return len(want) == 0
}

// copyTree copies what git tracks, as it is in the working tree.
func copyTree(ctx context.Context, dir string) error {
	files, err := exec.CommandContext(ctx, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		return err
	}
	for f := range strings.SplitSeq(strings.TrimRight(string(files), "\x00"), "\x00") {
		data, err := os.ReadFile(f)
		if err != nil {
			continue // deleted in the working tree
		}
		info, err := os.Stat(f)
		if err != nil {
			return err
		}
		to := filepath.Join(dir, f)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(to, data, info.Mode().Perm()); err != nil {
			return err
		}
	}
	return nil
}

// try applies one patch, runs its tests and takes it back.
func try(ctx context.Context, dir, patch string) (verdict, detail string) {
	text, err := os.ReadFile(patch)
	if err != nil {
		return "broken", err.Error()
	}
	first, tests := header(text, "First: "), header(text, "Test: ")
	if len(tests) == 0 {
		return "broken", errNoTest.Error()
	}
	abs, err := filepath.Abs(patch)
	if err != nil {
		return "broken", err.Error()
	}
	if out, err := command(ctx, dir, "git", "apply", "--whitespace=nowarn", abs); err != nil {
		return "broken", "it does not apply:\n" + out
	}
	defer command(context.WithoutCancel(ctx), dir, "git", "apply", "-R", "--whitespace=nowarn", abs)
	defer sweep(dir)
	// A test that builds a program would fail for a mutant that cannot be built.
	if list := packages(text); len(list) > 0 {
		if out, err := command(ctx, dir, "go", append([]string{"build"}, list...)...); err != nil {
			return "broken", "it does not build:\n" + out
		}
	}
	if len(first) > 0 {
		defer copyTree(context.WithoutCancel(ctx), dir) // what it makes is taken back too
		if out, err := command(ctx, dir, "go", append([]string{"test", "-count=1"}, first...)...); err != nil {
			return "broken", "what comes first fails:\n" + out
		}
	}
	out, err := command(ctx, dir, "go", append([]string{"test", "-count=1", "-vet=off", "-timeout=90s"}, tests...)...)
	switch {
	case err == nil:
		return "SURVIVED", ""
	case strings.Contains(out, "[build failed]") || strings.Contains(out, "[setup failed]"):
		return "broken", "its tests do not build:\n" + out
	}
	return "caught", ""
}

// header returns the words of a line of the text before the patch.
func header(patch []byte, name string) []string {
	for line := range bytes.Lines(patch) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(string(line)), name); ok {
			return strings.Fields(rest)
		}
		if bytes.HasPrefix(line, []byte("diff ")) || bytes.HasPrefix(line, []byte("--- ")) {
			break
		}
	}
	return nil
}

// packages returns the packages of the Go files that a patch changes.
func packages(patch []byte) []string {
	var list []string
	for line := range bytes.Lines(patch) {
		file, ok := strings.CutPrefix(strings.TrimSpace(string(line)), "+++ b/")
		if dir := "./" + path.Dir(file); ok && strings.HasSuffix(file, ".go") && !slices.Contains(list, dir) {
			list = append(list, dir)
		}
	}
	return list
}

// sweep kills what the tests of a mutant left running, which some mutants are
// there to bring about: processes that know the directory of the copy by their
// environment or stand in it. It looks at Linux's /proc only.
func sweep(dir string) {
	for range 50 {
		found := false
		all, _ := filepath.Glob("/proc/[0-9]*")
		for _, p := range all {
			environ, _ := os.ReadFile(p + "/environ")
			cwd, _ := os.Readlink(p + "/cwd")
			pid, err := strconv.Atoi(path.Base(p))
			if err != nil || pid == os.Getpid() || !bytes.Contains(environ, []byte(mark+dir+"\x00")) && !strings.HasPrefix(cwd, dir+"/") {
				continue
			}
			if q, err := os.FindProcess(pid); err == nil {
				found = q.Kill() == nil || found
			}
		}
		if !found {
			return
		}
	}
}

// mark is the variable by which sweep knows what a command started.
const mark = "CAPSTAN_MUTANTS="

func command(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir), mark+dir)
	cmd.WaitDelay = 10 * time.Second // what a mutant leaves running may hold the pipe; sweep ends it
	out, err := cmd.CombinedOutput()
	if errors.Is(err, exec.ErrWaitDelay) { // it had ended, and well
		err = nil
	}
	return string(out), err
}
