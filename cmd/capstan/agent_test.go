package main

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"
)

// agentFamilies are the wire formats that the transcripts run over. To add one,
// add it here; llmtest has to speak it.
var agentFamilies = []string{"openai", "responses", "anthropic", "gemini"}

// Every transcript runs over every family and in every mode that it is for.
// S0-195 S0-196 S0-197 S0-260 to S0-263 S3-010 to S3-016
func TestAgent(t *testing.T) {
	for _, family := range agentFamilies {
		for _, mode := range []string{"direct", "code", "both"} {
			t.Run(family+"/"+mode, func(t *testing.T) {
				runScripts(t, "testdata/agent", map[string]string{"FAMILY": family, "MODE": mode, "MODEL": family + "/m"})
			})
		}
	}
}

// streamLine is what cmdTranscript looks at.
type streamLine struct {
	Type, Subtype string
	Parent        string `json:"parent_tool_use_id"`
	Message       struct {
		Content []struct {
			Type, Text, Name, ID, Thinking string
			Input                          json.RawMessage
			ToolUseID                      string `json:"tool_use_id"`
			Content                        json.RawMessage
			IsError                        bool `json:"is_error"`
		}
	}
	ToolUseResult struct{ Status, Code string } `json:"tool_use_result"`
	Event         struct{ Type string }
	Result        string
	Tools         []string
}

// cmdTranscript compares the stream on stdout with a file, in a short form: one
// line for each block, nested ones indented and, since they run side by side,
// sorted. transcript FILE
func cmdTranscript(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: transcript FILE")
	}
	var out, nested []string
	flush := func() {
		slices.Sort(nested)
		out, nested = append(out, nested...), nil
	}
	for line := range strings.Lines(ts.ReadFile("stdout")) {
		var l streamLine
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			ts.Fatalf("a line is no JSON: %v: %s", err, line)
		}
		if l.Type == "stream_event" {
			continue
		}
		if l.Parent == "" {
			flush()
		}
		switch l.Type {
		case "system":
			out = append(out, "system "+l.Subtype)
		case "result":
			out = append(out, strings.TrimRight(fmt.Sprintf("result %s %s", l.Subtype, short(l.Result)), " "))
		}
		for _, b := range l.Message.Content {
			text := l.Type + " " + b.Type + " "
			switch b.Type {
			case "text":
				text += short(b.Text)
			case "thinking":
				text += short(b.Thinking)
			case "tool_use":
				text += b.Name + " " + short(string(b.Input))
			case "tool_result":
				text += strings.TrimSpace(l.ToolUseResult.Status+" "+l.ToolUseResult.Code) + " " + short(string(b.Content))
			}
			if l.Parent == "" {
				out = append(out, text)
			} else {
				nested = append(nested, "  "+text)
			}
		}
	}
	flush()
	got := strings.ReplaceAll(strings.Join(out, "\n")+"\n", ts.Getenv("WORK"), "$WORK")
	if os.Getenv("UPDATE_SCRIPTS") != "" {
		ts.Logf("transcript %s:\n%s", args[0], got)
	}
	if want := ts.ReadFile(args[0]); got != want {
		ts.Fatalf("the transcript is not %s:\n%s", args[0], got)
	}
}

var auditTime = regexp.MustCompile(`(?m)^\d{4}-\d\d-\d\dT[0-9:.]+Z  `)

var auditLong = regexp.MustCompile(`(?m)^(.{180}).+$`)

// cmdAudit writes what "sessions audit" prints of the newest session of this
// workspace into a file, without the times. Calls of one turn run side by side, so
// the decisions are sorted; lines are cut, for where a long one ends depends on
// where the test runs: audit FILE.
func cmdAudit(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: audit FILE")
	}
	var list []struct{ ID string }
	ts.Check(ts.Exec("capstan", "sessions", "list", "--json"))
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &list))
	if len(list) == 0 {
		ts.Fatalf("there is no session")
	}
	ts.Check(ts.Exec("capstan", "sessions", "audit", list[0].ID))
	text := strings.ReplaceAll(ts.ReadFile("stdout"), ts.Getenv("WORK"), "$WORK")
	entries := auditTime.Split(auditLong.ReplaceAllString(text, "$1…"), -1)[1:]
	slices.Sort(entries)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(strings.Join(entries, "")), 0o644))
}

func short(s string) string {
	s = strings.ReplaceAll(strings.TrimSpace(s), "\n", `\n`)
	if r := []rune(s); len(r) > 100 {
		return string(r[:100]) + "…"
	}
	return s
}

// wireTool is a tool as one of the formats declares it.
type wireTool struct {
	Name, Description string
	Function          *wireTool
	Parameters        json.RawMessage
	Functions         []wireTool `json:"functionDeclarations"`
}

// cmdDeclared compares the tools of the first request in a file with what
// "tools declarations --json" printed: declared REQUESTS DECLARATIONS. Chat
// completions takes the schemas as they are; the others reduce them.
func cmdDeclared(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: declared REQUESTS DECLARATIONS")
	}
	var sent struct{ Tools []wireTool }
	first, _, _ := strings.Cut(ts.ReadFile(args[0]), "\n")
	ts.Check(json.Unmarshal([]byte(first), &sent))
	var got []wireTool
	for _, t := range sent.Tools {
		switch {
		case t.Function != nil:
			got = append(got, *t.Function)
		case t.Functions != nil:
			got = append(got, t.Functions...)
		default:
			got = append(got, t)
		}
	}
	var want []wireTool
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[1])), &want))
	if ts.Getenv("FAMILY") != "openai" {
		for _, list := range [][]wireTool{got, want} {
			for i := range list {
				list[i].Parameters = nil
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		ts.Fatalf("declared (-want +got):\n%s", diff)
	}
}

// cmdSameTools checks that all requests in a file declare the same tools, byte for
// byte: sametools REQUESTS COUNT
func cmdSameTools(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: sametools REQUESTS COUNT")
	}
	var all []string
	for line := range strings.Lines(ts.ReadFile(args[0])) {
		var sent struct{ Tools json.RawMessage }
		ts.Check(json.Unmarshal([]byte(line), &sent))
		all = append(all, string(sent.Tools))
	}
	if fmt.Sprint(len(all)) != args[1] {
		ts.Fatalf("%d requests, want %s", len(all), args[1])
	}
	for i := range all {
		if all[i] != all[0] || all[i] == "" {
			ts.Fatalf("request %d declares other tools (-first +this):\n%s", i+1, cmp.Diff(all[0], all[i]))
		}
	}
}
