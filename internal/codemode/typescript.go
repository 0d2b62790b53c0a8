package codemode

import (
	"encoding/json"
	"sort"
	"strings"
	"unicode/utf8"

	"capstan/internal/sandbox"

	"github.com/evanw/esbuild/pkg/api"
)

// wrapper makes a source the body of an async function, as it is when it runs.
// It takes one line before and one after.
const (
	wrapperName  = "__capstan_program"
	wrapperOpen  = "async function " + wrapperName + "() {"
	wrapperClose = "}"
)

func parse(code string, loader api.Loader) api.TransformResult {
	return api.Transform(code, api.TransformOptions{
		Loader:            loader,
		Sourcemap:         api.SourceMapExternal,
		SourcesContent:    api.SourcesContentExclude,
		TreeShaking:       api.TreeShakingFalse,
		Target:            api.ESNext,
		LogLevel:          api.LogLevelSilent,
		LogLimit:          20,
		KeepNames:         false,
		TsconfigRaw:       `{"compilerOptions":{"verbatimModuleSyntax":true,"useDefineForClassFields":true}}`,
		LegalComments:     api.LegalCommentsNone,
		MinifyWhitespace:  false,
		MinifySyntax:      false,
		MinifyIdentifiers: false,
	})
}

// stripTypes reads a source as TypeScript. The result is compiled again before
// any of it runs, so this need not be trusted.
func stripTypes(source string) (reading, bool) {
	res := parse(wrapperOpen+"\n"+source+"\n"+wrapperClose, api.LoaderTS)
	code := string(res.Code)
	body, ok := strings.CutPrefix(code, wrapperOpen+"\n")
	if len(res.Errors) > 0 || !ok {
		return reading{}, false
	}
	body, ok = strings.CutSuffix(strings.TrimRight(body, "\n"), wrapperClose)
	if !ok {
		return reading{}, false
	}
	m := parseSourceMap(res.Map)
	return reading{source: body, position: func(line, column int) (int, int) {
		l, c := m.original(line, column-1) // our first line is gone, theirs counts from 0
		return l, c + 1                    // the wrapper's first line stands in front of the author's
	}}, true
}

// explainSyntax replaces the engine's account of a syntax error, when another
// parser can say more exactly what it expected and where. Of the accounts as
// JavaScript and as TypeScript, the one that got further understood the author
// better.
func explainSyntax(source string, e *sandbox.Error) {
	best := syntaxFault(source, api.LoaderJS)
	if typed := syntaxFault(source, api.LoaderTS); typed.after(best) {
		best = typed
	}
	if best.text != "" {
		e.Message, e.Line, e.Column = best.text, best.line, best.column
	}
}

// fault is a syntax error at the author's own position, 1-based.
type fault struct {
	line, column int
	text         string
}

func (f fault) after(o fault) bool {
	return f.line > o.line || f.line == o.line && f.column > o.column
}

func syntaxFault(source string, loader api.Loader) fault {
	for _, m := range parse(source, loader).Errors { // not wrapped, so that it cannot close a wrapper
		if m.Location == nil || strings.HasPrefix(m.Text, "Top-level return") {
			continue // the body of a function may return
		}
		return fault{
			line:   m.Location.Line,
			column: utf8.RuneCountInString(m.Location.LineText[:min(m.Location.Column, len(m.Location.LineText))]) + 1,
			text:   endOfFile.Replace(strings.ToLower(m.Text[:1]) + m.Text[1:]),
		}
	}
	return fault{}
}

var endOfFile = strings.NewReplacer("found end of file", "found the end of the program", "end of file", "end of the program")

// sourceMap holds the segments of a source map, version 3, by generated line.
type sourceMap [][]segment

// segment says where the text that begins at a generated column comes from.
// All are 0-based.
type segment struct{ column, line, original int }

func parseSourceMap(raw []byte) sourceMap {
	var file struct{ Mappings string }
	if json.Unmarshal(raw, &file) != nil {
		return nil
	}
	var m sourceMap
	var source, line, column int
	for group := range strings.SplitSeq(file.Mappings, ";") {
		var row []segment
		generated := 0
		for field := range strings.SplitSeq(group, ",") {
			v := decodeVLQ(field)
			if len(v) < 4 {
				continue
			}
			generated += v[0]
			source += v[1]
			line += v[2]
			column += v[3]
			row = append(row, segment{generated, line, column})
		}
		m = append(m, row)
	}
	return m
}

// original maps a generated position to the author's, 0-based.
func (m sourceMap) original(line, column int) (int, int) {
	for ; line >= 0; line-- { // a line without segments belongs to the one before
		if line >= len(m) || len(m[line]) == 0 {
			column = 1 << 30
			continue
		}
		row := m[line]
		i := sort.Search(len(row), func(i int) bool { return row[i].column > column })
		s := row[max(i-1, 0)]
		return s.line, s.original
	}
	return 0, 0
}

const base64Digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

func decodeVLQ(s string) []int {
	var out []int
	value, shift := 0, 0
	for i := range len(s) {
		digit := strings.IndexByte(base64Digits, s[i])
		if digit < 0 || shift > 30 {
			return out
		}
		value |= digit & 31 << shift
		if digit&32 != 0 {
			shift += 5
			continue
		}
		if n := value >> 1; value&1 != 0 {
			out = append(out, -n)
		} else {
			out = append(out, n)
		}
		value, shift = 0, 0
	}
	return out
}
