package tool_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"capstan/internal/tool"
)

// S0-078 S0-079
func TestJSName(t *testing.T) {
	for name, want := range map[string]string{
		"read_file": "read_file", "$": "$", "A1": "A1", "mcp__git-hub__get.issue": "mcp__git_hub__get_issue",
		"1st": "_1st", "-a": "_a", "": "_", " ": "_", "a b": "a_b", "then": "_then", "Then": "Then", "catch": "catch",
		"constructor": "constructor", "__proto__": "__proto__", "délta": "délta", "文件": "文件", "a\u0301": "a\u0301", "\u0301": "_\u0301",
		"٣": "_٣", "a٣": "a٣", "😀": "_", "a\xffb": "a_b", "\u2e2f": "_", "a\u2028b": "a_b", "x`${y}`": "x_$_y__", "*/": "__", "a\u200db": "a_b", "ⅷ": "ⅷ", "a‿b": "a‿b",
	} {
		if got := tool.JSName(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

// identifier is the grammar of ECMA-262 in terms of the Unicode properties that
// ID_Start and ID_Continue are derived from (UAX 31), without the additions of
// Other_ID_Start and Other_ID_Continue, which we do not use.
var identifier = regexp.MustCompile(`^[$_\p{L}\p{Nl}][$_\p{L}\p{Nl}\p{Mn}\p{Mc}\p{Nd}\p{Pc}]*$`)

// Any name gives a property that can be written after a dot.
func FuzzJSName(f *testing.F) {
	for _, s := range []string{"", "then", "1", "a\u0301", "\u2e2f", "\xff", "x\x00", "a.b", "𝒳", "\U00011066"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		js := tool.JSName(name)
		if !identifier.MatchString(js) || js == "then" {
			t.Errorf("%q became %q", name, js)
		}
		for _, c := range js {
			if unicode.Is(unicode.Pattern_Syntax, c) && c != '$' {
				t.Errorf("%q became %q, with a character of syntax", name, js)
			}
		}
		if again := tool.JSName(js); again != js {
			t.Errorf("%q became %q, and that %q", name, js, again)
		}
		if identifier.MatchString(name) && name != "then" && js != name && !strings.ContainsRune(name, '\u2e2f') {
			t.Errorf("%q became %q without need", name, js)
		}
	})
}

// Of two names with one JavaScript name the first canonical name wins, among
// those of the scope, and each loser is named once. S0-077 S0-080 S0-081
// S0-215 S0-232
func TestCollisions(t *testing.T) {
	r := registry(t, named("exec", "a-b", "a.b", "a_b", "a b", "_then", "then", "z")...)
	type got struct {
		Bound    map[string]string
		Warnings []string
	}
	see := func(s tool.Scope) got {
		v := r.View(tool.Code, s)
		out := got{map[string]string{}, v.Warnings()}
		for _, b := range v.Bindings() {
			out.Bound[b.JS] = b.Entry.Spec().Name
			if name, ok := v.Canonical(b.JS); !ok || name != b.Entry.Spec().Name {
				t.Errorf("%s means %s", b.JS, name)
			}
		}
		return out
	}
	lost := func(loser, winner, js string) string {
		return loser + " cannot be called from programs: " + winner + " has the JavaScript name " + js
	}
	want := got{map[string]string{"a_b": "a b", "_then": "_then", "z": "z"},
		[]string{lost("a-b", "a b", "a_b"), lost("a.b", "a b", "a_b"), lost("a_b", "a b", "a_b"), lost("then", "_then", "_then")}}
	if diff := cmp.Diff(want, see(tool.Scope{})); diff != "" {
		t.Error(diff)
	}
	// The scope decides who takes part: what is not in it wins nothing.
	want = got{map[string]string{"a_b": "a.b", "z": "z"}, []string{lost("a_b", "a.b", "a_b")}}
	if diff := cmp.Diff(want, see(tool.Scope{Allow: []string{"a.b", "a_b", "z"}})); diff != "" {
		t.Error(diff)
	}
	v := r.View(tool.Code, tool.Scope{})
	for _, loser := range []string{"a-b", "a.b", "then"} {
		if e, _ := v.Resolve(&tool.Call{Name: loser}, true); e != nil || v.Visible(loser) != nil {
			t.Errorf("%s can be called", loser)
		}
	}
	if diff := cmp.Diff([]string{"_then", "a b", "z"}, searchable(v)); diff != "" {
		t.Error(diff)
	}
	if _, ok := v.Canonical("toString"); ok {
		t.Error("tools.toString is a tool")
	}
	both := r.View(tool.Both, tool.Scope{}) // a shown loser is still a model's
	if direct, nested := both.Reach("a.b"); !direct || nested {
		t.Errorf("in both: direct %v, nested %v", direct, nested)
	}
}

// Nearest names are of the scope and of the caller's side, at most three, best
// first.
func TestNearest(t *testing.T) {
	r := registry(t, named("exec", "agent", "read_file", "read_files", "write_file", "edit", "mcp__s-s__read_file", "secret_file", "ls", "rg")...)
	scope := tool.Scope{Disallow: []string{"secret_file"}}
	for _, tc := range []struct {
		mode   tool.Mode
		nested bool
		name   string
		want   string
	}{
		{tool.Direct, false, "read_fiel", "; the nearest names are read_file and read_files"},
		{tool.Direct, false, "secret_file", ""},
		{tool.Direct, false, "secret_fil", ""},
		{tool.Direct, false, "READ_FILE", "; use read_file"},
		{tool.Direct, false, "edti", "; the nearest names are edit"},
		{tool.Direct, false, "Exec", ""},
		{tool.Code, false, "agen", "; the nearest names are agent"},
		{tool.Code, false, "exe", "; the nearest names are exec"},
		{tool.Code, true, "exe", ""},
		{tool.Code, true, "read_file_", "; use tools.read_file"},
		{tool.Code, true, "read_file__s", "; the nearest names are read_file and read_files"},
		{tool.Code, true, "ab", ""},
		{tool.Code, true, "lz", "; the nearest names are ls"},
		{tool.Code, true, strings.Repeat("x", 500), ""},
		{tool.Code, true, "", ""},
	} {
		_, refusal := r.View(tc.mode, scope).Resolve(&tool.Call{Name: tc.name, Args: json.RawMessage(`{}`)}, tc.nested)
		shown := tc.name
		if len(shown) > 80 {
			shown = shown[:80] + "…"
		}
		if want := fmt.Sprintf("there is no tool %q here", shown) + tc.want; refusal == nil || refusal.Text() != want || refusal.Code != tool.CodeUnknownTool {
			t.Errorf("%s in %s: %+v, want %s", tc.name, tc.mode, refusal, want)
		}
	}
}

// A name of another product leads to the tool that does that job here, by the
// way that this caller has to it, and to nothing that is out of its reach.
func TestOtherProductsNames(t *testing.T) {
	r := registry(t, named("exec", "tool_search", "tool_call", "ask_user_question", "run_shell_command", "read_file", "list_directory", "edit", "grep_search", "web_fetch", "todo_write")...)
	inside := func(name string) string {
		return "run " + name + " inside exec: `const r = await tools." + name + "({…}); text(r.output)`"
	}
	const page = ", which reads a page whose address you know"
	all, few := tool.Scope{}, tool.Scope{Disallow: []string{"run_shell_command", "edit"}}
	for _, tc := range []struct {
		mode   tool.Mode
		scope  tool.Scope
		nested bool
		name   string
		want   string
	}{
		{tool.Direct, all, false, "bash", "use run_shell_command"},
		{tool.Direct, all, false, "Bash", "use run_shell_command"},
		{tool.Direct, all, false, "container.exec", "use run_shell_command"},
		{tool.Direct, all, false, "LS", "use list_directory"},
		{tool.Direct, all, false, "Read", "use read_file"},
		{tool.Direct, all, false, "View", "use read_file"},
		{tool.Direct, all, false, "read_many_files", "use read_file"},
		{tool.Direct, all, false, "apply_patch", "use edit"},
		{tool.Direct, all, false, "str_replace_editor", "use edit"},
		{tool.Direct, all, false, "strReplaceBasedEditTool", "use edit"},
		{tool.Direct, all, false, "SearchText", "use grep_search"},
		{tool.Direct, all, false, "update_plan", "use todo_write"},
		{tool.Direct, all, false, "web_search", "use web_fetch" + page},
		{tool.Direct, all, false, "AskUserQuestion", "use ask_user_question"},
		{tool.Direct, few, false, "Bash", ""},
		{tool.Direct, few, false, "apply_patch", ""},
		{tool.Direct, tool.Scope{Eager: []string{"read_file"}}, false, "Bash", "use run_shell_command: find it with tool_search first, then call it through tool_call"},
		{tool.Code, all, false, "Bash", inside("run_shell_command")},
		{tool.Code, all, false, "web_search", strings.Replace(inside("web_fetch"), " inside", page+" inside", 1)},
		{tool.Code, all, false, "ask_user", "use ask_user_question"},
		{tool.Code, all, false, "run_code", "use exec"},
		{tool.Code, few, false, "Bash", ""},
		{tool.Code, tool.Scope{Disallow: []string{"exec"}}, false, "Bash", ""},
		{tool.Both, all, false, "Bash", "use run_shell_command"},
		{tool.Code, all, true, "bash", "use tools.run_shell_command"},
		{tool.Code, all, true, "Read", "use tools.read_file"},
		{tool.Code, all, true, "AskUserQuestion", "use ask_user_question; it is a tool of its own: call it directly, outside of exec"},
		{tool.Code, few, true, "bash", ""},
		{tool.Code, all, true, "constructor", ""},
	} {
		_, refusal := r.View(tc.mode, tc.scope).Resolve(&tool.Call{Name: tc.name, Args: json.RawMessage(`{}`)}, tc.nested)
		want := fmt.Sprintf("there is no tool %q here", tc.name)
		if tc.want != "" {
			want += "; " + tc.want
		}
		if refusal == nil || refusal.Text() != want || refusal.Code != tool.CodeUnknownTool {
			t.Errorf("%s in %s: %+v, want %s", tc.name, tc.mode, refusal, want)
		}
	}
}
