package main

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// It serves until its input ends, and then says what was not asked for.
func TestRun(t *testing.T) {
	script := filepath.Join(t.TempDir(), "s.txtar")
	if err := os.WriteFile(script, []byte("-- one --\ntext x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	in, stop := io.Pipe()
	out, print := io.Pipe()
	ended := make(chan error)
	go func() { ended <- run([]string{script}, in, print) }()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "http://127.0.0.1:") {
		t.Errorf("printed %q, %v", line, err)
	}
	stop.Close()
	if err := <-ended; err == nil || !strings.Contains(err.Error(), `from "one" on`) {
		t.Errorf("ended with %v", err)
	}
	var help strings.Builder
	if err := run([]string{"--help"}, nil, &help); err != nil || !strings.Contains(help.String(), "wantnot REGEXP") {
		t.Errorf("--help: %v, %s", err, help.String())
	}
	for _, args := range [][]string{nil, {"nope"}, {"a", "b"}} {
		if err := run(args, nil, io.Discard); err == nil {
			t.Errorf("%q is taken", args)
		}
	}
}
