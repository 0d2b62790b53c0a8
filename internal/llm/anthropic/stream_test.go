package anthropic

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capstan/internal/llm"
	"capstan/internal/msg"
)

// The events below have the form of the API's documentation: Streaming
// messages, Extended thinking, Web search tool.
const (
	start = `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","content":[],"model":"claude","stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":25,"output_tokens":1}}}`
	ping  = `{"type":"ping"}`
	over  = `{"type":"message_stop"}`
)

// stream writes events; the name of each is its type.
func stream(data ...string) string {
	var b strings.Builder
	for _, d := range data {
		var e struct{ Type string }
		_ = json.Unmarshal([]byte(d), &e)
		fmt.Fprintf(&b, "event: %s\ndata: %s\n\n", e.Type, d)
	}
	return b.String()
}

func begin(index int, block string) string {
	return fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":%s}`, index, block)
}

func stop(index int) string { return fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, index) }

func piece(index int, kind, member, value string) string {
	return fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":%q,%q:%s}}`, index, kind, member, value)
}

func textDelta(index int, s string) string { return piece(index, "text_delta", "text", quoted(s)) }

func jsonDelta(index int, s string) string {
	return piece(index, "input_json_delta", "partial_json", quoted(s))
}

func quoted(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}

func use(index int, id, name, input string) string {
	return begin(index, fmt.Sprintf(`{"type":"tool_use","id":%q,"name":%q,"input":%s}`, id, name, input))
}

func ends(reason string) string {
	return `{"type":"message_delta","delta":{"stop_reason":"` + reason + `","stop_sequence":null},"usage":{"output_tokens":15}}`
}

// speech is a whole stream of one text.
func speech(reason, text string) string {
	return stream(start, begin(0, `{"type":"text","text":""}`), ping, textDelta(0, text), stop(0), ends(reason), over)
}

// calling is a whole stream of these events of blocks.
func calling(reason string, blocks ...string) string {
	return stream(append(append([]string{start}, blocks...), ends(reason), over)...)
}

func hear(t *testing.T, model, body string, tools []msg.Declaration, history []msg.Message) *llm.Turn {
	t.Helper()
	r := &llm.Request{Model: model, Messages: append(said("hi"), history...), Tools: tools}
	turn, err := ask(t.Context(), answering(answers{Body: strings.NewReader(body)}), r)
	if err != nil {
		t.Fatal(err)
	}
	return turn
}

