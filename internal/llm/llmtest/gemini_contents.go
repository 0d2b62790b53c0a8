package llmtest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

type geminiContent struct {
	Role  string            `json:"role"`
	Parts []json.RawMessage `json:"parts"`

	read []geminiPart
}

type geminiPart struct {
	Text             *string         `json:"text"`
	Thought          bool            `json:"thought"`
	ThoughtSignature string          `json:"thoughtSignature"`
	InlineData       json.RawMessage `json:"inlineData"`
	FunctionCall     *geminiCall     `json:"functionCall"`
	FunctionResponse *geminiResponse `json:"functionResponse"`
	fields           map[string]json.RawMessage
}

type geminiCall struct {
	ID   string          `json:"id"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"`
}

type geminiResponse struct {
	ID       string            `json:"id"`
	Name     string            `json:"name"`
	Response json.RawMessage   `json:"response"`
	Parts    []json.RawMessage `json:"parts"`
}

const (
	wrongCount = "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn."
	wrongOrder = "Please ensure that function response turn comes immediately after a function call turn."
)

// checkContents checks the conversation: each content, then how they follow.
func checkContents(raw []json.RawMessage, third bool) *refusal {
	contents := make([]geminiContent, len(raw))
	for i := range raw {
		if no := readContent(&contents[i], raw[i], fmt.Sprintf("contents[%d]", i), third); no != nil {
			return no
		}
	}
	for i := range contents {
		c := &contents[i]
		switch {
		case i == 0 && c.Role != "user":
			return bad("Please ensure that the first content is of role user.")
		case i > 0 && c.Role == contents[i-1].Role:
			return bad("Please ensure that multiturn requests alternate between user and model. (contents[%d])", i)
		}
		var before *geminiContent
		if i > 0 {
			before = &contents[i-1]
		}
		if no := checkAnswers(c, before, i); no != nil {
			return no
		}
	}
	last := &contents[len(contents)-1]
	if last.Role != "user" {
		return bad("Please ensure that multiturn requests end with a user role or a function response.")
	}
	if third {
		return checkSignatures(contents)
	}
	return nil
}

func readContent(c *geminiContent, raw json.RawMessage, at string, third bool) *refusal {
	if no := unknown(raw, at, "role parts"); no != nil {
		return no
	}
	if err := json.Unmarshal(raw, c); err != nil {
		return bad("Invalid value at '%s': %v", at, err)
	}
	switch {
	case c.Role != "user" && c.Role != "model":
		return bad("Please use a valid role: user, model.")
	case len(c.Parts) == 0:
		return bad("* GenerateContentRequest.%s.parts: contents.parts must not be empty.", at)
	}
	for k, raw := range c.Parts {
		p, no := readGeminiPart(raw, fmt.Sprintf("%s.parts[%d]", at, k), c.Role, third)
		if no != nil {
			return no
		}
		c.read = append(c.read, p)
	}
	return nil
}

func readGeminiPart(raw json.RawMessage, at, role string, third bool) (geminiPart, *refusal) {
	const data = "text inlineData fileData functionCall functionResponse executableCode codeExecutionResult toolCall toolResponse"
	var p geminiPart
	if no := unknown(raw, at, data+" thought thoughtSignature videoMetadata mediaResolution partMetadata"); no != nil {
		return p, no
	}
	if err := json.Unmarshal(raw, &p); err != nil {
		return p, bad("Invalid value at '%s': %v", at, err)
	}
	if err := json.Unmarshal(raw, &p.fields); err != nil {
		return p, bad("Invalid value at '%s': %v", at, err)
	}
	n := 0
	for k := range p.fields {
		if slices.Contains(strings.Fields(data), k) {
			n++
		}
	}
	switch {
	case n != 1:
		return p, bad("* GenerateContentRequest.%s.data: required oneof field 'data' must have one initialized field", at)
	case p.Text != nil && *p.Text == "" && p.ThoughtSignature == "":
		return p, bad("Unable to submit request because it must have a text parameter. (%s)", at)
	case !isGoogleBytes(p.ThoughtSignature):
		return p, bad("Invalid value at '%s.thought_signature' (TYPE_BYTES), Base64 decoding failed for %q", at, p.ThoughtSignature)
	case role == "user" && (p.Thought || p.ThoughtSignature != "" || p.FunctionCall != nil || p.fields["executableCode"] != nil || p.fields["toolCall"] != nil):
		return p, bad("%s: a content of role user cannot hold what the model writes", at)
	case role == "model" && p.FunctionResponse != nil:
		return p, bad("%s: a content of role model cannot hold a function_response", at)
	case p.InlineData != nil:
		return p, checkBlob(p.InlineData, at+".inline_data", geminiMedia)
	case p.FunctionCall != nil:
		return p, checkGeminiCall(p.FunctionCall, p.fields["functionCall"], at+".function_call")
	case p.FunctionResponse != nil:
		return p, checkGeminiResponse(p.FunctionResponse, p.fields["functionResponse"], at+".function_response", third)
	}
	return p, nil
}

// isGoogleBytes reports whether a string is bytes in JSON as Google reads them:
// base64 of either alphabet, padded or not.
func isGoogleBytes(s string) bool { return s == "" || googleBytes(s) != nil }

// googleBytes are those bytes; nil when they are none.
func googleBytes(s string) []byte {
	s = strings.TrimRight(strings.NewReplacer("-", "+", "_", "/").Replace(s), "=")
	data, err := base64.RawStdEncoding.DecodeString(s)
	if err != nil {
		return nil
	}
	return data
}

