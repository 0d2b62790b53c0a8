package llm

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capstan/internal/msg"
)

func TestTurn(t *testing.T) {
	state := json.RawMessage(`1`)
	turn := NewTurn("f/m")
	var half msg.Message
	for i, e := range []Event{
		Text{"lost"}, Call{Call: msg.Call{ID: "lost"}}, Warning{"kept"}, Retry{Attempt: 2},
		Reasoning{"r"}, Reasoning{"1"}, State{msg.Reasoning, state}, State{msg.Reasoning, state}, Reasoning{"r2"},
		Text{"a"}, Text{""}, Text{"b"}, Progress{"t", 1}, Call{msg.Call{ID: "1"}, state}, Text{"c"}, State{msg.Text, state}, Text{"d"},
		Media{msg.Part{Kind: msg.Image, Data: []byte("x")}}, Usage{msg.Usage{Input: 1}}, Usage{msg.Usage{Input: 2}}, Done{Finish: FinishStop},
	} {
		turn.Add(e)
		if i == 9 {
			half = turn.Message()
		}
	}
	want := msg.Message{Role: msg.Assistant, Origin: "f/m", Parts: []msg.Part{
		{Kind: msg.Reasoning, Text: "r1", State: state}, {Kind: msg.Reasoning, State: state}, {Kind: msg.Reasoning, Text: "r2"},
		{Kind: msg.Text, Text: "ab"}, {Kind: msg.CallPart, Call: &msg.Call{ID: "1"}, State: state},
		{Kind: msg.Text, Text: "c", State: state}, {Kind: msg.Text, Text: "d"}, {Kind: msg.Image, Data: []byte("x")},
	}}
	if diff := cmp.Diff(want, turn.Message()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(append(want.Parts[:3:3], msg.TextPart("a")), half.Parts); diff != "" {
		t.Errorf("in between (-want +got):\n%s", diff)
	}
	if turn.Usage.Input != 2 || turn.Finish != FinishStop || len(turn.Warnings) != 1 {
		t.Errorf("%+v", turn)
	}
	// A session log keeps it without loss.
	raw, err := json.Marshal(turn.Message())
	var back msg.Message
	if err != nil || json.Unmarshal(raw, &back) != nil || cmp.Diff(want, back) != "" {
		t.Errorf("as JSON: %v %s", err, cmp.Diff(want, back))
	}
}

func BenchmarkTurn(b *testing.B) {
	piece := Text{strings.Repeat("x", 10)}
	turn := NewTurn("f/m")
	for b.Loop() {
		turn.Add(piece)
	}
}
