package llm

import (
	"fmt"
	"strings"

	"capstan/internal/msg"
)

// Line is a part as one line of text, for an API that cannot take it as it is
// (ruling 19): its type, size and file, and its caption.
func Line(p msg.Part) string {
	what := string(p.Kind)
	if p.MIMEType != "" {
		what += " " + p.MIMEType
	}
	if len(p.Data) > 0 {
		what += ", " + size(len(p.Data))
	}
	name := p.Name
	if p.URI != "" && name != "" {
		name += ", " + p.URI
	} else if p.URI != "" {
		name = p.URI
	}
	if name != "" {
		what += ", " + name
	}
	if p.Kind != msg.Link {
		what += "; this model's API cannot take it"
	}
	line := "[" + oneLine(what) + "]"
	if p.Text != "" {
		line += " " + oneLine(p.Text)
	}
	return line
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

func size(n int) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d B", n)
	case n < 1000_000:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}

// Plain returns parts as one text, each on lines of its own: what is no text as
// its Line. Parts that take reports to be taken are left out and returned.
func Plain(parts []msg.Part, take func(msg.Part) bool) (text string, taken []msg.Part) {
	if len(parts) == 1 && parts[0].Kind == msg.Text {
		return parts[0].Text, nil
	}
	var b strings.Builder
	for _, p := range parts {
		if p.Kind != msg.Text && take != nil && take(p) {
			taken = append(taken, p)
			continue
		}
		if b.Len() > 0 && !strings.HasSuffix(b.String(), "\n") {
			b.WriteByte('\n')
		}
		if p.Kind == msg.Text {
			b.WriteString(p.Text)
		} else {
			b.WriteString(Line(p))
		}
	}
	return b.String(), taken
}
