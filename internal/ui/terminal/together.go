package terminal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"capstan/internal/sched"
)

// A waiting is a question that has no answer yet.
type waiting struct {
	ctx    context.Context
	q      *sched.Question
	answer chan sched.Answer // takes one, from whoever asked for this one too
}

// join puts a question at the end of the line.
func (a *Approver) join(ctx context.Context, q *sched.Question) *waiting {
	w := &waiting{ctx, q, make(chan sched.Answer, 1)}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.line = append(a.line, w)
	return w
}

func (a *Approver) leave(w *waiting) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.line = slices.DeleteFunc(a.line, func(x *waiting) bool { return x == w })
}

// maxTogether is how many calls are shown at once, each in few lines.
const (
	maxTogether   = 9
	linesTogether = 12
)

// together returns the question whose turn it is and those that wait behind it.
// One that the person has allowed for good is answered on the way.
func (a *Approver) together(first *waiting) []*waiting {
	a.mu.Lock()
	defer a.mu.Unlock()
	group := []*waiting{first}
	for _, w := range a.line {
		switch {
		case w == first || w.ctx.Err() != nil || len(w.answer) > 0:
		case a.known(w.q):
			w.answer <- sched.Answer{Allow: true, By: again}
		case len(group) < maxTogether:
			group = append(group, w)
		}
	}
	return group
}

// pause is the time in which calls that were made together come to be asked
// about. Nobody sees it.
func pause(ctx context.Context) {
	t := time.NewTimer(50 * time.Millisecond)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// serve asks about the question whose turn it is, and with it about those that
// wait. They take their answers by themselves; one that gets none has its own
// turn later.
func (a *Approver) serve(ctx context.Context, first *waiting) (sched.Answer, error) {
	a.gather(ctx)
	group := a.together(first)
	if len(group) == 1 {
		return a.ask(ctx, first.q)
	}
	answers, err := a.askTogether(ctx, group)
	if err != nil {
		return sched.Answer{}, err
	}
	for w, answer := range answers {
		if w != first {
			w.answer <- answer
		}
	}
	if answer, ok := answers[first]; ok {
		return answer, nil
	}
	return a.ask(ctx, first.q)
}

// askTogether shows several questions and reads lines until one is an answer to
// some or all of them.
func (a *Approver) askTogether(ctx context.Context, group []*waiting) (map[*waiting]sched.Answer, error) {
	pages := make([]*page, len(group))
	for i, w := range group {
		pages[i] = &page{width: width(a.opt.Out), color: a.opt.Color, diff: preview(ctx, w.q)}
	}
	text, cut := several(pages, group, linesTogether)
	for range maxTries {
		if err := a.write(ctx, text); err != nil {
			return nil, a.ended(ctx, err)
		}
		a.flush() // what was typed before the questions were there answers nothing
		if err := a.write(ctx, promptTogether(len(group), cut)); err != nil {
			return nil, a.ended(ctx, err)
		}
		line, err := a.readLine(ctx)
		if errors.Is(err, io.EOF) {
			_ = a.write(ctx, "\n")
			return all(group, sched.Answer{Reason: inputEnded}), nil
		}
		if err != nil {
			return nil, a.ended(ctx, err)
		}
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch word = strings.ToLower(word); {
		case isNo(word):
			return all(group, sched.Answer{Reason: reason(rest), By: person}), nil
		case rest == "" && (word == "y" || word == "yes"):
			return all(group, sched.Answer{Allow: true, By: person}), nil
		case rest == "" && (word == "e" || word == "each"):
			return nil, nil
		case rest == "" && (word == "v" || word == "view"):
			text, cut = several(pages, group, whole)
			continue
		}
		if answers := chosen(line, group); answers != nil {
			return answers, nil
		}
		text = noAnswer
	}
	return all(group, sched.Answer{Reason: notUnderstood}), nil
}

// several writes the questions, each under its number.
func several(pages []*page, group []*waiting, limit int) (text string, cut bool) {
	var b strings.Builder
	fmt.Fprintf(&b, "\n--- Approval needed: %d calls ---\n", len(group))
	for i, w := range group {
		p := pages[i]
		p.begin()
		fmt.Fprintf(&p.b, "[%d] ", i+1)
		p.body(w.q, limit)
		b.WriteString(p.b.String())
		cut = cut || p.cut
	}
	return b.String(), cut
}

func promptTogether(n int, cut bool) string {
	view := ""
	if cut {
		view = ", v = view all of it"
	}
	return fmt.Sprintf("Allow? y = yes to all %d, once; n = no to all, n REASON tells why; 1 3 = yes to these, then the others; e = each by itself%s\n> ", n, view)
}

func all(group []*waiting, answer sched.Answer) map[*waiting]sched.Answer {
	answers := map[*waiting]sched.Answer{}
	for _, w := range group {
		answers[w] = answer
	}
	return answers
}

// chosen reads numbers of questions, which are a yes to each; nil when the line
// is anything else.
func chosen(line string, group []*waiting) map[*waiting]sched.Answer {
	words := strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == ',' })
	answers := map[*waiting]sched.Answer{}
	for _, word := range words {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 || n > len(group) {
			return nil
		}
		answers[group[n-1]] = sched.Answer{Allow: true, By: person}
	}
	if len(answers) == 0 {
		return nil
	}
	return answers
}
