package sets

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
)

var (
	//go:embed testdata/zh.txt
	chinese string
	//go:embed testdata/ja.json
	japanese []byte
	//go:embed testdata/ru.json
	russian []byte
)

// Foreign is a set of queries in another language.
type Foreign struct {
	Language string
	Queries  []Query
	Tools    []Tool // beside those of Data; none where the tools are among them
}

// Foreigns are queries in Chinese for the tools of livemcpbench that are
// described in it, and in Japanese and Russian for tools that were written with
// them. All queries are this project's own: they are few, and no measure of how
// people ask, but they fail when a script is read wrongly.
func Foreigns() []Foreign {
	zh := Foreign{Language: "Chinese"}
	for line := range strings.Lines(chinese) {
		if tool, text, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok {
			zh.Queries = append(zh.Queries, Query{ID: "zh-" + tool, Text: text, Relevant: []string{tool}})
		}
	}
	return []Foreign{zh, pairs("Japanese", "ja", japanese), pairs("Russian", "ru", russian)}
}

// pairs reads tools that each come with a query.
func pairs(language, code string, raw []byte) Foreign {
	var rows []struct {
		Name, Description, Query string
		Parameters               json.RawMessage
	}
	if err := json.Unmarshal(raw, &rows); err != nil {
		panic(fmt.Sprintf("the embedded set %s: %v", code, err))
	}
	f := Foreign{Language: language}
	for _, r := range rows {
		name := "mcp__" + code + "__" + r.Name
		f.Tools = append(f.Tools, Tool{Name: name, Short: r.Name, Server: code, Description: r.Description, Parameters: r.Parameters, Corpus: code})
		f.Queries = append(f.Queries, Query{ID: code + "-" + r.Name, Text: r.Query, Relevant: []string{name}})
	}
	return f
}
