package llmtest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// chat is OpenAI's chat completions, with the rules that its documentation and
// its errors state, and those of stricter servers that speak it: arguments in a
// history are JSON objects, ids are not used twice, the user and the assistant
// take turns.
var chat = format{
	name: "chat",
	serves: func(r *http.Request) bool {
		return strings.HasSuffix(r.URL.Path, "/chat/completions") || r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/models") && r.Header.Get("x-api-key") == "" && r.Header.Get("x-goog-api-key") == ""
	},
	key:    bearer,
	check:  checkChat,
	refuse: refuseChat,
	answer: answerChat,
	models: func(path string, names []string) []byte {
		if !strings.HasSuffix(path, "/models") {
			return nil
		}
		var b strings.Builder
		b.WriteString(`{"object":"list","data":[`)
		for i, n := range names {
			if i > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, `{"id":%s,"object":"model","created":0,"owned_by":"test"}`, quote(n))
		}
		b.WriteString("]}")
		return []byte(b.String())
	},
}

func refuseChat(w http.ResponseWriter, r *refusal) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(r.status)
	fmt.Fprintf(w, `{"error":{"message":%s,"type":"invalid_request_error","param":null,"code":%s}}`, quote(r.message), quote(r.code))
}

// chatFields are the fields that a request may have.
var chatFields = strings.Fields(`model messages tools tool_choice response_format max_tokens max_completion_tokens
	temperature top_p stop reasoning_effort reasoning prompt_cache_key stream stream_options parallel_tool_calls seed user store metadata`)

type chatRequest struct {
	Model      string            `json:"model"`
	Messages   []chatMessage     `json:"messages"`
	Tools      []chatTool        `json:"tools"`
	ToolChoice json.RawMessage   `json:"tool_choice"`
	Stream     bool              `json:"stream"`
	CacheKey   string            `json:"prompt_cache_key"`
	Format     *chatOutputFormat `json:"response_format"`
}

type chatOutputFormat struct {
	Type       string `json:"type"`
	JSONSchema *struct {
		Name   string          `json:"name"`
		Schema json.RawMessage `json:"schema"`
	} `json:"json_schema"`
}

type chatTool struct {
	Type     string `json:"type"`
	Function *struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	} `json:"function"`
}

type chatMessage struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	ToolCalls  []chatCall      `json:"tool_calls"`
	ToolCallID string          `json:"tool_call_id"`
}

type chatCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function"`
}

var functionName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

func checkChat(body []byte, s *Script) *refusal {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return bad("We could not parse the JSON body of your request. (%v)", err)
	}
	for f := range fields {
		if !slices.Contains(chatFields, f) {
			return bad("Unrecognized request argument supplied: %s", f)
		}
	}
	var r chatRequest
	if err := json.Unmarshal(body, &r); err != nil {
		return bad("Invalid type: %v", err)
	}
	switch {
	case r.Model == "":
		return bad("you must provide a model parameter")
	case len(s.Models) > 0 && !slices.Contains(s.Models, r.Model):
		return &refusal{http.StatusNotFound, "model_not_found", fmt.Sprintf("The model `%s` does not exist or you do not have access to it.", r.Model)}
	case len(r.Messages) == 0:
		return bad("[] is too short - 'messages'")
	case !r.Stream:
		return bad("this server only streams")
	case len(r.CacheKey) > 64:
		return bad("Invalid 'prompt_cache_key': string too long. Expected a string with maximum length 64, but got a string with length %d instead.", len(r.CacheKey))
	case fields["tools"] != nil && len(r.Tools) == 0:
		return bad("[] is too short - 'tools'")
	case fields["tools"] == nil && fields["tool_choice"] != nil:
		return bad("'tool_choice' is only allowed when 'tools' are specified.")
	}
	if no := checkChatTools(r.Tools, s.Descriptions); no != nil {
		return no
	}
	if f := r.Format; f != nil && f.Type == "json_schema" && (f.JSONSchema == nil || !functionName.MatchString(f.JSONSchema.Name) || len(f.JSONSchema.Schema) == 0) {
		return bad("Invalid 'response_format.json_schema'")
	}
	return checkChatMessages(r.Messages, s.IDs)
}

func checkChatTools(tools []chatTool, most int) *refusal {
	if len(tools) > 128 {
		return bad("Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length %d instead.", len(tools))
	}
	seen := map[string]bool{}
	for i, t := range tools {
		if t.Type != "function" || t.Function == nil {
			continue // hosted by the provider
		}
		name := t.Function.Name
		if !functionName.MatchString(name) {
			return bad("Invalid 'tools[%d].function.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$' of at most 64 characters.", i)
		}
		if seen[name] {
			return bad("Duplicate function name: %s", name)
		}
		seen[name] = true
		if no := longDescription(fmt.Sprintf("tools[%d].function.description", i), t.Function.Description, most); no != nil {
			return no
		}
		if why := checkOpenAISchema(t.Function.Parameters, true); why != "" {
			return bad("Invalid schema for function '%s': %s", name, why)
		}
	}
	return nil
}

