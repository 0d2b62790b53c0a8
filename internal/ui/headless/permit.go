package headless

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"capstan/internal/sched"
)

// The questions that a client is asked, in the words of Claude Code's control
// protocol: a control_request of the subtype can_use_tool goes out, and a
// control_response with the same request_id comes back. Calls of a model, of a
// program and of a subagent are asked about alike.

type askLine struct {
	Type    string     `json:"type"` // control_request
	ID      string     `json:"request_id"`
	Request askRequest `json:"request"`
}

type askRequest struct {
	Subtype     string          `json:"subtype"` // can_use_tool
	Tool        string          `json:"tool_name"`
	Input       json.RawMessage `json:"input"`
	ID          string          `json:"tool_use_id"`
	Parent      *string         `json:"parent_tool_use_id"`
	Agent       string          `json:"agent_id,omitempty"`       // of a subagent's call
	Source      string          `json:"capstan_source,omitempty"` // model or code_mode
	Reason      string          `json:"decision_reason,omitempty"`
	Suggestions []ruleChange    `json:"permission_suggestions"`
}

// ruleChange is a change of the rules, as the client's answer may hand it back.
type ruleChange struct {
	Type        string     `json:"type"` // addRules
	Rules       []ruleText `json:"rules,omitempty"`
	Behavior    string     `json:"behavior,omitempty"` // allow, ask or deny
	Mode        string     `json:"mode,omitempty"`
	Destination string     `json:"destination"`
}

type ruleText struct {
	Tool string  `json:"toolName"`
	Spec *string `json:"ruleContent,omitempty"`
}

// destinations are the layers of the settings in the words of Claude Code.
var destinations = map[string]string{"session": "session", "local": "localSettings", "project": "projectSettings", "user": "userSettings"}

// reply is the answer of a client to one of our requests.
type reply struct {
	id       string
	fault    string          // it could not answer
	response json.RawMessage // else what it says
}

// verdict is a reply to can_use_tool.
type verdict struct {
	Behavior  string          `json:"behavior"` // allow or deny
	Input     json.RawMessage `json:"updatedInput"`
	Updates   []ruleChange    `json:"updatedPermissions"`
	Message   string          `json:"message"`
	Interrupt bool            `json:"interrupt"`
}

// client answers, for the record.
const client = "the client, over stream-json"

// Approve asks the client whether a call may run. It is sched.Approver. Every
// question goes out at once, so that a client may show several together and
// answer in any order. When ctx ends the question is withdrawn. When the client
// is gone there is nobody to be asked.
func (w *Writer) Approve(ctx context.Context, q *sched.Question) (sched.Answer, error) {
	r := askRequest{Subtype: "can_use_tool", Tool: q.Call.Name, Input: input(string(q.Call.Args)), ID: q.Call.ID,
		Agent: q.Call.Agent, Source: string(q.Call.Source), Reason: q.Verdict.Reason, Suggestions: suggestions(q.Offers)}
	if q.Call.ParentID != "" {
		r.Parent = &q.Call.ParentID
	}
	v, err := w.ask(ctx, r)
	switch {
	case errors.Is(err, errDeaf):
		return sched.Answer{Unasked: true, Reason: err.Error()}, nil
	case err != nil:
		return sched.Answer{}, err
	}
	answer := sched.Answer{Allow: v.Behavior == "allow", Reason: abridge(strings.TrimSpace(v.Message), maxSaid), By: client, Args: given(v.Input)}
	answer.Grants, err = grants(v.Updates)
	return answer, err
}

// Consult puts a question of the model's own to the client, as the call of a tool
// that needs an answer: its plan, or questions to the person. It returns whether
// the client said yes, the arguments as it completed them, and its words.
func (w *Writer) Consult(ctx context.Context, tool string, args json.RawMessage) (yes bool, completed json.RawMessage, words string, err error) {
	v, err := w.ask(ctx, askRequest{Subtype: "can_use_tool", Tool: tool, Input: args, Suggestions: []ruleChange{}})
	if err != nil {
		return false, nil, "", err
	}
	if completed = given(v.Input); completed == nil {
		completed = args
	}
	return v.Behavior == "allow", completed, abridge(strings.TrimSpace(v.Message), maxSaid), nil
}

// maxSaid bounds what a client's no may tell the model, in characters.
const maxSaid = 4000

// errDeaf is why nobody is asked: the input has ended, or nobody reads.
var errDeaf = errors.New("the client's end of standard input is closed")

