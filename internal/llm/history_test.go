package llm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capstan/internal/llm/llmtest"
	"capstan/internal/msg"
)

// A history in a few letters, for tables: u text, a text, c id, r id text.
func user(s string) msg.Message {
	return msg.Message{Role: msg.User, Parts: []msg.Part{msg.TextPart(s)}}
}

func assistant(parts ...msg.Part) msg.Message {
	return msg.Message{Role: msg.Assistant, Origin: "f/m", Parts: parts}
}

func call(id, args string) msg.Part {
	return msg.Part{Kind: msg.CallPart, Call: &msg.Call{ID: id, Name: "tool", Args: args}}
}

func results(list ...msg.Result) msg.Message { return msg.Message{Role: msg.Tool, Results: list} }

func result(id, text string) msg.Result {
	return msg.Result{CallID: id, Status: "success", Parts: []msg.Part{msg.TextPart(text)}}
}

// sketch writes messages in one line each.
func sketch(ms []msg.Message) string {
	var b strings.Builder
	for _, m := range ms {
		fmt.Fprintf(&b, "%s:", m.Role)
		for _, p := range m.Parts {
			switch p.Kind {
			case msg.CallPart:
				fmt.Fprintf(&b, " call(%s %s %s)", p.Call.ID, p.Call.Name, p.Call.Args)
			case msg.Text:
				fmt.Fprintf(&b, " %q", p.Text)
			default:
				fmt.Fprintf(&b, " %s(%q)", p.Kind, p.Text)
			}
			if p.State != nil {
				fmt.Fprintf(&b, "%s", p.State)
			}
		}
		for _, r := range m.Results {
			fmt.Fprintf(&b, " result(%s %s %q)", r.CallID, r.Status, msg.JoinText(r.Parts))
		}
		b.WriteString("\n")
	}
	return b.String()
}

