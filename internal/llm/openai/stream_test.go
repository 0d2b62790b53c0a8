package openai

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"capstan/internal/llm"
	"capstan/internal/llm/familytest"
	"capstan/internal/msg"
)

// events is a stream of these data lines.
func events(data ...string) string {
	return "data: " + strings.Join(data, "\n\ndata: ") + "\n\n"
}

// deltas is a stream of these deltas, with an end.
func deltas(finish string, list ...string) string {
	var all []string
	for _, d := range list {
		all = append(all, `{"choices":[{"index":0,"delta":`+d+`}]}`)
	}
	all = append(all, `{"choices":[{"index":0,"delta":{},"finish_reason":"`+finish+`"}]}`, "[DONE]")
	return events(all...)
}

func calls(list ...string) string { return `{"tool_calls":[` + strings.Join(list, ",") + `]}` }

func hear(t *testing.T, profile, stream string, tools []msg.Declaration, history []msg.Message) *llm.Turn {
	t.Helper()
	r := &llm.Request{Model: "m", Messages: append(said("hi"), history...), Tools: tools}
	turn, err := ask(t.Context(), answering(profile, answers{Body: strings.NewReader(stream)}), r)
	if err != nil {
		t.Fatal(err)
	}
	return turn
}

// What servers send, and the calls that it means.
func TestCalls(t *testing.T) {
	old := []msg.Message{{Role: msg.Assistant, Parts: []msg.Part{{Kind: msg.CallPart, Call: &msg.Call{ID: "dup_1", Name: "shell", Args: "{}"}}}}}
	tests := []struct {
		name    string
		stream  string
		history []msg.Message
		want    []msg.Call
	}{
		{"index but no id (BUG-SD-01)",
			deltas("tool_calls", calls(`{"index":0,"function":{"name":"read_file","arguments":"{\"path\":\"a.ts\"}"}}`)), old,
			[]msg.Call{{ID: "call_2", Name: "read_file", Args: `{"path":"a.ts"}`}}},
		{"parallel calls without index (BUG-SD-03)",
			deltas("tool_calls", calls(`{"id":"a","function":{"name":"read_file","arguments":"{\"p\":1}"}}`, `{"id":"b","function":{"name":"shell","arguments":"{\"p\":2}"}}`)), nil,
			[]msg.Call{{ID: "a", Name: "read_file", Args: `{"p":1}`}, {ID: "b", Name: "shell", Args: `{"p":2}`}}},
		{"the same, one after the other, pieces without anything",
			deltas("tool_calls", calls(`{"id":"a","function":{"name":"read_file","arguments":"{\"p\""}}`), calls(`{"function":{"arguments":":1}"}}`), calls(`{"id":"b","function":{"name":"shell","arguments":"{\"p\""}}`), calls(`{"function":{"arguments":":2}"}}`)), nil,
			[]msg.Call{{ID: "a", Name: "read_file", Args: `{"p":1}`}, {ID: "b", Name: "shell", Args: `{"p":2}`}}},
		{"pieces told apart by their place only",
			deltas("tool_calls", calls(`{"function":{"name":"read_file","arguments":"{\"p\""}}`, `{"function":{"name":"shell","arguments":"{\"q\""}}`), calls(`{"id":"","function":{"arguments":":1}"}}`, `{"function":{"arguments":":2}"}}`)), nil,
			[]msg.Call{{ID: "call_1", Name: "read_file", Args: `{"p":1}`}, {ID: "call_2", Name: "shell", Args: `{"q":2}`}}},
		{"neither id nor index",
			deltas("stop", calls(`{"function":{"name":"shell","arguments":{"cmd":"a"}}}`, `{"function":{"name":"shell","arguments":{"cmd":"b"}}}`)), nil,
			[]msg.Call{{ID: "call_1", Name: "shell", Args: `{"cmd":"a"}`}, {ID: "call_2", Name: "shell", Args: `{"cmd":"b"}`}}},
		{"id only in the first piece (BUG-SD-05)",
			deltas("tool_calls", calls(`{"index":0,"id":"c1","function":{"name":"shell","arguments":""}}`), calls(`{"index":0,"function":{"arguments":"{\"cmd\":"}}`), calls(`{"index":0,"function":{"arguments":"\"ls\"}"}}`)), nil,
			[]msg.Call{{ID: "c1", Name: "shell", Args: `{"cmd":"ls"}`}}},
		{"arguments before the name (BUG-SD-06)",
			deltas("tool_calls", calls(`{"id":"c1","function":{"arguments":"{\"a\""}}`), calls(`{"id":"c1","function":{"name":"shell","arguments":":1}"}}`)), nil,
			[]msg.Call{{ID: "c1", Name: "shell", Args: `{"a":1}`}}},
		{"a phantom, and a brace too many (BUG-SD-10)",
			deltas("tool_calls", calls(`{"index":0,"name":"","function":{"name":"","arguments":"{}"}}`, `{"index":1,"function":{"name":"read_file","arguments":"{\"path\":\"a\"}}"}}`)), nil,
			[]msg.Call{{ID: "call_1", Name: "read_file", Args: `{"path":"a"}}`}}},
		{"interleaved",
			deltas("tool_calls", calls(`{"index":0,"id":"a","function":{"name":"shell","arguments":"{\"cmd\""}}`), calls(`{"index":1,"id":"b","function":{"name":"shell","arguments":"{\"cmd\""}}`), calls(`{"index":0,"function":{"arguments":":\"1\"}"}}`, `{"index":1,"function":{"arguments":":\"2\"}"}}`)), nil,
			[]msg.Call{{ID: "a", Name: "shell", Args: `{"cmd":"1"}`}, {ID: "b", Name: "shell", Args: `{"cmd":"2"}`}}},
		{"the same index for all",
			deltas("tool_calls", calls(`{"index":0,"id":"a","function":{"name":"shell","arguments":"{\"cmd\":\"1\"}"}}`), calls(`{"index":0,"id":"b","function":{"name":"shell","arguments":"{\"cmd\":\"2\"}"}}`)), nil,
			[]msg.Call{{ID: "a", Name: "shell", Args: `{"cmd":"1"}`}, {ID: "b", Name: "shell", Args: `{"cmd":"2"}`}}},
		{"the same index for all, without ids, the first without arguments (BUG-AR-11)",
			deltas("tool_calls", calls(`{"index":0,"function":{"name":"todo_list"}}`), calls(`{"index":0,"function":{"name":"shell","arguments":"{\"cmd\":\"2\"}"}}`)), nil,
			[]msg.Call{{ID: "call_1", Name: "todo_list", Args: "{}"}, {ID: "call_2", Name: "shell", Args: `{"cmd":"2"}`}}},
		{"name without arguments in the second call (BUG-AR-11)",
			deltas("tool_calls", calls(`{"index":0,"id":"a","function":{"name":"todo_list","arguments":"{}"}}`), calls(`{"index":1,"id":"b","function":{"name":"shell"}}`)), nil,
			[]msg.Call{{ID: "a", Name: "todo_list", Args: "{}"}, {ID: "b", Name: "shell", Args: ""}}},
		{"id and name again with each piece",
			deltas("tool_calls", calls(`{"index":0,"id":"a","function":{"name":"shell","arguments":"{\"cmd\""}}`), calls(`{"index":0,"id":"a","function":{"name":"shell","arguments":":\"x\"}"}}`), calls(`{"index":0,"id":"a","function":{"name":"shell","arguments":""}}`)), nil,
			[]msg.Call{{ID: "a", Name: "shell", Args: `{"cmd":"x"}`}}},
		{"another id with each piece",
			deltas("tool_calls", calls(`{"index":0,"id":"a","function":{"name":"shell","arguments":"{\"cmd\""}}`), calls(`{"index":0,"id":"b","function":{"arguments":":\"x\"}"}}`)), nil,
			[]msg.Call{{ID: "a", Name: "shell", Args: `{"cmd":"x"}`}}},
		{"a name in pieces",
			deltas("tool_calls", calls(`{"index":0,"id":"a","function":{"name":"read_"}}`), calls(`{"index":0,"function":{"name":"file","arguments":"{}"}}`)), nil,
			[]msg.Call{{ID: "a", Name: "read_file", Args: "{}"}}},
		{"a name that grows",
			deltas("tool_calls", calls(`{"index":0,"id":"a","function":{"name":"read"}}`), calls(`{"index":0,"function":{"name":"read_file","arguments":"{}"}}`)), nil,
			[]msg.Call{{ID: "a", Name: "read_file", Args: "{}"}}},
		{"ids used twice and before (BUG-CP-13)",
			deltas("tool_calls", calls(`{"index":0,"id":"dup_1","function":{"name":"shell","arguments":"{\"cmd\":\"1\"}"}}`, `{"index":1,"id":"dup_1","function":{"name":"shell","arguments":"{\"cmd\":\"2\"}"}}`)), old,
			[]msg.Call{{ID: "dup_1_2", Name: "shell", Args: `{"cmd":"1"}`}, {ID: "dup_1_3", Name: "shell", Args: `{"cmd":"2"}`}}},
		{"numeric ids and indexes as text",
			deltas("tool_calls", calls(`{"index":"0","id":7,"function":{"name":"shell","arguments":"{}"}}`)), nil,
			[]msg.Call{{ID: "7", Name: "shell", Args: "{}"}}},
		{"arguments as an object (BUG-AR-05)",
			deltas("tool_calls", calls(`{"index":0,"id":"a","function":{"name":"multiply","arguments":{"x":1337,"y":42.0}}}`)), nil,
			[]msg.Call{{ID: "a", Name: "multiply", Args: `{"x":1337,"y":42.0}`}}},
		{"pieces as bare numbers (BUG-AR-05)",
			deltas("tool_calls", calls(`{"index":0,"id":"a","function":{"name":"multiply","arguments":"{\"x\":"}}`), calls(`{"index":0,"function":{"arguments":13}}`), calls(`{"index":0,"function":{"arguments":37}}`), calls(`{"index":0,"function":{"arguments":"}"}}`)), nil,
			[]msg.Call{{ID: "a", Name: "multiply", Args: `{"x":1337}`}}},
		{"one call instead of a list",
			deltas("tool_calls", `{"tool_calls":{"id":"a","function":{"name":"shell","arguments":"{}"}}}`), nil,
			[]msg.Call{{ID: "a", Name: "shell", Args: "{}"}}},
		{"arguments null, of a tool without any",
			deltas("tool_calls", calls(`{"index":0,"id":"a","function":{"name":"todo_list","arguments":null}}`)), nil,
			[]msg.Call{{ID: "a", Name: "todo_list", Args: "{}"}}},
		{"no arguments of a tool that could take some: not guessed (BUG-AR-03)",
			deltas("tool_calls", calls(`{"index":0,"id":"a","function":{"name":"delete_records","arguments":""}}`)), nil,
			[]msg.Call{{ID: "a", Name: "delete_records", Args: ""}}},
		{"cut off, finish says nothing: kept as it is (BUG-AR-03)",
			deltas("tool_calls", calls(`{"index":0,"id":"a","function":{"name":"delete_records","arguments":"{\"where\":{\"id\":7"}}`)), nil,
			[]msg.Call{{ID: "a", Name: "delete_records", Args: `{"where":{"id":7`}}},
		{"cut off by the limit (BUG-AR-03)",
			deltas("length", calls(`{"index":0,"id":"a","function":{"name":"shell","arguments":"{\"cmd\":\"ls\"}"}}`), calls(`{"index":1,"id":"b","function":{"name":"delete_records","arguments":""}}`)), nil,
			[]msg.Call{{ID: "a", Name: "shell", Args: `{"cmd":"ls"}`}, {ID: "b", Name: "delete_records",
				Fault: "The call was cut off by the limit of output tokens after 0 bytes of its arguments; nothing was run. Make it again with less: write a long text in several calls, or explain less before the call."}}},
		{"a call without a name is not dropped (BUG-AR-18)",
			deltas("tool_calls", calls(`{"index":0,"id":"a","function":{"arguments":"{\"x\":1}"}}`)), nil,
			[]msg.Call{{ID: "a", Args: `{"x":1}`, Fault: "The call names no tool; nothing was run. Make it again with the name of a tool."}}},
		{"a name that no tool has (BUG-AR-18)",
			deltas("tool_calls", calls(`{"index":0,"id":"a","function":{"name":"todo/todoWrite","arguments":"{\"a\":"}}`)), nil,
			[]msg.Call{{ID: "a", Name: "todo/todoWrite", Args: `{"a":`}}},
		{"duplicate names are kept for the parser to refuse",
			deltas("tool_calls", calls(`{"index":0,"id":"a","function":{"name":"shell","arguments":"{\"cmd\":1,\"cmd\":2}"}}`)), nil,
			[]msg.Call{{ID: "a", Name: "shell", Args: `{"cmd":1,"cmd":2}`}}},
		{"a whole answer instead of a stream",
			events(`{"choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"shell","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`, "[DONE]"), nil,
			[]msg.Call{{ID: "a", Name: "shell", Args: "{}"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			turn := hear(t, "openai", tt.stream, tools4, tt.history)
			if diff := cmp.Diff(tt.want, madeCalls(turn)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if want := llm.FinishCalls; turn.Finish != want && turn.Finish != llm.FinishLength {
				t.Errorf("finish %s", turn.Finish)
			}
		})
	}
}

// Arguments and text may be cut anywhere: inside a character, as raw bytes or
// as halves of a pair, and inside an escape of the arguments' own JSON.
func TestCutAnywhere(t *testing.T) {
	const args = `{"text":"a\"\\\n\u00e9 é 漢 🙂 \ud83d\ude42"}`
	want := []msg.Call{{ID: "a", Name: "shell", Args: args}}
	for i := 0; i <= len(args); i++ {
		stream := deltas("tool_calls",
			calls(`{"index":0,"id":"a","function":{"name":"shell","arguments":`+rawQuote(args[:i])+`}}`),
			calls(`{"index":0,"function":{"arguments":`+rawQuote(args[i:])+`}}`),
			`{"content":`+rawQuote(args[:i])+`}`, `{"content":`+rawQuote(args[i:])+`}`)
		turn := hear(t, "openai", stream, tools4, nil)
		m := turn.Message()
		if diff := cmp.Diff(want, madeCalls(turn)); diff != "" || m.Text() != args {
			t.Fatalf("cut at %d: text %q (-want +got):\n%s", i, m.Text(), diff)
		}
	}
	turn := hear(t, "openai", deltas("stop", `{"content":"x \ud83d"}`, `{"content":"\ude42 y\ud83d"}`, `{"content":"z"}`, `{"content":"\ud83d"}`), nil, nil)
	if m := turn.Message(); m.Text() != "x 🙂 y\uFFFDz\uFFFD" {
		t.Errorf("halves of a pair: %q", m.Text())
	}
}

// rawQuote is s as a JSON string whose bytes are not touched.
func rawQuote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// Reasoning comes in three fields and is told apart from the text; what the
// server wants back is kept with it.
func TestReasoning(t *testing.T) {
	text := msg.TextPart("T")
	tests := []struct {
		name, profile, stream string
		want                  []msg.Part
	}{
		{"reasoning_content", "deepseek", deltas("stop", `{"reasoning_content":"R1 ","content":null}`, `{"reasoning_content":"R2","content":""}`, `{"content":"T"}`),
			[]msg.Part{{Kind: msg.Reasoning, Text: "R1 R2"}, text}},
		{"both fields, the same", "compatible", deltas("stop", `{"reasoning_content":"R","reasoning":"R"}`, `{"content":"T"}`),
			[]msg.Part{{Kind: msg.Reasoning, Text: "R"}, text}},
		{"blocks", "mistral", deltas("stop", `{"content":[{"type":"thinking","thinking":[{"type":"text","text":"R"}]}]}`, `{"content":[{"type":"text","text":"T"}]}`),
			[]msg.Part{{Kind: msg.Reasoning, Text: "R"}, text}},
		{"details", "openrouter", deltas("stop",
			`{"reasoning":"R1 ","reasoning_details":[{"type":"reasoning.text","index":0,"text":"R1 ","signature":null}]}`,
			`{"reasoning":"R2","reasoning_details":[{"type":"reasoning.text","index":0,"text":"R2"}]}`,
			`{"reasoning_details":[{"type":"reasoning.text","index":0,"text":"","signature":"S"}]}`,
			`{"reasoning_details":[{"type":"reasoning.encrypted","index":1,"data":"E"}]}`, `{"content":""}`),
			[]msg.Part{{Kind: msg.Reasoning, Text: "R1 R2", State: json.RawMessage(`[{"index":0,"signature":"S","text":"R1 R2","type":"reasoning.text"},{"data":"E","index":1,"type":"reasoning.encrypted"}]`)}}},
		{"tags in the text", "compatible", deltas("stop", `{"content":" <thi"}`, `{"content":"nk>R <x"}`, `{"content":"></th"}`, `{"content":"ink>\n\nT"}`),
			[]msg.Part{{Kind: msg.Reasoning, Text: "R <x>"}, text}},
		{"tags that do not end", "compatible", deltas("length", `{"content":"<think>R </thi"}`),
			[]msg.Part{{Kind: msg.Reasoning, Text: "R </thi"}}},
		{"tags from others are text", "openai", deltas("stop", `{"content":"<think>R</think>T"}`),
			[]msg.Part{msg.TextPart("<think>R</think>T")}},
		{"a refusal is text", "openai", deltas("stop", `{"refusal":"No."}`), []msg.Part{msg.TextPart("No.")}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			turn := hear(t, tt.profile, tt.stream, nil, nil)
			if diff := cmp.Diff(tt.want, turn.Message().Parts); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestUsage(t *testing.T) {
	tests := map[string]struct {
		chunk string
		want  msg.Usage
	}{
		"openai":               {`"usage":{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":8},"completion_tokens_details":{"reasoning_tokens":2}}`, msg.Usage{Input: 10, Output: 5, Cached: 8, Reasoning: 2}},
		"openrouter":           {`"usage":{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":8,"cache_write_tokens":2}}`, msg.Usage{Input: 10, Output: 5, Cached: 8, CacheWrite: 2}},
		"deepseek":             {`"usage":{"prompt_tokens":10,"completion_tokens":5,"prompt_cache_hit_tokens":4,"prompt_cache_miss_tokens":6}`, msg.Usage{Input: 10, Output: 5, Cached: 4}},
		"moonshot":             {`"usage":{"prompt_tokens":10,"completion_tokens":5,"cached_tokens":4}`, msg.Usage{Input: 10, Output: 5, Cached: 4}},
		"groq":                 {`"x_groq":{"usage":{"prompt_tokens":10,"completion_tokens":5}}`, msg.Usage{Input: 10, Output: 5}},
		"odd":                  {`"usage":{"prompt_tokens":10.0,"completion_tokens":"5","prompt_tokens_details":null}`, msg.Usage{Input: 10, Output: 5}},
		"counted all the time": {`"usage":{"prompt_tokens":10,"completion_tokens":5}`, msg.Usage{Input: 10, Output: 5}},
		"hostile":              {`"usage":{"prompt_tokens":-1e300,"completion_tokens":{"a":1}}`, msg.Usage{Output: 1}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			turn := hear(t, "openai", events(`{"choices":[{"index":0,"delta":{"content":"x"}}],"usage":{"prompt_tokens":0,"completion_tokens":1}}`,
				`{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`, `{"choices":[],`+tt.chunk+`}`, "[DONE]"), nil, nil)
			if diff := cmp.Diff(tt.want, turn.Usage); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Ends without [DONE], without a reason, with rubbish after it.
func TestEnds(t *testing.T) {
	const hello = `{"choices":[{"index":0,"delta":{"content":"x"}}]}`
	tests := map[string]struct {
		stream string
		want   llm.Finish
	}{
		"done without a reason":  {events(hello, "[DONE]"), llm.FinishStop},
		"reason without done":    {events(hello, `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`), llm.FinishStop},
		"cut after the reason":   {events(hello, `{"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}`) + `data: {"usa`, llm.FinishLength},
		"filtered":               {events(hello, `{"choices":[{"index":0,"delta":{},"finish_reason":"content_filter"}]}`, "[DONE]"), llm.FinishFiltered},
		"calls without a call":   {events(hello, `{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`, "[DONE]"), llm.FinishStop},
		"a reason we don't know": {events(hello, `{"choices":[{"index":0,"delta":{},"finish_reason":"eos"}]}`, "[DONE]"), llm.FinishStop},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			turn := hear(t, "openai", tt.stream, nil, nil)
			if m := turn.Message(); turn.Finish != tt.want || m.Text() != "x" {
				t.Errorf("finish %s, text %q", turn.Finish, m.Text())
			}
		})
	}
}

// A server that read far fewer tokens than it was sent is named, once. BUG-PL-01
func TestCutPrompt(t *testing.T) {
	long := append(said(strings.Repeat("word ", 12000)), said("go")...)
	chunk := func(n int) string {
		return events(`{"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":`+strconv.Itoa(n)+`,"completion_tokens":1}}`, "[DONE]")
	}
	for _, tt := range []struct {
		profile string
		tokens  int
		warn    bool
	}{{"compatible", 4096, true}, {"compatible", 8192, true}, {"compatible", 12000, false}, {"openai", 4096, false}} {
		turn := hear(t, tt.profile, chunk(tt.tokens), nil, long)
		if got := len(turn.Warnings) > 0; got != tt.warn {
			t.Errorf("%s, %d tokens: warnings %q", tt.profile, tt.tokens, turn.Warnings)
		}
	}
	c := New(&llm.Endpoint{Name: "test", BaseURL: "http://127.0.0.1:1/v1", Transport: familytest.Repeating(chunk(4096))}, nil)
	var warnings []string
	for range 2 {
		turn, err := ask(t.Context(), c, &llm.Request{Model: "m", Messages: long})
		if err != nil {
			t.Fatal(err)
		}
		warnings = append(warnings, turn.Warnings...)
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0], "OLLAMA_CONTEXT_LENGTH") {
		t.Errorf("warnings %q, want one", warnings)
	}
}

// A request has at least so many tokens that nobody is warned for nothing: not of
// what is short, repeated, written in letters of several bytes, or not shown to
// the model by every server.
func TestFewestTokens(t *testing.T) {
	prose := strings.Repeat("the quick fox ", 800) // 11,200 bytes
	for _, tt := range []struct {
		name    string
		request llm.Request
		want    int
	}{
		{"prose", llm.Request{Messages: said(prose)}, 2036},
		{"the system prompt", llm.Request{System: prose, Messages: said("go")}, 2036},
		{"arguments and results", llm.Request{Messages: []msg.Message{
			{Role: msg.Assistant, Parts: []msg.Part{familytest.Call("a", "f", prose[:5600])}}, familytest.Results(familytest.Result("a", prose[5600:]))}}, 2036},
		{"short", llm.Request{Messages: said(prose[:8191])}, 0},
		{"just long enough", llm.Request{Messages: said(prose[:8192])}, 1489},
		{"lines of dashes", llm.Request{Messages: said(prose + strings.Repeat("-", 50_000))}, 2037},
		{"Cyrillic", llm.Request{Messages: said(strings.Repeat("привет", 1000))}, 1000},
		{"reasoning", llm.Request{Messages: []msg.Message{{Role: msg.Assistant, Parts: []msg.Part{{Kind: msg.Reasoning, Text: prose}}}}}, 0},
		{"declarations", llm.Request{Messages: said(prose), Tools: []msg.Declaration{{Name: "f", Description: prose}}}, 3054},
		{"an image", llm.Request{Messages: append(said(prose), msg.Message{Role: msg.User, Parts: []msg.Part{{Kind: msg.Image, MIMEType: "image/png", Data: []byte("x")}}})}, 0},
		{"an image in a result", llm.Request{Messages: append(said(prose), familytest.Results(msg.Result{CallID: "a", Parts: []msg.Part{{Kind: msg.Image, Data: []byte("x")}}}))}, 0},
	} {
		if got := fewestTokens(&tt.request); got != tt.want {
			t.Errorf("%s: %d tokens, want %d", tt.name, got, tt.want)
		}
	}
}

// Whatever bytes come, there is an end: Done or an error, once and last, and
// text that is UTF-8.
func FuzzStream(f *testing.F) {
	f.Add("compatible", deltas("tool_calls", calls(`{"index":0,"id":"a","function":{"name":"shell","arguments":"{}"}}`)))
	f.Add("compatible", deltas("stop", `{"content":"<tool_call>{\"name\":\"shell\",\"arguments\":{}}</tool_call>"}`))
	f.Add("openrouter", deltas("stop", `{"reasoning_details":[{"type":"x"}],"content":[{"type":"text","text":"\ud83d"}]}`))
	f.Add("openai", "data: {\"error\":{\"code\":5}}\n\n")
	f.Add("openai", "event: x\r\ndata: {\r\ndata: }\r\n\r\n")
	f.Fuzz(func(t *testing.T, profile, stream string) {
		if _, ok := Profiles().Named(profile); !ok {
			return
		}
		c := answering(profile, answers{Body: strings.NewReader(stream)})
		ends := 0
		for e, err := range c.Stream(t.Context(), &llm.Request{Model: "m", Messages: said("hi"), Tools: tools4}) {
			if ends > 0 {
				t.Fatal("something follows the end")
			}
			_, done := e.(llm.Done)
			if done || err != nil {
				ends++
			}
			if x, ok := e.(llm.Text); ok && x.Text != strings.ToValidUTF8(x.Text, "") {
				t.Fatalf("text %q is no UTF-8", x.Text)
			}
		}
		if ends != 1 {
			t.Fatalf("%d ends", ends)
		}
	})
}

// Arguments are known to be whole as soon as json.Valid would say so, however
// they are cut, and never looked at twice.
func TestShape(t *testing.T) {
	for _, args := range []string{`{}`, `{"a":{"b":[1,{}]}}`, `{"a":"}\\\"{"}`, ` {"a":1} `, "{}\n", `[]`, `"{}"`, `{}}`, `{} {}`, `{"a":1]`, `}`, `{"a":"\`, `5`} {
		for cut := range len(args) + 1 {
			var s slot
			for _, piece := range []string{args[:cut], args[cut:]} {
				s.addArgs(llm.Piece{Text: []byte(piece)})
			}
			want := json.Valid([]byte(args)) && strings.TrimSpace(args)[0] == '{'
			if got := s.shape.state == shapeWhole; got != want {
				t.Errorf("%q cut at %d: whole is %v", args, cut, got)
			}
		}
	}
}

// A server that repeats the name with every piece of long arguments costs no
// more than one that does not: the deadline is 100 times what it takes.
func TestManyPieces(t *testing.T) {
	const n = 2000
	large := strings.Repeat("x", 3<<20)
	named := `{"tool_calls":[{"index":0,"id":"a","function":{"name":"shell","arguments":"f() { g; }"}}]}`
	object := `{"tool_calls":[{"index":0,"function":{"arguments":{}}}]}`
	delta := func(d string) string { return events(`{"choices":[{"index":0,"delta":` + d + `}]}`) }
	for name, body := range map[string]string{
		"names":   delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"shell","arguments":"{\"command\":\"`+large+`"}}]}`) + strings.Repeat(delta(named), n),
		"objects": delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"shell","arguments":"{\"a\":\"`+large+`\"}"}}]}`) + strings.Repeat(delta(object), n),
	} {
		began := time.Now()
		c := answering("openai", answers{Body: strings.NewReader(body + deltas("tool_calls", `{}`))})
		turn, err := ask(t.Context(), c, &llm.Request{Model: "m", Messages: said("hi")})
		if m := turn.Message(); err != nil || len(m.Calls()) != 1 || time.Since(began) > 20*time.Second {
			t.Errorf("%s: %d calls after %v, %v", name, len(m.Calls()), time.Since(began), err)
		}
	}
}

// Details that were cut in the middle of a character are whole again: what is
// signed must not change.
func TestDetailsCut(t *testing.T) {
	var d details
	d.add([]json.RawMessage{json.RawMessage(`{"type":"reasoning.text","index":0,"text":"a\ud83d"}`), json.RawMessage(`{"type":"reasoning.text","index":0,"text":"\ude42b","signature":"S"}`)})
	got, err := d.json()
	if want := `[{"index":0,"signature":"S","text":"a🙂b","type":"reasoning.text"}]`; err != nil || string(got) != want {
		t.Errorf("got %s, %v\nwant %s", got, err, want)
	}
}

// Details go back with an answer that is only text, too.
func TestDetailsOfText(t *testing.T) {
	turn := hear(t, "openrouter", deltas("stop", `{"reasoning":"R","reasoning_details":[{"type":"reasoning.text","text":"R","signature":"S"}]}`, `{"content":"T"}`), tools4, said("hi"))
	got := request(t, "openrouter", &llm.Request{Messages: append(said("hi"), turn.Message(), said("and?")[0]), Tools: tools4})
	want := `{"role":"assistant","content":"T","reasoning_details":[{"signature":"S","text":"R","type":"reasoning.text"}]}`
	if !strings.Contains(string(got["messages"]), want) {
		t.Errorf("got %s\nwant %s", got["messages"], want)
	}
}

// Many small parts are bounded too: a message keeps each of them.
func TestManyParts(t *testing.T) {
	c := answering("openai", answers{Body: &endless{Event: events(`{"choices":[{"delta":{"content":"a"}}]}`, `{"choices":[{"delta":{"reasoning":"b"}}]}`)}})
	c.limit = 1 << 20
	turn, err := ask(t.Context(), c, &llm.Request{Model: "m", Messages: said("hi")})
	if m := turn.Message(); err == nil || len(m.Parts) > c.limit/minPiece {
		t.Errorf("%d parts, %v", len(m.Parts), err)
	}
}
