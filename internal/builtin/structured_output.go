package builtin

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"strings"

	"capstan/internal/schema"
	"capstan/internal/tool"
)

//go:embed structured_output.md
var structuredText string

// wrapped is the one property of the arguments when the answer is no object.
const wrapped = "value"

// Structured is the tool structured_output: its arguments are the answer of a
// run, in the form that the user gave as a JSON Schema. It is a control, since
// it ends the run. The Data of its result is the answer.
type Structured struct {
	spec  tool.Spec
	check *schema.Schema // of the arguments
	wrap  bool
}

// NewStructured returns the tool for a schema of the answer. Arguments are
// always objects; so for an answer that may be something else the arguments are
// {"value": …}, and the Data of the result is what is in it.
//
// A schema that cannot be used is an error that says where.
func NewStructured(answer json.RawMessage) (*Structured, error) {
	raw, err := schema.Parse(answer)
	if err != nil {
		return nil, err
	}
	whole, err := schema.Compile(raw) // as the user wrote it, so that places are theirs
	if err != nil {
		return nil, err
	}
	s := &Structured{}
	if input, ok := objects(raw); ok {
		raw = input
	} else if raw, err = wrap(raw, whole); err != nil {
		return nil, err
	} else {
		s.wrap = true
	}
	if s.check, err = schema.Compile(raw); err != nil {
		return nil, err
	}
	s.spec = tool.Spec{
		Name: "structured_output", Title: "StructuredOutput", Description: text(structuredText), Input: raw,
		Class: tool.Control, Effect: tool.EffectNone, Hint: "answer result final json",
	}
	return s, nil
}

// objects says whether the schema is one of objects, as arguments have to be.
// One that only lists properties is meant so, and gets the type that APIs ask
// for.
func objects(raw json.RawMessage) (json.RawMessage, bool) {
	var s map[string]json.RawMessage
	if json.Unmarshal(raw, &s) != nil { // a boolean
		return nil, false
	}
	if s["type"] == nil && s["properties"] != nil {
		return append([]byte(`{"type":"object",`), raw[1:]...), true
	}
	return raw, string(s["type"]) == `"object"`
}

// wrap puts a schema one level down. Its definitions move to the root, where
// its references look for them, unless it has an $id, which keeps them.
func wrap(raw json.RawMessage, whole *schema.Schema) (json.RawMessage, error) {
	root := map[string]any{"type": "object", "required": []string{wrapped}, "additionalProperties": false}
	var inner map[string]json.RawMessage
	if json.Unmarshal(raw, &inner) == nil && inner != nil {
		if v, ok := inner["$schema"]; ok {
			root["$schema"] = v
			delete(inner, "$schema")
		}
		if _, ok := inner["$id"]; !ok {
			if err := references(whole); err != nil {
				return nil, err
			}
			for _, k := range []string{"$defs", "definitions"} {
				if v, ok := inner[k]; ok {
					root[k] = v
					delete(inner, k)
				}
			}
		}
		raw = encodeData(inner)
	}
	root["properties"] = map[string]json.RawMessage{wrapped: raw}
	return encodeData(root), nil
}

// references refuses those that would mean another schema one level down.
func references(whole *schema.Schema) error {
	for _, ref := range whole.InnerReferences() {
		if !strings.HasPrefix(ref, "#/$defs/") && !strings.HasPrefix(ref, "#/definitions/") {
			return errors.New("an answer that is no object may refer to its $defs only, not to " + ref + "; make it an object with a property for the answer")
		}
	}
	return nil
}

// Spec returns the definition, with the user's schema.
func (s *Structured) Spec() *tool.Spec { return &s.spec }

// Read returns the answer that a text is: JSON that fits the schema, alone or in one
// fence of Markdown. Models that are better at writing than at calling tools
// give it so.
func (s *Structured) Read(text string) (json.RawMessage, bool) {
	answer, err := schema.Parse([]byte(unfenced(text)))
	if err != nil {
		return nil, false
	}
	args := json.RawMessage(answer)
	if s.wrap {
		args = encodeData(map[string]json.RawMessage{wrapped: answer})
	}
	if args, _, err = s.check.Validate(args); err != nil {
		return nil, false
	}
	return s.answer(args)
}

// unfenced returns what is in the fence that a whole text stands in.
func unfenced(text string) string {
	text = strings.TrimSpace(text)
	inner := strings.TrimLeft(text, "`")
	fence := text[:len(text)-len(inner)]
	if len(fence) < 3 {
		return text
	}
	_, inner, ok := strings.Cut(inner, "\n") // the first line may name a language
	inner, closed := strings.CutSuffix(inner, fence)
	if !ok || !closed {
		return text
	}
	return inner
}

// answer takes the answer out of the arguments.
func (s *Structured) answer(args json.RawMessage) (json.RawMessage, bool) {
	if !s.wrap {
		return args, true
	}
	var in map[string]json.RawMessage
	err := json.Unmarshal(args, &in)
	return in[wrapped], err == nil && in[wrapped] != nil
}

// Run records the answer. Whether it fits its schema was checked before.
func (s *Structured) Run(_ context.Context, inv *tool.Invocation) (tool.Result, error) {
	answer, ok := s.answer(inv.Call.Args)
	if !ok {
		return tool.Fail(tool.CodeInvalidArgs, "the answer belongs into the property %s", wrapped), nil
	}
	r := tool.Text("The answer is recorded.")
	r.Data = bytes.Clone(answer)
	return r, nil
}
