package arch

import (
	"bufio"
	"encoding/json"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capstan/internal/arch/conformance"
)

// Each row and each case has a test that cites it or a reason why not, nothing
// else is cited, and docs/conformance.md says so.
func TestConformance(t *testing.T) {
	want, err := conformance.Report(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../docs/conformance.md")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("docs/conformance.md is stale: run make conformance (-want +got)\n%s", diff)
	}
	text, err := os.ReadFile("../../docs/requirements.md")
	if err != nil {
		t.Fatal(err)
	}
	if n := len(conformance.Rows(string(text))); n != 551 {
		t.Errorf("docs/requirements.md has %d rows, want 551", n)
	}
}

// The ids that we keep are those of the public reports, which lie outside of
// this repository.
func TestCases(t *testing.T) {
	file, err := os.Open("../../../shared/cases/bugs.jsonl")
	if err != nil {
		t.Skip("the reports are not here: ", err)
	}
	defer file.Close()
	want := map[string]string{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var c struct{ ID, Kind string }
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		want[c.ID] = c.Kind
	}
	got := map[string]string{}
	for _, c := range conformance.Cases() {
		got[c.ID] = c.Kind
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("cases.txt (-want +got)\n%s", diff)
	}
}
