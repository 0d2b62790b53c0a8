package typescript

import (
	"encoding/json"
	"sort"
	"strings"
	"unicode/utf8"

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

// strip takes the types away.
func strip(source string) (code string, mappings sourceMap, ok bool) {
	res := parse(wrapperOpen+"\n"+source+"\n"+wrapperClose, api.LoaderTS)
	code, ok = strings.CutPrefix(string(res.Code), wrapperOpen+"\n")
	if len(res.Errors) > 0 || !ok {
		return "", nil, false
	}
	code, ok = strings.CutSuffix(strings.TrimRight(code, "\n"), wrapperClose)
	return code, parseSourceMap(res.Map), ok
}

// explain looks for the syntax error. Of the accounts as JavaScript and as
// TypeScript, the one that got further understood the author better.
func explain(source string) Fault {
	best := firstFault(source, api.LoaderJS)
	if typed := firstFault(source, api.LoaderTS); typed.after(best) {
		best = typed
	}
	return best
}

func (f Fault) after(o Fault) bool {
	return f.Line > o.Line || f.Line == o.Line && f.Column > o.Column
}

func firstFault(source string, loader api.Loader) Fault {
	for _, m := range parse(source, loader).Errors { // not wrapped, so that it cannot close a wrapper
		if m.Location == nil || strings.HasPrefix(m.Text, "Top-level return") {
			continue // the body of a function may return
		}
		return Fault{
			Line:   m.Location.Line,
			Column: utf8.RuneCountInString(m.Location.LineText[:min(m.Location.Column, len(m.Location.LineText))]) + 1,
			Text:   endOfFile.Replace(strings.ToLower(m.Text[:1]) + m.Text[1:]),
		}
	}
	return Fault{}
}

var endOfFile = strings.NewReplacer("found end of file", "found the end of the program", "end of file", "end of the program")

// sourceMap holds the segments of a source map, version 3, by generated line.
type sourceMap [][]segment

// segment says where the text that begins at a generated column comes from:
// generated column, line, column. All are 0-based.
type segment [3]int

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
		i := sort.Search(len(row), func(i int) bool { return row[i][0] > column })
		s := row[max(i-1, 0)]
		return s[1], s[2]
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
