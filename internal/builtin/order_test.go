package builtin

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"capstan/internal/sched"
	"capstan/internal/tool"
)

// batch runs calls as one model turn, through the whole path of a call.
func (s *session) batch(calls ...tool.Call) []tool.Result {
	s.Helper()
	return s.batchWith(sched.Options{}, calls...)
}

func (s *session) batchWith(o sched.Options, calls ...tool.Call) []tool.Result {
	s.Helper()
	var reg tool.Registry
	if err := reg.Add(allOf(s.f)...); err != nil {
		s.Fatal(err)
	}
	rt := sched.New(o)
	return rt.Run(s.Context(), func() *tool.View { return reg.View(tool.Direct, tool.Scope{}) }, calls)
}

func request(id int, name string, args obj) tool.Call {
	raw, err := json.Marshal(args)
	if err != nil {
		panic(err) // a fault of the test
	}
	return tool.Call{ID: fmt.Sprint(id), Name: name, Args: raw}
}

// Edits of one path submitted together all apply, whatever the path is called,
// and a read in between sees what the calls before it did and no more.
func TestOnePathInOrder(t *testing.T) { // BUG-CC-01 BUG-CC-03
	s := newSession(t)
	var lines strings.Builder
	for i := range 40 {
		fmt.Fprintf(&lines, "<%d>\n", i)
	}
	s.write("f", lines.String())
	s.link("f", "g")
	s.ok("read_file", obj{"file_path": "f"})
	var calls []tool.Call
	for i := range 40 {
		calls = append(calls, request(i, "edit", obj{"file_path": []string{"f", "./f", "g"}[i%3], "old_string": fmt.Sprintf("<%d>", i), "new_string": fmt.Sprintf("[%d]", i)}))
	}
	calls = append(calls[:20:20], append([]tool.Call{request(100, "read_file", obj{"file_path": "g"})}, calls[20:]...)...)
	for i, r := range s.batch(calls...) {
		if r.Status != tool.Success {
			t.Errorf("call %d: %s", i, r.Text())
		}
		if i == 20 && (strings.Count(r.Text(), "[") != 20 || !strings.Contains(r.Text(), "[19]\n<20>")) {
			t.Errorf("the read in the middle saw\n%s", r.Text())
		}
	}
	s.holds("f", strings.NewReplacer("<", "[", ">", "]").Replace(lines.String()))

	rs := s.batch(
		request(1, "write_file", obj{"file_path": "a", "content": "one"}),
		request(2, "read_file", obj{"file_path": "a"}),
		request(3, "edit", obj{"file_path": "a", "old_string": "one", "new_string": "two"}),
		request(4, "read_file", obj{"file_path": "a"}),
	)
	if rs[1].Text() != "one" || rs[3].Text() != "two" {
		t.Errorf("read %q, then %q", rs[1].Text(), rs[3].Text())
	}
}

// only is a policy that allows what one function does.
type only func(*sched.Request) bool

func (f only) Decide(_ context.Context, r *sched.Request) sched.Verdict {
	if f(r) {
		return sched.Verdict{Decision: sched.Allow}
	}
	return sched.Verdict{Decision: sched.Deny}
}

// Each call touches what it itself was judged by, whatever id the model gave to
// it and to others.
func TestSameIDs(t *testing.T) { // BUG-PP-01
	for _, turn := range [][]tool.Call{
		{request(1, "write_file", obj{"file_path": "in", "content": "x"}), request(1, "write_file", obj{"file_path": "../out", "content": "y"})},
		{request(1, "write_file", obj{"file_path": "../out", "content": "y"}), request(1, "write_file", obj{"file_path": "in", "content": "x"})},
	} {
		s := newSession(t)
		s.f.place.Move(s.path("ws"), nil)
		s.write("ws/f", "")
		inside := only(func(r *sched.Request) bool { return strings.HasPrefix(r.Access.Writes[0], s.f.place.Dir()) })
		for i, r := range s.batchWith(sched.Options{Policy: inside}, turn...) {
			want := tool.Success
			if strings.Contains(string(turn[i].Args), "out") {
				want = tool.Denied
			}
			if r.Status != want || r.CallID != "1" {
				t.Errorf("%s: %s of %q: %s", turn[i].Args, r.Status, r.CallID, r.Text())
			}
		}
		s.clean(".", "ws")
		s.clean("ws", "f", "in")
		s.holds("ws/in", "x")
	}
}

// The schemas are those that the arguments are read by: a call that breaks one
// never gets as far as the tool.
func TestArguments(t *testing.T) { // S3-020 S3-024
	s := newSession(t)
	s.write("f", "x\n")
	for _, tt := range []struct {
		name string
		args obj
	}{
		{"read_file", obj{}}, {"read_file", obj{"file_path": 5}}, {"read_file", obj{"file_path": "f", "offset": -1}},
		{"read_file", obj{"file_path": "f", "limit": 0}}, {"read_file", obj{"file_path": "f", "Offset": 1}},
		{"list_directory", obj{"dir": "."}}, {"glob", obj{}}, {"grep_search", obj{"path": "."}}, {"grep_search", obj{"pattern": "x", "limit": 0}},
		{"write_file", obj{"file_path": "g"}}, {"edit", obj{"file_path": "f", "old_string": "x"}}, {"edit", obj{"file_path": "f", "old_string": "x", "new_string": "y", "replace_all": 1}},
	} {
		r := s.batch(request(1, tt.name, tt.args))[0]
		if r.Code != tool.CodeInvalidArgs {
			t.Errorf("%s %v: %s %s", tt.name, tt.args, r.Code, r.Text())
		}
	}
	s.clean(".", "f")
}
