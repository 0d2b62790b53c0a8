package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capstan/internal/msg"
)

// delegated is a session with two subagents, each with a transcript of its own.
func delegated(t *testing.T, s *Store) (session string, subs []string) {
	t.Helper()
	check := func(errs ...error) {
		t.Helper()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
	l := s.Create(Header{Dir: "/home/me/project", Model: "openai/m"})
	check(l.Message(user("Review it.")), l.Message(calls(msg.Call{ID: "c1", Name: "agent", Args: `{"prompt":"look"}`})))
	for i, name := range []string{"agent_1", "agent_2"} {
		sub := l.Sub(Header{Call: "c1", Agent: name, AgentType: "reviewer", Model: "openai/m"})
		check(sub.Message(user("look at "+name)), sub.Message(calls(msg.Call{ID: "s1", Name: "read_file", Args: `{"file_path":"a"}`})),
			sub.Start(Start{ID: "s1", Name: "read_file"}), sub.Result("", ok("s1", "read_file", "text of a")),
			sub.Message(says("seen")), sub.EndTurn(TurnEnd{Reason: "finished", Usage: msg.Usage{Input: 10 + i, Output: 2}}), sub.Close())
		subs = append(subs, sub.ID())
	}
	check(l.Result("", ok("c1", "agent", "seen")), l.Message(says("done")), l.EndTurn(TurnEnd{Reason: "finished"}), l.Close())
	return l.ID(), subs
}

// The transcripts of subagents are linked to their session, are shown and
// exported with it, and are no sessions themselves.
func TestSubagents(t *testing.T) {
	s := newStore(t)
	id, subs := delegated(t, s)
	list, err := s.List(true)
	if err != nil || len(list) != 1 || list[0].ID != id {
		t.Errorf("the sessions are %v, %v", list, err)
	}
	if newest, err := s.Newest(); err != nil || newest.ID != id {
		t.Errorf("the newest session is %v, %v", newest.ID, err)
	}
	state, err := s.Read(id)
	if err != nil {
		t.Fatal(err)
	}
	for i := range state.Agents {
		state.Agents[i].Created = state.Created
	}
	want := []AgentInfo{
		{ID: subs[0], Agent: "agent_1", Type: "reviewer", Call: "c1", Title: "look at agent_1", Model: "openai/m", Created: state.Created},
		{ID: subs[1], Agent: "agent_2", Type: "reviewer", Call: "c1", Title: "look at agent_2", Model: "openai/m", Created: state.Created},
	}
	if diff := cmp.Diff(want, state.Agents); diff != "" {
		t.Error(diff)
	}
	one, err := s.Read(subs[1])
	if err != nil || one.Header.Parent != id || one.Messages[0].Text() != "look at agent_2" || one.Usage.Input != 11 {
		t.Errorf("the transcript of agent_2: %+v, %v", one, err)
	}
	if _, _, err := s.Resume(subs[0]); err == nil || !strings.Contains(err.Error(), "the transcript of a subagent") || !strings.Contains(err.Error(), "resume "+id) {
		t.Errorf("resuming a subagent: %v", err)
	}
	var md, raw bytes.Buffer
	if err := errors.Join(s.Export(&md, id, Markdown), s.Export(&raw, id, JSON)); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"- subagent: agent_1, reviewer, " + subs[0], "# Subagent `agent_2`", "- started by the call: `c1`", "look at agent_2", "text of a"} {
		if !strings.Contains(md.String(), part) {
			t.Errorf("the Markdown lacks %q:\n%s", part, md.String())
		}
	}
	var got struct {
		Agents []struct {
			Agent, Call string
			Usage       msg.Usage
			Transcript  []struct{ Message msg.Message }
			Calls       []CallRecord
		}
	}
	if err := json.Unmarshal(raw.Bytes(), &got); err != nil || len(got.Agents) != 2 {
		t.Fatalf("%v: %s", err, raw.String())
	}
	if a := got.Agents[0]; a.Agent != "agent_1" || a.Call != "c1" || a.Usage.Input != 10 || len(a.Transcript) != 4 || len(a.Calls) != 1 || a.Calls[0].Name != "read_file" {
		t.Errorf("agent_1 is exported as %+v", a)
	}
	// One that is damaged beyond reading costs itself only.
	if err := os.WriteFile(subPath(state.Path, subs[0]), []byte(`{"kind":"header","header":{"format":99}}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	md.Reset()
	if err := s.Export(&md, id, Markdown); err != nil || !strings.Contains(md.String(), "# Subagent `agent_2`") || strings.Contains(md.String(), "# Subagent `agent_1`") || !strings.Contains(md.String(), "- note: the transcript of") {
		t.Errorf("%v:\n%s", err, md.String())
	}
}