// tooLong is the code of a refusal that nobody can foresee: whether an endpoint
// has the limit is in no documentation.
const tooLong = "string_above_max_length"

func longDescription(field, text string, most int) *refusal {
	if n := utf8.RuneCountInString(text); most > 0 && n > most {
		return &refusal{http.StatusBadRequest, tooLong, fmt.Sprintf("Invalid '%s': string too long. Expected a string with maximum length %d, but got a string with length %d instead.", field, most, n)}
	}
	return nil
}

// checkOpenAISchema says what OpenAI refuses in the parameters of a function.
func checkOpenAISchema(raw json.RawMessage, root bool) string {
	var s map[string]json.RawMessage
	if err := json.Unmarshal(raw, &s); err != nil {
		return "a schema must be an object"
	}
	types := string(s["type"])
	if root {
		if types != `"object"` {
			return fmt.Sprintf("schema must be a JSON Schema of 'type: \"object\"', got 'type: %s'.", types)
		}
		for _, k := range []string{"oneOf", "anyOf", "allOf", "enum", "not"} {
			if s[k] != nil {
				return "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level."
			}
		}
	}
	if strings.Contains(types, `"object"`) && s["properties"] == nil {
		return "object schema missing properties."
	}
	if strings.Contains(types, `"array"`) && s["items"] == nil {
		return "array schema missing items."
	}
	var inner []json.RawMessage
	var group map[string]json.RawMessage
	for _, k := range []string{"properties", "$defs", "definitions"} {
		group = nil
		if s[k] != nil && json.Unmarshal(s[k], &group) != nil {
			return k + " must be an object"
		}
		for _, v := range group {
			inner = append(inner, v)
		}
	}
	for _, k := range []string{"anyOf", "oneOf", "allOf"} {
		var list []json.RawMessage
		if s[k] != nil && json.Unmarshal(s[k], &list) != nil {
			return k + " must be an array"
		}
		inner = append(inner, list...)
	}
	if s["items"] != nil {
		inner = append(inner, s["items"])
	}
	for _, v := range inner {
		if why := checkOpenAISchema(v, false); why != "" {
			return why
		}
	}
	return ""
}

func checkChatMessages(messages []chatMessage, maxID int) *refusal {
	ids := map[string]bool{}
	var open []string // ids of calls that await their result
	for i, m := range messages {
		if m.Role != "tool" && len(open) > 0 {
			return bad("An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: %s", strings.Join(open, ", "))
		}
		if i > 0 && m.Role == messages[i-1].Role && (m.Role == "user" || m.Role == "assistant") {
			return bad("After the optional system message, conversation roles must alternate user/assistant/user/assistant/... (messages[%d])", i)
		}
		switch m.Role {
		case "system", "developer", "user":
			if len(m.ToolCalls) > 0 {
				return bad("messages[%d]: only the assistant has tool_calls", i)
			}
			if !hasContent(m.Content) {
				return bad("Invalid value for 'content' of messages[%d]: expected a string or a non-empty array.", i)
			}
		case "assistant":
			if len(m.ToolCalls) == 0 && !hasContent(m.Content) {
				return bad("Invalid value for 'content' of messages[%d]: expected a string, got null.", i)
			}
			for k, c := range m.ToolCalls {
				if no := checkChatCall(i, k, c); no != nil {
					return no
				}
				if maxID > 0 && len(c.ID) > maxID {
					return bad("Invalid 'messages[%d].tool_calls[%d].id': string too long. Expected a string with maximum length %d, but got a string with length %d instead.", i, k, maxID, len(c.ID))
				}
				if ids[c.ID] {
					return bad("messages[%d].tool_calls[%d]: duplicate id %q", i, k, c.ID)
				}
				ids[c.ID] = true
				open = append(open, c.ID)
			}
		case "tool":
			at := slices.Index(open, m.ToolCallID)
			if at < 0 {
				return bad("messages with role 'tool' must be a response to a preceeding message with 'tool_calls' (messages[%d], %q)", i, m.ToolCallID)
			}
			open = slices.Delete(open, at, at+1)
			if !isText(m.Content) {
				return bad("messages[%d]: the content of a tool message must be text", i)
			}
		default:
			return bad("Invalid value: '%s'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'.", m.Role)
		}
	}
	if len(open) > 0 {
		return bad("An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: %s", strings.Join(open, ", "))
	}
	if last := messages[len(messages)-1].Role; last != "user" && last != "tool" {
		return bad("the last message must be the user's or a result, not of role %s", last)
	}
	return nil
}

