package llm

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"capstan/internal/msg"
)

// A Rule is what an API takes as a name or an id.
type Rule struct {
	Max  int  // bytes
	Full bool // exactly Max bytes
	// Chars are allowed besides ASCII letters and digits.
	Chars string
	// Letter: the first byte is a letter or _.
	Letter bool
}

// ok reports whether s follows the rule. A zero rule takes all but nothing.
func (r Rule) ok(s string) bool {
	if s == "" {
		return false
	}
	if r == (Rule{}) {
		return true
	}
	if len(s) > r.Max || r.Full && len(s) != r.Max || r.Letter && s[0] != '_' && !letter(s[0]) {
		return false
	}
	for i := range len(s) {
		if !r.char(s[i]) {
			return false
		}
	}
	return true
}

func (r Rule) char(c byte) bool {
	return letter(c) || c >= '0' && c <= '9' || strings.IndexByte(r.Chars, c) >= 0
}

func letter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// fit returns s if it follows the rule, else as much of it as may stay and
// enough of a hash of the whole. The same s always gives the same result,
// whatever else there is, so the beginning of a prompt stays the same.
func (r Rule) fit(s string, hash int) string {
	if hash == 0 {
		if r.ok(s) {
			return s
		}
		hash = 8
	}
	sum := sha256.Sum256([]byte(s))
	tail := hex.EncodeToString(sum[:])[:min(hash, 64)]
	if r.Full {
		return tail[:min(r.Max, len(tail))]
	}
	var b strings.Builder
	sep := ""
	if r == (Rule{}) || strings.Contains(r.Chars, "_") {
		sep = "_"
	}
	room := 64
	if r.Max > 0 {
		room = r.Max
	}
	room -= len(tail) + len(sep)
	for i := 0; i < len(s) && b.Len() < room; i++ {
		switch {
		case r.char(s[i]) || r == (Rule{}) && s[i] > ' ' && s[i] < 0x7F:
			b.WriteByte(s[i])
		case sep != "":
			b.WriteString(sep)
		}
	}
	head := b.String()
	if r.Letter && (head == "" || head[0] != '_' && !letter(head[0])) {
		head = "t" + head[:min(len(head), room-1)]
	}
	return head + sep + tail
}

// Names maps the names of tools to what an API takes and back. It is made for
// one request and not safe for concurrent use.
type Names struct {
	rule Rule
	wire map[string]string // by canonical name
	back map[string]string

	declared int      // how many of long are declared
	long     []string // the names that break the rule
}

// NewNames maps the names of the declared tools and of the calls in history.
// Names that follow the rule stay as they are.
func NewNames(rule Rule, tools []msg.Declaration, history []msg.Message) *Names {
	n := &Names{rule: rule, wire: map[string]string{}, back: map[string]string{}}
	add := func(name string) {
		if _, known := n.wire[name]; known {
			return
		}
		if !rule.ok(name) {
			n.wire[name] = ""
			n.long = append(n.long, name)
			return
		}
		n.wire[name], n.back[name] = name, name
	}
	for i := range tools {
		add(tools[i].Name)
	}
	n.declared = len(n.long)
	for i := range history {
		for _, c := range history[i].Calls() {
			add(c.Name)
		}
	}
	for _, name := range n.long {
		n.shorten(name)
	}
	return n
}

func (n *Names) shorten(name string) {
	for hash := 8; ; hash += 8 {
		wire := n.rule.fit(name, hash)
		if _, taken := n.back[wire]; taken && hash < 64 {
			continue
		}
		n.wire[name], n.back[wire] = wire, name
		return
	}
}

// Warnings says which declared tools are sent with another name, each in a
// sentence that is always the same.
func (n *Names) Warnings() []string {
	var out []string
	for _, name := range n.long[:n.declared] {
		out = append(out, fmt.Sprintf("the tool %q is declared to the model as %s: the API takes names of at most %d letters, digits and %s", name, n.wire[name], n.rule.Max, n.rule.Chars))
	}
	return out
}

// Wire is the name for the API.
func (n *Names) Wire(name string) string {
	if n.wire[name] == "" {
		n.shorten(name)
	}
	return n.wire[name]
}

// Canonical is the name of ours that the API's stands for; a name that stands
// for none, as a model may make one up, is returned as it is.
func (n *Names) Canonical(wire string) string {
	if name, ok := n.back[wire]; ok {
		return name
	}
	return wire
}
