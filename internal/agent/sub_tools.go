package agent

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"capstan/internal/msg"
	"capstan/internal/tool"
)

//go:embed control/*.md
var controlTexts embed.FS

func controlText(name string) string {
	data, err := controlTexts.ReadFile("control/" + name + ".md")
	if err != nil {
		panic(err) // it is embedded
	}
	return strings.TrimSpace(string(data))
}

// A control is one of the tools by which a model leads subagents. They wait for
// others and so hold no slot, and change nothing themselves: what a subagent does
// is judged call by call.
type control struct {
	spec tool.Spec
	team *Team
	run  func(ctx context.Context, tm *Team, c *tool.Call) (tool.Result, error)
}

func (c *control) Spec() *tool.Spec { return &c.spec }

// Access implements tool.Accessor: subagents work side by side.
func (c *control) Access(*tool.Call) tool.Access { return tool.Access{Overlap: true} }

// Run implements tool.Tool.
func (c *control) Run(ctx context.Context, inv *tool.Invocation) (tool.Result, error) {
	if c.team.lead == nil {
		return tool.Fail(tool.CodeFailed, "%s needs a conversation, and there is none", c.spec.Name), nil
	}
	return c.run(ctx, c.team, inv.Call)
}

// agentTool is the control agent, which says more.
type agentTool struct{ control }

// Canonical implements tool.Canonizer: rules and hooks are told the kind that will
// work, as its definition spells it, whatever the call says.
func (a *agentTool) Canonical(args json.RawMessage) json.RawMessage {
	var in map[string]json.RawMessage
	var kind string
	if json.Unmarshal(args, &in) != nil || in["subagent_type"] != nil && json.Unmarshal(in["subagent_type"], &kind) != nil {
		return args // which is no object: not valid
	}
	if real := a.team.kind(kind); in["subagent_type"] == nil || real != kind {
		in["subagent_type"], _ = json.Marshal(real)
		args, _ = json.Marshal(in) // texts and what was read
	}
	return args
}

// kind is the name of the kind that a call asks for: as it is written when there is
// no such kind.
func (tm *Team) kind(name string) string {
	if name == "" {
		return General
	}
	if strings.EqualFold(name, Fork) {
		return Fork
	}
	kinds := tm.opt.Kinds()
	if x := named(kinds, name); x != nil {
		return x.Name
	}
	return name
}

// Check implements tool.Checker.
func (a *agentTool) Check(c *tool.Call) error {
	var in agentInput
	if err := json.Unmarshal(c.Args, &in); err != nil {
		return err
	}
	switch {
	case strings.TrimSpace(in.Prompt) == "":
		return errors.New("/prompt: it is blank; say what the subagent has to do, and all that it needs to know")
	case in.ForkTools != nil && in.Type != Fork:
		return errors.New(`/fork_tools: only a fork has it: subagent_type "fork"`)
	}
	return nil
}

// Describe implements tool.Describer: it names the user's own kinds.
func (a *agentTool) Describe(*tool.View) string {
	var b strings.Builder
	for _, x := range a.team.opt.Kinds() {
		if x.Path != "" && b.Len() < maxKindsText {
			b.WriteString("\n- " + x.Name + ": " + clip(x.Description, 300))
		}
	}
	if b.Len() == 0 {
		return a.spec.Description
	}
	return a.spec.Description + " Further types:" + b.String()
}

// maxKindsText bounds what the description of agent says of the user's kinds, in
// bytes.
const maxKindsText = 4 << 10

// Tools returns the direct controls of the team: agent, list_agents,
// send_message, task_list, task_output and task_stop.
func (tm *Team) Tools() []tool.Tool {
	list := []tool.Tool{&agentTool{control{tool.Spec{Name: tool.AgentName, Title: "Agent", Input: json.RawMessage(agentSchema)}, tm, runAgent}}}
	for _, c := range []struct {
		name, title, input string
		run                func(context.Context, *Team, *tool.Call) (tool.Result, error)
	}{
		{"list_agents", "ListAgents", "", runListAgents},
		{"send_message", "SendMessage", `{"type":"object","properties":{"to":{"type":"string"},"message":{"type":"string"}},"required":["to","message"]}`, runSendMessage},
		{"task_list", "TaskList", "", runTaskList},
		{"task_output", "TaskOutput", `{"type":"object","properties":{"task_id":{"type":"string"},"block":{"type":"boolean"}},"required":["task_id"]}`, runTaskOutput},
		{"task_stop", "TaskStop", `{"type":"object","properties":{"task_id":{"type":"string"}},"required":["task_id"]}`, runTaskStop},
	} {
		list = append(list, &control{tool.Spec{Name: c.name, Title: c.title, Input: json.RawMessage(c.input)}, tm, c.run})
	}
	for _, t := range list {
		s := t.Spec()
		s.Description, s.Class, s.Effect, s.Waits = controlText(s.Name), tool.Control, tool.EffectNone, true
		s.Closed = true
	}
	return list
}