// ask sends a request and waits for what the client says to it.
func (w *Writer) ask(ctx context.Context, r askRequest) (v verdict, err error) {
	id, answer := w.request(r)
	if answer == nil {
		return v, errDeaf
	}
	select {
	case got, ok := <-answer:
		switch {
		case !ok:
			return v, errDeaf
		case got.fault != "":
			return v, fmt.Errorf("the client could not answer: %s", cut(got.fault))
		}
		if err := json.Unmarshal(got.response, &v); err != nil {
			return v, fmt.Errorf("the client's answer is no object with a behavior of allow or deny: %w", err)
		}
		if v.Behavior != "allow" && v.Behavior != "deny" {
			return v, fmt.Errorf("the client's answer has the behavior %q: want allow or deny", cut(v.Behavior))
		}
		return v, nil
	case <-ctx.Done():
		w.withdraw(id)
		return v, ctx.Err()
	}
}

// request writes a request under a new id. There is no channel when nobody can
// answer.
func (w *Writer) request(r askRequest) (id string, answer chan reply) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.deaf || w.err != nil || w.opt.Format != Stream {
		return "", nil
	}
	w.requests++
	id, answer = fmt.Sprintf("perm_%d", w.requests), make(chan reply, 1)
	if w.open == nil {
		w.open = map[string]chan reply{}
	}
	w.open[id] = answer
	w.line(askLine{"control_request", id, r})
	return id, answer
}

// withdraw tells the client that a question needs no answer any more.
func (w *Writer) withdraw(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.open[id] != nil {
		delete(w.open, id)
		w.line(object{"type": "control_cancel_request", "request_id": id})
	}
}

// replied gives a reply to the question that it is to. An id is answered once:
// what comes to one that was answered or withdrawn came too late, and what comes
// to any other was never asked.
func (w *Writer) replied(r *reply) (interrupt bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	answer := w.open[r.id]
	if answer == nil {
		var n int
		if _, err := fmt.Sscanf(r.id, "perm_%d", &n); err == nil && n > 0 && n <= w.requests {
			return false, nil
		}
		return false, fmt.Errorf("a control_response to %q, which was not asked", cut(r.id))
	}
	delete(w.open, r.id)
	answer <- *r
	var v verdict
	return json.Unmarshal(r.response, &v) == nil && v.Behavior == "deny" && v.Interrupt, nil
}

// deafen ends all questions: nobody will answer any more.
func (w *Writer) deafen() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.deaf = true
	for id, answer := range w.open {
		delete(w.open, id)
		close(answer)
	}
}

// suggestions are the offers as a client may hand them back.
func suggestions(offers []sched.Offer) []ruleChange {
	list := []ruleChange{}
	for _, o := range offers {
		u := ruleChange{Type: "addRules", Behavior: "allow", Destination: destinations[o.Layer]}
		for _, text := range o.Rules {
			r := ruleText{Tool: text}
			if name, spec, ok := strings.Cut(text, "("); ok && strings.HasSuffix(spec, ")") {
				spec = strings.TrimSuffix(spec, ")")
				r = ruleText{name, &spec}
			}
			u.Rules = append(u.Rules, r)
		}
		list = append(list, u)
	}
	return list
}

// grants reads the rules of an answer. One that cannot be kept is an error, and
// with it the answer is a no: the person believes that it holds.
func grants(updates []ruleChange) (list []sched.Grant, err error) {
	for _, u := range updates {
		if u.Type != "addRules" {
			return nil, fmt.Errorf("the client's answer has a change of permissions of the type %q: only addRules can be done here", cut(u.Type))
		}
		layer := ""
		for l, d := range destinations {
			if d == u.Destination {
				layer = l
			}
		}
		if layer == "" || !slices.Contains([]string{"allow", "ask", "deny"}, u.Behavior) {
			return nil, fmt.Errorf("the client's answer has rules with the behavior %q for %q: want allow, ask or deny, and session, localSettings, projectSettings or userSettings", cut(u.Behavior), cut(u.Destination))
		}
		for _, r := range u.Rules {
			text := r.Tool
			if r.Spec != nil && *r.Spec != "" {
				text += "(" + *r.Spec + ")"
			}
			list = append(list, sched.Grant{Layer: layer, List: u.Behavior, Rule: text})
		}
	}
	return list, nil
}

// given is what a client wants instead of the arguments; nil when it says
// nothing of them.
func given(raw json.RawMessage) json.RawMessage {
	if s := strings.TrimSpace(string(raw)); s == "" || s == "null" {
		return nil
	}
	return raw
}
