package app

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"capstan/internal/mcp"
	"capstan/internal/ui/terminal"
)

// Ask puts the form of a server to a person.
type Ask func(ctx context.Context, f terminal.Form) (answers []string, ok bool, err error)

// elicit answers servers that want to know something from the person; nil when
// nobody can be asked, and then they are told at the start that they need not ask.
func (s *Session) elicit() mcp.Elicit {
	ask := s.opt.Ask
	if ask == nil {
		return nil
	}
	return func(ctx context.Context, server string, q *sdk.ElicitParams) (*sdk.ElicitResult, error) {
		fields, err := wanted(q)
		if err != nil { // an address to visit, say: a person cannot judge it here
			return &sdk.ElicitResult{Action: "decline"}, nil
		}
		form := terminal.Form{Server: server, Message: s.Redact(q.Message)}
		for i := range fields {
			f := fields[i].shown()
			f.Name, f.Help = s.Redact(f.Name), s.Redact(f.Help)
			form.Fields = append(form.Fields, f)
		}
		answers, ok, err := ask(ctx, form)
		switch {
		case err != nil:
			return &sdk.ElicitResult{Action: "cancel"}, nil
		case !ok:
			return &sdk.ElicitResult{Action: "decline"}, nil
		}
		content := map[string]any{}
		for i, f := range fields {
			if answers[i] == "" {
				continue
			}
			if content[f.name], err = f.value(answers[i]); err != nil {
				return &sdk.ElicitResult{Action: "cancel"}, nil
			}
		}
		return &sdk.ElicitResult{Action: "accept", Content: content}, nil
	}
}

// A wish is one thing that a server asks for: a flat property of its schema.
type wish struct {
	name     string
	optional bool

	Type        string `json:"type"`
	Title       string `json:"title"`
	Description string `json:"description"`
	Enum        []any  `json:"enum"`
	OneOf       []struct {
		Const any    `json:"const"`
		Title string `json:"title"`
	} `json:"oneOf"`
}

// wanted reads the schema of a question, required things first. What is no flat
// object of simple values cannot be asked for here.
func wanted(q *sdk.ElicitParams) ([]wish, error) {
	if q.Mode != "" && q.Mode != "form" {
		return nil, fmt.Errorf("a question of mode %q cannot be asked here", q.Mode)
	}
	raw, err := json.Marshal(q.RequestedSchema)
	if err != nil {
		return nil, err
	}
	var object struct {
		Properties map[string]wish `json:"properties"`
		Required   []string        `json:"required"`
	}
	if err := json.Unmarshal(raw, &object); err != nil {
		return nil, err
	}
	var list []wish
	for _, name := range slices.Sorted(maps.Keys(object.Properties)) {
		w := object.Properties[name]
		w.name, w.optional = name, !slices.Contains(object.Required, name)
		if !slices.Contains([]string{"", "string", "integer", "number", "boolean"}, w.Type) {
			return nil, fmt.Errorf("%s: a value of type %q cannot be asked for here", name, w.Type)
		}
		list = append(list, w)
	}
	slices.SortStableFunc(list, func(a, b wish) int {
		switch {
		case a.optional == b.optional:
			return 0
		case b.optional:
			return -1
		}
		return 1
	})
	return list, nil
}

// shown is the wish as a person sees it.
func (w *wish) shown() terminal.Field {
	f := terminal.Field{Name: cmp.Or(w.Title, w.name), Optional: w.optional}
	help := []string{w.Description}
	if w.Type == "boolean" {
		f.Options = []string{"true", "false"}
	}
	for _, v := range w.Enum {
		f.Options = append(f.Options, fmt.Sprint(v))
	}
	for _, v := range w.OneOf {
		f.Options = append(f.Options, fmt.Sprint(v.Const))
		help = append(help, fmt.Sprintf("%v: %s", v.Const, v.Title))
	}
	f.Help = strings.TrimSpace(strings.Join(help, "\n"))
	f.Check = func(answer string) error {
		_, err := w.value(answer)
		return err
	}
	return f
}

// value is an answer in the type that the server wants.
func (w *wish) value(answer string) (any, error) {
	var v any = answer
	var err error
	switch w.Type {
	case "integer":
		v, err = strconv.ParseInt(answer, 10, 64)
	case "number":
		v, err = strconv.ParseFloat(answer, 64)
	case "boolean":
		v, err = strconv.ParseBool(answer)
	}
	if err != nil {
		return nil, fmt.Errorf("%s has to be of type %s", w.name, w.Type)
	}
	return v, nil
}
