package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"capstan/internal/sched"
	"capstan/internal/session"
	"capstan/internal/tool"
)

// decision is what the record keeps of how a call was decided.
func decision(e *sched.Event) session.Decision {
	j, c := e.Decided, e.Call
	d := session.Decision{
		Call: c.ID, Name: c.Name, Source: string(c.Source), ParentID: c.ParentID, Agent: c.Agent,
		Allowed: j.Allowed, Stage: j.Stage, By: j.By(), Answered: j.AnsweredBy(), Rules: spelled(j.Rules.Decision), Hooks: spelled(j.Hook.Decision), Reason: j.Reason,
		Args: string(c.Args), ArgsSHA256: sha256Of(string(c.Args)), Changed: j.Changed,
	}
	if j.Asked == nil {
		return d
	}
	d.Asked, d.WaitMS = j.Asked.Verdict.Reason, j.Waited.Milliseconds()
	d.Definition = definition(j.Asked.Entry)
	if j.Answer != nil {
		d.Said = j.Answer.Reason
		for _, g := range j.Answer.Grants {
			d.Grants = append(d.Grants, g.Layer+" "+g.List+" "+g.Rule)
		}
	}
	return d
}

// spelled is a decision as settings spell it.
func spelled(d sched.Decision) string {
	switch d {
	case sched.Abstain:
		return ""
	case sched.Allow:
		return "allow"
	case sched.Ask:
		return "ask"
	}
	return "deny"
}

// definition tells one definition of a tool from another.
func definition(e *tool.Entry) string {
	if e == nil {
		return ""
	}
	s := e.Spec()
	return sha256Of(strings.Join([]string{s.Name, s.Description, string(s.Input), string(s.Output)}, "\x00"))
}

func sha256Of(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}
