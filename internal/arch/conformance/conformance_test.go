package conformance

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func tree(files map[string]string) fstest.MapFS {
	out := fstest.MapFS{}
	for name, text := range files {
		out[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return out
}

// A citation belongs to the test that it stands in or before, or to those that
// use the table or helper where it stands.
func TestCited(t *testing.T) {
	root := tree(map[string]string{
		"a/a_test.go": `package a

// S0-001 to
// S0-003, S1-010
func TestA(t *testing.T) { use(table) }

// A comment of its own. S0-004

func TestB(t *testing.T) {
	// S0-005 BUG-XX-1
	_ = helper()
}

var table = []string{"S0-006", "S0-006 again"}

func helper() int { return deep } // S0-007

const deep = 1 // no id
// S0-008 and nothing of S0-09 or XS0-011 or BUG-
func FuzzC(f *testing.F) {}
`,
		"a/b_test.go":               "package a\n\nvar _ = helper\n\n// S0-001\nfunc BenchmarkD(b *testing.B) { use(deep) }\n",
		"a/a.go":                    "package a // S2-001\n",
		"a/testdata/x.txtar":        "# S0-001 S3-059\n",
		"internal/arch/l_test.go":   "package arch // S2-002",
		"nested/go.mod":             "module x",
		"nested/n_test.go":          "package n // S2-003",
		".git/x_test.go":            "S2-004",
		"a/testdata/script/y.txtar": "S1-001 to S1-002",
	})
	got, err := Cited(root)
	if err != nil {
		t.Fatal(err)
	}
	a, b, c, d := Proof{"a/a_test.go", "TestA"}, Proof{"a/a_test.go", "TestB"}, Proof{"a/a_test.go", "FuzzC"}, Proof{"a/b_test.go", "BenchmarkD"}
	x, y := Proof{File: "a/testdata/x.txtar"}, Proof{File: "a/testdata/script/y.txtar"}
	want := map[string][]Proof{
		"S0-001": {a, d, x}, "S0-002": {a}, "S0-003": {a}, "S1-010": {a},
		"S0-004": {b}, "S0-005": {b}, "BUG-XX-1": {b},
		"S0-006": {a}, "S0-007": {b, d}, "S0-008": {c},
		"S3-059": {x}, "S1-001": {y}, "S1-002": {y},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for text, says := range map[string]string{
		"package a\n\nfunc TestA(t *testing.T) {}\n\n// S0-001\n":                           "after its last test",
		"package a\n\nvar unused = `S0-001`\n":                                              "which no test uses",
		"package a\n\nfunc TestMain(m *testing.M) {} // no\n\n// S0-001\nfunc alone() {}\n": "which no test uses",
		"package": "a_test.go",
	} {
		if got, err := Cited(tree(map[string]string{"a_test.go": text})); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, error %v, want one with %q", text, got, err, says)
		}
	}
}

func TestReasons(t *testing.T) {
	got, err := parseReasons("# S0-009\nS0-001 to S0-003 BUG-AB-01\nS1-001\n\tBecause.\n\nS2-001\n  Why not.\n")
	want := []Reason{{[]string{"S0-001", "S0-002", "S0-003", "BUG-AB-01", "S1-001"}, "Because."}, {[]string{"S2-001"}, "Why not."}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	for text, says := range map[string]string{
		"S0-001\n":                       "S0-001 has no reason",
		"\tBecause.\n":                   "open.txt:1: a reason without ids",
		"S0-001\n\tA.\nS0-001\n\tB.\n":   "open.txt:3: S0-001 has a reason already",
		"S0-001 to S0-003 S0-002\n\tA\n": "S0-002 has a reason already",
	} {
		if _, err := parseReasons(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: error %v, want %q", text, err, says)
		}
	}
}

// What does not add up is an error, all of it at once.
func TestCheck(t *testing.T) {
	s := &state{
		rows:    []Row{{ID: "S0-001", Tag: 'M'}, {ID: "S0-002", Tag: 'M'}, {ID: "S0-003", Tag: superseded}, {ID: "S0-004", Tag: 'M'}},
		cases:   []Case{{ID: "BUG-AB-01"}, {ID: "BUG-AB-02"}},
		found:   map[string][]Proof{"S0-001": {{File: "a"}}, "S0-009": {{File: "b"}}, "BUG-AB-02": {{File: "c"}}},
		reasons: []Reason{{[]string{"S0-001", "BUG-AB-02"}, "x"}, {[]string{"S0-001", "S0-004", "S0-010"}, "y"}},
		why:     map[string]string{"S0-004": "y"},
	}
	want := `S0-009 is cited in b but is no row and no case
no test cites S0-002: add one, or a reason to internal/arch/conformance/open.txt
no test cites BUG-AB-01: add one, or a reason to internal/arch/conformance/open.txt
open.txt: tests cite all of S0-001 BUG-AB-02: take its reason out
open.txt: S0-010 is no row and no case`
	if diff := cmp.Diff(want, s.check().Error()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// The whole of a small report.
func TestReport(t *testing.T) {
	rows := "## Seed 000\n\n- S0-001 [M] a\n- S0-002 [N] b\n- S0-003 [V] c\n- S0-004 [M] d\n- S0-005 [X] e\n- S0-006 [M] f\n\n## Seed 001\n\n- S1-001 [P] g\n- no S1-002 [M] row\n"
	s := &state{rows: Rows(rows), cases: []Case{{"BUG-AB-01", "arguments"}, {"BUG-AB-02", "arguments"}},
		found: map[string][]Proof{"S0-006": {{"a_test.go", "TestA"}, {"a_test.go", "TestB"}, {"x.txtar", ""}}, "BUG-AB-02": {{"a_test.go", "TestA"}}},
		why:   map[string]string{"S0-001": "Later.", "S0-002": "Later.", "S0-003": "Later.", "S0-004": "Never.", "S1-001": "Later.", "BUG-AB-01": "Later."}}
	if err := s.check(); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	s.write(&b)
	want := head + `
## Counts

| rows | all | superseded | proved | open |
|---|---:|---:|---:|---:|
| Seed 000 | 6 | 1 | 1 | 4 |
| Seed 001 | 1 | 0 | 0 | 1 |
| **all** | 7 | 1 | 1 | 5 |

| cases | all | tested | open |
|---|---:|---:|---:|
| arguments | 2 | 1 | 1 |
| **all** | 2 | 1 | 1 |

## Open, and why

- Later.
  S0-001 to S0-003, S1-001, BUG-AB-01
- Never.
  S0-004
- Superseded by a row of a later seed.
  S0-005

## Seed 000

- S0-006: a_test.go TestA, TestB; x.txtar

## Cases: arguments

- BUG-AB-02: a_test.go TestA
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
