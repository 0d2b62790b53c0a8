package llm

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"capstan/internal/msg"
)

// What endpoints say when a tool's description is too long, and what is another
// matter.
func TestDescriptionsRefused(t *testing.T) {
	long := &Request{Model: "m", Tools: []msg.Declaration{{Name: "a", Description: "short"}, {Name: "b", Description: strings.Repeat("x", 1025)}}}
	short := &Request{Model: "m", Tools: []msg.Declaration{{Name: "a", Description: strings.Repeat("x", 1024)}}}
	bad := func(message string) *Error {
		e := &Endpoint{Name: "test"}
		raw, _ := json.Marshal(message)
		return e.Refusal(400, nil, []byte(`{"error":{"message":`+string(raw)+`}}`))
	}
	chat := "Invalid 'tools[1].function.description': string too long. Expected a string with maximum length 1024, but got a string with length 1025 instead."
	for _, tt := range []struct {
		name string
		r    *Request
		e    *Error
		most int // 0: not refused for it
	}{
		{"chat completions", long, bad(chat), 1024},
		{"responses", long, bad(strings.Replace(chat, ".function", "", 1)), 1024},
		{"through a proxy", long, bad("litellm.BadRequestError: AzureException - " + chat + ". Received Model Group=x"), 1024},
		{"another limit", long, bad(strings.Replace(chat, "1024", "512", 1)), 512},
		{"a validator's words", long, bad("tools.1.function.description: String should have at most 1000 characters"), 1000},
		{"no number", long, bad("tool b: description too long"), 1024},
		{"a number that is none", long, bad("description: at most 1 character"), 0},
		{"ours are not", short, bad(chat), 0},
		{"another field", long, bad(strings.Replace(chat, "description", "name", 1)), 0},
		{"another kind", long, &Error{Kind: ErrOverloaded, Message: chat}, 0},
	} {
		var d Descriptions
		if got := d.Refused(tt.r, tt.e); got != (tt.most > 0) {
			t.Errorf("%s: refused for descriptions: %v", tt.name, got)
		}
		got, _ := d.most.Load("m")
		if n, _ := got.(int); n != tt.most {
			t.Errorf("%s: the limit is %d, want %d", tt.name, n, tt.most)
		}
		if d.Refused(tt.r, tt.e) {
			t.Errorf("%s: news twice", tt.name)
		}
	}
}

// A description is cut at a line, a word or a character; the whole text stands
// in the system prompt under the name that the model sees. Nothing else changes.
func TestDescriptionsFit(t *testing.T) {
	lines := strings.Repeat("A line of thirty-two characters\n", 40) // 1,280 bytes
	words := strings.Repeat("word ", 300)
	runes := strings.Repeat("語", 400) // 1,200 bytes
	name := strings.Repeat("n", 70)
	r := &Request{Model: "m", System: "S", Tools: []msg.Declaration{{Name: "fits", Description: strings.Repeat("x", 1024)}, {Name: name, Description: lines}, {Name: "words", Description: words}, {Name: "runes", Description: runes}}}
	names := NewNames(Rule{Max: 64, Chars: "_-"}, r.Tools, nil)
	var d Descriptions
	before, _ := json.Marshal(r)
	if system, tools := d.Fit(r, names); system != "S" || cmp.Diff(r.Tools, tools) != "" {
		t.Errorf("changed before anything was refused: %s", system)
	}
	d.most.Store("m", 1024)
	system, tools := d.Fit(r, names)
	wantSystem := fmt.Sprintf("S\n\nTools, in full:\n\n%s:\n%s\n\nwords:\n%s\n\nrunes:\n%s", names.Wire(name), strings.TrimSpace(lines), strings.TrimSpace(words), runes)
	if diff := cmp.Diff(wantSystem, system); diff != "" {
		t.Errorf("system (-want +got):\n%s", diff)
	}
	const rest = "\n(Cut. In full in the system prompt.)"
	want := []msg.Declaration{r.Tools[0], {Name: name, Description: strings.TrimSpace(lines[:30*32]) + rest}, {Name: "words", Description: strings.TrimSpace(words[:985]) + rest}, {Name: "runes", Description: runes[:987] + rest}}
	if diff := cmp.Diff(want, tools); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
	for _, tool := range tools {
		if len(tool.Description) > 1024 || !utf8.ValidString(tool.Description) {
			t.Errorf("%s has %d bytes: %q", tool.Name, len(tool.Description), tool.Description)
		}
	}
	again, _ := d.Fit(r, names)
	if after, _ := json.Marshal(r); again != system || string(after) != string(before) {
		t.Error("the second time it is another, or the request was changed")
	}
	if system, _ := d.Fit(&Request{Model: "m", System: "S", Tools: r.Tools[:1]}, names); system != "S" {
		t.Errorf("nothing to cut: %s", system)
	}
	if system, _ := d.Fit(&Request{Model: "other", System: "S", Tools: r.Tools}, names); system != "S" {
		t.Errorf("another model: %s", system)
	}
}

// An endpoint that takes fewer tools than its profile says is told of as well.
func TestTooManyToolsRefused(t *testing.T) {
	e := (&Endpoint{Name: "test"}).Refusal(400, nil, []byte(`{"error":{"message":"Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length 150 instead.","code":"array_above_max_length"}}`))
	if e.Kind != ErrBadRequest || e.Advice != fewerTools {
		t.Errorf("got %v", e)
	}
}

// The error of too many tools says how many there are, and what to do.
func TestCrowded(t *testing.T) {
	e := &Endpoint{Name: "test"}
	r := &Request{Tools: make([]msg.Declaration, 100), Hosted: make([]json.RawMessage, 29)}
	want := &Error{Kind: ErrBadRequest, Provider: "test", Message: "the request would declare 129 tools, and the API takes at most 128", Advice: fewerTools}
	if diff := cmp.Diff(error(want), e.Crowded(r, 128)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, most := range []int{0, 129} {
		if err := e.Crowded(r, most); err != nil {
			t.Errorf("at most %d: %v", most, err)
		}
	}
}
