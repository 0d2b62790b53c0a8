package qjswasm

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// sums reads SHA256SUMS.
func sums(t *testing.T) map[string]string {
	t.Helper()
	b, err := os.ReadFile("SHA256SUMS")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for line := range strings.Lines(string(b)) {
		sum, name, ok := strings.Cut(strings.TrimSpace(line), "  ")
		if !ok {
			t.Fatalf("SHA256SUMS has the line %q", line)
		}
		want[name] = sum
	}
	return want
}

func check(t *testing.T, dir string) {
	t.Helper()
	want := sums(t)
	for _, name := range []string{"qjswasm.go", "qjswasm.dat", "quickjs.wasm"} {
		b, err := os.ReadFile(dir + "/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%x", sha256.Sum256(b)); got != want[name] {
			t.Errorf("%s has the sum %s, want %s", name, got, want[name])
		}
	}
}

// The committed engine is the pinned one. S0-109
func TestChecksums(t *testing.T) {
	if got := sums(t)["quickjs.wasm"]; got != "c0bd8f296e18cf074969f6401b9ecb72609a1323818ec2b9bf7a8f8d740d1363" {
		t.Errorf("SHA256SUMS pins another quickjs.wasm: %s", got)
	}
	check(t, ".")
	// The module's own maximum is the real cap under QuickJS's limiter. BUG-SB-08
	if maxMem != 3072 {
		t.Errorf("the linear memory's maximum is %d pages", maxMem)
	}
}

// The script remakes the engine byte for byte. It needs npm and the network,
// so it runs when asked for.
func TestRemake(t *testing.T) {
	if os.Getenv("CAPSTAN_REMAKE_ENGINE") == "" {
		t.Skip("set CAPSTAN_REMAKE_ENGINE=1 to remake the engine with npm and the network")
	}
	dir := t.TempDir()
	if out, err := exec.Command("../../../../script/engine", dir).CombinedOutput(); err != nil {
		t.Fatalf("script/engine: %v\n%s", err, out)
	}
	check(t, dir)
}
