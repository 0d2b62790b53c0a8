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
