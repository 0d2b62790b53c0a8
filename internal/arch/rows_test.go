package arch

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// cited collects the ids that tests and transcripts cite. This package's own
// lists do not count.
func cited(t *testing.T, pattern string) map[string][]string {
	t.Helper()
	id := regexp.MustCompile(pattern)
	found := map[string][]string{}
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); name == ".git" || name == "arch" {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, "_test.go") && !strings.HasSuffix(path, ".txtar") {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range id.FindAllString(spellOut(string(data)), -1) {
			if !slices.Contains(found[m], path) {
				found[m] = append(found[m], path)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

var ranges = regexp.MustCompile(`\b(S[0-3])-(\d{3}) to\s+(?://\s+)?(?:S[0-3])-(\d{3})\b`)

// spellOut writes each id of a range: S0-058 to S0-060.
func spellOut(text string) string {
	return ranges.ReplaceAllStringFunc(text, func(r string) string {
		m := ranges.FindStringSubmatch(r)
		var from, to int
		from, _ = strconv.Atoi(m[2])
		to, _ = strconv.Atoi(m[3])
		var ids []string
		for n := from; n <= to; n++ {
			ids = append(ids, fmt.Sprintf("%s-%03d", m[1], n))
		}
		return strings.Join(ids, " ")
	})
}

// span is a range of rows that must be proved by now.
type span struct{ from, to string }

var due = []span{
	{"S0-001", "S0-070"}, {"S0-073", "S0-073"}, {"S0-076", "S0-181"}, {"S0-194", "S0-194"}, {"S0-214", "S0-259"},
	{"S2-001", "S2-095"},
	{"S3-018", "S3-029"}, {"S3-036", "S3-037"}, {"S3-040", "S3-044"}, {"S3-053", "S3-059"},
}

// later are rows within those ranges that need what is not there yet.
var later = map[string]string{
	"S0-234": "subagents", "S0-258": "MCP",
	"S2-070": "prompt sections", "S2-071": "prompt sections", "S2-072": "prompt sections", "S2-073": "prompt sections",
	"S2-074": "prompt sections", "S2-076": "prompt sections", "S2-077": "prompt sections", "S2-079": "prompt sections",
	"S2-080": "prompt sections", "S2-091": "prompt sections", "S2-093": "prompt sections", "S2-094": "prompt sections",
}

// Each row that is due is cited by a test. Whether the test would fail without
// the row is what script/mutants and readers are for.
func TestRowsAreCited(t *testing.T) {
	found := cited(t, `\bS[0-3]-\d{3}\b`)
	text, err := os.ReadFile("../../docs/requirements.md")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^- (S[0-3]-\d{3}) \[([MNVPX])\]`).FindAllStringSubmatch(string(text), -1) {
		known[m[1]] = true
		needed := slices.ContainsFunc(due, func(s span) bool { return s.from <= m[1] && m[1] <= s.to })
		if needed && m[2] != "X" && m[2] != "P" && later[m[1]] == "" && len(found[m[1]]) == 0 {
			t.Errorf("no test cites %s", m[1])
		}
	}
	if len(known) != 551 {
		t.Errorf("docs/requirements.md has %d rows, want 551", len(known))
	}
	for id, where := range found {
		if !known[id] {
			t.Errorf("%s is cited in %v but is no row", id, where)
		}
	}
}

// Each public report of the kinds that are due is a test, or stands in
// docs/known-limits.md. The reports lie outside of this repository.
func TestCasesAreCited(t *testing.T) {
	file, err := os.Open("../../../shared/cases/bugs.jsonl")
	if err != nil {
		t.Skip("the reports are not here: ", err)
	}
	defer file.Close()
	found := cited(t, `\bBUG-[A-Z]+-\d+\b`)
	limits, err := os.ReadFile("../../docs/known-limits.md")
	if err != nil {
		t.Fatal(err)
	}
	kinds := []string{"code-mode", "sandbox-memory", "read-tool", "edit-tool", "search-ignore", "output-truncation",
		"encoding-windows", "cancel-process", "deadlock-loop", "concurrency", "path-permission"}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var c struct{ ID, Kind, Symptom string }
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		if slices.Contains(kinds, c.Kind) && len(found[c.ID]) == 0 && !strings.Contains(string(limits), c.ID) {
			t.Errorf("%s: %s", c.ID, c.Symptom)
		}
	}
}
