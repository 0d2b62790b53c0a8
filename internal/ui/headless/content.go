package headless

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"capstan/internal/llm"
	"capstan/internal/msg"
)

// The blocks of a message, in the words of the Messages API.

type textBlock struct {
	Type string `json:"type"` // text
	Text string `json:"text"`
}

type thinkingBlock struct {
	Type      string `json:"type"` // thinking
	Thinking  string `json:"thinking"`
	Signature string `json:"signature"` // empty: it stays in the session
}

type imageBlock struct {
	Type   string      `json:"type"` // image
	Source imageSource `json:"source"`
}

type imageSource struct {
	Type      string `json:"type"` // base64
	MediaType string `json:"media_type"`
	Data      string `json:"data"`
}

type toolUse struct {
	Type  string          `json:"type"` // tool_use
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

type toolResult struct {
	Type    string `json:"type"` // tool_result
	ID      string `json:"tool_use_id"`
	Content any    `json:"content"` // a string, or blocks
	Failed  bool   `json:"is_error"`
}

// maxNested is how many characters of a nested call's result are shown. A
// program reads whole files, and many.
const maxNested = 30_000

// block returns a part of a message as a block; nil when there is nothing to
// show.
func block(p msg.Part) any {
	switch p.Kind {
	case msg.Text:
		if p.Text == "" {
			return nil
		}
		return textBlock{"text", p.Text}
	case msg.Reasoning:
		if p.Text == "" {
			return nil
		}
		return thinkingBlock{Type: "thinking", Thinking: p.Text}
	case msg.CallPart:
		if p.Call == nil {
			return nil
		}
		return toolUse{"tool_use", p.Call.ID, p.Call.Name, input(p.Call.Args)}
	case msg.Image:
		if len(p.Data) > 0 && strings.HasPrefix(p.MIMEType, "image/") {
			return imageBlock{"image", imageSource{"base64", p.MIMEType, base64.StdEncoding.EncodeToString(p.Data)}}
		}
	}
	return textBlock{"text", strings.TrimSpace(fmt.Sprintf("[%s %s, %d bytes] %s %s", p.Kind, p.MIMEType, len(p.Data), cmp.Or(p.Name, p.URI), p.Text))}
}

// contentOf returns the parts of a result: a string when they are text only,
// else blocks. When most is not 0, at most that many characters of each text are
// kept.
func contentOf(parts []msg.Part, most int) any {
	blocks, plain := []any{}, true
	var texts []string
	for _, p := range parts {
		if p.Kind == msg.Text && most > 0 {
			p.Text = abridge(p.Text, most)
		}
		b := block(p)
		if b == nil {
			continue
		}
		if t, ok := b.(textBlock); ok {
			texts = append(texts, t.Text)
		} else {
			plain = false
		}
		blocks = append(blocks, b)
	}
	if plain {
		return strings.Join(texts, "\n")
	}
	return blocks
}

func abridge(s string, most int) string {
	if len(s) <= most {
		return s
	}
	at := 0
	for i := range s {
		if at == most {
			return fmt.Sprintf("%s\n[%d more characters are not shown]", s[:i], utf8.RuneCountInString(s[i:]))
		}
		at++
	}
	return s
}

// input is the arguments of a call as an object: what a model wrote that is
// none stands in {"_raw": …}.
func input(args string) json.RawMessage { return compact([]byte(llm.Replay(args))) }
