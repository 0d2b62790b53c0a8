package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// serverMode makes the test binary an MCP server on stdio that behaves so.
const serverMode = "CAPSTAN_TEST_SERVER"

type said struct {
	Text string `json:"text" jsonschema:"what to say"`
}

type echoed struct {
	Said string `json:"said"`
}

// serveMCP is the server that scripts use. "slow:D" begins after that time, "dies"
// never, "silent" does not answer.
func serveMCP(mode string) int {
	mode, arg, _ := strings.Cut(mode, ":")
	switch mode {
	case "dies":
		fmt.Fprintln(os.Stderr, "no DATABASE_URL")
		return 3
	case "silent":
		select {}
	case "slow":
		d, err := time.ParseDuration(arg)
		if err != nil {
			panic(err)
		}
		time.Sleep(d)
	}
	s := mcp.NewServer(&mcp.Implementation{Name: "parrot", Version: "1.2"}, &mcp.ServerOptions{Instructions: "A bird that repeats what it hears."})
	if file := os.Getenv("STARTED"); file != "" {
		f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			panic(err)
		}
		fmt.Fprintln(f, "started")
		f.Close()
	}
	if mode == "leaky" { // repeats its token wherever it can
		token := os.Getenv("API_TOKEN")
		fmt.Println("noise " + strings.Repeat("n", 180) + " " + token)
		fmt.Fprintln(os.Stderr, "token="+token)
		s = mcp.NewServer(&mcp.Implementation{Name: "parrot " + token, Version: "1"}, &mcp.ServerOptions{Instructions: "Use " + token + " well."})
		mcp.AddTool(s, &mcp.Tool{Name: "tell", Title: "Tell " + token, Description: "Tells " + token + ".",
			InputSchema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"string","description":"not ` + token + `"}}}`)},
			func(context.Context, *mcp.CallToolRequest, map[string]any) (*mcp.CallToolResult, any, error) {
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "it is " + token}}}, nil, nil
			})
		s.AddResource(&mcp.Resource{URI: "parrot://" + token, Name: "n " + token, Description: "d " + token}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return nil, errors.New("no " + token)
		})
		s.AddPrompt(&mcp.Prompt{Name: "p " + token, Description: "d " + token, Arguments: []*mcp.PromptArgument{{Name: "a " + token, Description: token}}}, func(_ context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{}, nil
		})
	}
	addTools(s)
	s.AddResource(&mcp.Resource{URI: "parrot://seed", Name: "seed", MIMEType: "text/plain"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "parrot://seed", MIMEType: "text/plain", Text: "sunflower"}}}, nil
	})
	s.AddPrompt(&mcp.Prompt{Name: "greet", Description: "Greets somebody.", Arguments: []*mcp.PromptArgument{{Name: "who", Required: true}}}, func(_ context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{}, nil
	})
	if err := s.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return 0
}

func addTools(s *mcp.Server) {
	reads := &mcp.ToolAnnotations{ReadOnlyHint: true}
	say := func(_ context.Context, _ *mcp.CallToolRequest, in said) (*mcp.CallToolResult, echoed, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "parrot says " + in.Text}}}, echoed{in.Text}, nil
	}
	mcp.AddTool(s, &mcp.Tool{Name: "say", Description: "Repeats a phrase aloud, as a parrot does.", Annotations: reads}, say)
	text := func(s string) *mcp.CallToolResult {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
	}
	mcp.AddTool(s, &mcp.Tool{Name: "crash", Description: "Ends the process in the middle of the call."}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		fmt.Fprintln(os.Stderr, "the branch broke")
		os.Exit(7)
		return nil, nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "env", Description: "Lists the names of its environment."}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		var names []string
		for _, e := range os.Environ() {
			name, _, _ := strings.Cut(e, "=")
			names = append(names, name)
		}
		slices.Sort(names)
		return text(strings.Join(names, " ")), nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "grow", Description: "Gets one more tool."}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		mcp.AddTool(s, &mcp.Tool{Name: "sing", Description: "Sings a song."}, say)
		return text("grown"), nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "ask", Description: "Asks the person something."}, func(ctx context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		res, err := r.Session.Elicit(ctx, &mcp.ElicitParams{Message: "Which cracker?", RequestedSchema: map[string]any{
			"type": "object", "properties": map[string]any{"cracker": map[string]any{"type": "string"}, "count": map[string]any{"type": "integer"}}, "required": []string{"cracker"}}})
		if err != nil {
			return nil, nil, err
		}
		return text(fmt.Sprint(res.Action, " ", res.Content)), nil, nil
	})
}
