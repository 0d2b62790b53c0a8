package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"capstan/internal/sched"
	"capstan/internal/tool"
)

// trace keeps the calls of one run, in the order in which they were submitted.
// Its observe is called by one goroutine at a time, and read after the run. Of
// the arguments it keeps what it would print: all of them are a lot of memory.
type trace struct {
	withArgs bool
	start    time.Time
	rows     []*tracedCall
	byID     map[string]*tracedCall
}

type tracedCall struct {
	callRow
	args  string
	begun time.Duration // since the start of the trace
}

// callRow is a call in `exec --json`.
type callRow struct {
	ID         string      `json:"id"`
	ParentID   string      `json:"parentId"`
	Name       string      `json:"name"`
	Status     tool.Status `json:"status"`
	Code       string      `json:"code"`
	StartMs    float64     `json:"startMs"`
	DurationMs float64     `json:"durationMs"`
}

func (t *trace) observe(e sched.Event) {
	if t.byID == nil {
		t.byID, t.start = map[string]*tracedCall{}, e.Time
	}
	c := t.byID[e.Call.ID]
	if c == nil {
		c = &tracedCall{callRow: callRow{ID: e.Call.ID, ParentID: e.Call.ParentID, Name: strings.Clone(e.Call.Name)}, begun: e.Time.Sub(t.start)}
		c.StartMs = ms(c.begun)
		if t.withArgs && c.Name != tool.ExecName {
			c.args = oneLine(string(e.Call.Args[:min(len(e.Call.Args), 400)]), 80)
		}
		t.byID[c.ID] = c
		t.rows = append(t.rows, c)
	}
	if e.Kind == sched.Settled {
		c.Status, c.Code = e.Result.Status, e.Result.Code
		c.DurationMs = ms(e.Time.Sub(t.start) - c.begun)
	}
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// calls returns the nested calls.
func (t *trace) calls() []callRow {
	rows := []callRow{}
	for _, c := range t.rows {
		if c.ParentID != "" {
			rows = append(rows, c.callRow)
		}
	}
	return rows
}

// print writes the tree. A call is on one line: name, arguments, how long it
// took and how it ended.
func (t *trace) print(w io.Writer) {
	children := map[string][]*tracedCall{}
	for _, c := range t.rows {
		children[c.ParentID] = append(children[c.ParentID], c)
	}
	var walk func(id, indent string)
	walk = func(id, indent string) {
		rows := children[id]
		for i, c := range rows {
			branch, below := "├─ ", "│  "
			if i == len(rows)-1 {
				branch, below = "└─ ", "   "
			}
			if id == "" {
				branch, below = "", ""
			}
			args := ""
			if c.args != "" {
				args = " " + c.args
			}
			ended := string(c.Status)
			if c.Code != "" {
				ended += " " + c.Code
			}
			fmt.Fprintf(w, "%s%s%s%s  %.1f ms (+%.1f)  %s\n", indent, branch, oneLine(c.Name, 80), args, c.DurationMs, c.StartMs, ended)
			walk(c.ID, indent+below)
		}
	}
	walk("", "")
}
