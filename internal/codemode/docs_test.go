package codemode_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"capstan/internal/codemode"
	"capstan/internal/tool"
)

func describe(t *testing.T, s tool.Scope, o codemode.Options, tools ...tool.Tool) string {
	t.Helper()
	var r tool.Registry
	if err := r.Add(append(tools, codemode.NewExec(o))...); err != nil {
		t.Fatal(err)
	}
	for _, d := range r.View(tool.Code, s).Declarations() {
		if d.Name == tool.ExecName {
			return d.Description
		}
	}
	t.Fatal("exec is not declared")
	return ""
}

// S0-082 S0-083 S0-084 S0-085 S0-086 S0-087 S0-088 S0-089 S0-090 S0-091 S0-092 S0-093 S0-094 S1-084
func TestDescriptionSaysWhatThereIs(t *testing.T) {
	text := describe(t, tool.Scope{}, codemode.Options{}, echo("get-it"))
	if in := string(codemode.NewExec(codemode.Options{}).Spec().Input); !json.Valid([]byte(in)) || !strings.Contains(in, `"required":["source"]`) {
		t.Errorf("exec is no structured function: %s", in) // S0-030
	}
	for _, want := range []string{
		"fresh sandbox", "top-level await", "await tools.NAME(args)", "ToolCallError", "ALL_TOOLS", "jsName",
		"text(value)", "image(value)", "audio(value)", "exit()",
		"no Node.js", "import", "network", "timer", "nothing is kept between two programs",
		"/** Echoes get-it. */\nget_it(args?: {/** int */ n?: number}): Promise<Result>",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the description does not say %q:\n%s", want, text)
		}
	}
}

// The same tools give the same bytes, in any order. S0-076 S0-077 S0-095 S0-233
func TestDescriptionIsStable(t *testing.T) {
	var names []string
	for i := range 30 {
		names = append(names, fmt.Sprintf("%c-tool_%d", 'a'+i%7, i))
	}
	want := ""
	for seed := range uint64(10) {
		r := rand.New(rand.NewPCG(seed, 0))
		r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		var tools []tool.Tool
		for _, n := range names {
			tools = append(tools, echo(n))
		}
		servers := []string{"a", "b", "c"}
		r.Shuffle(len(servers), func(i, j int) { servers[i], servers[j] = servers[j], servers[i] })
		got := describe(t, tool.Scope{}, codemode.Options{Servers: servers}, append(tools, echo(tool.ToolSearchName))...)
		if want == "" {
			want = got
		}
		if got != want {
			t.Fatalf("seed %d: the description depends on the order of registration", seed)
		}
	}
	if one, other := strings.Index(want, "a_tool_0("), strings.Index(want, "b_tool_1("); one < 0 || one > other {
		t.Error("the tools are not in the order of their names")
	}
}

// With search, what is deferred costs nothing: the description is the same
// however many there are. Without it, all is documented.
// S1-001 S1-011 S1-012 S1-013 S1-014 S1-015 S1-019 S1-020 S1-021 S1-117 S0-004 BUG-CM-23
func TestDescriptionOfDeferredTools(t *testing.T) {
	deferred := func(n int) []tool.Tool {
		tools := []tool.Tool{echo("get"), echo(tool.ToolSearchName)}
		for i := range n {
			f := echo(fmt.Sprintf("mcp__s__late_%d", i))
			f.spec.Deferred, f.spec.Server = true, "s"
			tools = append(tools, f)
		}
		return tools
	}
	o := codemode.Options{Servers: []string{"s"}}
	none, many := describe(t, tool.Scope{}, o, deferred(0)...), describe(t, tool.Scope{}, o, deferred(500)...)
	if none != many {
		t.Error("the description depends on deferred tools")
	}
	if strings.Contains(many, "mcp__") || !strings.Contains(many, "tool_search") || !strings.Contains(many, "MCP servers: s.") {
		t.Errorf("wrong text:\n%s", many)
	}
	for _, guidance := range []string{ // S1-047 S1-048 S1-049 S1-050 S1-051
		"find them with tool_search, a direct call outside of JavaScript", "in a later exec by the exact jsName it returns",
		"Reuse schemas still in this conversation", "search again before writing arguments when one is gone",
	} {
		if !strings.Contains(many, guidance) {
			t.Errorf("the description does not say %q", guidance)
		}
	}
	full := describe(t, tool.Scope{Disallow: []string{tool.ToolSearchName}}, o, deferred(500)...)
	if strings.Count(full, "mcp__s__late_") < 500 || strings.Contains(full, "tool_search") {
		t.Error("without search the signatures are not all there")
	}
	visible := describe(t, tool.Scope{Visible: []string{"mcp__s__late_7"}}, o, deferred(500)...)
	if strings.Count(visible, "mcp__s__late_") != 2 || !strings.Contains(visible, "mcp__s__late_7(") { // S1-107 S1-108: its name and its description
		t.Errorf("a visible tool is not documented:\n%s", visible)
	}
	all := describe(t, tool.Scope{Visible: []string{"mcp__s"}}, o, deferred(500)...)
	if n := len(all) - len(none); n > 9<<10 || n < 7<<10 {
		t.Errorf("marked tools take %d bytes, want about 8 KiB", n)
	}
}

// The scope decides what is documented. S0-206 S0-234
func TestDescriptionOfScope(t *testing.T) {
	text := describe(t, tool.Scope{Allow: []string{"get"}}, codemode.Options{}, echo("get"), echo("other"))
	if !strings.Contains(text, "get(") || strings.Contains(text, "Echoes other") {
		t.Errorf("wrong text:\n%s", text)
	}
}

// Hostile names and texts stay text. BUG-CM-16
func TestDescriptionOfHostileTools(t *testing.T) {
	f := echo(`x"]=1;text('pwned');//`)
	f.spec.Description = "*/ text('pwned') /* ``` \u202e\U000e0041"
	w := newWorld(t, f, echo("get"))
	w.want(`text(Object.keys(tools).length, (await tools.get({n: 1})).output)`, `2 {"n":1}`)
	text := describe(t, tool.Scope{}, codemode.Options{}, f)
	if strings.Contains(text, "*/ text(") || strings.Contains(text, `"]=1`) || strings.ContainsAny(text, "\u202e\U000e0041") {
		t.Errorf("wrong text:\n%s", text)
	}
	if _, err := json.Marshal(text); err != nil {
		t.Error(err)
	}
}
