package config

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// list writes n rules as JSON.
func list(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"T%d",`, i)
	}
	return "[" + b.String() + "]"
}

// TestManyRules: a file has a bounded number of rules, also in a folder that
// nobody trusts, and whatever list they are in.
func TestManyRules(t *testing.T) {
	half := list(maxRules / 2)
	for _, c := range []struct {
		text string
		want string
	}{
		{`{"permissions": {"deny": ` + list(maxRules) + `}}`, ""},
		{`{"permissions": {"deny": ` + half + `, "ask": ` + half + `}}`, ""},
		{`{"permissions": {"deny": ` + list(maxRules+1) + `}}`, "more than 2000 rules"},
		{`{"permissions": {"deny": ` + half + `, "ask": ` + half + `, "allow": ["x"]}}`, ""},
		{`{"permissions": {"deny": ` + list(90_000) + `}}`, "more than 2000 rules"},
	} {
		base := lay(t, map[string]string{projectFile: c.text})
		got, _, err := Load(Options{Project: filepath.Join(base, "ws")})
		switch {
		case c.want == "" && (err != nil || len(got.Rules) != maxRules):
			t.Errorf("%.60s: %d rules, %v", c.text, len(got.Rules), err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n")):
			t.Errorf("%.60s: error %.300v", c.text, err)
		}
	}
}

// TestManyFaults: what is wrong with a file is reported up to a bound, with
// the number of the rest.
func TestManyFaults(t *testing.T) {
	for name, c := range map[string]struct{ text, first, last string }{
		"wrong types": {`{"permissions": {"deny": [` + strings.Repeat("1,", 5000) + `]}}`,
			"permissions.deny[0]: expected a string", "and 4980 more faults in this file"},
		"duplicates": {"{" + strings.Repeat(`"x": 1,`, 5000) + "}", "is there twice", "and 4979 more faults in this file"},
	} {
		base := lay(t, map[string]string{projectFile: c.text})
		_, _, err := Load(Options{Project: filepath.Join(base, "ws")})
		lines := strings.Split(fmt.Sprint(err), "\n")
		if len(lines) != maxReports+1 || !strings.Contains(lines[0], c.first) || !strings.HasSuffix(lines[maxReports], c.last) {
			t.Errorf("%s: %d lines, the first %q, the last %q", name, len(lines), lines[0], lines[len(lines)-1])
		}
	}
	var keys strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&keys, `"zzz%d": 1,`, i)
	}
	base := lay(t, map[string]string{projectFile: "{" + keys.String() + "}"})
	_, warnings, err := Load(Options{Project: filepath.Join(base, "ws")})
	if err != nil || len(warnings) != maxReports+1 || !strings.HasSuffix(warnings[maxReports].String(), "and 4980 more warnings about this file") {
		t.Errorf("%v: %d warnings, the last %v", err, len(warnings), warnings[len(warnings)-1])
	}
}

// TestPositions: places are right in any order that they are asked in.
func TestPositions(t *testing.T) {
	d := &document{src: []byte("é\n\nab\n")}
	want := []string{"1:1", "", "1:2", "2:1", "3:1", "3:2", "3:3", "4:1", "4:1"}
	for _, order := range [][]int{{0, 2, 3, 4, 5, 6, 7, 8}, {8, 7, 6, 5, 4, 3, 2, 0}, {4, 0, 7, 2, 2, 5}} {
		for _, at := range order {
			line, column := d.position(at)
			if got := fmt.Sprintf("%d:%d", line, column); got != want[at] {
				t.Errorf("offset %d is %s, want %s", at, got, want[at])
			}
		}
	}
}

// TestHostileText: what a file says cannot act on the terminal, nor what it is
// called.
func TestHostileText(t *testing.T) {
	const hostile = "\x1b[2K\u202e\u009b1m"
	dir := filepath.Join(t.TempDir(), hostile)
	for _, text := range []string{
		"{\x1b: 1}", `{"tools": ` + hostile + `}`, `{"` + "a\u202e\u009b" + `": 1, "permissions": {"deny": "` + "\u202e" + `"}}`,
		`{"tools": {"mode": "\u001b[2K"}}`, `{"tools": ` + strings.Repeat("1", 5000) + `}`, `{"\u001b": 1, "\u001b": 2}`,
		`{"tools": {"mode": "direct", "codeModeOnly": true}}`,
	} {
		base := lay(t, nil)
		d := &document{layer: Project, file: filepath.Join(dir, "settings.json"), src: []byte(text)}
		l := &loader{}
		if root := d.parse(); root != nil {
			l.settings(d, root)
			l.resolveMode()
		}
		all := fmt.Sprint(d.faults, d.warnings, l.faults)
		if strings.ContainsAny(all, "\x1b\u202e\u009b") || len(all) > 1000 || len(d.faults)+len(d.warnings)+len(l.faults) == 0 {
			t.Errorf("%.40q: %q", text, all)
		}
		_, _, err := Load(Options{Files: []string{filepath.Join(base, hostile)}, Mode: hostile})
		if s := fmt.Sprint(err); err == nil || strings.ContainsAny(s, "\x1b\u202e\u009b") {
			t.Errorf("%q", s)
		}
	}
}
