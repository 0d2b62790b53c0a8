package builtin

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"capstan/internal/tool"
)

//go:embed ask_user_question.md
var askUserText string

const askUserInput = `{"type":"object","properties":{"questions":{"type":"array","minItems":1,"maxItems":4,"items":{"type":"object","properties":{` +
	`"question":{"type":"string"},` +
	`"header":{"type":"string","maxLength":20},` +
	`"options":{"type":"array","minItems":2,"maxItems":4,"items":{"type":"object","properties":{` +
	`"label":{"type":"string"},"description":{"type":"string"}},"required":["label"]}},` +
	`"multiSelect":{"type":"boolean"}` +
	`},"required":["question","options"]}}},"required":["questions"]}`

// A Question is one that a model puts to a person. Its texts are the model's:
// a surface makes them fit to be shown.
type Question struct {
	Question    string   `json:"question"`
	Header      string   `json:"header,omitempty"` // a word or two, for a tab or a title
	Options     []Option `json:"options"`          // 2 to 4, with different labels
	MultiSelect bool     `json:"multiSelect,omitempty"`
}

// An Option is one answer that a Question offers.
type Option struct {
	Label       string `json:"label"`
	Description string `json:"description,omitempty"`
}

// An Answer is what the person said to one Question. Both empty: nothing.
type Answer struct {
	Chosen []string // labels of the question's options; more than one only with MultiSelect
	Text   string   // their own words, instead or besides
}

// askUser is a control: it waits for a person, which no program may hide.
type askUser struct {
	ask func(context.Context, []Question) ([]Answer, error)
}

var askUserSpec = tool.Spec{
	Name: "ask_user_question", Title: "AskUser", Description: text(askUserText), Input: json.RawMessage(askUserInput),
	Class: tool.Control, Effect: tool.EffectNone, Closed: true, Waits: true, Hint: "clarify choose prefer confirm",
}

func (t *askUser) Spec() *tool.Spec { return &askUserSpec }

func (t *askUser) Run(ctx context.Context, inv *tool.Invocation) (tool.Result, error) {
	var in struct {
		Questions []Question `json:"questions"`
	}
	if err := json.Unmarshal(inv.Call.Args, &in); err != nil {
		return tool.Fail(tool.CodeInvalidArgs, "reading the arguments of ask_user_question: %v", err), nil
	}
	if err := askable(in.Questions); err != nil {
		return tool.Fail(tool.CodeInvalidArgs, "%v", err), nil
	}
	answers, err := t.ask(ctx, in.Questions)
	switch {
	case ctx.Err() != nil:
		return tool.Fail(tool.CodeAborted, "the questions were cancelled before the user answered"), nil
	case err != nil:
		return tool.Fail(tool.CodeFailed, "asking the user: %v; go on without an answer, or say in your answer what you need to know", err), nil
	}
	if err := fits(in.Questions, answers); err != nil {
		return tool.Result{}, err // a fault of the surface
	}
	return tool.Text(answered(in.Questions, answers)), nil
}

// askable says what a schema cannot: which questions a person could not answer.
func askable(questions []Question) error {
	for i, q := range questions {
		if strings.TrimSpace(q.Question) == "" {
			return fmt.Errorf("/questions/%d/question: it is blank", i)
		}
		seen := map[string]bool{}
		for j, o := range q.Options {
			label := strings.TrimSpace(o.Label)
			if label == "" {
				return fmt.Errorf("/questions/%d/options/%d/label: it is blank", i, j)
			}
			if seen[label] {
				return fmt.Errorf("/questions/%d/options/%d/label: %q is offered twice; give each option a label of its own", i, j, label)
			}
			seen[label] = true
		}
	}
	return nil
}

// fits says whether the answers are ones to the questions.
func fits(questions []Question, answers []Answer) error {
	if len(answers) != len(questions) {
		return fmt.Errorf("asking the user: %s came to %s", count(len(answers), "answer"), count(len(questions), "question"))
	}
	for i, a := range answers {
		if len(a.Chosen) > 1 && !questions[i].MultiSelect {
			return fmt.Errorf("asking the user: %d options were chosen of question %d, which allows one", len(a.Chosen), i+1)
		}
		for _, label := range a.Chosen {
			if !slices.ContainsFunc(questions[i].Options, func(o Option) bool { return o.Label == label }) {
				return fmt.Errorf("asking the user: question %d has no option %q", i+1, label)
			}
		}
	}
	return nil
}

// answered puts the answers into words for the model.
func answered(questions []Question, answers []Answer) string {
	var b strings.Builder
	for i, a := range answers {
		fmt.Fprintf(&b, "Question: %s\n", questions[i].Question)
		if len(a.Chosen) > 0 {
			fmt.Fprintf(&b, "Chosen: %s\n", strings.Join(a.Chosen, "; "))
		}
		words := strings.TrimSpace(a.Text)
		if words != "" {
			fmt.Fprintf(&b, "In their own words: %s\n", words)
		}
		if len(a.Chosen) == 0 && words == "" {
			b.WriteString("No answer: decide as you think best.\n")
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}
