package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// serverVariable makes this command the MCP server of the probes. Its value is
// the file that the calls are noted in, one a line.
const serverVariable = "CAPSTAN_PROBE_CALLS"

// A called is a call that reached the server.
type called struct {
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"`
}

// definitions are the tools of the server. The reference has a pattern that a
// signature cannot say.
var definitions = []*mcp.Tool{
	{Name: "create_shipment", Description: "Books a parcel and returns its tracking code.", InputSchema: json.RawMessage(`{
		"type": "object", "additionalProperties": false, "required": ["order", "reference", "to"],
		"properties": {
			"order": {"type": "integer", "description": "number of the order"},
			"reference": {"type": "string", "pattern": "^[A-Z]{2}[0-9]{4}$", "description": "the customer's reference, without separators"},
			"to": {"type": "object", "additionalProperties": false, "required": ["city", "country"],
				"properties": {"city": {"type": "string"}, "country": {"type": "string", "enum": ["NL", "BE", "DE"]}}}}}`)},
	{Name: "track_shipment", Description: "Tells where a parcel is, by its tracking code.", InputSchema: json.RawMessage(`{
		"type": "object", "additionalProperties": false, "required": ["code"], "properties": {"code": {"type": "string"}}}`)},
	{Name: "cancel_shipment", Description: "Cancels a parcel that has not left yet, by its tracking code.", InputSchema: json.RawMessage(`{
		"type": "object", "additionalProperties": false, "required": ["code"], "properties": {"code": {"type": "string"}}}`)},
}

// answer is what a tool says to a call. No model can know it.
func answer(c called) string {
	switch c.Name {
	case "create_shipment":
		var a struct{ Order int }
		_ = json.Unmarshal(c.Args, &a)
		return code(a.Order)
	case "track_shipment":
		return "It waits in Zwolle since 07:42."
	}
	return "done"
}

// code is the tracking code of an order.
func code(order int) string { return fmt.Sprintf("KX%dQ", order*7919%1000003) }

// serve notes every call before it answers. It takes any arguments: that none but
// valid ones come is what is probed.
func serve(file string) error {
	notes, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer notes.Close()
	var mu sync.Mutex
	s := mcp.NewServer(&mcp.Implementation{Name: "parcels", Version: "1"}, nil)
	for _, d := range definitions {
		s.AddTool(d, func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			c := called{r.Params.Name, r.Params.Arguments}
			mu.Lock()
			defer mu.Unlock()
			if err := json.NewEncoder(notes).Encode(c); err != nil {
				return nil, err
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: answer(c)}}}, nil
		})
	}
	return s.Run(context.Background(), &mcp.StdioTransport{})
}
