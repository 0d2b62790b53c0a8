package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capstan/internal/tool"
)

// zeroes is a list that costs a server two bytes an entry.
func zeroes(n int) string { return "[0" + strings.Repeat(",0", n-1) + "]" }

// allocated is how many bytes f allocates.
func allocated(f func()) int {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int(after.TotalAlloc - before.TotalAlloc)
}

// What an answer costs is bounded by its bytes and not by what they spell.
func TestResultsOfMillionsOfValues(t *testing.T) {
	x, _, err := newRemote(newServer(New(Options{Registry: &tool.Registry{}}), Config{Name: "s"}), definition{Name: "t"})
	if err != nil {
		t.Fatal(err)
	}
	const n = 2 * maxValues
	for raw, want := range map[string]struct {
		parts  int
		remark string
	}{
		`{"content":` + zeroes(n) + `,"isError":false}`:  {maxBlocks, "the result has more than 10000 blocks of content; the rest is left out"},
		`{"content":` + zeroes(maxBlocks) + `}`:          {maxBlocks, ""},
		`{"structuredContent":` + zeroes(n) + `}`:        {1, "the structuredContent of the result cannot be read and is given as text: it has more than 1000000 values"},
		`{"content":[` + zeroes(n) + `],"isError":true}`: {1, ""},
	} {
		var res tool.Result
		used := allocated(func() { res = x.result(json.RawMessage(raw)) })
		if len(res.Parts) != want.parts || strings.Join(res.Remarks, "; ") != want.remark {
			t.Errorf("%.30s: %d parts, %q", raw, len(res.Parts), res.Remarks)
		}
		if most := 10*len(raw) + 20<<20; used > most {
			t.Errorf("%.30s: %d bytes for %d", raw, used, len(raw))
		}
	}
}

// A list costs no more than its bound either, even if no entry is of use, and is
// not read on when its time is over.
func TestListsOfMillionsOfEntries(t *testing.T) {
	list := zeroes(1_000_000)
	r := newRig(t, Options{}, httpServer("web", serve(t, rawHTTP(map[string]func(http.ResponseWriter, *http.Request, json.RawMessage){
		"tools/list": func(w http.ResponseWriter, _ *http.Request, id json.RawMessage) {
			answerJSON(w, id, `{"tools":`+list+`}`)
		},
		"resources/list": func(w http.ResponseWriter, _ *http.Request, id json.RawMessage) {
			answerJSON(w, id, `{"resources":[`+strings.Repeat(`{},`, 100)+`{}]}`)
		},
	}))))
	r.ready()
	if w := strings.Join(r.Status()[0].Warnings, "\n"); !strings.Contains(w, fmt.Sprintf("its list tools has more than %d entries", maxTools)) {
		t.Errorf("warnings: %s", w)
	}
	c, err := r.acquire(r.ctx, "web")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(r.ctx)
	n := 0
	err = c.s.pages(ctx, c, listResources, "resources", maxListed, func(json.RawMessage) bool {
		n++
		cancel()
		return true
	})
	if n != 1 || !errors.Is(err, context.Canceled) {
		t.Errorf("%d entries were read, %v", n, err)
	}
}

func TestElementsAndMembers(t *testing.T) {
	read := func(list string) (got []string) {
		if err := elements(json.RawMessage(list), func(v json.RawMessage) bool { got = append(got, string(v)); return true }); err != nil {
			got = append(got, "error")
		}
		return got
	}
	for list, want := range map[string][]string{
		"": nil, " null ": nil, "[]": nil, ` [1, "a" ,{"b":[]}] `: {"1", `"a"`, `{"b":[]}`},
		"{}": {"error"}, "1": {"error"}, "[1,": {"1", "error"}, "[1 2]": {"1", "error"},
	} {
		if diff := cmp.Diff(want, read(list)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", list, diff)
		}
	}
	for object, want := range map[string]string{
		`{}`: `["" ""]`, `{"x":1,"b":[2],"a":null,"b":3}`: `["null" "3"]`,
		`[]`: "", `null`: "", `{"a":1`: "", `{"a":1}x`: "", `{"a" 1}`: "", "": "",
	} {
		got, err := members(json.RawMessage(object), "a", "b")
		if err == nil != (want != "") || err == nil && fmt.Sprintf("%q", got) != want {
			t.Errorf("%s: %q, %v", object, got, err)
		}
	}
}

