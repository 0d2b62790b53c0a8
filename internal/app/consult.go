package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"capstan/internal/builtin"
	"capstan/internal/policy"
)

// Consult puts the question of a control to a person: a plan to approve
// (exit_plan_mode) or questions to answer (ask_user_question), with its arguments.
// It returns whether they said yes, the arguments as they may have completed them,
// and their words. It returns when ctx ends.
type Consult func(ctx context.Context, tool string, input json.RawMessage) (yes bool, completed json.RawMessage, words string, err error)

// approvePlan asks a person whether to begin. With a yes the approval mode is that
// which was in force before the model entered plan mode.
func (s *Session) approvePlan(ctx context.Context, plan string) (builtin.PlanAnswer, error) {
	input, err := encode(map[string]string{"plan": plan})
	if err != nil {
		return builtin.PlanAnswer{}, err
	}
	yes, _, words, err := s.opt.Consult(ctx, "exit_plan_mode", input)
	a := builtin.PlanAnswer{Yes: yes, Words: words}
	if before := s.beforePlan.Load(); before != nil {
		a.Mode = string(*before)
	}
	return a, err
}

// changeMode changes the approval mode on behalf of the model: into plan mode, and
// out of it after a person's yes.
func (s *Session) changeMode(mode string) error {
	if now := s.rules.Mode(); mode == string(policy.Plan) && now != policy.Plan {
		s.beforePlan.Store(&now)
	}
	return s.SetApprovalMode(mode)
}

// askPerson puts the model's questions to a person. Their answers come back as
// "answers" beside the questions, by the text of each: a label, several of them, or
// words of their own. It is the form that clients of Claude Code give.
func (s *Session) askPerson(ctx context.Context, questions []builtin.Question) ([]builtin.Answer, error) {
	input, err := encode(map[string]any{"questions": questions})
	if err != nil {
		return nil, err
	}
	yes, completed, words, err := s.opt.Consult(ctx, "ask_user_question", input)
	switch {
	case err != nil:
		return nil, err
	case !yes && words == "":
		return nil, errors.New("the user does not want to answer")
	case !yes:
		return nil, fmt.Errorf("the user does not want to answer, and says: %s", words)
	}
	var in struct {
		Answers map[string]json.RawMessage `json:"answers"`
	}
	if err := json.Unmarshal(completed, &in); err != nil {
		return nil, fmt.Errorf("reading the answers: %w", err)
	}
	answers := make([]builtin.Answer, len(questions))
	for i, q := range questions {
		if answers[i], err = answerTo(q, in.Answers[q.Question]); err != nil {
			return nil, fmt.Errorf("reading the answer to question %d: %w", i+1, err)
		}
	}
	return answers, nil
}

// answerTo reads one answer. What names no option is the person's own words.
func answerTo(q builtin.Question, raw json.RawMessage) (a builtin.Answer, err error) {
	if len(raw) == 0 {
		return a, nil
	}
	var given []string
	var one string
	if json.Unmarshal(raw, &one) == nil {
		given = []string{one}
		if q.MultiSelect && !offered(q, one) { // "a, b"
			given = strings.Split(one, ", ")
		}
	} else if err := json.Unmarshal(raw, &given); err != nil {
		return a, errors.New("want a string or a list of strings")
	}
	for _, g := range given {
		if !offered(q, g) { // what was typed may hold a comma
			return builtin.Answer{Text: strings.Join(given, ", ")}, nil
		}
	}
	if len(given) > 1 && !q.MultiSelect {
		return a, errors.New("several options were chosen, and it allows one")
	}
	return builtin.Answer{Chosen: given}, nil
}

func offered(q builtin.Question, label string) bool {
	return slices.ContainsFunc(q.Options, func(o builtin.Option) bool { return o.Label == label })
}