// What servers send, and the calls that it means.
func TestCalls(t *testing.T) {
	old := []msg.Message{{Role: msg.Assistant, Parts: []msg.Part{call("dup_1", "shell", "{}")}}}
	const cutOff = "The call was cut off by the limit of output tokens after %d bytes of its arguments; nothing was run. Make it again with less: write a long text in several calls, or explain less before the call."
	tests := []struct {
		name, model, body string
		history           []msg.Message
		want              []msg.Call
	}{
		{"as documented", claude,
			calling("tool_use", use(0, "toolu_01", "shell", "{}"), jsonDelta(0, ""), jsonDelta(0, `{"cmd"`), jsonDelta(0, `: "ls -l"}`), stop(0)), nil,
			[]msg.Call{{ID: "toolu_01", Name: "shell", Args: `{"cmd": "ls -l"}`}}},
		{"several", claude,
			calling("tool_use", use(0, "a", "shell", "{}"), jsonDelta(0, `{"cmd":"1"}`), stop(0), use(1, "b", "shell", "{}"), jsonDelta(1, `{"cmd":"2"}`), stop(1)), nil,
			[]msg.Call{{ID: "a", Name: "shell", Args: `{"cmd":"1"}`}, {ID: "b", Name: "shell", Args: `{"cmd":"2"}`}}},
		{"no arguments", claude,
			calling("tool_use", use(0, "a", "todo_list", "{}"), jsonDelta(0, ""), stop(0)), nil,
			[]msg.Call{{ID: "a", Name: "todo_list", Args: "{}"}}},
		{"no arguments of a tool that could take some: the API says that there are none", claude,
			calling("tool_use", use(0, "a", "delete_records", "{}"), jsonDelta(0, ""), stop(0)), nil,
			[]msg.Call{{ID: "a", Name: "delete_records", Args: "{}"}}},
		{"the same from an imitation: not guessed (BUG-AR-03)", "qwen3",
			calling("tool_use", use(0, "a", "delete_records", "{}"), jsonDelta(0, ""), stop(0)), nil,
			[]msg.Call{{ID: "a", Name: "delete_records", Args: ""}}},
		{"a block that never ended: not guessed (BUG-AR-03)", claude,
			calling("tool_use", use(0, "a", "delete_records", "{}")), nil,
			[]msg.Call{{ID: "a", Name: "delete_records", Args: ""}}},
		{"broken arguments: kept as they are (BUG-AR-03)", claude,
			calling("tool_use", use(0, "a", "delete_records", "{}"), jsonDelta(0, `{"where":{"id":7`), stop(0)), nil,
			[]msg.Call{{ID: "a", Name: "delete_records", Args: `{"where":{"id":7`}}},
		{"cut off by the limit (BUG-AR-03)", claude,
			calling("max_tokens", use(0, "a", "shell", "{}"), jsonDelta(0, `{"cmd":"ls"}`), stop(0), use(1, "b", "delete_records", "{}"), jsonDelta(1, ""), stop(1)), nil,
			[]msg.Call{{ID: "a", Name: "shell", Args: `{"cmd":"ls"}`}, {ID: "b", Name: "delete_records", Args: "", Fault: fmt.Sprintf(cutOff, 0)}}},
		{"only the last one is cut off", claude,
			calling("max_tokens", use(0, "a", "delete_records", "{}"), stop(0), use(1, "b", "shell", "{}"), jsonDelta(1, `{"cmd`), stop(1), use(2, "c", "shell", "{}"), stop(2)), nil,
			[]msg.Call{{ID: "a", Name: "delete_records", Args: "{}"}, {ID: "b", Name: "shell", Args: `{"cmd`}, {ID: "c", Name: "shell", Fault: fmt.Sprintf(cutOff, 0)}}},
		{"cut off in the middle by a full context", claude,
			calling("model_context_window_exceeded", use(0, "a", "shell", "{}"), jsonDelta(0, `{"cmd":"l`), stop(0)), nil,
			[]msg.Call{{ID: "a", Name: "shell", Args: `{"cmd":"l`, Fault: fmt.Sprintf(cutOff, 9)}}},
		{"the input whole at the beginning (BUG-AR-05)", "glm",
			calling("tool_use", use(0, "a", "multiply", `{"x":1337,"y":42.0}`), stop(0)), nil,
			[]msg.Call{{ID: "a", Name: "multiply", Args: `{"x":1337,"y":42.0}`}}},
		{"the input whole at the beginning, and again in pieces", "glm",
			calling("tool_use", use(0, "a", "multiply", `{"x":1}`), jsonDelta(0, `{"x": `), jsonDelta(0, `1}`), stop(0)), nil,
			[]msg.Call{{ID: "a", Name: "multiply", Args: `{"x": 1}`}}},
		{"the input whole at the beginning, and half of it in pieces", "glm",
			calling("tool_use", use(0, "a", "multiply", `{"x":1}`), jsonDelta(0, `{"x":`), stop(0)), nil,
			[]msg.Call{{ID: "a", Name: "multiply", Args: `{"x":1}`}}},
		{"the input as an object in a piece (BUG-AR-05)", "glm",
			calling("tool_use", use(0, "a", "multiply", `{}`), piece(0, "input_json_delta", "partial_json", `{"x":1}`), stop(0)), nil,
			[]msg.Call{{ID: "a", Name: "multiply", Args: `{"x":1}`}}},
		{"interleaved", "glm",
			calling("tool_use", use(0, "a", "shell", "{}"), use(1, "b", "shell", "{}"), jsonDelta(1, `{"cmd":`), jsonDelta(0, `{"cmd":`), jsonDelta(1, `"2"}`), jsonDelta(0, `"1"}`), stop(1), stop(0)), nil,
			[]msg.Call{{ID: "a", Name: "shell", Args: `{"cmd":"1"}`}, {ID: "b", Name: "shell", Args: `{"cmd":"2"}`}}},
		{"the same index for all", "glm",
			calling("tool_use", use(0, "a", "shell", "{}"), jsonDelta(0, `{"cmd":"1"}`), use(0, "b", "shell", "{}"), jsonDelta(0, `{"cmd":"2"}`), stop(0)), nil,
			[]msg.Call{{ID: "a", Name: "shell", Args: `{"cmd":"1"}`}, {ID: "b", Name: "shell", Args: `{"cmd":"2"}`}}},
		{"no index at all (BUG-SD-03)", "glm",
			calling("tool_use", `{"type":"content_block_start","content_block":{"type":"tool_use","id":"a","name":"shell"}}`, `{"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":"{\"cmd\":\"1\"}"}}`,
				`{"type":"content_block_start","content_block":{"type":"tool_use","id":"b","name":"shell"}}`, `{"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":"{\"cmd\":\"2\"}"}}`), nil,
			[]msg.Call{{ID: "a", Name: "shell", Args: `{"cmd":"1"}`}, {ID: "b", Name: "shell", Args: `{"cmd":"2"}`}}},
		{"indexes as text, numeric ids, no id (BUG-SD-01)", "glm",
			calling("tool_use", `{"type":"content_block_start","index":"0","content_block":{"type":"tool_use","id":7,"name":"shell","input":null}}`, jsonDelta(0, `{}`), begin(1, `{"type":"tool_use","name":"shell","input":{}}`), jsonDelta(1, `{}`)), nil,
			[]msg.Call{{ID: "7", Name: "shell", Args: "{}"}, {ID: "call_2", Name: "shell", Args: "{}"}}},
		{"ids used twice and before (BUG-CP-13)", claude,
			calling("tool_use", use(0, "dup_1", "shell", "{}"), jsonDelta(0, `{"cmd":"1"}`), stop(0), use(1, "dup_1", "shell", "{}"), jsonDelta(1, `{"cmd":"2"}`), stop(1)), old,
			[]msg.Call{{ID: "dup_1_2", Name: "shell", Args: `{"cmd":"1"}`}, {ID: "dup_1_3", Name: "shell", Args: `{"cmd":"2"}`}}},
		{"a piece without a beginning is not dropped (BUG-AR-18)", "glm",
			calling("tool_use", jsonDelta(0, `{"x":1}`)), nil,
			[]msg.Call{{ID: "call_1", Args: `{"x":1}`, Fault: "The call names no tool; nothing was run. Make it again with the name of a tool."}}},
		{"a phantom (BUG-SD-10)", "glm",
			calling("tool_use", use(0, "", "", "{}"), stop(0), use(1, "b", "shell", "{}"), jsonDelta(1, `{"cmd":"2"}}`), stop(1)), nil,
			[]msg.Call{{ID: "b", Name: "shell", Args: `{"cmd":"2"}}`}}},
		{"duplicate names are kept for the parser to refuse", claude,
			calling("tool_use", use(0, "a", "shell", "{}"), jsonDelta(0, `{"cmd":1,"cmd":2}`), stop(0)), nil,
			[]msg.Call{{ID: "a", Name: "shell", Args: `{"cmd":1,"cmd":2}`}}},
		{"the reason says nothing of it", "glm",
			calling("end_turn", use(0, "a", "shell", "{}"), jsonDelta(0, `{}`), stop(0)), nil,
			[]msg.Call{{ID: "a", Name: "shell", Args: `{}`}}},
		{"a whole answer instead of a stream", claude,
			`{"type":"message","content":[{"type":"tool_use","id":"a","name":"shell","input":{"cmd":"ls"}},{"type":"tool_use","id":"b","name":"delete_records","input":{}}],"stop_reason":"tool_use"}`, nil,
			[]msg.Call{{ID: "a", Name: "shell", Args: `{"cmd":"ls"}`}, {ID: "b", Name: "delete_records", Args: `{}`}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			turn := hear(t, tt.model, tt.body, tools4, tt.history)
			if diff := cmp.Diff(tt.want, madeCalls(turn)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if turn.Finish != llm.FinishCalls && turn.Finish != llm.FinishLength {
				t.Errorf("finish %s", turn.Finish)
			}
		})
	}
}

// Arguments, text and thinking may be cut anywhere: inside a character, as raw
// bytes or as halves of a pair, and inside an escape of the arguments' own JSON.
func TestCutAnywhere(t *testing.T) {
	const args = `{"text":"a\"\\\n\u00e9 é 漢 🙂 \ud83d\ude42"}`
	for i := 0; i <= len(args); i++ {
		body := calling("tool_use",
			begin(0, `{"type":"thinking","thinking":"","signature":""}`), piece(0, "thinking_delta", "thinking", quoted(args[:i])), piece(0, "thinking_delta", "thinking", quoted(args[i:])), stop(0),
			begin(1, `{"type":"text","text":""}`), textDelta(1, args[:i]), textDelta(1, args[i:]), stop(1),
			use(2, "a", "shell", "{}"), jsonDelta(2, args[:i]), jsonDelta(2, args[i:]), stop(2))
		want := []msg.Part{{Kind: msg.Reasoning, Text: args}, msg.TextPart(args), call("a", "shell", args)}
		if diff := cmp.Diff(want, hear(t, claude, body, tools4, nil).Message().Parts); diff != "" {
			t.Fatalf("cut at %d (-want +got):\n%s", i, diff)
		}
	}
	turn := hear(t, claude, stream(start, begin(0, `{"type":"text","text":"x \ud83d"}`), piece(0, "text_delta", "text", `"\ude42 y\ud83d"`), piece(0, "text_delta", "text", `"z"`), piece(0, "text_delta", "text", `"\ud83d"`), stop(0), ends("end_turn"), over), nil, nil)
	if m := turn.Message(); m.Text() != "x 🙂 y\uFFFDz\uFFFD" {
		t.Errorf("halves of a pair: %q", m.Text())
	}
}

func kept(s string) json.RawMessage { return json.RawMessage(s) }

// Blocks of every kind, in the order in which they began, with what the API
// wants back.
func TestBlocks(t *testing.T) {
	const (
		search = `{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}`
		found  = `{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","title":"T","url":"https://x","encrypted_content":"E<>","page_age":null}]}`
		cite   = `{"type":"web_search_result_location","cited_text":"c","url":"https://x","title":"T","encrypted_index":"I"}`
	)
	think := func(i int) string { return begin(i, `{"type":"thinking","thinking":"","signature":""}`) }
	thought := func(i int, s string) string { return piece(i, "thinking_delta", "thinking", quoted(s)) }
	sign := func(i int, s string) string { return piece(i, "signature_delta", "signature", quoted(s)) }
	text := func(i int) string { return begin(i, `{"type":"text","text":""}`) }
	tests := []struct {
		name string
		body []string
		want []msg.Part
	}{
		{"thinking", []string{think(0), thought(0, "Let me "), thought(0, "think."), sign(0, "Eq"), sign(0, "oC"), stop(0), text(1), textDelta(1, "T"), stop(1)},
			[]msg.Part{{Kind: msg.Reasoning, Text: "Let me think.", State: kept(`{"signature":"EqoC"}`)}, msg.TextPart("T")}},
		{"thinking that is not shown", []string{think(0), sign(0, "EqoC"), stop(0), text(1), textDelta(1, "T"), stop(1)},
			[]msg.Part{{Kind: msg.Reasoning, State: kept(`{"signature":"EqoC"}`)}, msg.TextPart("T")}},
		{"hidden thinking between others", []string{think(0), thought(0, "a"), sign(0, "1"), stop(0), begin(1, `{"type":"redacted_thinking","data":"Er+/="}`), stop(1), think(2), thought(2, "b"), sign(2, "2"), stop(2), text(3), textDelta(3, "T"), stop(3)},
			[]msg.Part{{Kind: msg.Reasoning, Text: "a", State: kept(`{"signature":"1"}`)}, {Kind: msg.Reasoning, State: kept(`{"redacted":"Er+/="}`)}, {Kind: msg.Reasoning, Text: "b", State: kept(`{"signature":"2"}`)}, msg.TextPart("T")}},
		{"thinking after a call keeps its place", []string{think(0), thought(0, "a"), sign(0, "1"), stop(0), use(1, "c1", "shell", "{}"), jsonDelta(1, `{"cmd":"1"}`), stop(1), think(2), thought(2, "b"), sign(2, "2"), stop(2), use(3, "c2", "shell", "{}"), jsonDelta(3, `{"cmd":"2"}`), stop(3)},
			[]msg.Part{{Kind: msg.Reasoning, Text: "a", State: kept(`{"signature":"1"}`)}, call("c1", "shell", `{"cmd":"1"}`), {Kind: msg.Reasoning, Text: "b", State: kept(`{"signature":"2"}`)}, call("c2", "shell", `{"cmd":"2"}`)}},
		{"blocks that are written at the same time", []string{think(0), text(1), textDelta(1, "T"), thought(0, "a"), textDelta(1, "U"), sign(0, "1"), stop(1), stop(0)},
			[]msg.Part{{Kind: msg.Reasoning, Text: "a", State: kept(`{"signature":"1"}`)}, msg.TextPart("TU")}},
		{"blocks that never end", []string{think(0), thought(0, "a"), sign(0, "1"), text(1), textDelta(1, "T")},
			[]msg.Part{{Kind: msg.Reasoning, Text: "a", State: kept(`{"signature":"1"}`)}, msg.TextPart("T")}},
		{"pieces of another kind than their block", []string{text(0), thought(0, "a"), textDelta(0, "T")},
			[]msg.Part{{Kind: msg.Reasoning, Text: "a"}, msg.TextPart("T")}},
		{"pieces after the end", []string{text(0), textDelta(0, "T"), stop(0), textDelta(0, "U"), sign(0, "x")},
			[]msg.Part{{Kind: msg.Text, Text: "T", State: kept("{}")}, msg.TextPart("U")}},
		{"a search", []string{text(0), textDelta(0, "I search."), stop(0), begin(1, search), jsonDelta(1, ""), jsonDelta(1, `{"query"`), jsonDelta(1, `:"q"}`), stop(1), begin(2, found), stop(2),
			text(3), textDelta(3, "According to "), stop(3), begin(4, `{"type":"text","text":"","citations":[]}`), piece(4, "citations_delta", "citation", cite), textDelta(4, "x"), stop(4), text(5), textDelta(5, "."), stop(5)},
			[]msg.Part{{Kind: msg.Text, Text: "I search.", State: kept("{}")},
				{Kind: msg.Text, State: kept(`{"block":{"id":"srvtoolu_1","input":{"query":"q"},"name":"web_search","type":"server_tool_use"}}`)},
				{Kind: msg.Text, State: kept(`{"block":` + found + `}`)},
				{Kind: msg.Text, Text: "According to ", State: kept("{}")},
				{Kind: msg.Text, Text: "x", State: kept(`{"citations":[` + cite + `]}`)}, msg.TextPart(".")}},
		{"a kind that nobody knows yet, and events and pieces too", []string{`{"type":"new_event","x":1}`, begin(0, `{"type":"new_block","y":[1]}`), piece(0, "new_delta", "z", "1"), stop(0), text(1), textDelta(1, "T"), stop(1)},
			[]msg.Part{{Kind: msg.Text, State: kept(`{"block":{"type":"new_block","y":[1]}}`)}, msg.TextPart("T")}},
		{"a call from a program", []string{begin(0, `{"type":"tool_use","id":"a","name":"shell","input":{},"caller":{"type":"code_execution_20250825","tool_id":"srvtoolu_1"}}`), jsonDelta(0, `{}`), stop(0), begin(1, `{"type":"tool_use","id":"b","name":"shell","input":{},"caller":{"type":"direct"}}`), jsonDelta(1, `{}`), stop(1)},
			[]msg.Part{{Kind: msg.CallPart, Call: &msg.Call{ID: "a", Name: "shell", Args: "{}"}, State: kept(`{"caller":{"type":"code_execution_20250825","tool_id":"srvtoolu_1"}}`)}, call("b", "shell", "{}")}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			turn := hear(t, claude, calling("end_turn", tt.body...), tools4, nil)
			if diff := cmp.Diff(tt.want, turn.Message().Parts); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Text is given out as it comes.
func TestLive(t *testing.T) {
	body := stream(start, begin(0, `{"type":"thinking","thinking":""}`), piece(0, "thinking_delta", "thinking", `"a"`), stop(0), begin(1, `{"type":"text","text":""}`), textDelta(1, "b"), textDelta(1, "c"), stop(1),
		use(2, "x", "shell", "{}"), jsonDelta(2, `{"cmd"`), jsonDelta(2, `:"d"}`), stop(2), ends("tool_use"), over)
	var got []llm.Event
	for e, err := range answering(answers{Body: strings.NewReader(body)}).Stream(t.Context(), &llm.Request{Model: claude, Messages: said("hi"), Tools: tools4}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, e)
	}
	want := []llm.Event{llm.Usage{Usage: msg.Usage{Input: 25, Output: 1}}, llm.Reasoning{Text: "a"}, llm.Text{Text: "b"}, llm.Text{Text: "c"},
		llm.Progress{Name: "shell"}, llm.Progress{Name: "shell", Bytes: 6}, llm.Progress{Name: "shell", Bytes: 11},
		llm.Usage{Usage: msg.Usage{Input: 25, Output: 15}}, llm.Call{Call: msg.Call{ID: "x", Name: "shell", Args: `{"cmd":"d"}`}}, llm.Done{Finish: llm.FinishCalls}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A block that begins where another was ends that one, so what is in it need not
// wait for the end of the answer.
func TestLiveWithoutEnds(t *testing.T) {
	body := stream(start, begin(0, `{"type":"text","text":"a"}`), begin(0, `{"type":"text","text":"b"}`), ping, ends("end_turn"), over)
	var got []string
	for e, err := range answering(answers{Body: strings.NewReader(body)}).Stream(t.Context(), &llm.Request{Model: "glm", Messages: said("hi")}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%T", e))
	}
	if diff := cmp.Diff([]string{"llm.Usage", "llm.Text", "llm.State", "llm.Text", "llm.Usage", "llm.Done"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The whole prompt is counted, cached or not: input_tokens alone is not it.
func TestUsage(t *testing.T) {
	for name, tt := range map[string]struct {
		first, last string
		want        msg.Usage
	}{
		"documented":       {`{"input_tokens":25,"output_tokens":1}`, `{"output_tokens":15}`, msg.Usage{Input: 25, Output: 15}},
		"cached":           {`{"input_tokens":50,"cache_creation_input_tokens":248,"cache_read_input_tokens":1800,"output_tokens":1}`, `{"output_tokens":15}`, msg.Usage{Input: 2098, Cached: 1800, CacheWrite: 248, Output: 15}},
		"again at the end": {`{"input_tokens":50,"cache_read_input_tokens":10,"output_tokens":1}`, `{"input_tokens":70,"cache_creation_input_tokens":0,"cache_read_input_tokens":10,"output_tokens":15,"output_tokens_details":{"thinking_tokens":5}}`, msg.Usage{Input: 80, Cached: 10, Output: 15, Reasoning: 5}},
		"only at the end":  {`{"input_tokens":0,"output_tokens":0}`, `{"input_tokens":"7","output_tokens":3.0}`, msg.Usage{Input: 7, Output: 3}},
		"hostile":          {`{"input_tokens":-1e300,"output_tokens":{"a":1}}`, `null`, msg.Usage{}},
	} {
		t.Run(name, func(t *testing.T) {
			body := stream(`{"type":"message_start","message":{"content":[],"usage":`+tt.first+`}}`, begin(0, `{"type":"text","text":"x"}`), stop(0),
				`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":`+tt.last+`}`, over)
			if diff := cmp.Diff(tt.want, hear(t, claude, body, nil, nil).Usage); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Reasons to stop, ends without one, and rubbish after the end.
func TestEnds(t *testing.T) {
	hello := stream(start, begin(0, `{"type":"text","text":""}`), textDelta(0, "x"), stop(0))
	tests := map[string]struct {
		body string
		want llm.Finish
	}{
		"end_turn":                      {speech("end_turn", "x"), llm.FinishStop},
		"stop_sequence":                 {speech("stop_sequence", "x"), llm.FinishStop},
		"max_tokens":                    {speech("max_tokens", "x"), llm.FinishLength},
		"model_context_window_exceeded": {speech("model_context_window_exceeded", "x"), llm.FinishLength},
		"refusal":                       {speech("refusal", "x"), llm.FinishFiltered},
		"tool_use without a call":       {speech("tool_use", "x"), llm.FinishStop},
		"pause_turn without such tools": {speech("pause_turn", "x"), llm.FinishStop},
		"a reason we don't know":        {speech("moonrise", "x"), llm.FinishStop},
		"a stop without a reason":       {hello + stream(over), llm.FinishStop},
		"a reason without a stop":       {hello + stream(ends("max_tokens")), llm.FinishLength},
		"cut after the reason":          {hello + stream(ends("max_tokens")) + `data: {"type":"mess`, llm.FinishLength},
		"done, as others say":           {hello + "data: [DONE]\n\n", llm.FinishStop},
		"rubbish after the end":         {speech("end_turn", "x") + "data: oops\n\n", llm.FinishStop},
		"types by name only":            {strings.ReplaceAll(speech("end_turn", "x"), `{"type":"content_block_`, `{"a":"`), llm.FinishStop},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			turn := hear(t, claude, tt.body, nil, nil)
			if m := turn.Message(); turn.Finish != tt.want || m.Text() != "x" {
				t.Errorf("finish %s, text %q", turn.Finish, m.Text())
			}
		})
	}
	turn := hear(t, claude, stream(start, `{"type":"message_delta","delta":{"stop_reason":"refusal","stop_details":{"type":"refusal","category":"cyber","explanation":"Not this."}}}`, over), nil, nil)
	if diff := cmp.Diff([]string{"test declined to answer: Not this."}, turn.Warnings); diff != "" || turn.Finish != llm.FinishFiltered {
		t.Errorf("finish %s (-want +got):\n%s", turn.Finish, diff)
	}
}

// Whatever bytes come, there is an end: Done or an error, once and last, and
// text that is UTF-8.
func FuzzStream(f *testing.F) {
	f.Add(speech("end_turn", "x"))
	f.Add(calling("tool_use", use(0, "a", "shell", `{"a":1}`), jsonDelta(0, `{`), stop(0)))
	f.Add(calling("pause_turn", begin(0, `{"type":"server_tool_use","id":"s","input":{}}`), jsonDelta(0, `{"q":1}`), stop(0)))
	f.Add(calling("refusal", begin(0, `{"type":"thinking","thinking":"\ud83d"}`), piece(0, "signature_delta", "signature", `{"a":1}`), stop(0), begin(1, `{"type":"redacted_thinking","data":7}`)))
	f.Add(`{"type":"message","content":[{"type":"tool_use","input":[1]}]}`)
	f.Add("event: error\r\ndata: {\"error\":{\"type\":\"x\"}}\r\n\r\n")
	f.Fuzz(func(t *testing.T, body string) {
		ends := 0
		r := &llm.Request{Model: claude, Messages: said("hi"), Tools: tools4, Hosted: []json.RawMessage{webSearch}}
		for e, err := range answering(answers{Body: strings.NewReader(body)}).Stream(t.Context(), r) {
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
			if x, ok := e.(llm.State); ok && !json.Valid(x.Data) {
				t.Fatalf("state %q is no JSON", x.Data)
			}
		}
		if ends != 1 {
			t.Fatalf("%d ends", ends)
		}
	})
}

// What a piece costs does not depend on how much of its block came before.
func TestManyPieces(t *testing.T) {
	spent := func(start, delta string, n int) uint64 {
		body := stream(start) + strings.Repeat(stream(delta), n)
		c := answering(answers{Body: strings.NewReader(body)})
		c.endpoint.Retries = -1
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _ = ask(t.Context(), c, &llm.Request{Model: claude, Messages: said("hi")}) // the stream is cut off
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	for name, events := range map[string][2]string{
		"signature": {begin(0, `{"type":"thinking","thinking":""}`), piece(0, "signature_delta", "signature", `"AAAAAAAAAAAAAAAA"`)},
		"citations": {begin(0, `{"type":"text","text":""}`), `{"type":"content_block_delta","index":0,"delta":{"type":"citations_delta","citation":{"cited_text":"a sentence"}}}`},
		"hosted":    {begin(0, `{"type":"server_tool_use","id":"s","input":{}}`), jsonDelta(0, "{}")},
	} {
		if some, more := spent(events[0], events[1], 2000), spent(events[0], events[1], 8000); more > 8*some {
			t.Errorf("%s: 2,000 pieces cost %d bytes, 8,000 cost %d", name, some, more)
		}
	}
}
