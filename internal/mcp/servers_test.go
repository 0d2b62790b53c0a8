package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// serveStdio is the test binary as a server. Each mode is one way to behave.
func serveStdio(mode string) {
	mode, arg, _ := strings.Cut(mode, ":")
	s := newRaw()
	one := `{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}`
	switch mode {
	case "sdk":
		if err := goodServer().Run(context.Background(), &sdk.StdioTransport{}); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		return
	case "silent": // never answers anything
		fmt.Fprintln(os.Stderr, "thinking about it")
		for s.in.Scan() {
		}
		return
	case "dies": // at once
		fmt.Fprintln(os.Stderr, "no DATABASE_URL")
		os.Exit(3)
	case "once": // fails when it is started for the first time
		if _, err := os.Stat(arg); err != nil {
			os.WriteFile(arg, nil, 0o600)
			fmt.Fprintln(os.Stderr, "not yet")
			os.Exit(1)
		}
	case "stderr": // fills its stderr before everything
		fmt.Fprintf(os.Stderr, "first line\n%s\nlast line\n", strings.Repeat("x", 256<<10))
	case "modern": // knows the newest protocol only
		modernServer(s, arg)
		return
	}
	lists, calls := 0, 0
	for {
		r, ok := s.next()
		if !ok {
			return
		}
		if r.Method == "tools/list" {
			lists++
		}
		switch {
		case r.Method == "tools/call" && mode == "burst":
			for range 1000 {
				s.print(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}` + "\n")
			}
			s.text(r.ID, fmt.Sprint(lists))
		case r.Method == "tools/list" && (mode == "list" || mode == "crashes"):
			s.result(r.ID, "%s", arg)
		case r.Method == "tools/list" && mode == "cursor": // for ever the same page
			s.result(r.ID, `{"tools":[{"name":"a","inputSchema":{"type":"object"}},{"name":"b","inputSchema":{"type":"object"}}],"nextCursor":"c1"}`)
		case r.Method == "tools/list" && mode == "endless": // for ever another cursor
			s.result(r.ID, `{"tools":[{"name":"a","inputSchema":{"type":"object"}}],"nextCursor":"%sx"}`, r.Params.Cursor)
		case r.Method == "tools/list":
			if mode == "noise" {
				s.print("Listening on stdio\r\n\r\n\n[1,2]\n{\"not\":\"a message\"}\n{half\n")
			}
			s.result(r.ID, "%s", one)
		case r.Method == "tools/call" && mode == "code": // the code that the arguments name
			calls++
			s.print(`{"jsonrpc":"2.0","id":%s,"error":{"code":%s,"message":"call %d"}}`+"\n", r.ID, r.Params.Args, calls)
		case r.Method == "ping" && mode == "code":
			s.print(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32003,"message":"no pong"}}`+"\n", r.ID)
		case r.Method == "tools/call":
			callStdio(s, mode, arg, r)
		case r.Method == "notifications/cancelled" && mode == "hang":
			os.WriteFile(arg, r.Params.Request, 0o600)
		case r.Method == "notifications/cancelled" && mode == "late":
			s.text(r.Params.Request, "too late")
		case r.ID != nil:
			s.print(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`+"\n", r.ID)
		}
	}
}

// modernServer refuses initialize. What it wants before it answers a call is arg.
func modernServer(s *raw, arg string) {
	for s.in.Scan() {
		var r request
		if json.Unmarshal(s.in.Bytes(), &r) != nil || r.ID == nil {
			continue
		}
		switch r.Method {
		case "server/discover":
			s.result(r.ID, `{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"resultType":"complete"}`)
		case "tools/list":
			s.result(r.ID, `{"tools":[{"name":"t","inputSchema":{"type":"object"}}],"resultType":"complete"}`)
		case "tools/call":
			if arg != "" && (r.Params.Responses == nil || strings.Contains(arg, "again")) {
				s.result(r.ID, `{"resultType":"input_required","requestState":"st","inputRequests":%s}`, arg)
				continue
			}
			b, _ := json.Marshal("modern" + r.Params.State + string(r.Params.Responses))
			s.result(r.ID, `{"content":[{"type":"text","text":%s}],"resultType":"complete"}`, b)
		default:
			s.print(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32022,"message":"unsupported protocol version","data":{"supported":["2026-07-28"]}}}`+"\n", r.ID)
		}
	}
}

