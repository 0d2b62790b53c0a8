package main

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"capstan/internal/codemode"
	"capstan/internal/sandbox/quickjs"
	"capstan/internal/schema"
	"capstan/internal/tool"
)

// inProcess measures what is no process: views with their declarations, and
// validation.
func inProcess() []string {
	var out []string
	for _, n := range []int{20, 500, 4_000, 10_000} {
		tools := synthetic(n)
		target := "–"
		if n == 10_000 {
			target = "40"
		}
		b := testing.Benchmark(func(b *testing.B) {
			for b.Loop() {
				r := &tool.Registry{}
				if err := r.Add(tools...); err != nil {
					b.Fatal(err)
				}
				r.View(tool.Code, tool.Scope{Servers: true}).Declarations()
			}
		})
		out = append(out, fmt.Sprintf("| registry, view and declarations, %d tools, ms | %s | %.2f | – | %s |", n, target, perOp(b)/1e6, load()))
		r := &tool.Registry{}
		r.Add(tools...)
		r.View(tool.Code, tool.Scope{Servers: true}).Declarations()
		b = testing.Benchmark(func(b *testing.B) {
			for b.Loop() {
				r.View(tool.Code, tool.Scope{Servers: true}).Declarations()
			}
		})
		out = append(out, fmt.Sprintf("| the same, nothing changed, µs | – | %.2f | – | %s |", perOp(b)/1e3, load()))
	}
	s, err := schema.Compile(json.RawMessage(`{"type":"object","properties":{"file_path":{"type":"string"},"offset":{"type":"integer","minimum":0},"limit":{"type":"integer","minimum":1}},"required":["file_path"],"additionalProperties":false}`))
	if err != nil {
		return append(out, err.Error())
	}
	args := json.RawMessage(`{"file_path":"internal/tool/view.go","offset":10,"limit":50}`)
	b := testing.Benchmark(func(b *testing.B) {
		for b.Loop() {
			if _, _, err := s.Validate(args); err != nil {
				b.Fatal(err)
			}
		}
	})
	return append(out, fmt.Sprintf("| validating the arguments of read_file, µs | – | %.2f | – | %s |", perOp(b)/1e3, load()))
}

func perOp(b testing.BenchmarkResult) float64 { return float64(b.T.Nanoseconds()) / float64(b.N) }

// synthetic makes tools such as MCP servers offer, all deferred, and exec.
func synthetic(n int) []tool.Tool {
	input := json.RawMessage(`{"type":"object","properties":{"owner":{"type":"string","description":"Repository owner"},"repo":{"type":"string"},"page":{"type":"integer","minimum":1}},"required":["owner","repo"]}`)
	nothing := func(context.Context, *tool.Invocation, json.RawMessage) (tool.Result, error) {
		return tool.Result{}, nil
	}
	tools := []tool.Tool{codemode.NewExec(codemode.Options{Runner: quickjs.New(quickjs.Options{})})}
	search := tool.Spec{Name: tool.ToolSearchName, Description: "Finds tools.", Input: json.RawMessage(`{"type":"object"}`)}
	tools = append(tools, tool.New(search, nothing))
	for i := range n {
		tools = append(tools, tool.New(tool.Spec{
			Name:        fmt.Sprintf("mcp__server%d__tool_%d", i%60, i),
			Description: "Lists things of a repository, newest first, with paging.",
			Input:       input, Deferred: true, Server: fmt.Sprintf("server%d", i%60),
		}, nothing))
	}
	return tools
}
