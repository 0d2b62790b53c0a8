package codemode

import (
	_ "embed"
	"encoding/json"
	"fmt"
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
		_, _, over := documented(p.view)
		for _, b := range p.view.Bindings() {
			sp := b.Entry.Spec()
			_, left := slices.BinarySearch(over, sp.Name)
			rows = append(rows, row{sp.Name, b.JS, sp.Description, b.Deferred || left})
		}
		p.all, _ = json.Marshal(rows) // strings and a bool: cannot fail
	})
	return p.all
}

// maxMarked is how many bytes of signatures of MCP tools the description shows
// when the rest can be searched for (DESIGN section 3).
const maxMarked = 8 << 10

// documented returns the signatures that the description holds, with the tools'
// names, and the names of those that are marked to be shown and do not fit: from
// the first that does not on, they are deferred. Where there is no search
// everything is documented, for nothing else would tell of it (S1-019).
func documented(v *tool.View) (names, sigs, over []string) {
	searches, marked := v.Searches(), 0
	for _, b := range v.Bindings() {
		sp := b.Entry.Spec()
		if searches && b.Deferred {
			continue
		}
		if searches && sp.Server != "" && len(over) > 0 {
			over = append(over, sp.Name)
			continue
		}
		sig := signature(b.JS, sp.Description, sp.Input, sp.Output)
		if searches && sp.Server != "" {
			if marked += len(sig) + 1; marked > maxMarked {
				over = append(over, sp.Name)
				continue
			}
		}
		names, sigs = append(names, sp.Name), append(sigs, sig)
	}
	return names, sigs, over
}

// Documented returns the signatures that exec's description of a view holds, by
// the tools' names; none where there is no exec.
func Documented(v *tool.View) map[string]string {
	all := map[string]string{}
	if runs, _ := v.Reach(tool.ExecName); runs {
		names, sigs, _ := documented(v)
		for i, n := range names {
			all[n] = sigs[i]
		}
	}
	return all
}

// Documents implements tool.Documenter: the tools of servers whose signatures the
// description of a view holds. Our own never change.
func (x *Exec) Documents(v *tool.View) []*tool.Entry {
	marked := func(b tool.Binding) bool { return !b.Deferred && b.Entry.Spec().Server != "" }
	if !slices.ContainsFunc(v.Bindings(), marked) && v.Searches() {
		return nil // without the work of writing signatures
	}
	var told []*tool.Entry
	names, _, _ := documented(v)
	for _, n := range names {
		if e := v.Visible(n); e.Spec().Server != "" {
			told = append(told, e)
		}
	}
	return told
}

// Overflow is the one warning about tools that are marked to be shown and for
// which the description has no room; empty when there are none.
func Overflow(v *tool.View) string {
	if runs, _ := v.Reach(tool.ExecName); !runs {
		return ""
	}
	_, _, over := documented(v)
	if len(over) == 0 {
		return ""
	}
	return fmt.Sprintf("%d of the MCP tools that are marked to be shown (alwaysLoad, tools.visible, tools.eager) are left to tool_search, from %s on: the signatures shown take at most %d bytes", len(over), cutDoc(commentText(over[0]), maxMissName), maxMarked)
}

// Describe implements tool.Describer: the text depends on the view and on the
// names of the configured servers only, never on what a server answered unless
// its tools are marked to be shown.
func (x *Exec) Describe(v *tool.View) string {
	text := strings.TrimSpace(execText)
	if v.Searches() {
		text += "\n" + discovery + serversText(v, x.opt.Servers)
	}
	_, sigs, _ := documented(v)
	if len(sigs) == 0 {
		return text
	}
	return text + "\n\ndeclare const tools: {\n" + strings.Join(sigs, "\n") + "\n}"
}

// discovery tells how to find what is not documented (S1-013, S1-047 to S1-051).
const discovery = "More tools can be called: find them with tool_search, a direct call outside of JavaScript, then call them in a later exec by the exact jsName it returns. Reuse schemas still in this conversation; search again before writing arguments when one is gone."
