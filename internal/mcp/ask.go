package mcp

import (
	"context"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

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

// sampling answers requests for a completion, when that is allowed.
func (c *conn) sampling() func(context.Context, *sdk.CreateMessageRequest) (*sdk.CreateMessageResult, error) {
	sample := c.s.m.o.Sample
	if sample == nil {
		return nil
	}
	return func(ctx context.Context, r *sdk.CreateMessageRequest) (*sdk.CreateMessageResult, error) {
		defer c.flights.hold(c.cfg.timeout() / 2)()
		return sample(ctx, c.cfg.Name, r.Params)
	}
}
