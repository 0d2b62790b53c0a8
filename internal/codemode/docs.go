package codemode

import (
	_ "embed"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"capstan/internal/tool"
)

//go:embed exec.md
var execText string

// docs remembers what was written about the last view that was asked for. Two
// agents in turn cost a rewrite each time; one agent costs one.
type docs struct {
	mu   sync.Mutex
	view *tool.View
	page *page
}

func (d *docs) of(v *tool.View) *page {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.view != v {
		d.view, d.page = v, newPage(v)
	}
	return d.page
}

// page is what a program and its author are told of one view.
type page struct {
	names []string // properties of `tools`, sorted
	view  *tool.View

	once sync.Once
	all  []byte
}

func newPage(v *tool.View) *page {
	p := &page{view: v}
	for _, b := range v.Bindings() {
		p.names = append(p.names, b.JS)
	}
	slices.Sort(p.names)
	return p
}

// allTools is ALL_TOOLS, complete whatever the description leaves out (S1-017).
func (p *page) allTools() []byte {
	p.once.Do(func() {
		type row struct {
			Name        string `json:"name"`
			JSName      string `json:"jsName"`
			Description string `json:"description"`
			Deferred    bool   `json:"deferred"`
		}
		rows := []row{}
		for _, b := range p.view.Bindings() {
			sp := b.Entry.Spec()
			rows = append(rows, row{sp.Name, b.JS, sp.Description, b.Deferred})
		}
		p.all, _ = json.Marshal(rows) // strings and a bool: cannot fail
	})
	return p.all
}

// maxMarked is how many bytes of signatures of MCP tools the description shows
// when the rest can be searched for.
const maxMarked = 8 << 10

// Describe implements tool.Describer: the text depends on the view and on the
// names of the configured servers only, never on what a server answered unless
// its tools are marked to be shown.
func (x *Exec) Describe(v *tool.View) string {
	searches := v.Searches()
	var sigs strings.Builder
	marked := 0
	for _, b := range v.Bindings() {
		sp := b.Entry.Spec()
		if searches && b.Deferred {
			continue
		}
		sig := signature(b.JS, sp.Description, sp.Input, sp.Output)
		if searches && sp.Server != "" {
			if marked += len(sig); marked > maxMarked {
				continue
			}
		}
		sigs.WriteString(sig)
		sigs.WriteByte('\n')
	}
	text := strings.TrimSpace(execText)
	if searches {
		text += "\n" + x.discovery()
	}
	if sigs.Len() == 0 {
		return text
	}
	return text + "\n\ndeclare const tools: {\n" + strings.TrimRight(sigs.String(), "\n") + "\n}"
}

// discovery tells how to find what is not documented (S1-013, S1-047 to S1-051).
func (x *Exec) discovery() string {
	text := "More tools than those below can be called. Find them with tool_search, a direct call of its own outside of JavaScript; in a later exec call them by the jsName it returns, exactly. Reuse schemas that are still in this conversation; when one is gone, search again before writing arguments."
	if len(x.opt.Servers) > 0 {
		names := slices.Clone(x.opt.Servers)
		slices.Sort(names)
		text += " MCP servers: " + strings.Join(names, ", ") + "."
	}
	return text
}
