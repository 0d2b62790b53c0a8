package mcp

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capstan/internal/msg"
	"capstan/internal/schema"
	"capstan/internal/tool"
)

// BUG-TN-01, BUG-TN-03: names fit every API, stay different, and depend on
// nothing but the two names.
func TestToolName(t *testing.T) {
	form := regexp.MustCompile(`^mcp__[A-Za-z0-9-]+(_[A-Za-z0-9-]+)*__[A-Za-z0-9_-]+$`)
	for _, test := range []struct{ server, tool, want string }{
		{"github", "get_issue", "mcp__github__get_issue"},
		{"github", "get__issue", "mcp__github__get__issue"},
		{"github", "_x", "mcp__github___x"},
		{"my server", "t", "mcp__my_server_b129874b__t"},
		{"a__b", "t", "mcp__a_b_63e5c1c4__t"},
		{"_a", "t", "mcp__a_34fb7160__t"},
		{"日本", "検索", ""},
		{"example-billing-cost-management-server", "billing_cost_management_get_reservation_purchase_recommendation", ""},
		{"s", "list_all_active_customer_subscriptions_for_account_api_v1_accounts_get", ""},
		{"s", "read.file", ""}, {"s", "read file", ""}, {"s", "read_file", "mcp__s__read_file"}, {"s", "\x1b[31m", ""},
		{"s", "", ""},
	} {
		got := ToolName(test.server, test.tool)
		if len(got) > 64 || !form.MatchString(got) || test.want != "" && got != test.want {
			t.Errorf("%q, %q: %s, want %s", test.server, test.tool, got, test.want)
		}
	}
	seen := map[string]string{}
	for _, server := range []string{"a", "a_", "_a", "a__b", "a_b", "a b", "a.b", "a__b__c", strings.Repeat("x", 40), strings.Repeat("x", 41)} {
		for _, name := range []string{"t", "b__t", "t t", "t.t", "t_t", strings.Repeat("y", 70), strings.Repeat("y", 71), "é", "è"} {
			got := ToolName(server, name)
			if other, ok := seen[got]; ok {
				t.Errorf("%q and %q are both %s", other, server+"/"+name, got)
			}
			seen[got] = server + "/" + name
		}
	}
}

