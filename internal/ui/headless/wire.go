package headless

import (
	"encoding/json"

	"capstan/internal/agent"
	"capstan/internal/llm"
	"capstan/internal/msg"
	"capstan/internal/sched"
	"capstan/internal/tool"
)

// The lines of a stream. Their fields are those that clients of Claude Code and
// qwen-code read; docs/headless.md lists them, and those that are left out.

type initLine struct {
	Type           string   `json:"type"`    // system
	Subtype        string   `json:"subtype"` // init
	UUID           string   `json:"uuid"`
	SessionID      string   `json:"session_id"`
	Dir            string   `json:"cwd"`
	Model          string   `json:"model"`
	Tools          []string `json:"tools"`
	MCPServers     []Server `json:"mcp_servers"`
	PermissionMode string   `json:"permissionMode"`  // in the words of Claude Code
	ApprovalMode   string   `json:"permission_mode"` // in ours and those of qwen-code
	SlashCommands  []string `json:"slash_commands"`
	Agents         []string `json:"agents"`
	Skills         []string `json:"skills"`
	Plugins        []string `json:"plugins"`
	OutputStyle    string   `json:"output_style"`
	Mode           string   `json:"capstan_mode"`
	Version        string   `json:"capstan_version"`
}

// messageLine is a message of the assistant or of the user.
type messageLine struct {
	Type      string  `json:"type"`
	UUID      string  `json:"uuid"`
	SessionID string  `json:"session_id"`
	Parent    *string `json:"parent_tool_use_id"`
	Message   any     `json:"message"`
	// Result is on the line of a call's result: how it ended.
	Result *callEnd `json:"tool_use_result,omitempty"`
}

type callEnd struct {
	Status string `json:"status"`
	Code   string `json:"code,omitempty"`
}

type assistantMessage struct {
	ID           string  `json:"id"`
	Type         string  `json:"type"` // message
	Role         string  `json:"role"`
	Model        string  `json:"model"`
	Content      []any   `json:"content"`
	StopReason   *string `json:"stop_reason"`
	StopSequence *string `json:"stop_sequence"` // always null
	Usage        usage   `json:"usage"`
}

type userMessage struct {
	Role    string `json:"role"`
	Content []any  `json:"content"`
}

type usage struct {
	Input      int `json:"input_tokens"` // without those that the cache has
	CacheWrite int `json:"cache_creation_input_tokens"`
	CacheRead  int `json:"cache_read_input_tokens"`
	Output     int `json:"output_tokens"`
}

func usageOf(u msg.Usage) usage {
	return usage{max(0, u.Input-u.Cached-u.CacheWrite), u.CacheWrite, u.Cached, u.Output}
}

type resultLine struct {
	Type       string          `json:"type"` // result
	Subtype    string          `json:"subtype"`
	UUID       string          `json:"uuid"`
	SessionID  string          `json:"session_id"`
	IsError    bool            `json:"is_error"`
	Reason     string          `json:"reason"`      // ours: which limit it was, say
	StopReason *string         `json:"stop_reason"` // of the last answer; null when it is not whole
	Duration   int64           `json:"duration_ms"`
	InAPI      int64           `json:"duration_api_ms"`
	Turns      int             `json:"num_turns"`
	Calls      int             `json:"num_tool_calls"`
	Result     *string         `json:"result,omitempty"`
	Structured json.RawMessage `json:"structured_output,omitempty"`
	LastText   string          `json:"last_text,omitempty"` // of the last answer, when it is no result
	Errors     []string        `json:"errors,omitempty"`
	Error      *errorText      `json:"error,omitempty"`
	Usage      usage           `json:"usage"`
	Denials    []denial        `json:"permission_denials"`
}

type errorText struct {
	Message string `json:"message"`
}

type denial struct {
	Name   string          `json:"tool_name"`
	ID     string          `json:"tool_use_id"`
	Input  json.RawMessage `json:"tool_input"`
	Reason string          `json:"reason"`
}

// permissionModes are our approval modes in the words of Claude Code.
var permissionModes = map[string]string{"": "default", "auto-edit": "acceptEdits", "yolo": "bypassPermissions"}

func (w *Writer) init() {
	s := w.opt.Session
	permission := permissionModes[s.ApprovalMode]
	if permission == "" {
		permission = s.ApprovalMode
	}
	tools := []string{}
	if s.Tools != nil {
		tools = append(tools, s.Tools()...)
	}
	servers := []Server{}
	if s.Servers != nil {
		servers = append(servers, s.Servers()...)
	}
	none, skills, agents := []string{}, []string{}, []string{}
	if s.Agents != nil {
		agents = append(agents, s.Agents()...)
	}
	if s.Skills != nil {
		skills = append(skills, s.Skills()...)
	}
	w.line(initLine{Type: "system", Subtype: "init", UUID: uuid(), SessionID: s.ID, Dir: s.Dir, Model: s.Model, Tools: tools,
		MCPServers: servers, PermissionMode: permission, ApprovalMode: s.ApprovalMode, SlashCommands: none, Agents: agents, Skills: skills,
		Plugins: none, OutputStyle: "default", Mode: s.Mode, Version: s.Version})
}

