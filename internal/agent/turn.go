package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"capstan/internal/llm"
	"capstan/internal/msg"
	"capstan/internal/tool"
)

// An answer is what one request brought.
type answer struct {
	id      string // of the prompt
	message msg.Message
	finish  llm.Finish // empty: the answer is not whole
	leaked  bool
	err     error // why it is not whole
}

// runnable reports whether the calls of the answer may be run. What the
// provider withdrew, or what did not arrive as a whole, is never acted on.
func (ans *answer) runnable() bool {
	return ans.finish != "" && ans.finish != llm.FinishFiltered
}

// request is the next question to the model. The history of a conversation is
// put together here and nowhere else; whoever makes it shorter does so before.
func (r *run) request() *llm.Request {
	a := r.a
	a.mu.Lock()
	a.prompts++
	id := fmt.Sprintf("%s-%d", a.key, a.prompts)
	history := a.history[:len(a.history):len(a.history)]
	a.mu.Unlock()
	if r.sent = a.opt.View(); a.opt.Declared != nil {
		r.sent = a.opt.Declared()
	}
	a.rt.Reviews().Declare(r.sent)
	q := &llm.Request{
		Model: a.opt.Model, Messages: history, PromptID: id, CacheKey: a.cache,
		Tools:     r.sent.Declarations(), // as the exposure policy has it (S0-195 to S0-197)
		Hosted:    a.opt.Hosted,
		MaxTokens: a.opt.MaxTokens, Temperature: a.opt.Temperature, Effort: a.opt.Effort,
	}
	if a.opt.System != nil {
		q.System = a.opt.System()
	}
	return q
}

// ask makes one request and collects its answer, which is recorded when it
// returns: whole, or what had arrived of it.
func (r *run) ask() *answer {
	q := r.request()
	r.a.emit(Asked{PromptID: q.PromptID, Turn: int(r.turns.Add(1))})
	ans, turn := &answer{id: q.PromptID}, llm.NewTurn(r.a.origin)
	began := time.Now()
	ans.err = r.stream(q, turn, ans)
	r.out.Waiting += time.Since(began)
	r.spend(turn.Usage, 0)
	ans.message, ans.finish = turn.Message(), turn.Finish
	r.count(q, &ans.message, turn.Usage)
	r.out.Text, r.out.Finish = ans.message.Text(), ans.finish
	if len(ans.message.Parts) > 0 {
		r.fail(r.a.message(ans.message))
	}
	if len(ans.message.Parts) > 0 || ans.finish != "" {
		r.a.emit(Answered{PromptID: ans.id, Message: ans.message, Usage: turn.Usage, Finish: ans.finish})
	}
	return ans
}

// errCut is a provider's fault: its stream ended without an end.
var errCut = errors.New("the provider's answer ended in the middle, without saying why; try again")

func (r *run) stream(q *llm.Request, turn *llm.Turn, ans *answer) error {
	for e, err := range r.a.opt.Provider.Stream(r.ctx, q) {
		if err != nil {
			return err
		}
		switch v := e.(type) {
		case llm.Call: // an id that was used before would answer another call
			v.Call.ID = r.a.ids.Take(v.Call.ID)
			e = v
		case llm.Done:
			ans.leaked = v.Leaked
		}
		turn.Add(e)
		r.a.emit(Streamed{PromptID: q.PromptID, Event: e})
		if turn.Finish != "" {
			return nil
		}
		if r.ctx.Err() != nil {
			return context.Cause(r.ctx)
		}
	}
	return errCut
}

