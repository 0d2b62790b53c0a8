package builtin

import (
	"encoding/json"
	"fmt"
	"strings"
)

// renderNotebook turns a Jupyter notebook into text that can be read: each
// cell with its source, and the text of its outputs. ok is false when the
// bytes are no notebook of format 4.
func renderNotebook(data []byte) (text string, ok bool) {
	var nb struct {
		Cells []struct {
			Type    string    `json:"cell_type"`
			Source  multiline `json:"source"`
			Outputs []output  `json:"outputs"`
		} `json:"cells"`
		Format int `json:"nbformat"`
	}
	if json.Unmarshal(data, &nb) != nil || nb.Format < 4 {
		return "", false
	}
	var b strings.Builder
	b.WriteString("[notebook; edits match the JSON of the file, not this text]\n")
	for i, c := range nb.Cells {
		fmt.Fprintf(&b, "--- cell %d: %s\n", i, c.Type)
		endLine(&b, string(c.Source))
		for _, o := range c.Outputs {
			if s := o.text(); s != "" {
				b.WriteString("--- output\n")
				endLine(&b, s)
			}
		}
	}
	return b.String(), true
}

// An output is what a cell left behind when it ran.
type output struct {
	Text  multiline                  `json:"text"`
	Data  map[string]json.RawMessage `json:"data"`
	Name  string                     `json:"ename"`
	Value string                     `json:"evalue"`
}

func (o *output) text() string {
	switch {
	case o.Name != "":
		return o.Name + ": " + o.Value
	case o.Text != "":
		return string(o.Text)
	}
	var s multiline
	if json.Unmarshal(o.Data["text/plain"], &s) != nil {
		return ""
	}
	return string(s)
}

// A multiline is a text that may be written as a list of lines.
type multiline string

func (m *multiline) UnmarshalJSON(b []byte) error {
	var s string
	if json.Unmarshal(b, &s) == nil {
		*m = multiline(s)
		return nil
	}
	var lines []string
	if err := json.Unmarshal(b, &lines); err != nil {
		return err
	}
	*m = multiline(strings.Join(lines, ""))
	return nil
}

func endLine(b *strings.Builder, s string) {
	b.WriteString(s)
	if s != "" && !strings.HasSuffix(s, "\n") {
		b.WriteByte('\n')
	}
}