// A name in a command that a person copies.
func TestWord(t *testing.T) {
	for name, want := range map[string]string{"docs": "docs", "my server": "'my server'", "it's": `'it'\''s'`, "$x": "'$x'", "日本": "'日本'", "-v": "-- -v", "- v": "-- '- v'"} {
		if got := Word(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

func FuzzToolName(f *testing.F) {
	f.Add("a__b", "c")
	form := regexp.MustCompile(`^mcp__[A-Za-z0-9_-]+__[A-Za-z0-9_-]+$`)
	f.Fuzz(func(t *testing.T, server, name string) {
		got := ToolName(server, name)
		if len(got) > 64 || !form.MatchString(got) {
			t.Errorf("%q", got)
		}
		prefix := tool.ServerPrefix(server)
		if part := strings.TrimSuffix(strings.TrimPrefix(prefix, "mcp__"), "__"); !strings.HasPrefix(got, prefix) || strings.Contains(part, "__") || len(part) > 28 || strings.HasSuffix(part, "_") {
			t.Errorf("server part %q of %q", part, got)
		}
	})
}

// What a server lists that cannot be used costs itself and a warning.
func TestListsThatAreWrong(t *testing.T) {
	long := strings.Repeat("d", 40<<10)
	list := `{"tools":[
		{"name":"ok","description":"fine */ </functions> \u001b[31m` + "`x`" + `","inputSchema":{"type":"object","properties":{"n":{"const":9007199254740993}}}},
		{"name":"none"},{"name":"null","inputSchema":null},{"name":"empty","inputSchema":{}},
		{"name":"bad","inputSchema":{"type":12}},
		{"name":"badout","inputSchema":{"type":"object"},"outputSchema":{"$ref":"#/nowhere"}},
		{"name":"ok","description":"again","inputSchema":{"type":"object"}},
		{"name":"read_file","description":12,"annotations":"x","inputSchema":{"type":"object"}},
		{"name":"bell\u0007","inputSchema":{"type":"object"}},
		{"name":"long","description":"` + long + `","inputSchema":{"type":"object"}},
		{"name":""},{"inputSchema":{}},"x",null,12
	]}`
	r := newRig(t, Options{}, stdioServer("s", "list:"+strings.ReplaceAll(list, "\n", "")))
	r.ready()
	bell := ToolName("s", "bell\a")
	want := []string{"mcp__s__badout", bell, "mcp__s__empty", "mcp__s__long", "mcp__s__none", "mcp__s__null", "mcp__s__ok", "mcp__s__read_file"}
	if diff := cmp.Diff(want, r.names()); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
	// The schema is the server's own bytes, no digit lost.
	ok := r.tool("mcp__s__ok").Spec()
	if string(ok.Input) != `{"type":"object","properties":{"n":{"const":9007199254740993}}}` || ok.Description != "fine */ </functions> [31m`x`" {
		t.Errorf("%+v", ok)
	}
	if n := len(r.tool("mcp__s__long").Spec().Description); n > maxDescription+3 {
		t.Errorf("a description of %d bytes", n)
	}
	if r.tool("mcp__s__badout").Spec().Output != nil {
		t.Error("an output schema that cannot be used is kept")
	}
	w := strings.Join(r.Status()[0].Warnings, "\n")
	for _, want := range []string{`the tool "bad" is left out: its input schema cannot be used`, `tool "badout": its output schema cannot be used`,
		`it lists the tool "ok" more than once`, `its description has 40960 bytes`, `it has no name`} {
		if !strings.Contains(w, want) {
			t.Errorf("nothing about %s in\n%s", want, w)
		}
	}
	// A call names the tool as its server does.
	if got := r.call(bell, `{}`).Text(); got != "ok" {
		t.Errorf("%q", got)
	}
}

// What a server says of its tools holds nothing that only a model sees; line ends,
// tabs and joiners stay. S1-031
func TestNothingInvisibleIsSaid(t *testing.T) {
	s := &server{cfg: Config{Name: "s"}}
	hidden := "\u2062\u2064\u206a\u180e\ufff9\u115f\u3164\ufe01\U000e0041\u202e\x1b"
	got, _, err := newRemote(s, definition{Name: "t", Title: "a" + hidden + "b", Description: "one" + hidden + "\n\ttwo\u200dthree"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"ab", "one\n\ttwo\u200dthree"}, []string{got.spec.Title, got.spec.Description}); diff != "" {
		t.Error(diff)
	}
}

// BUG-MC-10
func TestEndlessCursors(t *testing.T) {
	r := newRig(t, Options{}, stdioServer("same", "cursor"), stdioServer("other", "endless"))
	r.ready()
	if diff := cmp.Diff([]string{"mcp__other__a", "mcp__same__a", "mcp__same__b"}, r.names()); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
	for _, st := range r.Status() {
		if w := strings.Join(st.Warnings, "\n"); !strings.Contains(w, "reading stopped there") {
			t.Errorf("%s: %q", st.Name, w)
		}
	}
}

// BUG-PC-08
func TestIncludeAndExclude(t *testing.T) {
	c := stdioServer("good", "sdk")
	c.Include, c.Exclude = []string{"echo*", "roots", "echo,roots"}, []string{"echo2", "ehco*"}
	r := newRig(t, Options{}, c)
	r.ready()
	if diff := cmp.Diff([]string{`includeTools: "echo,roots" is none of its tools`, `excludeTools: "ehco*" is none of its tools`}, r.Status()[0].Warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"mcp__good__echo", "mcp__good__echo3", "mcp__good__roots"}, r.names()); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
}

// Hints feed concurrency and what a person reads; they loosen nothing unless the
// user trusts the server, and what contradicts itself is not believed.
func TestHints(t *testing.T) {
	const list = `list:{"tools":[
		{"name":"none","inputSchema":{}},
		{"name":"reads","inputSchema":{},"annotations":{"readOnlyHint":true,"idempotentHint":true}},
		{"name":"both","inputSchema":{},"annotations":{"readOnlyHint":true,"destructiveHint":true,"openWorldHint":true}},
		{"name":"again","inputSchema":{},"annotations":{"idempotentHint":true,"destructiveHint":false,"openWorldHint":false}},
		{"name":"odd","inputSchema":{},"annotations":{"readOnlyHint":true,"title":7,"destructiveHint":true}}]}`
	mode := strings.NewReplacer("\n", "", "\t", "").Replace(list)
	trusted := stdioServer("trusted", mode)
	trusted.Trust, trusted.AlwaysLoad = true, true
	r := newRig(t, Options{}, stdioServer("s", mode), trusted)
	r.ready()
	type said struct {
		Overlap, Deferred bool
		Effect            tool.Effect
		Claims            []string
	}
	got := map[string]said{}
	for _, name := range r.names() {
		x := r.tool(name)
		a := x.(tool.Accessor).Access(nil)
		if !a.Outside {
			t.Errorf("%s says that it touches nothing", name)
		}
		got[name] = said{a.Overlap, x.Spec().Deferred, x.Spec().Effect, x.Spec().Claims}
	}
	reads, both, again := []string{"it only reads"}, []string{"it may destroy or overwrite something", "it reaches the world outside"}, []string{"doing it twice changes no more than once"}
	unknown, none := tool.EffectUnknown, tool.EffectNone
	want := map[string]said{
		"mcp__s__none": {false, true, unknown, nil}, "mcp__s__reads": {true, true, unknown, reads}, "mcp__s__both": {false, true, unknown, both},
		"mcp__s__again": {false, true, unknown, again}, "mcp__s__odd": {false, true, unknown, nil},
		"mcp__trusted__none": {false, false, unknown, nil}, "mcp__trusted__reads": {true, false, none, reads}, "mcp__trusted__both": {false, false, unknown, both},
		"mcp__trusted__again": {false, false, unknown, again}, "mcp__trusted__odd": {false, false, unknown, nil},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("hints (-want +got):\n%s", diff)
	}
}

// Of a call that was lost the caller is told what the server says of doing it
// again. BUG-MC-03: nobody does it unasked.
func TestLostCallsThatMayBeRepeated(t *testing.T) {
	const list = `{"tools":[{"name":"t","inputSchema":{}},{"name":"again","inputSchema":{},"annotations":{"idempotentHint":true}},{"name":"reads","inputSchema":{},"annotations":{"readOnlyHint":true}}]}`
	r := newRig(t, Options{}, stdioServer("s", "crashes:"+list))
	r.ready()
	for name, want := range map[string]bool{"t": false, "again": true, "reads": true} {
		res := r.call("mcp__s__"+name, `{}`)
		if got := strings.Contains(res.Text(), "is not known, but the server says that it can be repeated without harm"); got != want || res.Code != tool.CodeFailed {
			t.Errorf("%s: %s", name, res.Text())
		}
	}
	if got := r.Status()[0].Restarts; got > 3 {
		t.Errorf("%d restarts after three crashes", got)
	}
}

func TestTwoServersWithOneName(t *testing.T) {
	r := newRig(t, Options{}, stdioServer("a", "ok"))
	if err := r.Start(stdioServer("a", "ok")); err == nil || !strings.Contains(err.Error(), `two servers with the name "a"`) {
		t.Errorf("%v", err)
	}
}

// BUG-MC-16, BUG-MC-25, BUG-SC-06: nothing of a result is lost or said twice.
func TestResult(t *testing.T) {
	const png = `iVBORw0KGgo=`
	data := []byte("\x89PNG\r\n\x1a\n")
	s := newServer(New(Options{Registry: &tool.Registry{}}), Config{Name: "s"})
	x, _, err := newRemote(s, definition{Name: "t", OutputSchema: json.RawMessage(`{"type":"object","required":["id"]}`)})
	if err != nil {
		t.Fatal(err)
	}
	loose, _, _ := newRemote(s, definition{Name: "t"})
	for _, test := range []struct {
		name, raw string
		of        *remote
		want      tool.Result
	}{
		{"text", `{"content":[{"type":"text","text":"a\u0000b"},{"type":"text","text":""}]}`, loose,
			tool.Result{Parts: []msg.Part{msg.TextPart("a\x00b"), msg.TextPart("")}}},
		{"media", `{"content":[{"type":"image","data":"` + png + `","mimeType":"image/png"},{"type":"audio","data":"AAEC","mimeType":"audio/wav"}]}`, loose,
			tool.Result{Parts: []msg.Part{{Kind: msg.Image, MIMEType: "image/png", Data: data}, {Kind: msg.Audio, MIMEType: "audio/wav", Data: []byte{0, 1, 2}}}}},
		{"an image without its type", `{"content":[{"type":"image","data":"` + png + `"}]}`, loose,
			tool.Result{Parts: []msg.Part{{Kind: msg.Image, MIMEType: "image/png", Data: data}}}},
		{"a broken image", `{"content":[{"type":"image","data":"?","mimeType":"image/png"}]}`, loose,
			tool.Result{Parts: []msg.Part{msg.TextPart("[image image/png that cannot be decoded: illegal base64 data at input byte 0]")}}},
		{"resources", `{"content":[{"type":"resource","resource":{"uri":"f:1","mimeType":"text/plain","text":"x"}},{"type":"resource","resource":{"uri":"f:2","mimeType":"application/pdf","blob":"AAEC"}},{"type":"resource_link","uri":"f:3","name":"n","description":"d","mimeType":"a/b"}]}`, loose,
			tool.Result{Parts: []msg.Part{{Kind: msg.Text, URI: "f:1", MIMEType: "text/plain", Text: "x"}, {Kind: msg.File, URI: "f:2", MIMEType: "application/pdf", Data: []byte{0, 1, 2}},
				{Kind: msg.Link, URI: "f:3", Name: "n", Text: "d", MIMEType: "a/b"}}}},
		{"a kind that nobody knows", `{"content":[{"type":"hologram","x":1}]}`, loose,
			tool.Result{Parts: []msg.Part{msg.TextPart(`{"type":"hologram","x":1}`)}}},
		{"digits", `{"content":[],"structuredContent":{"id":9007199254740993}}`, x,
			tool.Result{Data: json.RawMessage(`{"id":9007199254740993}`), Parts: []msg.Part{msg.TextPart(`{"id":9007199254740993}`)}}},
		{"an image twice", `{"content":[{"type":"image","data":"` + png + `","mimeType":"image/png"}],"structuredContent":{"id":"` + png + `"}}`, x,
			tool.Result{Data: json.RawMessage(`{"id":"` + png + `"}`), Parts: []msg.Part{{Kind: msg.Image, MIMEType: "image/png", Data: data}}}},
		{"a list", `{"structuredContent":[1,2]}`, loose,
			tool.Result{Data: json.RawMessage(`[1,2]`), Parts: []msg.Part{msg.TextPart(`[1,2]`)}}},
		{"a broken promise", `{"content":[],"structuredContent":{"no":1}}`, x,
			tool.Result{Data: json.RawMessage(`{"no":1}`), Parts: []msg.Part{msg.TextPart(`{"no":1}`)}, Remarks: []string{`the result breaks the tool's own output schema: the property "id" is required`}}},
		{"a promise forgotten", `{"content":[{"type":"text","text":"x"}]}`, x,
			tool.Result{Parts: []msg.Part{msg.TextPart("x")}, Remarks: []string{"the tool declares an output schema but sent no structuredContent"}}},
		{"names twice", `{"content":[{"type":"text","text":"x"}],"structuredContent":{"a":1,"a":2}}`, loose,
			tool.Result{Parts: []msg.Part{msg.TextPart("x"), msg.TextPart(`{"a":1,"a":2}`)}}},
		{"an error", `{"content":[{"type":"text","text":"no"}],"isError":true}`, x,
			tool.Result{Status: tool.Failed, Code: tool.CodeFailed, Parts: []msg.Part{msg.TextPart("no")}}},
		{"a silent error", `{"isError":true}`, x, tool.Fail(tool.CodeFailed, "tool t of MCP server s failed and does not say why")},
		{"nothing", `{}`, loose, tool.Result{}},
		{"nonsense", `[1]`, loose, tool.Fail(tool.CodeFailed, "MCP server s answered tool t with what is no result: [1]")},
	} {
		got := test.of.result(json.RawMessage(test.raw))
		if test.want.Status == "" {
			test.want.Status = tool.Success
		}
		if test.name == "names twice" || test.name == "a broken promise" {
			if len(got.Remarks) != 1 {
				t.Errorf("%s: notes %q", test.name, got.Remarks)
			}
			got.Remarks, test.want.Remarks = nil, nil
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

func FuzzResult(f *testing.F) {
	f.Add([]byte(`{"content":[{"type":"text","text":"x"},{"type":"image","data":"AAAA"},{"type":"resource","resource":{}}],"structuredContent":{}}`))
	s := newServer(New(Options{Registry: &tool.Registry{}}), Config{Name: "s"})
	x, _, err := newRemote(s, definition{Name: "t", OutputSchema: json.RawMessage(`{"type":"object"}`)})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		r := x.result(raw)
		if r.Data != nil && !json.Valid(r.Data) {
			t.Errorf("data %q", r.Data)
		}
		define(raw)
	})
}

// Every tool of the real servers is taken.
func TestRealServers(t *testing.T) {
	files, _ := filepath.Glob("../../../shared/data/mcp/*.json")
	if len(files) == 0 {
		t.Skip("../shared/data/mcp is not there")
	}
	tools, names := 0, map[string]bool{}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var in struct {
			Server string            `json:"server"`
			Tools  []json.RawMessage `json:"tools"`
		}
		if json.Unmarshal(b, &in) != nil {
			continue // the index
		}
		s := newServer(New(Options{Registry: &tool.Registry{}}), Config{Name: in.Server})
		for _, raw := range in.Tools {
			d, err := define(raw)
			if err != nil {
				t.Errorf("%s: %v", in.Server, err)
				continue
			}
			x, warnings, err := newRemote(s, d)
			if err != nil || len(warnings) > 0 {
				t.Errorf("%s/%s: %v %v", in.Server, d.Name, err, warnings)
				continue
			}
			if names[x.spec.Name] {
				t.Errorf("%s twice", x.spec.Name)
			}
			names[x.spec.Name] = true
			tools++
		}
	}
	if tools < 2442 {
		t.Errorf("%d tools", tools)
	}
}

// What the patterns of all tools of one server take together is bounded: the tools
// beyond it are left out and named, and those that need none are there.
func TestPatternsOfManyTools(t *testing.T) {
	costly := func(tool, member int) string {
		var list []string
		for i := range 4 {
			list = append(list, fmt.Sprintf(`"p%d":{"pattern":"((a{1,9}){1,9}){1,8}%d.%d.%d"}`, i, tool, member, i))
		}
		return `{"type":"object","properties":{` + strings.Join(list, ",") + `}}`
	}
	one, err := schema.Compile(json.RawMessage(costly(10, 0)))
	if err != nil {
		t.Fatal(err)
	}
	room := maxPatterns / (2 * one.PatternBytes())
	var list, want, warned []string
	for i := range room + 2 {
		name := fmt.Sprintf("t%d", 10+i)
		list = append(list, fmt.Sprintf(`{"name":%q,"inputSchema":%s,"outputSchema":%s}`, name, costly(10+i, 0), costly(10+i, 1)))
		if i < room {
			want = append(want, "mcp__web__"+name)
		} else {
			warned = append(warned, fmt.Sprintf("the tool %q is left out: with it, the patterns in the schemas of this server's tools take more than 8388608 bytes when compiled", name))
		}
	}
	list, want = append(list, `{"name":"z","inputSchema":{"type":"object"}}`), append(want, "mcp__web__z")
	r := newRig(t, Options{}, httpServer("web", serve(t, rawHTTP(map[string]func(http.ResponseWriter, *http.Request, json.RawMessage){
		"tools/list": func(w http.ResponseWriter, _ *http.Request, id json.RawMessage) {
			answerJSON(w, id, `{"tools":[`+strings.Join(list, ",")+`]}`)
		},
	}))))
	r.ready()
	if diff := cmp.Diff(want, r.names()); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(warned, r.Status()[0].Warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}
