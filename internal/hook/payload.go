package hook

import (
	"encoding/json"

	"capstan/internal/sched"
	"capstan/internal/tool"
)

// A payload is what a hook is told, in the fields of Claude Code. Those that it
// does not have are canonical_tool_name, parent_tool_use_id and, for calls,
// source.
type payload struct {
	SessionID      string `json:"session_id"`
	Transcript     string `json:"transcript_path"`
	Dir            string `json:"cwd"`
	PermissionMode string `json:"permission_mode"`
	Event          Event  `json:"hook_event_name"`

	AgentID   string `json:"agent_id,omitempty"`
	AgentType string `json:"agent_type,omitempty"`

	Tool      string          `json:"tool_name,omitempty"`
	Canonical string          `json:"canonical_tool_name,omitempty"`
	Input     json.RawMessage `json:"tool_input,omitempty"`
	CallID    string          `json:"tool_use_id,omitempty"`
	ParentID  string          `json:"parent_tool_use_id,omitempty"`
	Source    string          `json:"source,omitempty"` // of a call: model or code_mode; of a session: startup or resume
	Response  json.RawMessage `json:"tool_response,omitempty"`
	Error     string          `json:"error,omitempty"`
	Interrupt *bool           `json:"is_interrupt,omitempty"`
	Asked     string          `json:"permission_reason,omitempty"`
	Calls     []batchCall     `json:"tool_calls,omitempty"`

	Prompt     *string `json:"prompt,omitempty"`
	Model      string  `json:"model,omitempty"`
	Reason     string  `json:"reason,omitempty"`
	Message    string  `json:"message,omitempty"`
	Title      string  `json:"title,omitempty"`
	Kind       string  `json:"notification_type,omitempty"`
	Active     *bool   `json:"stop_hook_active,omitempty"`
	Last       *string `json:"last_assistant_message,omitempty"`
	AgentTrail string  `json:"agent_transcript_path,omitempty"`
	Trigger    string  `json:"trigger,omitempty"`
	Custom     *string `json:"custom_instructions,omitempty"`
}

// batchCall is one call of PostToolBatch.
type batchCall struct {
	Tool     string          `json:"tool_name"`
	Input    json.RawMessage `json:"tool_input"`
	CallID   string          `json:"tool_use_id"`
	Response string          `json:"tool_response"` // what the model reads
}

// permissionModes are our approval modes in Claude Code's words.
var permissionModes = map[string]string{"": "default", "auto-edit": "acceptEdits", "yolo": "bypassPermissions"}

// common fills in what every event has.
func (d *Dispatcher) common(ev Event, in *payload) {
	d.mu.Lock()
	s := d.session
	d.mu.Unlock()
	in.SessionID, in.Transcript, in.Dir, in.Event = s.ID, s.Transcript, d.dir(), ev
	mode := ""
	if d.opt.Mode != nil {
		mode = d.opt.Mode()
	}
	if word, ok := permissionModes[mode]; ok {
		mode = word
	}
	in.PermissionMode = mode
}

// call is the payload of an event about a call.
func (d *Dispatcher) call(dia dialect, r *sched.Request) *payload {
	c := r.Call
	in := &payload{Tool: dia.name(c.Name), Canonical: c.Name, CallID: c.ID, ParentID: c.ParentID, Source: string(c.Source),
		Input: dia.input(c.Name, c.Args, d.dir())}
	if a := d.agentOf(c); a != nil {
		in.AgentID, in.AgentType = a.ID, a.Type
	}
	return in
}

// agentOf returns the subagent that makes a call, itself or by a program of its.
func (d *Dispatcher) agentOf(c *tool.Call) *Subagent {
	if c.Agent == "" {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if a, ok := d.subagents[c.Agent]; ok {
		return &a
	}
	return nil
}