const agentSchema = `{"type":"object","properties":{"prompt":{"type":"string"},"description":{"type":"string"},"subagent_type":{"type":"string"},` +
	`"run_in_background":{"type":"boolean"},"fork_tools":{"type":"array","items":{"type":"string"}}},"required":["prompt"]}`

type agentInput struct {
	Prompt      string   `json:"prompt"`
	Description string   `json:"description"`
	Type        string   `json:"subagent_type"`
	Background  bool     `json:"run_in_background"`
	ForkTools   []string `json:"fork_tools"` // null and absent: those of the lead
}

func runAgent(ctx context.Context, tm *Team, c *tool.Call) (tool.Result, error) {
	var in agentInput
	if err := json.Unmarshal(c.Args, &in); err != nil {
		return tool.Result{}, err
	}
	as := assignment{order: Order{Kind: in.Type, Tools: in.ForkTools, View: tm.lead.opt.View()}, title: shownLine(in.Description), prompt: in.Prompt, background: in.Background, call: c.ID}
	if in.Type == Fork {
		as.prompt = forkText(in.ForkTools) + in.Prompt
	}
	t, err := tm.start(ctx, as)
	if err != nil {
		return tool.Fail(tool.CodeFailed, "no subagent was started: %v", err), nil
	}
	if t.inBackground() {
		return t.begun(), nil
	}
	return t.await(ctx)
}

// forkText tells a fork what it is. Its declarations may be its lead's, so it is
// told what of them does not count.
func forkText(tools []string) string {
	text := fromUs + "You are a fork: a copy of the agent that led this conversation, made for the one task below. Do it and no more; your last message is the result and goes to that agent alone. You cannot start subagents or ask the user."
	switch {
	case tools != nil && len(tools) == 0:
		text += " You may call no tools."
	case tools != nil:
		text += " You may call only: " + strings.Join(tools, ", ") + "."
	}
	return text + "\n\n"
}

func (t *task) inBackground() bool {
	t.team.mu.Lock()
	defer t.team.mu.Unlock()
	return t.background
}

// begun is the result of starting one in the background.
func (t *task) begun() tool.Result {
	r := tool.Text(t.name() + " works in the background. You will be told when it is done; task_output waits for it.")
	r.Data, _ = json.Marshal(t.value()) // texts and numbers only
	return r
}

// await waits until a subagent in the foreground is done.
func (t *task) await(ctx context.Context) (tool.Result, error) {
	<-t.ended() // ctx ends it
	rep := t.report()
	if ctx.Err() != nil {
		return tool.Result{}, errors.New(rep.text)
	}
	return rep.result(), nil
}

// ended is closed when the subagent does not work any more.
func (t *task) ended() <-chan struct{} {
	t.team.mu.Lock()
	defer t.team.mu.Unlock()
	return t.done
}

// find returns a task by its id, or the refusal.
func (tm *Team) find(id string) (*task, *tool.Result) {
	tm.mu.Lock()
	defer tm.mu.Unlock()
	var ids []string
	for _, t := range tm.tasks {
		if t.id == id && t.done != nil {
			return t, nil
		}
		ids = append(ids, t.id)
	}
	have := "none was started in this run of Capstan"
	if ids != nil {
		have = "there are " + strings.Join(ids[max(0, len(ids)-20):], ", ")
	}
	r := tool.Fail(tool.CodeFailed, "there is no subagent %q: %s", cutName(id), have)
	return nil, &r
}

// taskIn finds the task that a call's arguments name.
func (tm *Team) taskIn(c *tool.Call, key string) (*task, *tool.Result) {
	var in map[string]any
	if err := json.Unmarshal(c.Args, &in); err != nil {
		r := tool.Fail(tool.CodeInvalidArgs, "reading the arguments: %v", err)
		return nil, &r
	}
	id, _ := in[key].(string) // the schema says that it is one
	return tm.find(strings.TrimSpace(id))
}

