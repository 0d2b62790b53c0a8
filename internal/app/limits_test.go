package app

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capstan/internal/sandbox"
)

// docs/limits.md shows the limits that are in force. S0-131 S0-132
func TestLimitsAreDocumented(t *testing.T) {
	l := sandbox.DefaultLimits()
	rows := []string{
		row("Source", size(l.Source), "the program's text; more is a syntax error"),
		row("Control frame", size(l.ControlFrame), "a message between parent and child that carries no text, value or media"),
		row("Text, value or medium", size(l.Body), "the arguments of a call, one result's text or value, one printed item"),
		row("Images and sounds", fmt.Sprintf("%d, %s", l.Media, size(l.MediaBytes)), "printed by one program"),
		row("Memory", size(l.Memory), "the JavaScript heap; the process may take up to 200 MiB"),
		row("Stack", size(l.Stack), "about 2,000 plain frames; beyond it a RangeError"),
		row("CPU time", l.CPU.String(), "of the program; waiting for tools costs none"),
		row("Nested calls", comma(l.Calls), "the next one rejects with CALL_LIMIT"),
		row("Nested calls at once", comma(l.Outstanding), "with the parent; further ones wait in the program, in order"),
		row("Nested calls running", "10", "further ones wait for a slot"),
		row("Printed text", size(int(l.Output)), "text() beyond it throws OUTPUT_LIMIT"),
		row("Silence", (4*l.CPU + l.Watchdog).String(), "wall time without a sign of life while the parent owes nothing; then the process is killed"),
		row("Start, end", l.Startup.String()+", "+l.Teardown.String(), "wall time for the process to start and to end"),
	}
	got, err := os.ReadFile("../../docs/limits.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(got), "|---|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	if diff := cmp.Diff(strings.Join(rows, "\n"), table); diff != "" {
		t.Errorf("docs/limits.md: (-want +got)\n%s", diff)
	}
}

func row(cells ...string) string { return "| " + strings.Join(cells, " | ") + " |" }

func size(n int) string {
	if n%(1<<20) == 0 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d KiB", n>>10)
}

func comma(n int) string {
	if n >= 1000 {
		return fmt.Sprintf("%d,%03d", n/1000, n%1000)
	}
	return fmt.Sprint(n)
}