func (w *Writer) message(kind string, parent string, m any, end *callEnd) {
	l := messageLine{Type: kind, UUID: uuid(), SessionID: w.opt.Session.ID, Message: m, Result: end}
	if parent != "" {
		l.Parent = &parent
	}
	w.line(l)
}

// stopReasons are the reasons to finish in the words of the Messages API.
var stopReasons = map[llm.Finish]string{
	llm.FinishStop: "end_turn", llm.FinishCalls: "tool_use", llm.FinishLength: "max_tokens", llm.FinishFiltered: "refusal",
}

func stopReason(f llm.Finish) *string {
	if s, ok := stopReasons[f]; ok {
		return &s
	}
	return nil
}

func (w *Writer) answered(e agent.Answered) {
	m := assistantMessage{ID: e.PromptID, Type: "message", Role: "assistant", Model: w.opt.Session.Model, Content: []any{}, StopReason: stopReason(e.Finish), Usage: usageOf(e.Usage)}
	for _, p := range e.Message.Parts {
		if b := block(p); b != nil {
			m.Content = append(m.Content, b)
		}
	}
	w.message("assistant", "", m, nil)
}

// delegated shows what a subagent says, below the call that it works for. Its
// calls are shown as they begin.
func (w *Writer) delegated(call string, e agent.Answered) {
	m := assistantMessage{ID: e.PromptID, Type: "message", Role: "assistant", Model: w.opt.Session.Model, Content: []any{}, StopReason: stopReason(e.Finish), Usage: usageOf(e.Usage)}
	for _, p := range e.Message.Parts {
		if b := block(p); b != nil && p.Kind != msg.CallPart {
			m.Content = append(m.Content, b)
		}
	}
	if len(m.Content) > 0 {
		w.message("assistant", call, m, nil)
	}
}

// observed shows a message of the user's that was added to the history. Results
// have been shown as each came.
func (w *Writer) observed(m msg.Message) {
	content := []any{}
	for _, p := range m.Parts {
		if b := block(p); b != nil {
			content = append(content, b)
		}
	}
	if len(content) > 0 {
		w.message("user", "", userMessage{"user", content}, nil)
	}
}

// called shows how a call ended, and that a nested one began, which stands in no
// message. Those of the model are shown with its message.
func (w *Writer) called(c agent.Called) {
	e := c.Event
	if e.Kind != sched.Started && e.Kind != sched.Settled {
		return
	}
	if e.Call.ParentID != "" && !w.nested[e.Call.ID] { // one that is refused before it is admitted only settles
		w.nested[e.Call.ID] = true
		use := toolUse{"tool_use", e.Call.ID, e.Call.Name, input(string(e.Call.Args))}
		w.message("assistant", e.Call.ParentID, assistantMessage{ID: "call_" + e.Call.ID, Type: "message", Role: "assistant", Model: w.opt.Session.Model, Content: []any{use}, StopReason: stopReason(llm.FinishCalls)}, nil)
	}
	if e.Kind == sched.Settled {
		delete(w.nested, e.Call.ID)
		r, most := c.Result, 0
		if e.Call.ParentID != "" {
			most = maxNested
		}
		w.message("user", e.Call.ParentID, userMessage{"user", []any{toolResult{"tool_result", r.CallID, contentOf(r.Parts, most), r.Status != string(tool.Success)}}}, &callEnd{r.Status, r.Code})
	}
}

func (w *Writer) result(o *agent.Outcome) resultLine {
	l := resultLine{Type: "result", Subtype: "success", UUID: uuid(), SessionID: w.opt.Session.ID, Reason: string(o.Reason), StopReason: stopReason(o.Finish),
		Duration: o.Elapsed.Milliseconds(), InAPI: o.Waiting.Milliseconds(), Turns: o.Turns, Calls: o.Calls, Usage: usageOf(o.Usage), Denials: []denial{}}
	for _, d := range o.Denials {
		l.Denials = append(l.Denials, denial{d.Name, d.CallID, input(string(d.Args)), d.Reason})
	}
	if o.Reason == agent.Finished {
		text := o.Text
		if o.Structured != nil {
			l.Structured = compact(o.Structured)
			text = string(l.Structured)
		}
		l.Result = &text
		return l
	}
	l.LastText = o.Text
	l.IsError, l.Subtype = true, "error_during_execution"
	switch {
	case o.Reason == agent.MaxTurns:
		l.Subtype = "error_max_turns"
	case o.Reason == agent.NoAnswer && w.opt.Session.Structured:
		l.Subtype = "error_max_structured_output_retries"
	}
	if o.Err != nil {
		l.Errors, l.Error = []string{o.Err.Error()}, &errorText{o.Err.Error()}
	}
	return l
}
