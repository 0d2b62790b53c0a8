package terminal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// A Form is what a server wants to know from the person. Its texts are the
// server's.
type Form struct {
	Server  string
	Message string
	Fields  []Field // empty: only a yes or a no is wanted
}

// A Field is one thing that is asked for.
type Field struct {
	Name, Help string
	Options    []string // when not empty, one of them
	Optional   bool     // an empty answer leaves it out
	// Check says what is wrong with an answer; nil takes any.
	Check func(answer string) error
}

// Ask shows a form and returns an answer for each field, in their order. ok is
// false when the person does not want to answer; an optional field that was left
// out is empty. It returns at once when ctx ends.
func (a *Approver) Ask(ctx context.Context, f Form) (answers []string, ok bool, err error) {
	select {
	case a.turn <- struct{}{}:
		defer func() { <-a.turn }()
	case <-ctx.Done():
		return nil, false, ctx.Err()
	}
	if err := ctx.Err(); err != nil {
		return nil, false, err
	}
	if inBackground(a.opt.In) {
		return nil, false, errors.New("this program runs in the background of its terminal, so nobody can be asked")
	}
	answers, ok, err = a.fill(ctx, f)
	if errors.Is(err, io.EOF) { // nobody is there any more
		return nil, false, nil
	}
	if err != nil {
		err = a.ended(ctx, err)
	}
	if errors.Is(err, ErrInterrupted) && a.opt.Interrupt != nil {
		a.opt.Interrupt()
	}
	return answers, ok, err
}

// fill asks whether the person wants to answer, and then for one field after the
// other.
func (a *Approver) fill(ctx context.Context, f Form) ([]string, bool, error) {
	p := &page{width: width(a.opt.Out), color: a.opt.Color}
	p.b.WriteString("\n--- An MCP server asks ---\n")
	p.line("", "Server: "+f.Server, "")
	p.block(f.Message, whole, nil)
	yes, err := a.put(ctx, p.b.String()+"Answer? y = yes, n = no. Tell it nothing that it need not know.\n", func(s string) error {
		if !slices.Contains([]string{"y", "yes", "n", "no"}, strings.ToLower(s)) {
			return errors.New("y or n is wanted")
		}
		return nil
	})
	if err != nil || !strings.HasPrefix(strings.ToLower(yes), "y") {
		return nil, false, err
	}
	var answers []string
	for _, field := range f.Fields {
		answer, err := a.put(ctx, field.question(width(a.opt.Out)), field.check)
		if err != nil {
			return nil, false, err
		}
		answers = append(answers, answer)
	}
	return answers, true, nil
}

func (f *Field) question(width int) string {
	p := &page{width: width}
	name := f.Name
	if f.Optional {
		name += " (an empty line leaves it out)"
	}
	p.line("", name+":", "")
	if f.Help != "" {
		p.block(f.Help, short, nil)
	}
	if len(f.Options) > 0 {
		p.line(indent, "One of: "+strings.Join(f.Options, ", "), "")
	}
	return p.b.String()
}

func (f *Field) check(answer string) error {
	switch {
	case answer == "" && f.Optional:
		return nil
	case answer == "":
		return errors.New("an answer is wanted")
	case len(f.Options) > 0 && !slices.Contains(f.Options, answer):
		return fmt.Errorf("it has to be one of: %s", strings.Join(f.Options, ", "))
	case f.Check != nil:
		return f.Check(answer)
	}
	return nil
}

// put writes a question and reads lines until one passes the check. After
// maxTries it gives up, as if the input had ended.
func (a *Approver) put(ctx context.Context, text string, check func(string) error) (string, error) {
	for range maxTries {
		if err := a.write(ctx, text); err != nil {
			return "", err
		}
		a.flush() // what was typed before answers nothing
		if err := a.write(ctx, "> "); err != nil {
			return "", err
		}
		line, err := a.readLine(ctx)
		if errors.Is(err, io.EOF) {
			_ = a.write(ctx, "\n")
		}
		if err != nil {
			return "", err
		}
		line = strings.TrimSpace(line)
		fault := check(line)
		if fault == nil {
			return line, nil
		}
		p := &page{width: width(a.opt.Out)}
		p.line("", "That is no answer: "+fault.Error()+".", "")
		text = p.b.String()
	}
	return "", io.EOF
}
