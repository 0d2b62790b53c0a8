package responses

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

// events is a stream of these data lines.
func events(data ...string) string {
	return "data: " + strings.Join(data, "\n\ndata: ") + "\n\n"
}

const completed = `{"type":"response.completed","response":{"status":"completed","output":[]}}`

// The events of a call, as the API sends them.
func added(index int, item string) string {
	return fmt.Sprintf(`{"type":"response.output_item.added","output_index":%d,"item":%s}`, index, item)
}

func done(index int, item string) string {
	return fmt.Sprintf(`{"type":"response.output_item.done","output_index":%d,"item":%s}`, index, item)
}

func argDelta(index int, id, s string) string {
	return fmt.Sprintf(`{"type":"response.function_call_arguments.delta","output_index":%d,"item_id":"%s","delta":%s}`, index, id, rawQuote(s))
}

func argDone(index int, id, s string) string {
	return fmt.Sprintf(`{"type":"response.function_call_arguments.done","output_index":%d,"item_id":"%s","arguments":%s}`, index, id, rawQuote(s))
}

func fc(id, callID, name, args string) string {
	return fmt.Sprintf(`{"id":"%s","type":"function_call","status":"completed","call_id":"%s","name":"%s","arguments":%s}`, id, callID, name, rawQuote(args))
}

func textDelta(index int, id, s string) string {
	return fmt.Sprintf(`{"type":"response.output_text.delta","output_index":%d,"item_id":"%s","content_index":0,"delta":%s}`, index, id, rawQuote(s))
}

func end(status, rest string, output ...string) string {
	return fmt.Sprintf(`{"type":"response.%s","response":{"status":"%s"%s,"output":[%s]}}`, status, status, rest, strings.Join(output, ","))
}

// rawQuote is s as a JSON string whose bytes are not touched.
func rawQuote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

func hear(t *testing.T, profile, stream string, tools []msg.Declaration, history []msg.Message) *llm.Turn {
	t.Helper()
	r := &llm.Request{Model: "m", Messages: append(said("hi"), history...), Tools: tools}
	turn, err := ask(t.Context(), answering(profile, answers{Body: strings.NewReader(stream)}), r)
	if err != nil {
		t.Fatal(err)
	}
	return turn
}

