package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/evanw/esbuild/pkg/api"
)

// extract is the tools in testdata: those of real servers (testdata/README.md
// says whose), and one for each form of JSON Schema that was found in them.
const extract = "testdata/tools"

// same are changes that change nothing: of {x?: number} & {x: unknown} the first
// mark says nothing.
var same = map[string]string{"mcp__forms__all-of-beside-ref": "the optional mark of x"}

// What the signature of each tool takes is what its schema takes.
// S0-089 S1-036
func TestExtract(t *testing.T) {
	specs, err := servers(extract)
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	mutants := 0
	sum := count(specs, func(name string, v *verdict, text string) {
		all.WriteString(text + "\n")
		for _, f := range v.faults {
			t.Errorf("%s: %s\n%s", name, f, text)
		}
		if v.unusable != nil {
			t.Errorf("%s: %v", name, v.unusable)
		}
		if len(v.faults) > 0 {
			return
		}
		n, alive := v.survivors()
		mutants += n
		for _, a := range alive {
			if same[name] == a {
				continue
			}
			t.Errorf("%s: without %s the signature still passes:\n%s", name, a, text)
		}
	})
	if err := parses(all.String()); err != "" {
		t.Error(err)
	}
	t.Logf("%d tools, %d valid values, %d invalid ones; %d changes of signatures, each noticed", sum.tools, sum.valid, sum.invalid, mutants)
}

// parses says why members of an object type are no TypeScript.
func parses(members string) string {
	result := api.Transform("declare const tools: {\n"+members+"\n}", api.TransformOptions{Loader: api.LoaderTS, LogLevel: api.LogLevelSilent})
	if len(result.Errors) > 0 {
		return result.Errors[0].Text + ": " + result.Errors[0].Location.LineText
	}
	return strings.TrimSpace(string(result.Code))
}

// shared is the shared data directory, when it is here.
func shared(t *testing.T) string {
	t.Helper()
	root := filepath.Join("..", "..", "..", "shared")
	if dir := os.Getenv("CAPSTAN_SHARED"); dir != "" {
		root = dir
	}
	dir := filepath.Join(root, "data")
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("the big test data is not here: %v", err)
	}
	return dir
}

// All 2,442 tools of the real servers; under the race detector, which finds
// nothing here and costs much, each eighth.
// S0-089 S1-036
func TestRealServers(t *testing.T) {
	specs, err := servers(filepath.Join(shared(t), "mcp"))
	if err != nil {
		t.Fatal(err)
	}
	if len(specs) != 2442 {
		t.Errorf("%d tools, want 2442", len(specs))
	}
	step := 1
	if race {
		step = 8
	}
	some := specs[:0:0]
	for i := 0; i < len(specs); i += step {
		some = append(some, specs[i])
	}
	var all strings.Builder
	i, mutants, missed := 0, 0, 0
	sum := count(some, func(name string, v *verdict, text string) {
		all.WriteString(text + "\n")
		for _, f := range v.faults[:min(1, len(v.faults))] {
			t.Logf("%s: %s", name, f)
		}
		if i++; i%4 == 0 && len(v.faults) == 0 {
			n, alive := v.survivors()
			mutants, missed = mutants+n, missed+len(alive)
		}
	})
	t.Logf("%d of %d changes of signatures lower the score", mutants-missed, mutants)
	if missed*30 > mutants { // some change nothing: one form of a union may hold another
		t.Errorf("%d of %d changes of signatures were not noticed", missed, mutants)
	}
	if err := parses(all.String()); err != "" {
		t.Error(err)
	}
	t.Logf("%d of %d tools, %.2f %%; %d valid values, %d invalid ones; %d schemas unusable", sum.exact, sum.tools, sum.score(), sum.valid, sum.invalid, sum.unusable)
	if sum.score() < 99.5 || sum.unusable > 0 {
		t.Errorf("%.2f %% of the signatures are exact, want 99.5; %d schemas do not compile, want none", sum.score(), sum.unusable)
	}
}