func TestValid(t *testing.T) {
	state := json.RawMessage(`{"s":1}`)
	tests := []struct {
		name    string
		demands Demands
		in      []msg.Message
		want    string
	}{
		{"as it should be", Demands{}, []msg.Message{user("hi"), assistant(msg.TextPart("ok"), call("a", `{"x": 1}`)), results(result("a", "A"))},
			`user: "hi"
assistant: "ok" call(a tool {"x": 1})
tool: result(a success "A")
`},
		{"interrupted, then the user goes on (BUG-CP-01)", Demands{}, []msg.Message{user("hi"), assistant(call("A", "{}")), user("go on")},
			`user: "hi"
assistant: call(A tool {})
tool: result(A cancelled "` + unrecorded + `")
user: "go on"
`},
		{"a call without result long ago (BUG-CP-03)", Demands{}, []msg.Message{user("hi"), assistant(call("A", "{}")), assistant(msg.TextPart("you interrupted me"))},
			`user: "hi"
assistant: call(A tool {})
tool: result(A cancelled "` + unrecorded + `")
assistant: "you interrupted me"
user: "Go on."
`},
		{"results without call (BUG-CP-08)", Demands{}, []msg.Message{user("hi"), results(result("call_9", "X"))},
			"user: \"hi\"\n"},
		{"results late, out of order, twice", Demands{}, []msg.Message{user("hi"), assistant(call("a", "{}"), call("b", "{}")), user("wait"), results(result("b", "B")), results(result("a", "A")), results(result("a", "A2"))},
			`user: "hi"
assistant: call(a tool {}) call(b tool {})
tool: result(a success "A") result(b success "B")
user: "wait"
`},
		{"an id in each turn (BUG-CP-13, BUG-CP-15)", Demands{}, []msg.Message{user("hi"), assistant(call("dup_1", "{}")), results(result("dup_1", "r1")), assistant(call("dup_1", "{}")), results(result("dup_1", "r2"))},
			`user: "hi"
assistant: call(dup_1 tool {})
tool: result(dup_1 success "r1")
assistant: call(dup_1_2 tool {})
tool: result(dup_1_2 success "r2")
`},
		{"an id again after a call without result (BUG-CP-15)", Demands{}, []msg.Message{user("hi"), assistant(call("call_0", "{}")), user("go on"), assistant(call("call_0", "{}")), results(result("call_0", "r2"))},
			`user: "hi"
assistant: call(call_0 tool {})
tool: result(call_0 cancelled "` + unrecorded + `")
user: "go on"
assistant: call(call_0_2 tool {})
tool: result(call_0_2 success "r2")
`},
		{"an id twice in a turn (BUG-CP-16)", Demands{}, []msg.Message{user("hi"), assistant(call("search:0", "{}"), call("search:0", "{}")), results(result("search:0", "r1"), result("search:0", "r2"))},
			`user: "hi"
assistant: call(search:0 tool {}) call(search:0_2 tool {})
tool: result(search:0 success "r1") result(search:0_2 success "r2")
`},
		{"arguments that are none (BUG-AR-06)", Demands{}, []msg.Message{user("hi"), assistant(call("a", `{"path": "a`), call("b", ""), call("c", `[1]`), call("d", `{"a":1,"a":2}`)), results()},
			`user: "hi"
assistant: call(a tool {"_raw":"{\"path\": \"a"}) call(b tool {}) call(c tool {"_raw":"[1]"}) call(d tool {"_raw":"{\"a\":1,\"a\":2}"})
tool: ` + fmt.Sprintf("result(a cancelled %[1]q) result(b cancelled %[1]q) result(c cancelled %[1]q) result(d cancelled %[1]q)\n", unrecorded)},
		{"reasoning of its own and of others", Demands{Origin: "f/m"}, []msg.Message{user("hi"),
			assistant(msg.Part{Kind: msg.Reasoning, Text: "mine", State: state}, msg.Part{Kind: msg.Text, Text: "x", State: state}), user("and"),
			{Role: msg.Assistant, Origin: "g/m", Parts: []msg.Part{{Kind: msg.Reasoning, Text: "theirs", State: state}, {Kind: msg.Text, Text: "y", State: state}}}, user("so")},
			`user: "hi"
assistant: reasoning("mine"){"s":1} "x"{"s":1}
user: "and"
assistant: "y"
user: "so"
`},
		{"interrupted while it thought", Demands{Origin: "f/m"}, []msg.Message{user("hi"), assistant(msg.TextPart("x"), msg.Part{Kind: msg.Reasoning, Text: "hm"}), user("and"), assistant(msg.Part{Kind: msg.Reasoning, Text: "hm"}), user("so")},
			`user: "hi"
assistant: "x"
user: "and" "so"
`},
		{"a call that is none, and a thought of nothing", Demands{Origin: "f/m"}, []msg.Message{user("hi"), assistant(msg.Part{Kind: msg.CallPart}, msg.Part{Kind: msg.Reasoning}, call("a", "{}")), results(result("a", "A"))},
			`user: "hi"
assistant: call(a tool {})
tool: result(a success "A")
`},
		{"nothing empty", Demands{}, []msg.Message{user(" \n"), user("hi"), assistant(), assistant(msg.TextPart("")), assistant(msg.TextPart(""), call("a", "{}")), results(msg.Result{CallID: "a", Status: "success"})},
			`user: "hi"
assistant: call(a tool {})
tool: result(a success "(no output)")
`},
		{"begins with the assistant, ends with it", Demands{}, []msg.Message{assistant(msg.TextPart("a")), assistant(msg.TextPart("b"))},
			`user: "` + earlier + `"
assistant: "a" "b"
user: "Go on."
`},
		{"nothing but empty messages", Demands{}, []msg.Message{user("")}, "user: \"Go on.\"\n"},
		{"ids of an API that takes few", Demands{IDs: Rule{Max: 9, Full: true}}, []msg.Message{user("hi"), assistant(call("abcdefgh1", "{}"), call("call_1", "{}")), results(result("call_1", "B"))},
			`user: "hi"
assistant: call(abcdefgh1 tool {}) call(0af10374b tool {})
tool: result(abcdefgh1 cancelled "` + unrecorded + `") result(0af10374b success "B")
`},
		{"no tools any more, and a part that was there for its state", Demands{NoTools: true, Origin: "f/m"}, []msg.Message{user("hi"), assistant(msg.Part{Kind: msg.Text, State: json.RawMessage(`1`)}, msg.TextPart("ok")), user("go")},
			"user: \"hi\"\nassistant: \"ok\"\nuser: \"go\"\n"},
		{"no tools any more (BUG-CP-18)", Demands{NoTools: true}, []msg.Message{user("hi"), assistant(msg.TextPart("ok"), call("a", `{"x":1}`)), results(result("a", "A")), user("sum up")},
			`user: "hi"
assistant: "ok" "[Called tool with {\"x\":1}]"
user: "[Result of tool: success]" "A" "sum up"
`},
		{"no tools any more, an answer that was state only", Demands{NoTools: true, Origin: "f/m"}, []msg.Message{user("hi"), assistant(msg.Part{Kind: msg.Text, State: state}), user("sum up")},
			"user: \"hi\" \"sum up\"\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, sketch(Valid(tt.in, tt.demands))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if got := Valid(nil, Demands{}); got != nil {
		t.Errorf("of nothing comes %s", sketch(got))
	}
}

// Random transcripts keep every rule, lose no word of a person and no result
// that answers a call, and begin as their beginnings do once calls are answered.
func TestValidRandom(t *testing.T) {
	for i := range 3000 {
		r := rand.New(rand.NewPCG(2, uint64(i)))
		in := llmtest.Transcript(r)
		d := Demands{Origin: "openai/m", NoTools: r.IntN(5) == 0}
		switch r.IntN(3) {
		case 0:
			d.IDs = Rule{Max: 9, Full: true}
		case 1:
			d.IDs = Rule{Max: 64, Chars: "_-"}
		}
		out := Valid(in, d)
		if why := broken(out, d); why != "" {
			t.Fatalf("seed %d: %s\nin:\n%sout:\n%s", i, why, sketch(in), sketch(out))
		}
		var all bytes.Buffer
		for _, m := range out {
			all.WriteString(sketch([]msg.Message{m}))
		}
		for _, m := range in {
			for _, p := range m.Parts {
				if p.Kind == msg.Text && m.Role == msg.User && strings.TrimSpace(p.Text) != "" && !strings.Contains(all.String(), fmt.Sprintf("%q", p.Text)) {
					t.Fatalf("seed %d: %q is lost", i, p.Text)
				}
			}
		}
	}
}

// broken says which rule messages break.
func broken(ms []msg.Message, d Demands) string {
	ids := map[string]bool{}
	for i, m := range ms {
		if i > 0 && ms[i-1].Role == m.Role {
			return fmt.Sprintf("messages %d and %d are of one role", i-1, i)
		}
		if len(m.Parts) == 0 && len(m.Results) == 0 {
			return fmt.Sprintf("message %d is empty", i)
		}
		for _, p := range m.Parts {
			if p.Kind == msg.Text && strings.TrimSpace(p.Text) == "" && p.State == nil {
				return fmt.Sprintf("message %d has an empty text", i)
			}
			if p.State != nil && m.Origin != d.Origin {
				return fmt.Sprintf("message %d carries another's state", i)
			}
		}
		calls := m.Calls()
		if d.NoTools && len(calls)+len(m.Results) > 0 {
			return fmt.Sprintf("message %d has calls or results", i)
		}
		var want, got []string
		for _, c := range calls {
			var object map[string]any
			if ids[c.ID] || d.IDs != (Rule{}) && !d.IDs.ok(c.ID) || json.Unmarshal([]byte(c.Args), &object) != nil {
				return fmt.Sprintf("message %d has a bad call %+v", i, *c)
			}
			ids[c.ID] = true
			want = append(want, c.ID)
		}
		if len(calls) > 0 {
			if i+1 >= len(ms) {
				return "calls at the end"
			}
			for _, r := range ms[i+1].Results {
				got = append(got, r.CallID)
				if len(r.Parts) == 0 {
					return "an empty result"
				}
			}
			if !slices.Equal(want, got) {
				return fmt.Sprintf("calls %v have results %v", want, got)
			}
		}
		if m.Role == msg.Tool && (i == 0 || len(ms[i-1].Calls()) == 0) {
			return fmt.Sprintf("message %d answers nothing", i)
		}
		if m.Role == msg.Assistant && m.Parts[len(m.Parts)-1].Kind == msg.Reasoning {
			return fmt.Sprintf("message %d ends with reasoning", i)
		}
	}
	if ms[0].Role != msg.User || ms[len(ms)-1].Role == msg.Assistant {
		return "it begins or ends wrong"
	}
	return ""
}

// A turn more does not change what stands before it, so that a provider's cache
// holds.
func TestValidKeepsPrefix(t *testing.T) {
	var history []msg.Message
	before := ""
	for i := range 20 {
		history = append(history, user(fmt.Sprint("do ", i)), assistant(call("call_0", "{}"), call("", "x")), results(result("call_0", "A"), result("", "B")), assistant(msg.TextPart("done")))
		now := sketch(Valid(append(slices.Clip(history), user("next")), Demands{IDs: Rule{Max: 40, Chars: "_-"}}))
		if !strings.HasPrefix(now, strings.TrimSuffix(before, "user: \"next\"\n")) {
			t.Fatalf("turn %d changed what was before:\n%s\nnow:\n%s", i, before, now)
		}
		before = now
	}
}

// prompts are messages of one role in a row, as a session has them whose
// provider never answered.
func prompts(n int) []msg.Message {
	var out []msg.Message
	for i := range n {
		out = append(out, user(fmt.Sprint("prompt ", i)))
	}
	return out
}

// What follows each other in one role is put together at a cost that grows with
// its length, not with the square of it. By that 10,000 would take 8 GB.
func TestValidManyOfOneRole(t *testing.T) {
	const n = 10_000
	history := prompts(n)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got := Valid(history, Demands{})
	runtime.ReadMemStats(&after)
	if len(got) != 1 || len(got[0].Parts) != n || got[0].Parts[n-1].Text != fmt.Sprint("prompt ", n-1) {
		t.Fatalf("%d messages", len(got))
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 100<<20 {
		t.Errorf("took %d MiB", took>>20)
	}
}

func BenchmarkValidManyOfOneRole(b *testing.B) {
	history := prompts(10_000)
	b.ReportAllocs()
	for b.Loop() {
		Valid(history, Demands{})
	}
}

func BenchmarkValid(b *testing.B) {
	var history []msg.Message
	for i := range 500 {
		id := fmt.Sprint("call_", i)
		history = append(history, user("do something about it"), assistant(msg.TextPart("I will."), call(id, `{"path":"internal/llm/history.go","limit":200}`)), results(result(id, strings.Repeat("line of code\n", 80))), assistant(msg.TextPart("Done.")))
	}
	for b.Loop() {
		Valid(history, Demands{Origin: "f/m"})
	}
}
