package tool

import (
	"context"
	"encoding/json"
	"fmt"

	"capstan/internal/schema"
)

// New returns a tool whose arguments are the fields of In. When spec.Input is
// nil it is made from In, so that what a model is told and what fn receives
// are one definition (ruling 10).
//
// If access is wanted, wrap the result or write the Tool by hand.
func New[In any](spec Spec, fn func(context.Context, *Invocation, In) (Result, error)) Tool {
	f := &funcTool[In]{spec: spec, fn: fn}
	if f.spec.Input == nil {
		in, err := schema.Of[In]()
		if err != nil {
			panic(fmt.Sprintf("tool %s: %v", spec.Name, err)) // a fault of the program, found by its first test
		}
		f.spec.Input = in
	}
	return f
}

type funcTool[In any] struct {
	spec Spec
	fn   func(context.Context, *Invocation, In) (Result, error)
}

func (f *funcTool[In]) Spec() *Spec { return &f.spec }

func (f *funcTool[In]) Run(ctx context.Context, inv *Invocation) (Result, error) {
	var in In
	if err := json.Unmarshal(inv.Call.Args, &in); err != nil {
		return Fail(CodeInvalidArgs, "reading the arguments of %s: %v", f.spec.Name, err), nil
	}
	return f.fn(ctx, inv, in)
}