func TestSatisfies(t *testing.T) {
	tests := []struct{ decl, takes, refuses string }{
		{`f(): Promise<Result>`, `{}`, `{"a":1}`},
		{`f(args: {a: string; "b-c"?: number[]}): Promise<Result>`, `{"a":"x","b-c":[1]}`, `{"b-c":[]}`},
		{`f(args: {a: string}): Promise<Result>`, `{"a":""}`, `{"a":"","b":1}`},
		{`f(args: {[key: string]: number}): Promise<Result>`, `{"x":1}`, `{"x":"1"}`},
		{`f(args: {a: string; [key: string]: unknown}): Promise<Result>`, `{"a":"","x":null}`, `{"a":1}`},
		{`f(args: {a: "x" | 1.50 | true | null}): Promise<Result>`, `{"a":1.5}`, `{"a":"y"}`},
		{"f(args: {\n a: string\n [key: string]: string\n}): Promise<Result>", `{"a":"","b":""}`, `{"b":""}`},
		{`f(args: [string, number?, ...boolean[]]): Promise<Result>`, `["",1,true]`, `["",true]`},
		{`f(args: ({a: 1} | {b: 2})[]): Promise<Result>`, `[{"a":1},{"b":2}]`, `[{"a":1,"b":2}]`},
		{`f(args: {a: 1} & ({b: 2} | {c?: 3})): Promise<Result>`, `{"a":1}`, `{"b":2}`},
		{`f<Node extends {kids?: Node[] /* */}>(args: Node): Promise<Result>`, `{"kids":[{"kids":[]}]}`, `{"kids":[{"x":1}]}`},
		{`f(args: object): Promise<Result>`, `{"a":{}}`, `[]`},
		{`f(args: {a: Record<string, {k: [1]}>}): Promise<Result>`, `{"a":{"q":{"k":[1]}}}`, `{"a":{"q":{"k":[1,1]}}}`},
		{`f(args: "\u002a/\n\"\u{1f600}"): Promise<Result>`, `"*/\n\"😀"`, `""`},
		{`f(args: never): Promise<Result>`, ``, `{}`},
		{`f(args: Nobody): Promise<Result>`, ``, `{}`},
	}
	for _, c := range tests {
		d, err := parseDecl(c.decl)
		if err != nil {
			t.Errorf("%s: %v", c.decl, err)
			continue
		}
		for text, want := range map[string]bool{c.takes: true, c.refuses: false} {
			if v, err := parse([]byte(text)); text != "" && (err != nil || d.satisfies(v) != want) {
				t.Errorf("%s: takes %s: %v", c.decl, text, !want)
			}
		}
	}
}

// What is no declaration is an error, not a panic and not a guess.
func TestParseDeclRefuses(t *testing.T) {
	for _, s := range []string{
		``, `f`, `f(`, `f()`, `f(): Promise<Result`, `f(): Promise<Result>; g`, `f(args: ): Promise<Result>`, `f(args: {a string}): Promise<Result>`,
		`f(args: {a: string b: string}): Promise<Result>`, `f(args: "x): Promise<Result>`, `f(args: /* ): Promise<Result>`, `f(args: [string?, number]): Promise<Result>`,
		`f(args: {[key: string]: 1; [key: string]: 2}): Promise<Result>`, `f<A extends 1, A extends 2>(args: A): Promise<Result>`, `f(args: "\q"): Promise<Result>`,
		`f(args: ` + strings.Repeat("(", 10_000),
	} {
		if d, err := parseDecl(s); err == nil {
			t.Errorf("%.80q is read as %+v", s, d)
		}
	}
}

func FuzzParseDecl(f *testing.F) {
	specs, err := servers(extract)
	if err != nil {
		f.Fatal(err)
	}
	for _, spec := range specs {
		text, err := signature(spec)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if d, err := parseDecl(s); err == nil {
			d.satisfies(map[string]any{"a": []any{"x"}})
		}
	})
}