// What is read of a resource, a prompt, its gaps and a question is bounded as well,
// and what is left out is told.
func TestAnswersOfMillionsOfPieces(t *testing.T) {
	const n = 400_000
	empty := "[{}" + strings.Repeat(",{}", n) + "]"
	r := newRig(t, Options{}, httpServer("web", serve(t, rawHTTP(map[string]func(http.ResponseWriter, *http.Request, json.RawMessage){
		"tools/list": func(w http.ResponseWriter, _ *http.Request, id json.RawMessage) { answerJSON(w, id, `{"tools":[]}`) },
		"resources/read": func(w http.ResponseWriter, _ *http.Request, id json.RawMessage) {
			answerJSON(w, id, `{"contents":`+empty+`}`)
		},
		"prompts/get": func(w http.ResponseWriter, _ *http.Request, id json.RawMessage) {
			answerJSON(w, id, `{"messages":`+empty+`}`)
		},
		"prompts/list": func(w http.ResponseWriter, _ *http.Request, id json.RawMessage) {
			answerJSON(w, id, `{"prompts":[{"name":"p","arguments":`+empty+`},{"name":"q","arguments":[{"name":"a","required":true}]},{"name":"r","arguments":[7]}]}`)
		},
	}))))
	r.ready()
	parts, remarks, err := r.ReadResource(r.ctx, "web", "x://1")
	if len(parts) != maxBlocks || strings.Join(remarks, "; ") != "the resource has more than 10000 pieces; the rest is left out" || err != nil {
		t.Errorf("a resource of %d parts, %q, %v", len(parts), remarks, err)
	}
	if list, err := r.Prompt(r.ctx, "web", "p", nil); len(list) != maxBlocks || err != nil {
		t.Errorf("a prompt of %d messages, %v", len(list), err)
	}
	prompts, err := r.Prompts(r.ctx, "web")
	want := []Prompt{{Server: "web", Name: "p", Arguments: make([]PromptArgument, maxGaps)}, {Server: "web", Name: "q", Arguments: []PromptArgument{{Name: "a", Required: true}}}}
	if diff := cmp.Diff(want, prompts); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if diff := cmp.Diff([]string{"prompt p has more than 10000 messages; the rest is left out", "prompt p has more than 100 arguments; the rest is left out"}, r.Status()[0].Warnings); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if used := allocated(func() { _, _, err = listIn[resource](r.ctx, json.RawMessage(`{"contents":`+empty+`}`), "contents") }); used > 10*len(empty) || err != nil {
		t.Errorf("%d bytes for %d, %v", used, len(empty), err)
	}
	ended, cancel := context.WithCancel(r.ctx)
	cancel()
	if list, _, err := listIn[resource](ended, json.RawMessage(`{"contents":[{}]}`), "contents"); list != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("read after its time: %v, %v", list, err)
	}
}

func TestMillionsOfQuestions(t *testing.T) {
	ask := func(n int, format string) json.RawMessage {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, ","+format, i)
		}
		return json.RawMessage(`{"resultType":"input_required","requestState":"st","inputRequests":{` + b.String()[1:] + `}}`)
	}
	for _, raw := range []json.RawMessage{ask(maxWanted+1, `"k%d":{}`), ask(300_000, `"k%d":{}`), ask(300_000, `"k":{"n":%d}`)} {
		var want *needed
		var err error
		used := allocated(func() { want, err = wants(raw) })
		if want != nil || err == nil || err.Error() != "it wants more than 100 things at once, which is more than a person is asked" || used > 10*len(raw)+1<<20 {
			t.Errorf("%.80s: %v, %v, %d bytes for %d", raw, want, err, used, len(raw))
		}
	}
	got, err := wants(ask(maxWanted, `"k%d":{"method":"roots/list"}`))
	if err != nil || got.State != "st" || len(got.Requests) != maxWanted || got.Requests["k7"].Method != "roots/list" {
		t.Errorf("%+v, %v", got, err)
	}
}
