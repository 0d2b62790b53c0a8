package conformance

import (
	_ "embed"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// A Row is one line of docs/requirements.md.
type Row struct {
	ID   string
	Seed string // the heading of its seed
	Tag  byte   // M, N, V, P or X, as the head of that file explains
}

// superseded tags a row that another one replaces.
const superseded = 'X'

var row = regexp.MustCompile(`^- (S[0-3]-\d{3}) \[([MNVPX])\] `)

// Rows reads docs/requirements.md.
func Rows(text string) []Row {
	var rows []Row
	seed := ""
	for line := range strings.Lines(text) {
		if title, ok := strings.CutPrefix(line, "## "); ok {
			seed = strings.TrimSpace(title)
		}
		if m := row.FindStringSubmatch(line); m != nil {
			rows = append(rows, Row{ID: m[1], Seed: seed, Tag: m[2][0]})
		}
	}
	return rows
}

//go:embed cases.txt
var cases string

// A Case is a public report of what broke in a tool of this kind. The reports
// themselves are not part of this repository, their ids are.
type Case struct{ ID, Kind string }

// Cases lists the reports, by kind.
func Cases() []Case {
	var out []Case
	for line := range strings.Lines(cases) {
		kind, list, ok := strings.Cut(line, ":")
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		for _, id := range strings.Fields(list) {
			out = append(out, Case{ID: id, Kind: kind})
		}
	}
	return out
}

//go:embed open.txt
var open string

// A Reason says why ids have no test yet.
type Reason struct {
	IDs  []string // ranges are spelt out
	Text string
}

// Reasons reads the list of what is open: lines of ids and ranges, and under
// them one indented line with the reason.
func Reasons() ([]Reason, error) { return parseReasons(open) }

func parseReasons(text string) ([]Reason, error) {
	var out []Reason
	var pending []string
	seen := map[string]bool{}
	n := 0
	for line := range strings.Lines(text) {
		n++
		trimmed := strings.TrimSpace(line)
		switch {
		case trimmed == "" || strings.HasPrefix(line, "#"):
		case line[0] != ' ' && line[0] != '\t':
			for _, c := range citations(line) {
				if seen[c.id] {
					return nil, fmt.Errorf("open.txt:%d: %s has a reason already", n, c.id)
				}
				seen[c.id] = true
				pending = append(pending, c.id)
			}
		case len(pending) == 0:
			return nil, fmt.Errorf("open.txt:%d: a reason without ids", n)
		default:
			out = append(out, Reason{IDs: pending, Text: trimmed})
			pending = nil
		}
	}
	if len(pending) > 0 {
		return nil, fmt.Errorf("open.txt: %s has no reason", strings.Join(pending, " "))
	}
	return out, nil
}

// known is what ids there are: rows and reports.
func known(rows []Row, cases []Case) map[string]bool {
	ids := map[string]bool{}
	for _, r := range rows {
		ids[r.ID] = true
	}
	for _, c := range cases {
		ids[c.ID] = true
	}
	return ids
}

// unknown returns the ids of found that there are not, sorted.
func unknown(found map[string][]Proof, known map[string]bool) []string {
	var out []string
	for _, id := range slices.Sorted(maps.Keys(found)) {
		if !known[id] {
			out = append(out, id)
		}
	}
	return out
}