// The stream of the API's own documentation for a function call: the item
// begins, its arguments come in pieces and then whole, and the item and the
// answer repeat them.
func TestDocumentedCall(t *testing.T) {
	const item = `{"type":"function_call","id":"fc_1234xyz","call_id":"call_1234xyz","name":"get_weather","arguments":"{\"location\":\"Paris, France\"}","status":"completed"}`
	stream := `event: response.created
data: {"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","status":"in_progress","error":null,"incomplete_details":null,"output":[],"usage":null}}

event: response.output_item.added
data: {"type":"response.output_item.added","response_id":"resp_1","output_index":0,"item":{"type":"function_call","id":"fc_1234xyz","call_id":"call_1234xyz","name":"get_weather","arguments":""}}

event: response.function_call_arguments.delta
data: {"type":"response.function_call_arguments.delta","response_id":"resp_1","item_id":"fc_1234xyz","output_index":0,"delta":"{\""}

event: response.function_call_arguments.delta
data: {"type":"response.function_call_arguments.delta","response_id":"resp_1","item_id":"fc_1234xyz","output_index":0,"delta":"location\":\"Paris, France\"}"}

event: response.function_call_arguments.done
data: {"type":"response.function_call_arguments.done","response_id":"resp_1","item_id":"fc_1234xyz","output_index":0,"arguments":"{\"location\":\"Paris, France\"}"}

event: response.output_item.done
data: {"type":"response.output_item.done","response_id":"resp_1","output_index":0,"item":` + item + `}

event: response.completed
data: {"type":"response.completed","response":{"id":"resp_1","status":"completed","output":[` + item + `],"usage":{"input_tokens":37,"input_tokens_details":{"cached_tokens":0},"output_tokens":11,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":48}}}

`
	for _, s := range []string{stream, strings.ReplaceAll(stream, "\n", "\r\n")} {
		turn := hear(t, "openai", s, nil, nil)
		want := msg.Message{Role: msg.Assistant, Origin: "responses/m", Parts: []msg.Part{
			{Kind: msg.CallPart, Call: &msg.Call{ID: "call_1234xyz", Name: "get_weather", Args: `{"location":"Paris, France"}`}}}}
		if diff := cmp.Diff(want, turn.Message()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(msg.Usage{Input: 37, Output: 11}, turn.Usage); diff != "" || turn.Finish != llm.FinishCalls || len(turn.Warnings) > 0 {
			t.Errorf("finish %s, warnings %q, usage (-want +got):\n%s", turn.Finish, turn.Warnings, diff)
		}
	}
}

// What servers send, and the calls that it means.
func TestCalls(t *testing.T) {
	old := []msg.Message{{Role: msg.Assistant, Parts: []msg.Part{{Kind: msg.CallPart, Call: &msg.Call{ID: "dup_1", Name: "shell", Args: "{}"}}}}}
	const ls = `{"cmd":"ls"}`
	begin := func(index int, id, callID string) string { return added(index, fc(id, callID, "shell", "")) }
	tests := []struct {
		name    string
		stream  string
		history []msg.Message
		want    []msg.Call
	}{
		{"two calls, interleaved",
			events(begin(0, "fc_1", "c1"), begin(1, "fc_2", "c2"), argDelta(0, "fc_1", `{"cmd"`), argDelta(1, "fc_2", `{"cmd"`), argDelta(0, "fc_1", `:"1"}`), argDelta(1, "fc_2", `:"2"}`),
				done(1, fc("fc_2", "c2", "shell", `{"cmd":"2"}`)), done(0, fc("fc_1", "c1", "shell", `{"cmd":"1"}`)), completed), nil,
			[]msg.Call{{ID: "c1", Name: "shell", Args: `{"cmd":"1"}`}, {ID: "c2", Name: "shell", Args: `{"cmd":"2"}`}}},
		{"only in output_item.done",
			events(done(0, fc("fc_1", "c1", "shell", ls)), end("completed", "", fc("fc_1", "c1", "shell", ls))), nil,
			[]msg.Call{{ID: "c1", Name: "shell", Args: ls}}},
		{"only in the list of the answer",
			events(end("completed", "", fc("fc_1", "c1", "shell", ls), fc("fc_2", "c2", "shell", ls))), nil,
			[]msg.Call{{ID: "c1", Name: "shell", Args: ls}, {ID: "c2", Name: "shell", Args: ls}}},
		{"only deltas",
			events(argDelta(0, "fc_1", ls), completed), nil,
			[]msg.Call{{ID: "fc_1", Args: ls, Fault: "The call names no tool; nothing was run. Make it again with the name of a tool."}}},
		{"only deltas, of two calls",
			events(argDelta(0, "fc_1", ls), argDelta(1, "fc_2", ls), end("completed", "", fc("fc_1", "c1", "shell", ls), fc("fc_2", "c2", "shell", ls))), nil,
			[]msg.Call{{ID: "c1", Name: "shell", Args: ls}, {ID: "c2", Name: "shell", Args: ls}}},
		{"the name only when the arguments are done",
			events(argDelta(0, "fc_1", ls), `{"type":"response.function_call_arguments.done","output_index":0,"item_id":"fc_1","name":"shell","arguments":"{\"cmd\":\"ls\"}"}`, completed), nil,
			[]msg.Call{{ID: "fc_1", Name: "shell", Args: ls}}},
		{"no list at the end",
			events(begin(0, "fc_1", "c1"), argDelta(0, "fc_1", ls), `{"type":"response.completed","response":{"status":"completed"}}`), nil,
			[]msg.Call{{ID: "c1", Name: "shell", Args: ls}}},
		{"ids that change with each event",
			events(begin(0, "fc_a", "c1"), argDelta(0, "fc_b", `{"cmd":`), argDelta(0, "fc_c", `"ls"}`), done(0, fc("fc_d", "c1", "shell", ls)), end("completed", "", fc("fc_e", "c1", "shell", ls))), nil,
			[]msg.Call{{ID: "c1", Name: "shell", Args: ls}}},
		{"all ids change, also those of calls",
			events(begin(0, "fc_a", "c1"), argDelta(0, "fc_a", ls), end("completed", "", fc("fc_e", "c9", "shell", ls))), nil,
			[]msg.Call{{ID: "c9", Name: "shell", Args: ls}}},
		{"all items have the index 0",
			events(begin(0, "fc_1", "c1"), begin(0, "fc_2", "c2"), argDelta(0, "fc_1", `{"cmd":"1"}`), argDelta(0, "fc_2", `{"cmd":"2"}`), done(0, fc("fc_1", "c1", "shell", "")), done(0, fc("fc_2", "c2", "shell", "")), completed), nil,
			[]msg.Call{{ID: "c1", Name: "shell", Args: `{"cmd":"1"}`}, {ID: "c2", Name: "shell", Args: `{"cmd":"2"}`}}},
		{"all items have the index 0, and only an end",
			events(done(0, fc("fc_1", "c1", "shell", `{"cmd":"1"}`)), done(0, fc("fc_2", "c2", "shell", `{"cmd":"2"}`)), completed), nil,
			[]msg.Call{{ID: "c1", Name: "shell", Args: `{"cmd":"1"}`}, {ID: "c2", Name: "shell", Args: `{"cmd":"2"}`}}},
		{"an item's beginning and end said twice",
			events(begin(0, "fc_1", "c1"), begin(0, "fc_1", "c1"), argDelta(0, "fc_1", ls), done(0, fc("fc_1", "c1", "shell", ls)), done(0, fc("fc_1", "c1", "shell", ls)), completed), nil,
			[]msg.Call{{ID: "c1", Name: "shell", Args: ls}}},
		{"an item's end said twice, without indexes",
			events(`{"type":"response.output_item.done","item":`+fc("fc_1", "c1", "shell", ls)+`}`, `{"type":"response.output_item.done","item":`+fc("fc_1", "c1", "shell", ls)+`}`, completed), nil,
			[]msg.Call{{ID: "c1", Name: "shell", Args: ls}}},
		{"deltas after the end of the item",
			events(done(0, fc("fc_1", "c1", "shell", ls)), argDelta(0, "fc_1", ls), completed), nil,
			[]msg.Call{{ID: "c1", Name: "shell", Args: ls}}},
		{"arguments lost in the item (BUG-AR-10)",
			events(begin(0, "fc_1", "c1"), argDelta(0, "fc_1", ls), argDone(0, "fc_1", "{}"), done(0, fc("fc_1", "c1", "shell", "{}")), end("completed", "", fc("fc_1", "c1", "shell", "{}"))), nil,
			[]msg.Call{{ID: "c1", Name: "shell", Args: ls}}},
		{"arguments lost in the deltas (BUG-AR-10)",
			events(begin(0, "fc_1", "c1"), argDelta(0, "fc_1", "{}"), done(0, fc("fc_1", "c1", "shell", "{}")), end("completed", "", fc("fc_1", "c1", "shell", ls))), nil,
			[]msg.Call{{ID: "c1", Name: "shell", Args: ls}}},
		{"deltas sent twice: what is whole wins (BUG-AR-10)",
			events(begin(0, "fc_1", "c1"), argDelta(0, "fc_1", ls+ls), done(0, fc("fc_1", "c1", "shell", ls)), completed), nil,
			[]msg.Call{{ID: "c1", Name: "shell", Args: ls}}},
		{"two whole versions: the longer wins (BUG-AR-10)",
			events(begin(0, "fc_1", "c1"), argDelta(0, "fc_1", `{"cmd":"ls -l"}`), argDone(0, "fc_1", ls), completed), nil,
			[]msg.Call{{ID: "c1", Name: "shell", Args: `{"cmd":"ls -l"}`}}},
		{"the list has another order",
			events(begin(0, "fc_1", "c1"), begin(1, "fc_2", "c2"), end("completed", "", fc("fc_2", "c2", "shell", `{"cmd":"2"}`), fc("fc_1", "c1", "shell", `{"cmd":"1"}`))), nil,
			[]msg.Call{{ID: "c1", Name: "shell", Args: `{"cmd":"1"}`}, {ID: "c2", Name: "shell", Args: `{"cmd":"2"}`}}},
		{"the list has another call",
			events(done(0, fc("fc_1", "c1", "shell", ls)), end("completed", "", fc("fc_2", "c2", "read_file", `{"path":"a"}`))), nil,
			[]msg.Call{{ID: "c1", Name: "shell", Args: ls}, {ID: "c2", Name: "read_file", Args: `{"path":"a"}`}}},
		{"deferred arguments arrive as the model wrote them (S1-002)",
			events(begin(0, "fc_1", "c1"), argDelta(0, "fc_1", `{"source":"await tools.wiki({\"`), argDelta(0, "fc_1", `q\":1})"}`), done(0, fc("fc_1", "c1", "exec", `{"source":"await tools.wiki({\"q\":1})"}`)), completed), nil,
			[]msg.Call{{ID: "c1", Name: "exec", Args: `{"source":"await tools.wiki({\"q\":1})"}`}}},
		{"arguments as an object",
			events(`{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","id":"fc_1","call_id":"c1","name":"multiply","arguments":{"x":1337,"y":42.0}}}`, completed), nil,
			[]msg.Call{{ID: "c1", Name: "multiply", Args: `{"x":1337,"y":42.0}`}}},
		{"arguments as an object, in a delta",
			events(begin(0, "fc_1", "c1"), `{"type":"response.function_call_arguments.delta","output_index":0,"item_id":"fc_1","delta":{"cmd":"ls"}}`, completed), nil,
			[]msg.Call{{ID: "c1", Name: "shell", Args: ls}}},
		{"numeric ids, indexes as text",
			events(`{"type":"response.output_item.added","output_index":"0","item":{"type":"function_call","id":7,"call_id":8,"name":"shell"}}`, `{"type":"response.function_call_arguments.delta","output_index":"0","item_id":7,"delta":"{}"}`, completed), nil,
			[]msg.Call{{ID: "8", Name: "shell", Args: "{}"}}},
		{"no call_id",
			events(done(0, `{"type":"function_call","id":"fc_1","name":"shell","arguments":"{}"}`), completed), nil,
			[]msg.Call{{ID: "fc_1", Name: "shell", Args: "{}"}}},
		{"no id at all",
			events(done(0, `{"type":"function_call","name":"shell","arguments":"{}"}`), done(1, `{"type":"function_call","name":"shell","arguments":"{}"}`), completed), old,
			[]msg.Call{{ID: "call_2", Name: "shell", Args: "{}"}, {ID: "call_3", Name: "shell", Args: "{}"}}},
		{"ids used twice and before (BUG-CP-13)",
			events(done(0, fc("fc_1", "dup_1", "shell", `{"cmd":"1"}`)), done(1, fc("fc_1", "dup_1", "shell", `{"cmd":"2"}`)), end("completed", "", fc("fc_1", "dup_1", "shell", `{"cmd":"1"}`), fc("fc_1", "dup_1", "shell", `{"cmd":"2"}`))), old,
			[]msg.Call{{ID: "dup_1_2", Name: "shell", Args: `{"cmd":"1"}`}, {ID: "dup_1_3", Name: "shell", Args: `{"cmd":"2"}`}}},
		{"nothing, of a tool without arguments",
			events(done(0, fc("fc_1", "c1", "todo_list", "")), completed), nil,
			[]msg.Call{{ID: "c1", Name: "todo_list", Args: "{}"}}},
		{"nothing, of a tool that could take some: not guessed (BUG-AR-03)",
			events(done(0, fc("fc_1", "c1", "delete_records", "")), completed), nil,
			[]msg.Call{{ID: "c1", Name: "delete_records", Args: ""}}},
		{"broken arguments are kept as they are (BUG-AR-03)",
			events(begin(0, "fc_1", "c1"), argDelta(0, "fc_1", `{"where":{"id":7`), completed), nil,
			[]msg.Call{{ID: "c1", Name: "shell", Args: `{"where":{"id":7`}}},
		{"cut off by the limit (BUG-AR-03)",
			events(done(0, fc("fc_1", "c1", "shell", ls)), begin(1, "fc_2", "c2"), argDelta(1, "fc_2", `{"cmd":"r`), end("incomplete", `,"incomplete_details":{"reason":"max_output_tokens"}`, fc("fc_1", "c1", "shell", ls), strings.Replace(fc("fc_2", "c2", "shell", `{"cmd":"r`), "completed", "incomplete", 1))), nil,
			[]msg.Call{{ID: "c1", Name: "shell", Args: ls}, {ID: "c2", Name: "shell", Args: `{"cmd":"r`,
				Fault: "The call was cut off by the limit of output tokens after 9 bytes of its arguments; nothing was run. Make it again with less: write a long text in several calls, or explain less before the call."}}},
		{"cut off, and not the last one (BUG-AR-03)",
			events(begin(0, "fc_1", "c1"), argDelta(0, "fc_1", `{"cmd`), done(0, strings.Replace(fc("fc_1", "c1", "shell", `{"cmd`), "completed", "incomplete", 1)), done(1, fc("fc_2", "c2", "shell", ls)), completed), nil,
			[]msg.Call{{ID: "c1", Name: "shell", Args: `{"cmd`,
				Fault: "The call was cut off by the limit of output tokens after 5 bytes of its arguments; nothing was run. Make it again with less: write a long text in several calls, or explain less before the call."},
				{ID: "c2", Name: "shell", Args: ls}}},
		{"cut off by the limit, and the server says {} (BUG-AR-03)",
			events(begin(0, "fc_1", "c1"), argDelta(0, "fc_1", `{"cmd`), end("incomplete", "", fc("fc_1", "c1", "shell", `{}`))), nil,
			[]msg.Call{{ID: "c1", Name: "shell", Args: `{"cmd`,
				Fault: "The call was cut off by the limit of output tokens after 5 bytes of its arguments; nothing was run. Make it again with less: write a long text in several calls, or explain less before the call."}}},
		{"a phantom",
			events(added(0, `{"type":"function_call","id":"fc_0","name":"","arguments":""}`), done(1, fc("fc_1", "c1", "shell", ls)), completed), nil,
			[]msg.Call{{ID: "c1", Name: "shell", Args: ls}}},
		{"the type only in the name of the event",
			"event: response.output_item.done\ndata: {\"item\":" + fc("fc_1", "c1", "shell", ls) + "}\n\nevent: response.completed\ndata: {\"response\":{}}\n\n", nil,
			[]msg.Call{{ID: "c1", Name: "shell", Args: ls}}},
		{"duplicate names are kept for the parser to refuse",
			events(done(0, fc("fc_1", "c1", "shell", `{"cmd":1,"cmd":2}`)), completed), nil,
			[]msg.Call{{ID: "c1", Name: "shell", Args: `{"cmd":1,"cmd":2}`}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			turn := hear(t, "openai", tt.stream, tools4, tt.history)
			if diff := cmp.Diff(tt.want, madeCalls(turn)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if turn.Finish != llm.FinishCalls && turn.Finish != llm.FinishLength {
				t.Errorf("finish %s", turn.Finish)
			}
			if conflict := strings.Contains(tt.name, "BUG-AR-10") || strings.Contains(tt.name, "says {}"); conflict != (len(turn.Warnings) > 0) {
				t.Errorf("warnings %q", turn.Warnings)
			}
		})
	}
}

// Arguments and text may be cut anywhere: inside a character, as raw bytes or
// as halves of a pair, and inside an escape of the arguments' own JSON.
func TestCutAnywhere(t *testing.T) {
	const args = `{"text":"a\"\\\n\u00e9 é 漢 🙂 \ud83d\ude42"}`
	want := []msg.Call{{ID: "c1", Name: "shell", Args: args}}
	for i := 0; i <= len(args); i++ {
		stream := events(textDelta(0, "msg_1", args[:i]), textDelta(0, "msg_1", args[i:]),
			added(1, fc("fc_1", "c1", "shell", "")), argDelta(1, "fc_1", args[:i]), argDelta(1, "fc_1", args[i:]), completed)
		turn := hear(t, "openai", stream, tools4, nil)
		m := turn.Message()
		if diff := cmp.Diff(want, madeCalls(turn)); diff != "" || m.Text() != args {
			t.Fatalf("cut at %d: text %q (-want +got):\n%s", i, m.Text(), diff)
		}
	}
	var stream []string
	for _, s := range []string{`x \ud83d`, `\ude42 y\ud83d`, `z`, `\ud83d`} {
		stream = append(stream, strings.Replace(textDelta(0, "msg_1", "@"), "@", s, 1))
	}
	turn := hear(t, "openai", events(append(stream, completed)...), nil, nil)
	if m := turn.Message(); m.Text() != "x 🙂 y\uFFFDz\uFFFD" {
		t.Errorf("halves of a pair: %q", m.Text())
	}
}

// The parts of an answer are in the order of its items, whatever order they are
// written in, and keep what the provider wants back.
func TestParts(t *testing.T) {
	const rs = `{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"A"},{"type":"summary_text","text":"B"}],"content":null,"encrypted_content":"gAAA+/=","status":"completed"}`
	const state = `{"type":"reasoning","encrypted_content":"gAAA+/=","status":"completed","summary":[{"type":"summary_text","text":"A"},{"type":"summary_text","text":"B"}]}`
	const msgT = `{"id":"msg_1","type":"message","status":"completed","phase":"commentary","role":"assistant","content":[{"type":"output_text","text":"T","annotations":[]}]}`
	const ws = `{"id":"ws_1","type":"web_search_call","status":"completed","action":{"type":"search","query":"q"}}`
	summary := func(index, part int, s string) string {
		return fmt.Sprintf(`{"type":"response.reasoning_summary_text.delta","item_id":"rs_1","output_index":%d,"summary_index":%d,"delta":"%s"}`, index, part, s)
	}
	thought := msg.Part{Kind: msg.Reasoning, Text: "A\n\nB", State: json.RawMessage(state)}
	text := msg.Part{Kind: msg.Text, Text: "T", State: json.RawMessage(`{"phase":"commentary"}`)}
	made := msg.Part{Kind: msg.CallPart, Call: &msg.Call{ID: "c1", Name: "shell", Args: "{}"}}
	tests := []struct {
		name, stream string
		want         []msg.Part
	}{
		{"reasoning in parts, then text",
			events(added(0, `{"id":"rs_1","type":"reasoning","summary":[]}`), summary(0, 0, "A"), summary(0, 1, "B"), done(0, rs),
				added(1, `{"id":"msg_1","type":"message","content":[]}`), textDelta(1, "msg_1", "T"), done(1, msgT), end("completed", "", rs, msgT)),
			[]msg.Part{thought, text}},
		{"only in the list",
			events(end("completed", "", rs, msgT, fc("fc_1", "c1", "shell", "{}"))),
			[]msg.Part{thought, text, made}},
		{"interleaved, and a call between two texts",
			events(added(0, `{"id":"msg_1","type":"message"}`), textDelta(0, "msg_1", "T"), added(1, fc("fc_1", "c1", "shell", "")), added(2, `{"id":"msg_2","type":"message"}`),
				textDelta(2, "msg_2", "U"), argDelta(1, "fc_1", "{}"), textDelta(2, "msg_2", "V"), done(2, `{"id":"msg_2","type":"message","content":[{"type":"output_text","text":"UV"}]}`),
				done(0, msgT), done(1, fc("fc_1", "c1", "shell", "{}")), completed),
			[]msg.Part{text, made, msg.TextPart("UV")}},
		{"a text that waits for the one before",
			events(added(0, `{"id":"rs_1","type":"reasoning"}`), textDelta(1, "msg_1", "T"), summary(0, 0, "A"), summary(0, 1, "B"), done(0, rs), done(1, msgT), completed),
			[]msg.Part{thought, text}},
		{"a text that waits, and goes on",
			events(added(0, `{"id":"rs_1","type":"reasoning"}`), textDelta(1, "msg_1", "T"), done(0, rs), textDelta(1, "msg_1", "U"), completed),
			[]msg.Part{thought, msg.TextPart("TU")}},
		{"a text that only the list has",
			events(done(0, `{"id":"msg_1","type":"message","content":[]}`), end("completed", "", `{"id":"msg_1","type":"message","content":[{"text":"T"}]}`)),
			[]msg.Part{msg.TextPart("T")}},
		{"a text that waits to the end",
			events(added(0, `{"id":"rs_1","type":"reasoning"}`), summary(0, 0, "A"), textDelta(1, "msg_1", "T"), completed),
			[]msg.Part{{Kind: msg.Reasoning, Text: "A"}, msg.TextPart("T")}},
		{"reasoning in the open",
			events(`{"type":"response.reasoning_text.delta","item_id":"rs_1","output_index":0,"content_index":0,"delta":"R"}`, done(0, `{"id":"rs_1","type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"R"}]}`), completed),
			[]msg.Part{{Kind: msg.Reasoning, Text: "R", State: json.RawMessage(`{"type":"reasoning","content":[{"type":"reasoning_text","text":"R"}],"summary":[]}`)}}},
		{"reasoning in the open, not streamed",
			events(done(0, `{"id":"rs_1","type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"R"}]}`), completed),
			[]msg.Part{{Kind: msg.Reasoning, Text: "R", State: json.RawMessage(`{"type":"reasoning","content":[{"type":"reasoning_text","text":"R"}],"summary":[]}`)}}},
		{"a search of the provider goes back",
			events(added(0, `{"id":"ws_1","type":"web_search_call","status":"in_progress"}`), `{"type":"response.web_search_call.searching","output_index":0,"item_id":"ws_1"}`, done(0, ws), done(1, msgT), end("completed", "", ws, msgT)),
			[]msg.Part{{Kind: msg.Reasoning, State: json.RawMessage(`{"type":"web_search_call","action":{"type":"search","query":"q"},"status":"completed"}`)}, text}},
		{"an image",
			events(done(0, `{"id":"ig_1","type":"image_generation_call","status":"completed","output_format":"webp","result":"cG5n"}`), completed),
			[]msg.Part{{Kind: msg.Image, MIMEType: "image/webp", Data: []byte("png")}}},
		{"a refusal is text",
			events(`{"type":"response.refusal.delta","item_id":"msg_1","output_index":0,"content_index":0,"delta":"No."}`, done(0, `{"id":"msg_1","type":"message","content":[{"type":"refusal","refusal":"No."}]}`), completed),
			[]msg.Part{msg.TextPart("No.")}},
		{"a refusal that is not streamed, content as a string",
			events(done(0, `{"id":"msg_1","type":"message","content":"No."}`), completed),
			[]msg.Part{msg.TextPart("No.")}},
		{"texts without ids, indexes and beginnings",
			events(`{"type":"response.output_text.delta","delta":"T"}`, `{"type":"response.output_item.done","item":{"type":"message","phase":"commentary","content":[{"text":"T"}]}}`,
				`{"type":"response.output_text.delta","delta":"U"}`, completed),
			[]msg.Part{text, msg.TextPart("U")}},
		{"items and events that nobody knows",
			events(done(0, `{"id":"x_1","type":"new_thing","content":[{"type":"z"}]}`), `{"type":"response.new_thing.delta","delta":{"a":1}}`, textDelta(1, "msg_1", "T"), completed),
			[]msg.Part{msg.TextPart("T")}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			turn := hear(t, "openai", tt.stream, tools4, nil)
			if diff := cmp.Diff(tt.want, turn.Message().Parts); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Text is given out as it is written, not at the end.
func TestStreamed(t *testing.T) {
	c := answering("openai", answers{Body: strings.NewReader(events(added(0, `{"id":"rs_1","type":"reasoning"}`), done(0, `{"id":"rs_1","type":"reasoning","summary":[]}`),
		textDelta(1, "msg_1", "a"), textDelta(1, "msg_1", "b"), added(2, fc("fc_1", "c1", "shell", "")), argDelta(2, "fc_1", "{}"), completed))})
	var got []string
	for e, err := range c.Stream(t.Context(), &llm.Request{Model: "m", Messages: said("hi")}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%T", e))
	}
	want := []string{"llm.State", "llm.Text", "llm.Text", "llm.Progress", "llm.Call", "llm.Done"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestUsage(t *testing.T) {
	tests := map[string]struct {
		usage string
		want  msg.Usage
	}{
		"openai":  {`{"input_tokens":10,"input_tokens_details":{"cached_tokens":8},"output_tokens":5,"output_tokens_details":{"reasoning_tokens":2},"total_tokens":15}`, msg.Usage{Input: 10, Output: 5, Cached: 8, Reasoning: 2}},
		"writes":  {`{"input_tokens":10,"input_tokens_details":{"cached_tokens":8,"cache_write_tokens":2},"output_tokens":5}`, msg.Usage{Input: 10, Output: 5, Cached: 8, CacheWrite: 2}},
		"bare":    {`{"input_tokens":10.0,"output_tokens":"5","input_tokens_details":null}`, msg.Usage{Input: 10, Output: 5}},
		"none":    {`null`, msg.Usage{}},
		"hostile": {`{"input_tokens":-1e300,"output_tokens":{"a":1}}`, msg.Usage{}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			turn := hear(t, "openai", events(textDelta(0, "m", "x"), end("completed", `,"usage":`+tt.usage)), nil, nil)
			if diff := cmp.Diff(tt.want, turn.Usage); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Why an answer ended, and that nothing after its end matters.
func TestEnds(t *testing.T) {
	hello := textDelta(0, "msg_1", "x")
	tests := map[string]struct {
		stream string
		want   llm.Finish
	}{
		"completed":                 {events(hello, completed), llm.FinishStop},
		"rubbish after it":          {events(hello, completed) + "data: {\"oops", llm.FinishStop},
		"no response in it":         {events(hello, `{"type":"response.completed"}`), llm.FinishStop},
		"limit":                     {events(hello, end("incomplete", `,"incomplete_details":{"reason":"max_output_tokens"}`)), llm.FinishLength},
		"limit, by the status":      {events(hello, `{"type":"response.completed","response":{"status":"incomplete"}}`), llm.FinishLength},
		"filtered":                  {events(hello, end("incomplete", `,"incomplete_details":{"reason":"content_filter"}`)), llm.FinishFiltered},
		"a reason that is not told": {events(hello, end("incomplete", "")), llm.FinishLength},
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

// Small versions of large arguments are not each compared with them.
func TestManyVersions(t *testing.T) {
	done := func(args string) string {
		raw, _ := json.Marshal(args)
		return `data: {"type":"response.function_call_arguments.done","output_index":0,"name":"shell","arguments":` + string(raw) + "}\n\n"
	}
	large := `{"cmd":"` + strings.Repeat("x", 1<<20) + `"}`
	c := answering("openai", answers{Body: strings.NewReader(done(large) + strings.Repeat(done("{}"), 1000) + `data: {"type":"response.completed","response":{}}` + "\n\n")})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	turn, err := ask(t.Context(), c, &llm.Request{Model: "m", Messages: said("hi")})
	runtime.ReadMemStats(&after)
	m := turn.Message()
	if n := after.TotalAlloc - before.TotalAlloc; err != nil || len(m.Calls()) != 1 || m.Calls()[0].Args != large || n > 200<<20 {
		t.Errorf("%d calls, %d bytes allocated, %v", len(m.Calls()), n, err)
	}
}

// Whatever bytes come, there is an end: Done or an error, once and last, and
// text that is UTF-8, State that is JSON.
func FuzzStream(f *testing.F) {
	f.Add(events(added(0, fc("fc_1", "c1", "shell", "")), argDelta(0, "fc_1", "{}"), done(0, fc("fc_1", "c1", "shell", "{}")), completed))
	f.Add(events(done(0, `{"type":"reasoning","id":"rs_1","encrypted_content":"g","summary":[{"text":"x"}]}`), textDelta(0, "m", `\ud83d`), done(0, `{"type":"message","content":[{"text":"x"}],"phase":"commentary"}`), completed))
	f.Add(events(done(0, `{"type":"image_generation_call","result":"!"}`), end("incomplete", `,"incomplete_details":{"reason":"x"}`, fc("", "", "", ""))))
	f.Add("event: error\r\ndata: {\"code\":5}\r\n\r\n")
	f.Add(`{"output":[{"type":"message","content":"x"}]}`)
	f.Fuzz(func(t *testing.T, stream string) {
		c := answering("openai", answers{Body: strings.NewReader(stream)})
		ends := 0
		for e, err := range c.Stream(t.Context(), &llm.Request{Model: "m", Messages: said("hi"), Tools: tools4}) {
			if ends > 0 {
				t.Fatal("something follows the end")
			}
			switch e := e.(type) {
			case llm.Text:
				if e.Text != strings.ToValidUTF8(e.Text, "") {
					t.Fatalf("text %q is no UTF-8", e.Text)
				}
			case llm.State:
				if !json.Valid(e.Data) {
					t.Fatalf("state %q is no JSON", e.Data)
				}
			case llm.Done:
				ends++
			}
			if err != nil {
				ends++
			}
		}
		if ends != 1 {
			t.Fatalf("%d ends", ends)
		}
	})
}
