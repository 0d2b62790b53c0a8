package gemini

import (
	"fmt"
	"strings"

	"capstan/internal/llm"
	"capstan/internal/msg"
)

// nameRule is what the API takes as the name of a function. Its documentation
// says 64 or 128 characters, by version; 64 is right for all.
var nameRule = llm.Rule{Max: 64, Chars: "_.:-", Letter: true}

// idRule is for the ids of calls. The API states none; this is what its own
// look like.
var idRule = llm.Rule{Max: 128, Chars: "_.:-"}

// traits are what models differ in. docs/providers.md lists them.
type traits struct {
	// third: Gemini 3 and later. They refuse a call in the history without a
	// signature, take media in the results of functions, run hosted tools and
	// JSON answers beside functions, and have levels of thinking, where those
	// before have a budget in tokens.
	third bool
	// thinks: thinkingConfig is taken.
	thinks bool
	// effort: and so is an amount of it.
	effort bool
}

// traitsOf goes by the name: gemini-MAJOR[.MINOR]-…. A name without a number
// (gemini-flash-latest) stands for the newest model.
func traitsOf(model string) traits {
	name := strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
	rest, ok := strings.CutPrefix(name, "gemini-")
	if !ok || rest == "" {
		return traits{} // Gemma and others
	}
	major, minor := 3, 0
	if c := rest[0]; c >= '0' && c <= '9' {
		if n, _ := fmt.Sscanf(rest, "%d.%d", &major, &minor); n == 0 {
			return traits{}
		}
	}
	speaks := !strings.Contains(rest, "tts") && !strings.Contains(rest, "audio") && !strings.Contains(rest, "live")
	draws := strings.Contains(rest, "image")
	t := traits{third: major >= 3}
	t.thinks = speaks && (t.third || major == 2 && minor >= 5 && !draws)
	t.effort = t.thinks && !draws
	return t
}

// efforts are the words for an effort of reasoning, as they are for all
// families, and what stands for each.
var efforts = map[string]struct {
	level  string
	budget int // tokens; as Google's own table for reasoning_effort has it
}{
	"none":    {"MINIMAL", 0},
	"minimal": {"MINIMAL", 1024},
	"low":     {"LOW", 1024},
	"medium":  {"MEDIUM", 8192},
	"high":    {"HIGH", 24576},
	"xhigh":   {"HIGH", 24576},
	"max":     {"HIGH", 24576},
}

// thinking asks for thoughts to be shown, and for an effort when one is named.
func (t traits) thinking(model, effort string) (*wireThinking, error) {
	e, known := efforts[effort]
	switch {
	case effort != "" && !known:
		return nil, fmt.Errorf("there is no effort %q", effort)
	case !t.thinks:
		return nil, nil
	case effort == "" || !t.effort:
		return &wireThinking{IncludeThoughts: true}, nil
	case t.third:
		return &wireThinking{IncludeThoughts: true, ThinkingLevel: level(model, e.level)}, nil
	}
	if e.budget == 0 && strings.Contains(model, "pro") {
		e.budget = 128 // the least that 2.5 Pro takes
	}
	return &wireThinking{IncludeThoughts: e.budget > 0, ThinkingBudget: &e.budget}, nil
}

// level is the nearest level that a model has: only some take MINIMAL, and the
// first of the third generation has but two.
func level(model, level string) string {
	model = model[strings.LastIndexByte(model, '/')+1:]
	switch {
	case level == "MINIMAL" && !strings.HasPrefix(model, "gemini-3-flash") && !strings.HasPrefix(model, "gemini-3.1-flash-lite"):
		return "LOW"
	case level == "MEDIUM" && strings.HasPrefix(model, "gemini-3-pro"):
		return "HIGH"
	}
	return level
}

// typeOf is the type of a part's data as the API is told it: of a picture what
// its data say, and nothing when they say that it is none. HEIC and HEIF are
// taken at their word.
func typeOf(p msg.Part) string {
	switch {
	case len(p.Data) == 0:
		return ""
	case strings.HasPrefix(p.MIMEType, "image/") && !strings.HasPrefix(p.MIMEType, "image/hei"):
		kind, width, height := llm.Picture(p.Data)
		if width == 0 || height == 0 {
			return ""
		}
		return kind
	}
	return p.MIMEType
}

// takes reports whether the API takes a part that is no text.
func takes(mimeType string) bool {
	switch mimeType {
	case "image/png", "image/jpeg", "image/webp", "image/heic", "image/heif",
		"audio/wav", "audio/mp3", "audio/mpeg", "audio/aiff", "audio/aac", "audio/ogg", "audio/flac",
		"video/mp4", "video/mpeg", "video/quicktime", "video/avi", "video/x-flv", "video/mpg", "video/webm", "video/wmv", "video/3gpp",
		"application/pdf", "text/plain":
		return true
	}
	return false
}

// takesInResult reports whether it may stand inside the result of a function.
func (t traits) takesInResult(mimeType string) bool {
	if !t.third {
		return false
	}
	switch mimeType {
	case "image/png", "image/jpeg", "image/webp", "application/pdf", "text/plain":
		return true
	}
	return false
}