func runListAgents(_ context.Context, tm *Team, _ *tool.Call) (tool.Result, error) {
	var b strings.Builder
	for _, x := range tm.opt.Kinds() {
		fmt.Fprintf(&b, "%s: %s", x.Name, x.Description)
		if x.Tools != nil {
			fmt.Fprintf(&b, " Its tools: %s.", strings.Join(x.Tools, ", "))
		}
		b.WriteString("\n")
	}
	b.WriteString(Fork + ": a copy of you, with this conversation; fork_tools narrows its tools.")
	return tool.Text(b.String()), nil
}

func runTaskList(_ context.Context, tm *Team, _ *tool.Call) (tool.Result, error) {
	tm.mu.Lock()
	tasks := slices.Clone(tm.tasks)
	tm.mu.Unlock()
	list, lines := []taskData{}, []string{}
	for _, t := range tasks {
		d := t.value()
		list = append(list, d)
		lines = append(lines, fmt.Sprintf("%s: %s, %d turns, %d calls", t.name(), d.State, d.Turns, d.Calls))
	}
	if len(lines) == 0 {
		lines = append(lines, "No subagent was started.")
	}
	r := tool.Text(strings.Join(lines, "\n"))
	var err error
	r.Data, err = json.Marshal(struct {
		Tasks []taskData `json:"tasks"`
	}{list})
	return r, err
}

func runTaskOutput(ctx context.Context, tm *Team, c *tool.Call) (tool.Result, error) {
	t, refusal := tm.taskIn(c, "task_id")
	if refusal != nil {
		return *refusal, nil
	}
	in := struct {
		Block *bool `json:"block"`
	}{}
	if err := json.Unmarshal(c.Args, &in); err != nil {
		return tool.Result{}, err
	}
	ended := t.ended()
	if in.Block == nil || *in.Block {
		select {
		case <-ended:
		case <-ctx.Done():
			return tool.Result{}, ctx.Err()
		}
	}
	select {
	case <-ended:
	default:
		d := t.value()
		r := tool.Text(fmt.Sprintf("%s is %s: %d turns and %d calls until now.", t.name(), d.State, d.Turns, d.Calls))
		r.Data, _ = json.Marshal(d) // texts and numbers only
		return r, nil
	}
	t.know()
	rep := t.report()
	r := tool.Text(rep.text) // that the subagent failed is no failure of this call
	r.Data = rep.data
	return r, nil
}

// know notes that the model has been told of the end.
func (t *task) know() {
	t.team.mu.Lock()
	defer t.team.mu.Unlock()
	t.told = t.out != nil
}

func runTaskStop(ctx context.Context, tm *Team, c *tool.Call) (tool.Result, error) {
	t, refusal := tm.taskIn(c, "task_id")
	if refusal != nil {
		return *refusal, nil
	}
	ended := t.ended()
	select {
	case <-ended:
		return tool.Text(t.name() + " was done already; task_output has its answer."), nil
	default:
	}
	tm.mu.Lock()
	stop := t.stop
	tm.mu.Unlock()
	stop(errStopped)
	select {
	case <-ended:
	case <-ctx.Done():
		return tool.Result{}, ctx.Err()
	}
	t.know()
	rep := t.report()
	r := tool.Text(rep.text)
	r.Data = rep.data
	return r, nil
}

// waits reports whether a subagent has no place yet.
func (t *task) waits() bool {
	t.team.mu.Lock()
	defer t.team.mu.Unlock()
	return t.waiting
}

func runSendMessage(ctx context.Context, tm *Team, c *tool.Call) (tool.Result, error) {
	var in struct{ To, Message string }
	if err := json.Unmarshal(c.Args, &in); err != nil {
		return tool.Result{}, err
	}
	if strings.TrimSpace(in.Message) == "" {
		return tool.Fail(tool.CodeInvalidArgs, "/message: it is blank"), nil
	}
	t, refusal := tm.taskIn(c, "to")
	if refusal != nil {
		return *refusal, nil
	}
	parts := []msg.Part{msg.TextPart(in.Message)}
	ended := t.ended()
	select {
	case <-ended:
	default:
		if t.agent.Queue(parts) || t.waits() {
			return tool.Text(t.name() + " will read it at its next turn."), nil
		}
		parts = nil // it came when it was about to end, or to begin
		select {
		case <-ended:
		case <-ctx.Done():
			return tool.Result{}, ctx.Err()
		}
		if !t.agent.queued() {
			return tool.Text(t.name() + " has read it."), nil
		}
	}
	above := tm.lead.current()
	if above == nil {
		return tool.Fail(tool.CodeFailed, "%v", errNoRun), nil
	}
	if err := tm.set(ctx, t, c.ID, above, true, parts); err != nil {
		return tool.Fail(tool.CodeFailed, "%s was not told: %v", t.name(), err), nil
	}
	return t.begun(), nil
}
