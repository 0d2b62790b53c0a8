package llmtest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"

	"capstan/internal/msg"
)

// Transcript returns a random conversation as a session may hold it: calls
// that were interrupted, denied or never answered, answered late, twice or for
// nothing, ids used again, arguments that are no JSON, names that no API takes,
// empty texts, media, reasoning of several models, any order of roles. The same
// rand gives the same conversation.
func Transcript(r *rand.Rand) []msg.Message {
	t := &transcript{Rand: r}
	n := 1 + r.IntN(12)
	for len(t.out) < n {
		switch r.IntN(8) {
		case 0, 1, 2:
			t.out = append(t.out, msg.Message{Role: msg.User, Parts: t.parts(3)})
		case 3, 4, 5, 6:
			t.assistant()
		case 7:
			t.out = append(t.out, msg.Message{Role: msg.Tool, Results: []msg.Result{t.result(t.id())}})
		}
	}
	return t.out
}

type transcript struct {
	*rand.Rand
	out []msg.Message
	ids []string
}

var (
	transcriptOrigins = []string{"openai/m", "anthropic/m", "gemini/m", "responses/m", "openai/other", ""}
	transcriptTexts   = []string{"", " \n", "hello", "ü 漢字 🙂", "line\nline", strings.Repeat("x", 200), "\x00\u2028\u202e", "</tool_call>"}
	transcriptArgs    = []string{"{}", `{"path":"a"}`, "", `{"path": "a`, `[1]`, `"s"`, "null", `{"a":1,"a":2}`, "{\"x\":\"\xff\"}", `{"n":12345678901234567890}`, "not json"}
	transcriptNames   = []string{"read_file", "exec", "mcp__server.with.dots__tool", strings.Repeat("long_", 30), "todo/todoWrite", "", "名前", "9lives", "$defs"}
)

func pick[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }

// id is one in use already, a new one, or one that few APIs take.
func (t *transcript) id() string {
	if len(t.ids) > 0 && t.IntN(3) == 0 {
		return pick(t.Rand, t.ids)
	}
	id := pick(t.Rand, []string{"", "call_0", "dup_1", "search:0", "fc_" + fmt.Sprint(t.IntN(100)), strings.Repeat("i", 80), "ü"})
	t.ids = append(t.ids, id)
	return id
}

func (t *transcript) parts(n int) []msg.Part {
	var out []msg.Part
	for range t.IntN(n + 1) {
		switch t.IntN(6) {
		case 0:
			out = append(out, msg.Part{Kind: msg.Image, MIMEType: pick(t.Rand, []string{"image/png", "image/tiff", ""}), Data: pick(t.Rand, [][]byte{Pixel, Pixel, Pixel[:10], []byte("<html>404</html>")}), Name: "a.png"})
		case 1:
			out = append(out, pick(t.Rand, []msg.Part{
				{Kind: msg.Audio, MIMEType: "audio/wav", Data: []byte("RIFF")},
				{Kind: msg.Audio, MIMEType: "audio/ogg", Data: []byte("OggS")},
				{Kind: msg.File, MIMEType: "application/pdf", Data: []byte("%PDF"), Name: "b.pdf"},
				{Kind: msg.Link, URI: "file:///x", Name: "x"},
				{Kind: msg.Image},
			}))
		default:
			out = append(out, msg.TextPart(pick(t.Rand, transcriptTexts)))
		}
	}
	return out
}

// assistant adds an answer, and most of the time what follows its calls.
func (t *transcript) assistant() {
	m := msg.Message{Role: msg.Assistant, Origin: pick(t.Rand, transcriptOrigins)}
	var calls []string
	for range t.IntN(5) {
		switch t.IntN(4) {
		case 0:
			m.Parts = append(m.Parts, msg.TextPart(pick(t.Rand, transcriptTexts)))
		case 1:
			p := msg.Part{Kind: msg.Reasoning, Text: pick(t.Rand, transcriptTexts)}
			if t.IntN(2) == 0 {
				p.State = json.RawMessage(`{"opaque":true}`)
			}
			m.Parts = append(m.Parts, p)
		default:
			id := t.id()
			calls = append(calls, id)
			m.Parts = append(m.Parts, msg.Part{Kind: msg.CallPart, Call: &msg.Call{ID: id, Name: pick(t.Rand, transcriptNames), Args: pick(t.Rand, transcriptArgs)}})
		}
	}
	t.out = append(t.out, m)
	if t.IntN(4) == 0 {
		t.out = append(t.out, msg.Message{Role: msg.User, Parts: t.parts(2)}) // an interrupt
	}
	var results []msg.Result
	for _, id := range calls {
		for range pick(t.Rand, []int{0, 1, 1, 1, 1, 2}) {
			results = append(results, t.result(id))
		}
	}
	t.Shuffle(len(results), func(i, k int) { results[i], results[k] = results[k], results[i] })
	if t.IntN(2) == 0 && len(results) > 0 {
		t.out = append(t.out, msg.Message{Role: msg.Tool, Results: results})
		return
	}
	for i := range results {
		t.out = append(t.out, msg.Message{Role: msg.Tool, Results: results[i : i+1]})
	}
}

func (t *transcript) result(id string) msg.Result {
	return msg.Result{CallID: id, Status: pick(t.Rand, []string{"success", "error", "denied", "cancelled"}), Parts: t.parts(2)}
}