func checkChatCall(i, k int, c chatCall) *refusal {
	var args string
	var object map[string]json.RawMessage
	switch {
	case c.ID == "" || c.Type != "function":
		return bad("Missing required parameter: 'messages[%d].tool_calls[%d].id' or type", i, k)
	case !functionName.MatchString(c.Function.Name):
		return bad("Invalid 'messages[%d].tool_calls[%d].function.name': string does not match pattern.", i, k)
	case json.Unmarshal(c.Function.Arguments, &args) != nil:
		return bad("Invalid type for 'messages[%d].tool_calls[%d].function.arguments': expected a string.", i, k)
	case json.Unmarshal([]byte(args), &object) != nil || object == nil:
		return bad("messages[%d].tool_calls[%d]: the \"function.arguments\" parameter must be in JSON format.", i, k)
	}
	return nil
}

type chatPart struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	ImageURL *struct {
		URL string `json:"url"`
	} `json:"image_url"`
}

var imageURL = regexp.MustCompile(`^(https?://|data:image/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+=*$)`)

// isPicture reports whether an address is one of the web, or a picture itself.
func isPicture(url string) bool {
	at := imageURL.FindStringSubmatch(url)
	if at == nil || at[2] == "" {
		return at != nil
	}
	_, text, _ := strings.Cut(url, ",")
	data, err := base64.StdEncoding.DecodeString(text)
	return err == nil && canShow("image/"+at[2], data)
}

// hasContent reports whether content says something in a form that is allowed.
func hasContent(raw json.RawMessage) bool {
	var s string
	if json.Unmarshal(raw, &s) == nil && string(raw) != "null" {
		return s != ""
	}
	var parts []chatPart
	if json.Unmarshal(raw, &parts) != nil || len(parts) == 0 {
		return false
	}
	for _, p := range parts {
		switch p.Type {
		case "text":
			if p.Text == "" {
				return false
			}
		case "image_url":
			if p.ImageURL == nil || !isPicture(p.ImageURL.URL) {
				return false
			}
		case "input_audio", "file":
		default:
			return false
		}
	}
	return true
}

// isText reports whether content is a string, or parts of text only.
func isText(raw json.RawMessage) bool {
	var s string
	if json.Unmarshal(raw, &s) == nil && string(raw) != "null" {
		return true
	}
	var parts []chatPart
	if json.Unmarshal(raw, &parts) != nil {
		return false
	}
	return !slices.ContainsFunc(parts, func(p chatPart) bool { return p.Type != "text" })
}

func answerChat(out *stream, t *Turn, r *http.Request) {
	delta := func(s string) {
		out.event("", `{"id":"chatcmpl-1","object":"chat.completion.chunk","created":0,"model":"test","choices":[{"index":0,"delta":`+s+`,"finish_reason":null}]}`)
	}
	delta(`{"role":"assistant","content":""}`)
	calls := 0
	for _, step := range t.Steps {
		switch {
		case step.Text != "":
			for _, p := range pieces(step.Text) {
				delta(`{"content":` + quote(p) + `}`)
			}
		case step.Reasoning != "":
			for _, p := range pieces(step.Reasoning) {
				delta(`{"reasoning_content":` + quote(p) + `}`)
			}
		case step.Call != nil:
			c := step.Call
			delta(fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":%s,"type":"function","function":{"name":%s,"arguments":""}}]}`, calls, quote(c.ID), quote(c.Name)))
			for _, p := range pieces(c.Args) {
				delta(fmt.Sprintf(`{"tool_calls":[{"index":%d,"function":{"arguments":%s}}]}`, calls, quote(p)))
			}
			calls++
		default:
			out.pause(step, r)
		}
	}
	reason := map[string]string{"calls": "tool_calls", "filtered": "content_filter"}[t.finish()]
	if reason == "" {
		reason = t.finish()
	}
	out.event("", `{"id":"chatcmpl-1","object":"chat.completion.chunk","created":0,"model":"test","choices":[{"index":0,"delta":{},"finish_reason":`+quote(reason)+`}]}`)
	u := t.Usage
	out.event("", fmt.Sprintf(`{"id":"chatcmpl-1","object":"chat.completion.chunk","created":0,"model":"test","choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d,"prompt_tokens_details":{"cached_tokens":%d},"completion_tokens_details":{"reasoning_tokens":%d}}}`,
		u.In, u.Out, u.In+u.Out, u.Cached, u.Reasoning))
	out.event("", "[DONE]")
}
