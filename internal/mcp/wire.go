package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// The SDK decodes results and schemas into Go values, which loses the digits of
// large numbers, the order of properties, and everything when one member of a
// list has a type that it does not expect. So the requests that matter are sent
// as methods of ours, whose results stay bytes; the prefix is taken off again
// just before the message leaves, in whatever transport.
const prefix = "capstan/"

// The methods sent so.
const (
	listTools     = prefix + "tools/list"
	callTool      = prefix + "tools/call"
	listResources = prefix + "resources/list"
	listTemplates = prefix + "resources/templates/list"
	readResource  = prefix + "resources/read"
	listPrompts   = prefix + "prompts/list"
	getPrompt     = prefix + "prompts/get"
)

// params are those of all these methods.
type params struct {
	sdk.ParamsBase
	Name      string          `json:"name,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Cursor    string          `json:"cursor,omitempty"`
	URI       string          `json:"uri,omitempty"`

	Responses sdk.InputResponseMap `json:"inputResponses,omitempty"`
	State     string               `json:"requestState,omitempty"`
}

// answer is a result as it came.
type answer struct {
	sdk.ResultBase
	raw json.RawMessage
}

// UnmarshalJSON keeps the bytes.
func (a *answer) UnmarshalJSON(b []byte) error {
	a.raw = bytes.Clone(b)
	return nil
}

func register(c *sdk.Client) {
	for _, method := range []string{listTools, callTool, listResources, listTemplates, readResource, listPrompts, getPrompt} {
		if err := sdk.AddSendingCustomMethod[*params, *answer](c, method); err != nil {
			panic(err) // the prefix is nobody else's
		}
	}
}

// outgoing is a message as it leaves: with its real method. The call whose
// context this is learns its id.
func outgoing(ctx context.Context, m jsonrpc.Message) jsonrpc.Message {
	r, ok := m.(*jsonrpc.Request)
	if !ok {
		return m
	}
	if r.IsCall() {
		leaves(ctx)
	}
	method, own := strings.CutPrefix(r.Method, prefix)
	if !own {
		return m
	}
	if f, ok := ctx.Value(flightKey{}).(*flight); ok {
		f.sent(r.ID)
	}
	out := *r
	out.Method = method
	return &out
}
