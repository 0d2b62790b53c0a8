package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// root is the repository, which the patches are made for.
const root = "../.."

// Every mutant can be tried on the code as it is.
func TestPatchesApply(t *testing.T) {
	needGit(t)
	if _, err := os.Stat(filepath.Join(root, ".git")); err != nil {
		t.Skip("this is no checkout of the repository: its files may have been changed on purpose")
	}
	if runtime.GOOS == "windows" {
		t.Skip("a checkout may have other line ends there")
	}
	dir, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	patches, err := filepath.Glob("*.patch")
	if err != nil || len(patches) == 0 {
		t.Fatalf("there are no patches: %v", err)
	}
	if err := applicable(t.Context(), dir, patches); err != nil {
		t.Error(err)
	}
}

// Patches that cannot be tried are told of all at once. What several change is
// looked at for each as if it were the only one.
func TestApplicable(t *testing.T) {
	needGit(t)
	const change = "diff --git a/f.txt b/f.txt\n--- a/f.txt\n+++ b/f.txt\n@@ -1,3 +1,3 @@\n one\n-%\n+other\n three\n"
	tree, dir := t.TempDir(), t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	file := write(filepath.Join(tree, "f.txt"), "one\ntwo\nthree\n")
	patch := func(name, head, old string) string {
		return write(filepath.Join(dir, name+".patch"), head+strings.Replace(change, "%", old, 1))
	}
	const test = "# it breaks\nTest: ./internal/x\n"
	good, again := patch("good", test, "two"), patch("good-again", test, "two")
	if err := applicable(t.Context(), tree, []string{good, again}); err != nil {
		t.Error(err)
	}
	bad := []string{good, patch("moved", test, "deux"), patch("untested", "# it breaks\n", "two"), write(filepath.Join(dir, "empty.patch"), test)}
	want := regexp.MustCompile(`^3 of 4 patches cannot be tried; make them anew for the code as it is:
	moved: .*f\.txt.*
	untested: it has no line "Test: PACKAGE"
	empty: .+$`) // what git says differs between its versions
	if err := applicable(t.Context(), tree, bad); err == nil || !want.MatchString(err.Error()) {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if data, err := os.ReadFile(file); err != nil || string(data) != "one\ntwo\nthree\n" {
		t.Errorf("the tree was changed: %q, %v", data, err)
	}
}

func needGit(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed: ", err)
	}
}