const (
	geminiMedia = `image/png image/jpeg image/webp image/heic image/heif audio/wav audio/mp3 audio/mpeg audio/aiff audio/aac audio/ogg audio/flac
		video/mp4 video/mpeg video/quicktime video/avi video/x-flv video/mpg video/webm video/wmv video/3gpp application/pdf text/plain`
	geminiResultMedia = "image/png image/jpeg image/webp application/pdf text/plain"
)

func checkBlob(raw json.RawMessage, at, types string) *refusal {
	if no := unknown(raw, at, "mimeType data displayName"); no != nil {
		return no
	}
	var b struct {
		MIMEType string `json:"mimeType"`
		Data     string
	}
	switch {
	case json.Unmarshal(raw, &b) != nil || b.Data == "" || !isGoogleBytes(b.Data):
		return bad("Invalid value at '%s.data' (TYPE_BYTES), Base64 decoding failed", at)
	case !slices.Contains(strings.Fields(types), b.MIMEType):
		return bad("Unsupported MIME type: %s", b.MIMEType)
	case slices.Contains([]string{"image/png", "image/jpeg", "image/webp"}, b.MIMEType) && !canShow(b.MIMEType, googleBytes(b.Data)):
		return bad("Unable to process input image. Please retry or report in https://developers.generativeai.google/guide/troubleshooting")
	}
	return nil
}

func checkGeminiCall(c *geminiCall, raw json.RawMessage, at string) *refusal {
	if no := unknown(raw, at, "id name args"); no != nil {
		return no
	}
	switch {
	case !geminiName.MatchString(c.Name):
		return bad("* GenerateContentRequest.%s.name: %s", at, geminiNameRule)
	case c.Args != nil && !isJSONObject(c.Args):
		return bad("Invalid value at '%s.args' (type.googleapis.com/google.protobuf.Struct)", at)
	}
	return nil
}

func checkGeminiResponse(r *geminiResponse, raw json.RawMessage, at string, third bool) *refusal {
	if no := unknown(raw, at, "id name response parts willContinue scheduling"); no != nil {
		return no
	}
	switch {
	case !geminiName.MatchString(r.Name):
		return bad("* GenerateContentRequest.%s.name: %s", at, geminiNameRule)
	case !isJSONObject(r.Response):
		return bad("Invalid value at '%s.response' (type.googleapis.com/google.protobuf.Struct)", at)
	case len(r.Parts) > 0 && !third:
		return bad("Multimodal function responses are not supported for this model.")
	}
	for k, raw := range r.Parts {
		at := fmt.Sprintf("%s.parts[%d]", at, k)
		if no := unknown(raw, at, "inlineData"); no != nil {
			return no
		}
		var p struct {
			InlineData json.RawMessage `json:"inlineData"`
		}
		if err := json.Unmarshal(raw, &p); err != nil {
			return bad("Invalid value at '%s': %v", at, err)
		}
		if no := checkBlob(p.InlineData, at+".inline_data", geminiResultMedia); no != nil {
			return no
		}
	}
	return nil
}

// checkAnswers checks that a content answers the calls of the one before it:
// each once, by its id where there is one and its name always, before anything
// else that it says.
func checkAnswers(c, before *geminiContent, i int) *refusal {
	var open []geminiCall
	if before != nil && before.Role == "model" {
		for _, p := range before.read {
			if p.FunctionCall != nil {
				open = append(open, *p.FunctionCall)
			}
		}
	}
	called, answered, others := len(open), 0, 0
	for _, p := range c.read {
		r := p.FunctionResponse
		if r == nil {
			others++
			continue
		}
		at := slices.IndexFunc(open, func(f geminiCall) bool { return f.ID == r.ID && f.Name == r.Name })
		switch {
		case called == 0:
			return bad("%s (contents[%d])", wrongOrder, i)
		case answered >= called:
			return bad("%s (contents[%d])", wrongCount, i)
		case at < 0:
			return bad("contents[%d]: no function call of the turn before has the name %q and the id %q", i, r.Name, r.ID)
		case others > 0:
			return bad("contents[%d]: function responses have to come before other parts", i)
		}
		answered++
		open = slices.Delete(open, at, at+1)
	}
	if answered != called {
		return bad("%s (contents[%d])", wrongCount, i)
	}
	return nil
}

// checkSignatures checks the thought signatures of the current turn, which
// begins with the last content of the user that is more than results: the first
// call of each step has to have one. Wherever there is one it has to be of the
// call that it comes with, or the one that says to skip the check.
func checkSignatures(contents []geminiContent) *refusal {
	turn := 0
	for i, c := range contents {
		if c.Role == "user" && slices.ContainsFunc(c.read, func(p geminiPart) bool { return p.FunctionResponse == nil }) {
			turn = i
		}
	}
	for i, c := range contents {
		first := true
		for k, p := range c.read {
			f := p.FunctionCall
			if f == nil {
				continue
			}
			s := p.ThoughtSignature
			switch {
			case s == "" && first && i > turn:
				return bad("Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly. Additional data, function call `default_api:%s` , position %d.", f.Name, k+1)
			case s != "" && s != signatureOf(f.Name) && s != "skip_thought_signature_validator" && s != "context_engineering_is_the_way_to_go":
				return bad("Corrupted thought signature. (contents[%d].parts[%d])", i, k)
			}
			first = false
		}
	}
	return nil
}
