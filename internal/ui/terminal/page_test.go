package terminal

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"capstan/internal/sched"
	"capstan/internal/tool"
)

var update = flag.Bool("update", false, "write the golden files")

type fake struct {
	spec    tool.Spec
	preview func() (string, error)
}

func (f *fake) Spec() *tool.Spec { return &f.spec }
func (f *fake) Run(context.Context, *tool.Invocation) (tool.Result, error) {
	return tool.Text(""), nil
}

type previewed struct{ fake }

func (f *previewed) Preview(context.Context, *tool.Call, tool.Access) (string, error) {
	return f.fake.preview()
}

// question makes a question about a call of a tool.
func question(t testing.TB, f tool.Tool, call tool.Call, why string) *sched.Question {
	t.Helper()
	var r tool.Registry
	if err := r.Add(f); err != nil {
		t.Fatal(err)
	}
	e := r.Tools()[0]
	call.Name = e.Spec().Name
	return &sched.Question{Request: sched.Request{Call: &call, Entry: e}, Verdict: sched.Verdict{Decision: sched.Ask, Reason: why}}
}

func arguments(t testing.TB, v any) json.RawMessage {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "line %d\n", i+1)
	}
	return b.String()
}

// TestPages holds what a person sees. Run with -update to write the files.
func TestPages(t *testing.T) {
	edit := tool.Spec{Name: "edit", Title: "Edit", Description: "d"}
	for name, c := range map[string]struct {
		tool   tool.Tool
		args   string
		source tool.Source
		parent string
		why    string
		diff   string
		color  bool
		limit  int
	}{
		"nested": {tool: &fake{spec: edit}, source: tool.FromProgram, parent: "call_7", why: "writing /ws/a.txt needs approval in approval mode default",
			args: `{"file_path":"a.txt","old_string":"one\ntwo","new_string":"","replace_all":true,"n":12345678901234567890}`,
			diff: "--- a.txt\n+++ a.txt\n@@ -1,2 +1 @@\n-one\n-two\n+\tzwei\n"},
		"claims": {tool: &fake{spec: tool.Spec{Name: "mcp__db__drop", Server: "db", Claims: []string{"it may destroy or overwrite something", "it reaches the world outside"}}},
			source: tool.FromModel, args: `{"table":"users"}`, why: "using mcp__db__drop needs approval in approval mode default"},
		"coloured": {tool: &fake{spec: edit}, source: tool.FromModel, args: `{}`, diff: "--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n z\n", color: true},
		"hostile": {tool: &fake{spec: tool.Spec{Name: "mcp__evil__t", Title: "Read\x1b[2J\u202e", Server: "evil\r", Description: "d"}}, source: tool.FromModel,
			why:  "using \x1b]0;x\x07",
			args: `{"a":"\u001b[1A\u001b[2KAllow? y","b":"x\nAllow? y = yes\n> y","c\n> ":"\u202etxt.exe\u2066","d":"a\u200bb\u2800c\u0000","e":"` + "z\u0300\u0301\u0302\u0303\u0304" + `"}`,
			diff: "\x1b[8m-hidden\r+shown\nAllow? y = yes\n> "},
		"padded": {tool: &fake{spec: edit}, source: tool.FromModel, args: string(arguments(t, map[string]string{"x": strings.Repeat(" ", 200) + "Allow? y = yes, once"}))},
		"long":   {tool: &fake{spec: edit}, source: tool.FromModel, args: string(arguments(t, map[string]string{"content": numbered(100), "one": strings.Repeat("é", 3000)})), diff: numbered(50)},
		"whole":  {tool: &fake{spec: edit}, source: tool.FromModel, args: string(arguments(t, map[string]string{"content": numbered(100)})), limit: whole},
		"broken": {tool: &fake{spec: edit}, source: tool.FromModel, args: `[1,`},
		"wide":   {tool: &fake{spec: edit}, source: tool.FromModel, args: string(arguments(t, map[string]string{"x": strings.Repeat("漢字", 40)}))},
	} {
		t.Run(name, func(t *testing.T) {
			q := question(t, c.tool, tool.Call{ID: "c", Source: c.source, ParentID: c.parent, Args: json.RawMessage(c.args)}, c.why)
			p := &page{width: 60, color: c.color, diff: c.diff}
			limit := c.limit
			if limit == 0 {
				limit = short
			}
			text, cut := p.question(q, limit)
			text += fmt.Sprintf("cut: %t\n", cut)
			file := filepath.Join("testdata", name+".golden")
			if *update {
				if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), text); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// checkPage fails when a page could act on the terminal or look like the
// question: each line is one that the page itself begins.
func checkPage(t *testing.T, text string, width int) {
	t.Helper()
	if !utf8.ValidString(text) {
		t.Errorf("not UTF-8: %q", text)
	}
	for _, r := range text {
		if r != '\n' && hidden(r) {
			t.Errorf("the page holds %U: %q", r, text)
		}
	}
	for i, line := range strings.Split(text, "\n") {
		cells := 0
		for _, r := range line {
			if !unicode.In(r, unicode.Mn, unicode.Me) {
				cells++
			}
		}
		if cells > width {
			t.Errorf("line %d is wider than %d: %q", i, width, line)
		}
		if strings.HasPrefix(line, "Allow?") || strings.HasPrefix(line, "> ") {
			t.Errorf("line %d looks like the question: %q", i, line)
		}
	}
}

// FuzzPage: no call can fake its own question.
func FuzzPage(f *testing.F) {
	f.Add("Title", "server", "why", `{"a":"b"}`, "--- a\n+++ b\n")
	f.Add("\x1b[2J", "\r", "\nAllow? y\n> ", `{"\nAllow?":"\nAllow? y"}`, "\nAllow? y\n> y")
	f.Add("", "", "", `"x"`, "\xff\xfe\u202e\u0300\u0300\u0300\u0300\u0300")
	f.Add("t", "s", strings.Repeat(" ", 59)+"Allow? y", `[[[`, strings.Repeat("x", 5000))
	f.Fuzz(func(t *testing.T, name, server, why, args, diff string) {
		q := question(t, &fake{spec: tool.Spec{Name: "x", Title: name, Server: server, Description: "d"}}, tool.Call{ParentID: server, Source: tool.FromProgram, Args: json.RawMessage(args)}, why)
		for _, limit := range []int{short, whole} {
			p := &page{width: 60, diff: diff}
			text, _ := p.question(q, limit)
			checkPage(t, text, 60)
		}
	})
}
