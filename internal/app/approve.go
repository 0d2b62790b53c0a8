package app

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"capstan/internal/config"
	"capstan/internal/policy"
	"capstan/internal/sched"
)

// The layers in which a rule that a person says yes to can be kept.
const (
	layerSession = "session"
	layerLocal   = config.Local
	layerProject = config.Project
	layerUser    = config.User
)

// A desk is the one queue of questions of a session, whoever's calls they are
// about: the model's, a program's or a subagent's. It stands in front of the
// surface that asks, says which rules would spare the person the next question,
// keeps the rules that they say yes to, and takes back what such a rule answers.
// It implements sched.Approver.
type desk struct {
	s       *Session
	surface sched.Approver

	mu   sync.Mutex
	open map[*asking]bool
}

// asking is one question that waits for its answer.
type asking struct {
	ctx    context.Context // ends with the question
	q      *sched.Question
	settle context.CancelCauseFunc
}

// settled is why a question needs no answer of the person any more.
type settled struct{ answer sched.Answer }

func (s *settled) Error() string { return "answered by a rule" }

func newDesk(s *Session, surface sched.Approver) *desk {
	return &desk{s: s, surface: surface, open: map[*asking]bool{}}
}

// Approve implements sched.Approver.
func (d *desk) Approve(ctx context.Context, q *sched.Question) (sched.Answer, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	a := &asking{ctx, q, cancel}
	d.mu.Lock()
	d.open[a] = true // before the rules are looked at again, so that no new one is missed
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.open, a)
	}()
	now := q.Judge(ctx)
	if answer, ok := byRule(q, now); ok {
		return answer, nil
	}
	q.Offers = d.offers(q, now.Rules)
	answer, err := d.surface.Approve(ctx, q)
	if by, ok := errors.AsType[*settled](context.Cause(ctx)); ok && err != nil {
		return by.answer, nil
	}
	if err != nil {
		return answer, err
	}
	answer.Grants = standing(&answer)
	return answer, d.grant(answer.Grants)
}

// standing are the rules of an answer that come into force. A no opens nothing, and
// what nobody said changes nothing.
func standing(a *sched.Answer) []sched.Grant {
	switch {
	case a.Unasked:
		return nil
	case a.Allow:
		return a.Grants
	}
	return slices.DeleteFunc(slices.Clone(a.Grants), func(g sched.Grant) bool { return g.List == "allow" })
}

// byRule is the answer that the rules give to a question by now, if they give
// one: those of its caller, under the mode of its caller. What a hook wants asked no
// rule answers.
func byRule(q *sched.Question, now sched.Verdict) (sched.Answer, bool) {
	switch {
	case now.Decision == sched.Deny:
		return sched.Answer{Reason: now.Reason, By: now.By, Ruled: true}, true
	case now.Decision == sched.Allow && !q.Hooked:
		return sched.Answer{Allow: true, By: now.By, Ruled: true}, true
	}
	return sched.Answer{}, false
}

// maxOffered is how many rules an offer has at most: nobody reads more.
const maxOffered = 10

// offers are the ways to say "always". There is none where no rule could allow
// the call, or where it would not count.
func (d *desk) offers(q *sched.Question, rules []string) []sched.Offer {
	if q.Hooked || len(rules) == 0 || len(rules) > maxOffered || d.s.set.AllowManagedOnly {
		return nil
	}
	offers := []sched.Offer{{Layer: layerSession, Rules: rules}}
	for _, layer := range []string{layerLocal, layerUser} {
		if path, shown, err := d.s.rulesFile(layer); err == nil && path != "" {
			offers = append(offers, sched.Offer{Layer: layer, File: shown, Rules: rules})
		}
	}
	return offers
}

// rulesFile is the file of a layer, and how a person names it.
func (s *Session) rulesFile(layer string) (path, shown string, err error) {
	switch {
	case layer == layerSession:
		return "", "", nil
	case layer == layerUser && s.home == "":
		return "", "", errors.New("there is no home directory to keep rules in: set HOME")
	case layer == layerUser:
		return filepath.Join(s.home, config.File), "~/" + filepath.ToSlash(config.File), nil
	case !s.trusted:
		return "", "", fmt.Errorf("the rules of this folder's settings do not count, because it is not trusted: run capstan trust in %s", s.project)
	case layer == layerLocal:
		return filepath.Join(s.project, config.LocalFile), filepath.ToSlash(config.LocalFile), nil
	case layer == layerProject:
		return filepath.Join(s.project, config.File), filepath.ToSlash(config.File), nil
	}
	return "", "", fmt.Errorf("no rules are kept in %q: want session, local, project or user", layer)
}

// grant puts rules into force and keeps them. One that cannot be in force is an
// error, and then none of them is; so is the answer that they came with. One that is
// in force but could not be written is told of.
func (d *desk) grant(grants []sched.Grant) error {
	if len(grants) == 0 {
		return nil
	}
	files := map[string]string{}
	for _, g := range grants {
		path, _, err := d.s.rulesFile(g.Layer)
		if err != nil {
			return err
		}
		files[g.Layer] = path
	}
	rules := make([]policy.Rule, len(grants))
	for i, g := range grants {
		rules[i] = policy.Rule{List: g.List, Text: g.Rule, Origin: g.Layer + ", added at a question"}
	}
	if err := d.s.rules.Add(rules...); err != nil {
		return err
	}
	for layer, path := range files {
		if path == "" {
			continue
		}
		for _, list := range []string{"allow", "ask", "deny"} {
			if err := keepRules(path, list, grants, layer); err != nil {
				d.s.notice(fmt.Sprintf("a rule holds in this session only, because it could not be written to %s: %v", path, err))
			}
		}
	}
	d.review()
	return nil
}

func keepRules(path, list string, grants []sched.Grant, layer string) error {
	var rules []string
	for _, g := range grants {
		if g.Layer == layer && g.List == list {
			rules = append(rules, g.Rule)
		}
	}
	if len(rules) == 0 {
		return nil
	}
	return config.AddRules(path, list, rules, 0o600)
}

// review answers the questions that the rules answer by now.
func (d *desk) review() {
	d.mu.Lock()
	open := make([]*asking, 0, len(d.open))
	for a := range d.open {
		open = append(open, a)
	}
	d.mu.Unlock()
	slices.SortFunc(open, func(a, b *asking) int { return strings.Compare(a.q.Call.ID, b.q.Call.ID) })
	for _, a := range open {
		if answer, ok := byRule(a.q, a.q.Judge(a.ctx)); ok {
			a.settle(&settled{answer})
		}
	}
}

// SetApprovalMode changes the approval mode, as --approval-mode spells it, when a
// person has said so. Questions that are open and that it answers are answered.
func (s *Session) SetApprovalMode(mode string) error {
	if err := s.rules.SetMode(policy.Mode(mode)); err != nil {
		return err
	}
	if s.desk != nil {
		s.desk.review()
	}
	return nil
}

// notice tells the user what turned out while the session runs.
func (s *Session) notice(text string) {
	if s.opt.Notice != nil {
		s.opt.Notice(s.Redact(text))
	}
}
