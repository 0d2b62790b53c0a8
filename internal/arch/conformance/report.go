package conformance

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// Report is the text of docs/conformance.md for the repository at root. It
// depends on what is committed only. An id that is cited but does not exist,
// one without test and without reason, and a reason whose ids all have tests
// are errors.
func Report(root fs.FS) ([]byte, error) {
	s, err := read(root)
	if err != nil {
		return nil, err
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	var b strings.Builder
	s.write(&b)
	return []byte(b.String()), nil
}

const head = `# Conformance

Made by ` + "`make conformance`" + ` from the ids that tests cite; do not edit. A test
checks that it is not stale.

A row is one of docs/requirements.md. It is proved when a test cites its id; that
the test fails without the behaviour is what script/mutants and the audits are
for. A case is a public report of what broke in another tool of this kind
(BUG-…); only its id is kept here. Why an id is open stands in
internal/arch/conformance/open.txt.
`

// state is what there is to report.
type state struct {
	rows    []Row
	cases   []Case
	found   map[string][]Proof
	reasons []Reason
	why     map[string]string // by id
}

func read(root fs.FS) (*state, error) {
	text, err := fs.ReadFile(root, "docs/requirements.md")
	if err != nil {
		return nil, err
	}
	limits, err := fs.ReadFile(root, "docs/known-limits.md")
	if err != nil {
		return nil, err
	}
	s := &state{rows: Rows(string(text)), cases: Cases(), why: map[string]string{}}
	if s.found, err = Cited(root); err != nil {
		return nil, err
	}
	if s.reasons, err = Reasons(); err != nil {
		return nil, err
	}
	for _, c := range citations(string(limits)) {
		s.why[c.id] = "A known limit, see docs/known-limits.md."
	}
	for _, r := range s.reasons {
		for _, id := range r.IDs {
			s.why[id] = r.Text
		}
	}
	return s, nil
}

func (s *state) check() error {
	var errs []error
	exists := known(s.rows, s.cases)
	for _, id := range unknown(s.found, exists) {
		errs = append(errs, fmt.Errorf("%s is cited in %s but is no row and no case", id, s.found[id][0].File))
	}
	for _, id := range s.ids() {
		if len(s.found[id]) == 0 && s.why[id] == "" {
			errs = append(errs, fmt.Errorf("no test cites %s: add one, or a reason to internal/arch/conformance/open.txt", id))
		}
	}
	for _, r := range s.reasons {
		stale := true
		for _, id := range r.IDs {
			if !exists[id] {
				errs = append(errs, fmt.Errorf("open.txt: %s is no row and no case", id))
			}
			stale = stale && len(s.found[id]) > 0
		}
		if stale {
			errs = append(errs, fmt.Errorf("open.txt: tests cite all of %s: take its reason out", strings.Join(r.IDs, " ")))
		}
	}
	return errors.Join(errs...)
}

func (s *state) write(b *strings.Builder) {
	b.WriteString(head)
	s.counts(b)
	s.open(b)
	s.tests(b)
}

// ids are those that need a test or a reason, in order.
func (s *state) ids() []string {
	var out []string
	for _, r := range s.rows {
		if r.Tag != superseded {
			out = append(out, r.ID)
		}
	}
	for _, c := range s.cases {
		out = append(out, c.ID)
	}
	return out
}

// tally counts the ids of one seed or kind.
type tally struct {
	name                      string
	all, proved, open, passed int // passed over: superseded
}

func (s *state) counts(b *strings.Builder) {
	var rows, cases []tally
	for _, r := range s.rows {
		s.count(&rows, r.Seed, r.ID, r.Tag == superseded)
	}
	for _, c := range s.cases {
		s.count(&cases, c.Kind, c.ID, false)
	}
	b.WriteString("\n## Counts\n\n| rows | all | superseded | proved | open |\n|---|---:|---:|---:|---:|\n")
	for _, t := range append(rows, total(rows)) {
		fmt.Fprintf(b, "| %s | %d | %d | %d | %d |\n", t.name, t.all, t.passed, t.proved, t.open)
	}
	b.WriteString("\n| cases | all | tested | open |\n|---|---:|---:|---:|\n")
	for _, t := range append(cases, total(cases)) {
		fmt.Fprintf(b, "| %s | %d | %d | %d |\n", t.name, t.all, t.proved, t.open)
	}
}

func (s *state) count(all *[]tally, name, id string, passed bool) {
	if n := len(*all); n == 0 || (*all)[n-1].name != name {
		*all = append(*all, tally{name: name})
	}
	t := &(*all)[len(*all)-1]
	t.all++
	switch {
	case passed:
		t.passed++
	case len(s.found[id]) > 0:
		t.proved++
	default:
		t.open++
	}
}

func total(of []tally) tally {
	t := tally{name: "**all**"}
	for _, o := range of {
		t.all, t.proved, t.open, t.passed = t.all+o.all, t.proved+o.proved, t.open+o.open, t.passed+o.passed
	}
	return t
}

// open lists what has no test, by its reason, in the order of the first id.
func (s *state) open(b *strings.Builder) {
	var texts []string
	by := map[string][]string{}
	for _, id := range s.ids() {
		if len(s.found[id]) > 0 {
			continue
		}
		text := s.why[id]
		if by[text] == nil {
			texts = append(texts, text)
		}
		by[text] = append(by[text], id)
	}
	b.WriteString("\n## Open, and why\n\n")
	for _, text := range texts {
		fmt.Fprintf(b, "- %s\n  %s\n", text, strings.Join(spans(by[text]), ", "))
	}
	var passed []string
	for _, r := range s.rows {
		if r.Tag == superseded {
			passed = append(passed, r.ID)
		}
	}
	if len(passed) > 0 {
		fmt.Fprintf(b, "- Superseded by a row of a later seed.\n  %s\n", strings.Join(spans(passed), ", "))
	}
}

// spans writes three and more rows that follow each other as a range.
func spans(list []string) []string {
	var out []string
	for len(list) > 0 {
		n := 1
		for n < len(list) && follows(list[n-1], list[n]) {
			n++
		}
		if n < 3 {
			n = 1
			out = append(out, list[0])
		} else {
			out = append(out, list[0]+" to "+list[n-1])
		}
		list = list[n:]
	}
	return out
}

// follows reports whether b is the row after a.
func follows(a, b string) bool {
	all := citations(a + " to " + b)
	return len(all) == 2 && all[0].id == a && all[1].id == b && a[0] == 'S' && a[:3] == b[:3]
}

func (s *state) tests(b *strings.Builder) {
	heading := ""
	for _, r := range s.rows {
		s.line(b, &heading, r.Seed, r.ID)
	}
	for _, c := range s.cases {
		s.line(b, &heading, "Cases: "+c.Kind, c.ID)
	}
}

func (s *state) line(b *strings.Builder, heading *string, title, id string) {
	if len(s.found[id]) == 0 {
		return
	}
	if *heading != title {
		*heading = title
		fmt.Fprintf(b, "\n## %s\n\n", title)
	}
	fmt.Fprintf(b, "- %s: %s\n", id, strings.Join(names(s.found[id]), "; "))
}

// names writes proofs as "file Test, Test".
func names(proofs []Proof) []string {
	var out []string
	for len(proofs) > 0 {
		n := slices.IndexFunc(proofs, func(p Proof) bool { return p.File != proofs[0].File })
		if n < 0 {
			n = len(proofs)
		}
		var tests []string
		for _, p := range proofs[:n] {
			tests = append(tests, p.Test)
		}
		out = append(out, strings.TrimSpace(proofs[0].File+" "+strings.Join(tests, ", ")))
		proofs = proofs[n:]
	}
	return out
}
