package main

import (
	goparser "go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The checker shares no code with the generator: the one file that reads the sets
// asks for a signature, and nothing else knows of package codemode. S1-036
func TestTheCheckerIsApart(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var knows []string
	for _, name := range files {
		f, err := goparser.ParseFile(token.NewFileSet(), name, nil, goparser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, imp := range f.Imports {
			if strings.HasSuffix(strings.Trim(imp.Path.Value, `"`), "internal/codemode") {
				knows = append(knows, name)
			}
		}
	}
	if !slices.Equal(knows, []string{"corpus.go"}) {
		t.Errorf("package codemode is imported by %q, want corpus.go alone", knows)
	}
}