func callStdio(s *raw, mode, arg string, r request) {
	switch mode {
	case "crashes":
		os.Exit(7)
	case "crash":
		if string(r.Params.Args) == `{}` {
			fmt.Fprintln(os.Stderr, "panic: out of luck")
			os.Exit(7)
		}
		s.text(r.ID, "alive")
	case "hang", "late":
	case "flood": // asks for ever, and reads nothing
		for i := 0; ; i++ {
			if _, err := fmt.Printf(`{"jsonrpc":"2.0","id":"p%d%s","method":"ping"}`+"\n", i, strings.Repeat("x", 1000)); err != nil {
				os.Exit(1)
			}
		}
	case "progress":
		for i := range 20 {
			s.print(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d,"total":20,"message":"step"}}`+"\n", r.Params.Meta.Token, i)
		}
		s.print(`{"jsonrpc":"2.0","id":900,"method":"ping"}` + "\n")
		s.in.Scan() // the answer: what came before it was handled
		s.text(r.ID, "done")
	case "giveup":
		s.print(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s,"reason":"shutting the database"}}`+"\n", r.ID)
	case "huge":
		switch string(r.Params.Args) {
		case `{"id":"first"}`:
			s.text(r.ID, strings.Repeat("x", 34<<20))
		case `{"id":"last"}`:
			s.print(`{"jsonrpc":"2.0","result":{"content":[{"type":"text","text":"%s"}]},"id":%s}`+"\n", strings.Repeat("x", 34<<20), r.ID)
		default:
			s.text(r.ID, "small")
		}
	case "twice": // the same id twice, and one that nobody asked with
		s.text(r.ID, "first")
		s.text(r.ID, "second")
		s.text(json.RawMessage("9999"), "third")
	case "latin1":
		s.print(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"caf`+"\xe9"+`"}]}}`+"\n", r.ID)
	case "storm":
		for range 5_000 {
			s.print(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}` + "\n" +
				`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}` + "\n")
		}
		s.text(r.ID, "after the storm")
	case "env":
		b, _ := json.Marshal(os.Environ())
		wd, _ := os.Getwd()
		w, _ := json.Marshal(wd)
		s.result(r.ID, `{"content":[],"structuredContent":{"env":%s,"cwd":%s}}`, b, w)
	case "answer":
		s.result(r.ID, "%s", arg)
	case "question":
		question(s, arg, r)
	case "error":
		s.print(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"no such tool"}}`+"\n", r.ID)
	case "pid":
		s.text(r.ID, fmt.Sprint(os.Getpid()))
	default:
		s.text(r.ID, "ok")
	}
}

// question sends a request to the client, and gives the call the answer.
func question(s *raw, method string, r request) {
	s.print(`{"jsonrpc":"2.0","id":"q1","method":"%s","params":{"message":"?","requestedSchema":{"type":"object","properties":{}},"messages":[],"maxTokens":1}}`+"\n", method)
	if s.in.Scan() {
		s.text(r.ID, s.in.Text())
	}
}

// goodServer is a server as they should be.
func goodServer() *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "good", Version: "1.2"}, &sdk.ServerOptions{Instructions: "be nice", PageSize: 2})
	type in struct {
		Text string `json:"text"`
	}
	for _, name := range []string{"echo", "echo2", "echo3"} {
		sdk.AddTool(s, &sdk.Tool{Name: name, Title: "Echo", Description: "Says it again.", Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true}},
			func(_ context.Context, _ *sdk.CallToolRequest, a in) (*sdk.CallToolResult, any, error) {
				return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: a.Text}}}, nil, nil
			})
	}
	sdk.AddTool(s, &sdk.Tool{Name: "grow", Description: "Adds a tool."},
		func(_ context.Context, _ *sdk.CallToolRequest, a in) (*sdk.CallToolResult, any, error) {
			sdk.AddTool(s, &sdk.Tool{Name: a.Text}, func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
				return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "new"}}}, nil, nil
			})
			return &sdk.CallToolResult{}, nil, nil
		})
	sdk.AddTool(s, &sdk.Tool{Name: "ask", Description: "Asks the person."},
		func(ctx context.Context, r *sdk.CallToolRequest, _ struct{}) (*sdk.CallToolResult, any, error) {
			res, err := r.Session.Elicit(ctx, &sdk.ElicitParams{Message: "who?"})
			if err != nil {
				return nil, nil, err
			}
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: res.Action}}}, nil, nil
		})
	sdk.AddTool(s, &sdk.Tool{Name: "roots", Description: "Lists the roots."},
		func(ctx context.Context, r *sdk.CallToolRequest, _ struct{}) (*sdk.CallToolResult, any, error) {
			res, err := r.Session.ListRoots(ctx, nil)
			if err != nil {
				return nil, nil, err
			}
			var list []string
			for _, root := range res.Roots {
				list = append(list, root.URI)
			}
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: strings.Join(list, " ")}}}, nil, nil
		})
	s.AddResource(&sdk.Resource{URI: "note://1", Name: "one", MIMEType: "text/plain"}, func(context.Context, *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: "note://1", MIMEType: "text/plain", Text: "a note"}}}, nil
	})
	s.AddResourceTemplate(&sdk.ResourceTemplate{URITemplate: "note://{id}", Name: "any"}, func(_ context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		return nil, sdk.ResourceNotFoundError(r.Params.URI)
	})
	s.AddPrompt(&sdk.Prompt{Name: "greet", Arguments: []*sdk.PromptArgument{{Name: "who", Required: true}}}, func(_ context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
		return &sdk.GetPromptResult{Messages: []*sdk.PromptMessage{{Role: "user", Content: &sdk.TextContent{Text: "hello " + r.Params.Arguments["who"]}}}}, nil
	})
	return s
}
