package openai

import (
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capstan/internal/llm"
	"capstan/internal/msg"
)

// Calls that a server left in the text are found whatever pieces they come in,
// and nothing else is taken for one. BUG-SD-08, BUG-SD-11, BUG-SD-18
func TestLeaks(t *testing.T) {
	ls := []msg.Call{{ID: "call_1", Name: "shell", Args: `{"cmd":"ls"}`}}
	two := append(ls[:1:1], msg.Call{ID: "call_2", Name: "read_file", Args: `{"path":"a"}`})
	const hermes = `<tool_call>{"name":"shell","arguments":{"cmd":"ls"}}</tool_call>`
	tests := []struct {
		name, text string
		calls      []msg.Call
		rest       string
		leaked     bool
	}{
		{"hermes", "Let me look. " + hermes, ls, "Let me look. ", false},
		{"hermes, arguments as text", `<tool_call>{"name":"shell","arguments":"{\"cmd\":\"ls\"}"}</tool_call>`, ls, "", false},
		{"hermes, two", hermes + "\n<tool_call>\n" + `{"name":"read_file","arguments":{"path":"a"}}` + "\n</tool_call>\n", two, "", false},
		{"hermes, end tag swallowed", `<tool_call>{"name":"shell","arguments":{"cmd":"ls"}}`, ls, "", false},
		{"qwen coder", "<tool_call>\n<function=shell>\n<parameter=cmd>\nls\n</parameter>\n</function>\n</tool_call>", ls, "", false},
		{"qwen coder, bare", "ok\n<function=shell><parameter=cmd>ls</parameter></function>", ls, "ok\n", false},
		{"mistral list", `[TOOL_CALLS][{"name":"shell","arguments":{"cmd":"ls"}},{"name":"read_file","arguments":{"path":"a"}}]`, two, "", false},
		{"mistral by name", `[TOOL_CALLS]shell[ARGS]{"cmd":"ls"}[TOOL_CALLS]read_file{"path":"a"}`, two, "", false},
		{"kimi", `<|tool_calls_section_begin|><|tool_call_begin|>functions.shell:0<|tool_call_argument_begin|>{"cmd":"ls"}<|tool_call_end|><|tool_calls_section_end|>`, ls, "", false},
		{"deepseek", `<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>shell<｜tool▁sep｜>{"cmd":"ls"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>`, ls, "", false},
		{"after a fence", "```\ncode\n```\n" + hermes, ls, "```\ncode\n```\n", false},
		{"in a fence", "An example:\n```\n" + hermes + "\n```", nil, "An example:\n```\n" + hermes + "\n```", false},
		{"in a fence that is not closed", "An example:\n~~~xml\n" + hermes, nil, "An example:\n~~~xml\n" + hermes, false},
		{"in a span", "Write `" + hermes + "`", nil, "Write `" + hermes + "`", false},
		{"not at the end", hermes + " is how it is written.", nil, hermes + " is how it is written.", true},
		{"no such tool", `<tool_call>{"name":"nuke","arguments":{}}</tool_call>`, nil, `<tool_call>{"name":"nuke","arguments":{}}</tool_call>`, true},
		{"broken", `<tool_call>{"name":"shell","argum`, nil, `<tool_call>{"name":"shell","argum`, true},
		{"only looks like one", "a < b [TOOL x <tool_cal", nil, "a < b [TOOL x <tool_cal", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for i := 0; i <= len(tt.text); i++ {
				stream := deltas("stop", `{"content":`+rawQuoteLines(tt.text[:i])+`}`, `{"content":`+rawQuoteLines(tt.text[i:])+`}`)
				check := func(profile string, calls []msg.Call, rest string, leaked bool) {
					t.Helper()
					turn, done := hearDone(t, profile, stream)
					m := turn.Message()
					if diff := cmp.Diff(calls, madeCalls(turn)); diff != "" || m.Text() != rest || done.Leaked != leaked {
						t.Fatalf("%s, cut at %d: text %q, leaked %v (-want +got):\n%s", profile, i, m.Text(), done.Leaked, diff)
					}
				}
				check("compatible", tt.calls, tt.rest, tt.leaked)
				if i == 0 {
					check("openai", nil, tt.text, false)
				}
			}
		})
	}
}

// A call that the server made itself is not made again from the text.
func TestLeakBesideCall(t *testing.T) {
	const hermes = `<tool_call>{"name":"shell","arguments":{"cmd":"rm"}}</tool_call>`
	turn := hear(t, "compatible", deltas("tool_calls", `{"content":`+rawQuote(hermes)+`}`, calls(`{"index":0,"id":"a","function":{"name":"shell","arguments":"{}"}}`)), tools4, nil)
	m := turn.Message()
	if diff := cmp.Diff([]msg.Call{{ID: "a", Name: "shell", Args: "{}"}}, madeCalls(turn)); diff != "" || m.Text() != hermes {
		t.Errorf("text %q (-want +got):\n%s", m.Text(), diff)
	}
}

func rawQuoteLines(s string) string {
	raw := rawQuote(s)
	out := make([]byte, 0, len(raw))
	for _, c := range []byte(raw) {
		if c == '\n' {
			out = append(out, `\n`...)
			continue
		}
		out = append(out, c)
	}
	return string(out)
}

func hearDone(t *testing.T, profile, stream string) (*llm.Turn, llm.Done) {
	t.Helper()
	c := answering(profile, answers{Body: strings.NewReader(stream)})
	turn := llm.NewTurn("openai/m")
	var done llm.Done
	for e, err := range c.Stream(t.Context(), &llm.Request{Model: "m", Messages: said("hi"), Tools: tools4}) {
		if err != nil {
			t.Fatal(err)
		}
		turn.Add(e)
		if d, ok := e.(llm.Done); ok {
			done = d
		}
	}
	return turn, done
}

// Each parameter costs the same. To copy all before it took minutes for what fits
// into one answer.
func TestManyParameters(t *testing.T) {
	call := "<function=f>" + strings.Repeat("<parameter=a>b</parameter>", 20_000) + "</function>"
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	c, _, ok := readFunction(call)
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; !ok || len(c.args) < 20_000 || n > 100<<20 {
		t.Errorf("%v: %d bytes are allocated for a call of %d", ok, n, len(call))
	}
}

func FuzzLeaks(f *testing.F) {
	f.Add("text <tool_call>{\"name\":\"shell\",\"arguments\":{}}</tool_call>", 3)
	f.Add("[TOOL_CALLS][", 1)
	f.Add("<function=x><parameter=", 9)
	f.Add("<|tool_calls_section_begin|><|tool_call_begin|>", 5)
	f.Fuzz(func(t *testing.T, text string, cut int) {
		if cut < 0 || cut > len(text) {
			return
		}
		profile := compatible()
		run := func(pieces ...string) (string, string, []leakedCall) {
			var fl filter
			fl.think, fl.leak = profile.ThinkTags, true
			fl.declared = map[string]bool{"shell": true}
			var thought, said string
			for _, p := range pieces {
				a, b := fl.push(p)
				thought, said = thought+a, said+b
			}
			a, b, calls, _ := fl.close(true)
			return thought + a, said + b, calls
		}
		t1, s1, c1 := run(text)
		t2, s2, c2 := run(text[:cut], text[cut:])
		if t1 != t2 || s1 != s2 || len(c1) != len(c2) {
			t.Fatalf("cut at %d: %q %q %v, whole: %q %q %v", cut, t2, s2, c2, t1, s1, c1)
		}
		for _, c := range c1 {
			if c.name != "shell" {
				t.Fatalf("a call of a tool that is not declared: %+v", c)
			}
		}
	})
}
