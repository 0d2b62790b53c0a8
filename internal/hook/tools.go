package hook

import (
	"context"
	"encoding/json"

	"capstan/internal/msg"
	"capstan/internal/sched"
	"capstan/internal/tool"
)

// Before asks the PreToolUse hooks. What they rewrite is validated by the
// executor. Once a hook has ended the run, every call is denied.
func (d *Dispatcher) Before(ctx context.Context, r *sched.Request) (sched.HookVerdict, error) {
	if why := d.Halted(); why != "" {
		return sched.HookVerdict{Verdict: sched.Verdict{Decision: sched.Deny, Reason: "a hook has ended the run: " + why, By: "hook"}}, nil
	}
	picked := d.forTool(PreToolUse, r.Call.Name)
	if len(picked) == 0 {
		return sched.HookVerdict{}, nil
	}
	return d.verdict(d.fire(ctx, PreToolUse, picked, r.Call.Name, func(dia dialect) *payload { return d.call(dia, r) })), nil
}

// Answer asks the PermissionRequest hooks in place of the person.
func (d *Dispatcher) Answer(ctx context.Context, q *sched.Question) (sched.HookVerdict, error) {
	picked := d.forTool(PermissionRequest, q.Call.Name)
	if len(picked) == 0 {
		return sched.HookVerdict{}, nil
	}
	return d.verdict(d.fire(ctx, PermissionRequest, picked, q.Call.Name, func(dia dialect) *payload {
		in := d.call(dia, &q.Request)
		in.Asked = q.Verdict.Reason
		return in
	})), nil
}

func (d *Dispatcher) verdict(out Outcome) sched.HookVerdict {
	if out.Halt {
		d.halt(out.HaltReason)
	}
	return sched.HookVerdict{Verdict: sched.Verdict{Decision: out.Decision, Reason: out.Reason, By: out.By}, Args: out.Args, Said: out.Context}
}

// After asks the PostToolUse hooks about a call that succeeded, and those of
// PostToolUseFailure about one that did not. It changes the result only where a
// hook gives another output; what hooks say of it is told beside it.
func (d *Dispatcher) After(ctx context.Context, r *sched.Request, res *tool.Result) error {
	ev := PostToolUse
	if res.Status != tool.Success && res.Status != "" {
		ev = PostToolUseFailure
	}
	picked := d.forTool(ev, r.Call.Name)
	if len(picked) == 0 {
		return nil
	}
	out := d.fire(ctx, ev, picked, r.Call.Name, func(dia dialect) *payload {
		in := d.call(dia, r)
		if ev == PostToolUse {
			in.Response = dia.response(r.Call, res, d.dir())
		} else {
			stopped := res.Status == tool.Cancelled
			in.Error, in.Interrupt = res.Text(), &stopped
		}
		return in
	})
	if out.Halt {
		d.halt(out.HaltReason)
	}
	if out.Block {
		res.Said = append(res.Said, string(ev)+" hook: "+out.Reason)
	}
	res.Said = append(res.Said, out.Context...)
	if out.Output != nil {
		replace(res, out.Output)
	}
	return nil
}

// replace puts a hook's output in place of the tool's.
func replace(res *tool.Result, output json.RawMessage) {
	var text string
	if json.Unmarshal(output, &text) == nil {
		res.Parts, res.Data = []msg.Part{msg.TextPart(text)}, nil
		return
	}
	res.Parts, res.Data = []msg.Part{msg.TextPart(string(output))}, output
}
