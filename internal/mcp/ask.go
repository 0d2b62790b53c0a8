package mcp

import (
	"context"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// What servers may not ask for, as it is said to them. They are told at the start
// that they need not ask; these are for those that do.
var (
	errNobody     = errors.New("elicitation is refused: nobody can be asked in this session")
	errNoSampling = errors.New("sampling is refused: servers are given no model here; use one of your own")
)

// codeRefused is the protocol's own example for a no of the user.
const codeRefused = -1

// elicitation answers questions to the person, when there is somebody to ask.
func (c *conn) elicitation() func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
	ask := c.s.m.o.Elicit
	if ask == nil {
		return nil
	}
	return func(ctx context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
		defer c.flights.hold(c.cfg.timeout() / 2)()
		return ask(ctx, c.cfg.Name, r.Params)
	}
}

// refuse answers what servers may not ask for.
func (c *conn) refuse(method string) error {
	why := errNoSampling
	switch {
	case method == "elicitation/create" && c.s.m.o.Elicit == nil:
		why = errNobody
	case method != "sampling/createMessage":
		return nil
	}
	return &jsonrpc.Error{Code: codeRefused, Message: why.Error()}
}