// act runs the calls of an answer as one batch and adds the answer, with their
// results, to the history. Calls that may not run any more are handed in all
// the same, cancelled: so each of them has its one result, and everybody who
// watches sees it.
func (r *run) act(ans *answer) {
	made := ans.message.Calls()
	if len(made) == 0 {
		if len(ans.message.Parts) > 0 {
			r.a.add(ans.message)
		}
		return
	}
	ctx, cancel := context.WithCancel(r.ctx)
	defer cancel()
	if !ans.runnable() {
		cancel()
	}
	calls := make([]tool.Call, len(made))
	for i, c := range made {
		calls[i] = tool.Call{ID: r.a.outer(c.ID), ParentID: r.a.sub.callID(), Name: c.Name, Args: json.RawMessage(c.Args), Fault: c.Fault, Shown: r.sent.Visible(c.Name)}
	}
	if r.a.opt.Await != nil && ctx.Err() == nil {
		r.a.opt.Await(ctx, calls)
	}
	results := make([]msg.Result, len(made))
	for s := range r.a.rt.Start(ctx, r.a.opt.View, calls) {
		results[s.Index] = outcome(&s.Result)
		results[s.Index].CallID = made[s.Index].ID
	}
	observed := msg.Message{Role: msg.Tool, Results: results}
	r.a.add(ans.message, observed)
	r.a.emit(Observed{observed})
	if ans.runnable() {
		r.batch(calls, results)
	}
}

// judge says how the run ends after an answer, or "" when it goes on; then what
// the model has to be told is in the history.
func (r *run) judge(ans *answer) (Reason, error) {
	calls := r.book.turned()
	switch {
	case r.ctx.Err() != nil && (ans.err != nil || len(calls.calls) > 0):
		return r.ended()
	case ans.err != nil:
		return Failed, ans.err
	case ans.finish == llm.FinishFiltered:
		return Failed, errors.New("the provider refused to answer, or held its answer back (a content filter); put the request in other words, or ask another model")
	case r.a.opt.Structured != nil && r.book.structured() != nil:
		r.out.Structured = r.book.structured()
		return Finished, nil
	case len(calls.calls) > 0:
		return r.afterCalls(ans, calls)
	}
	return r.final(ans)
}

// afterCalls looks whether the calls that were just made lead anywhere.
func (r *run) afterCalls(ans *answer, calls sample) (Reason, error) {
	r.nudges.empty = 0
	tell, end := r.loops.see(calls)
	switch {
	case end != "":
		return Loop, fmt.Errorf("the model repeats itself, and was told so in vain: %s", end)
	case tell != "":
		r.nudge(loopText, tell)
	case ans.leaked && r.nudges.leaked < leakedMost:
		r.nudges.leaked++
		r.nudge(leakedText)
	case !ans.leaked:
		r.nudges.leaked = 0
	}
	return "", nil
}

// written reports whether a text is the structured answer, and takes it. One that
// was cut off may fit the schema by accident.
func (r *run) written(ans *answer) (ok bool) {
	if r.a.opt.ReadStructured != nil && ans.finish != llm.FinishLength {
		r.out.Structured, ok = r.a.opt.ReadStructured(r.out.Text)
	}
	return ok
}

// final looks whether an answer without calls is one.
func (r *run) final(ans *answer) (Reason, error) {
	switch {
	case silent(&ans.message):
		if r.nudges.empty == emptyMost {
			return NoAnswer, errors.New("the model answered nothing, also after it was asked again; try another model, or raise its limit of output tokens")
		}
		r.nudges.empty++
		if ans.finish == llm.FinishLength {
			r.nudge(emptyCutText)
		} else {
			r.nudge(emptyText)
		}
	case ans.leaked:
		if r.nudges.leaked == leakedMost {
			return NoAnswer, errors.New("the model writes its tool calls as text, also after it was told; check the server's chat template and tool parser, or use another model")
		}
		r.nudges.leaked++
		r.nudge(leakedText)
	case r.a.opt.Structured != nil && r.written(ans):
		return Finished, nil
	case r.a.opt.Structured != nil:
		if r.nudges.structured == structuredMost {
			return NoAnswer, fmt.Errorf("the model did not give its answer through %s, also after it was told, and its text is no JSON that fits the schema: %s", structuredOutput, clip(r.out.Text, 500))
		}
		r.nudges.structured++
		r.nudge(structuredText)
	default:
		if ans.finish == llm.FinishLength {
			r.a.emit(Noticed{"The answer was cut off by the limit of output tokens."})
		}
		return Finished, nil
	}
	return "", nil
}
