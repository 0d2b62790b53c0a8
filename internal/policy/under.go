package policy

import (
	"context"
	"slices"

	"capstan/internal/sched"
)

// modes are the approval modes, the strictest first.
var modes = []Mode{Plan, Default, AutoEdit, Yolo}

// stricter returns the stricter one of two modes.
func stricter(a, b Mode) Mode {
	if slices.Index(modes, a) <= slices.Index(modes, b) {
		return a
	}
	return b
}

// Limited judges by the rules of a Policy, those that come later too, under its
// mode or a stricter one: the policy of an agent whose definition names an
// approval mode. No definition makes anything laxer.
type Limited struct {
	p    *Policy
	most Mode
}

// Under returns the policy of an agent whose mode is at most m. It must be a mode
// that ParseMode knows.
func (p *Policy) Under(m Mode) *Limited { return &Limited{p, m} }

// Mode returns the mode in force.
func (l *Limited) Mode() Mode { return stricter(l.most, l.p.Mode()) }

// Decide implements sched.Policy.
func (l *Limited) Decide(ctx context.Context, r *sched.Request) sched.Verdict {
	return l.p.now().explainIn(ctx, r, l.Mode()).Verdict
}
