package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"capstan/bench/search/sets"
	"capstan/internal/codemode"
	"capstan/internal/tool"
)

// A described tool has a definition and no body that is ever called.
type described struct{ spec tool.Spec }

func (d *described) Spec() *tool.Spec { return &d.spec }
func (d *described) Run(context.Context, *tool.Invocation) (tool.Result, error) {
	return tool.Result{}, fmt.Errorf("%s is only described", d.spec.Name)
}

// servers reads the answers to tools/list of real MCP servers: all files of a
// directory that hold any.
func servers(dir string) ([]tool.Spec, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("no *.json in %s", dir)
	}
	var out []tool.Spec
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var server struct {
			Tools []struct {
				Name, Description         string
				InputSchema, OutputSchema json.RawMessage
			}
		}
		if bytes.HasPrefix(raw, []byte("[")) {
			continue // the index
		}
		if err := json.Unmarshal(raw, &server); err != nil {
			return nil, fmt.Errorf("reading %s: %w", file, err)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		for _, t := range server.Tools {
			out = append(out, tool.Spec{Name: "mcp__" + name + "__" + t.Name, Description: t.Description, Input: t.InputSchema, Output: t.OutputSchema})
		}
	}
	return out, nil
}

// corpora reads the tools of the retrieval sets.
func corpora(dir string) ([]tool.Spec, error) {
	data, err := sets.Load(dir)
	if err != nil {
		return nil, err
	}
	var out []tool.Spec
	for _, t := range data.Tools {
		if t.Corpus != "" && t.Corpus != "mcp" {
			out = append(out, tool.Spec{Name: t.Name, Description: t.Description, Input: t.Parameters})
		}
	}
	return out, nil
}

// signature is what codemode declares of a tool.
func signature(spec tool.Spec) (string, error) {
	var r tool.Registry
	if err := r.Add(&described{spec}); err != nil {
		return "", err
	}
	return codemode.Signature(r.Tools()[0]), nil
}

// parse reads JSON without loss.
func parse(raw []byte) (any, error) {
	var v any
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	err := dec.Decode(&v)
	return v, err
}
