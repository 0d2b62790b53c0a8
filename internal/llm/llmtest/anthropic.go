package llmtest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// anthropic is Anthropic's Messages API, with the rules that its documentation
// and its errors state.
var anthropic = format{
	name: "anthropic",
	serves: func(r *http.Request) bool {
		return strings.HasSuffix(r.URL.Path, "/v1/messages") || r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/v1/models") && r.Header.Get("anthropic-version") != ""
	},
	key: func(r *http.Request) string {
		if key := r.Header.Get("x-api-key"); key != "" {
			return key
		}
		return bearer(r)
	},
	headers: func(h http.Header) *refusal {
		if h.Get("anthropic-version") == "" {
			return bad("anthropic-version: header is required")
		}
		return nil
	},
	check:  checkAnthropic,
	refuse: refuseAnthropic,
	answer: answerAnthropic,
	models: func(path string, names []string) []byte {
		var list []string
		for _, n := range names {
			list = append(list, fmt.Sprintf(`{"type":"model","id":%s,"display_name":"Test","created_at":"1970-01-01T00:00:00Z"}`, quote(n)))
		}
		return []byte(`{"data":[` + strings.Join(list, ",") + `],"has_more":false,"first_id":null,"last_id":null}`)
	},
}

func refuseAnthropic(w http.ResponseWriter, r *refusal) {
	code := map[int]string{400: "invalid_request_error", 401: "authentication_error", 404: "not_found_error", 413: "request_too_large"}[r.status]
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Request-Id", "req_test")
	w.WriteHeader(r.status)
	fmt.Fprintf(w, `{"type":"error","error":{"type":%s,"message":%s},"request_id":"req_test"}`, quote(code), quote(r.message))
}

// Signature is what the server signs thinking with, and wants back with it.
func Signature(thinking string) string {
	sum := sha256.Sum256([]byte(thinking))
	return "sig_" + hex.EncodeToString(sum[:8])
}

var anthropicFields = strings.Fields(`model max_tokens messages system tools tool_choice thinking output_config
	temperature top_p top_k stop_sequences stream metadata service_tier`)

type anthropicRequest struct {
	Model      string             `json:"model"`
	MaxTokens  int                `json:"max_tokens"`
	Messages   []anthropicMessage `json:"messages"`
	System     json.RawMessage    `json:"system"`
	Tools      []anthropicTool    `json:"tools"`
	ToolChoice *struct {
		Type string `json:"type"`
	} `json:"tool_choice"`
	Thinking *struct {
		Type   string `json:"type"`
		Budget int    `json:"budget_tokens"`
	} `json:"thinking"`
	Output *struct {
		Effort string `json:"effort"`
		Format *struct {
			Type   string          `json:"type"`
			Schema json.RawMessage `json:"schema"`
		} `json:"format"`
	} `json:"output_config"`
	Temperature *float64 `json:"temperature"`
	Stream      bool     `json:"stream"`
}

type anthropicTool struct {
	Type   string          `json:"type"`
	Name   string          `json:"name"`
	Schema json.RawMessage `json:"input_schema"`
}

type anthropicMessage struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

type anthropicBlock struct {
	Type         string          `json:"type"`
	Text         string          `json:"text"`
	Thinking     *string         `json:"thinking"`
	Signature    string          `json:"signature"`
	Data         string          `json:"data"`
	ID           string          `json:"id"`
	Name         string          `json:"name"`
	Input        json.RawMessage `json:"input"`
	ToolUseID    string          `json:"tool_use_id"`
	Content      json.RawMessage `json:"content"`
	IsError      bool            `json:"is_error"`
	CacheControl json.RawMessage `json:"cache_control"`
	Source       *struct {
		Type      string `json:"type"`
		MediaType string `json:"media_type"`
		Data      []byte `json:"data"`
	} `json:"source"`
}

func (b *anthropicBlock) hosted() bool {
	return b.Type == "server_tool_use" || b.Type == "mcp_tool_use" || b.Type != "tool_result" && strings.HasSuffix(b.Type, "_tool_result")
}

func (b *anthropicBlock) thinks() bool { return b.Type == "thinking" || b.Type == "redacted_thinking" }

var (
	anthropicID       = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)
	anthropicProperty = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)
)

func checkAnthropic(body []byte, s *Script) *refusal {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return bad("The request body is not valid JSON: %v", err)
	}
	for f := range fields {
		if !slices.Contains(anthropicFields, f) {
			return bad("%s: Extra inputs are not permitted", f)
		}
	}
	var r anthropicRequest
	if err := json.Unmarshal(body, &r); err != nil {
		return bad("%v", err)
	}
	switch {
	case r.Model == "":
		return bad("model: Field required")
	case len(s.Models) > 0 && !slices.Contains(s.Models, r.Model):
		return &refusal{http.StatusNotFound, "not_found_error", "model: " + r.Model}
	case fields["max_tokens"] == nil:
		return bad("max_tokens: Field required")
	case r.MaxTokens < 1:
		return bad("max_tokens: Input should be greater than or equal to 1")
	case len(r.Messages) == 0:
		return bad("messages: at least one message is required")
	case !r.Stream:
		return bad("this server only streams")
	case bytes.Count(body, []byte(`"cache_control":{"type":"ephemeral"`)) > 4:
		return bad("A maximum of 4 blocks with cache_control may be provided.")
	}
	if n := bytes.Count(body, []byte(`{"type":"image",`)) + bytes.Count(body, []byte(`{"type":"document",`)); n > 100 {
		return bad("Too much media: %d document pages and images > 100", n)
	}
	for _, check := range []func(*anthropicRequest) *refusal{checkAnthropicSystem, checkAnthropicTools, checkAnthropicThinking, checkAnthropicOutput, checkAnthropicMessages} {
		if no := check(&r); no != nil {
			return no
		}
	}
	return nil
}

func checkAnthropicSystem(r *anthropicRequest) *refusal {
	if r.System == nil {
		return nil
	}
	var blocks []anthropicBlock
	if err := json.Unmarshal(r.System, &blocks); err != nil {
		return bad("system: Input should be a valid list")
	}
	for i, b := range blocks {
		if b.Type != "text" || strings.TrimSpace(b.Text) == "" {
			return bad("system.%d: text content blocks must be non-empty", i)
		}
	}
	return nil
}

func checkAnthropicTools(r *anthropicRequest) *refusal {
	seen := map[string]bool{}
	for i, t := range r.Tools {
		if seen[t.Name] {
			return bad("tools: Tool names must be unique.")
		}
		seen[t.Name] = true
		if t.Type != "" && t.Type != "custom" {
			continue // run by Anthropic
		}
		if !functionName.MatchString(t.Name) {
			return bad("tools.%d.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,64}$'", i)
		}
		var schema map[string]json.RawMessage
		if err := json.Unmarshal(t.Schema, &schema); err != nil || string(schema["type"]) != `"object"` {
			return bad("tools.%d.custom.input_schema.type: Input should be 'object'", i)
		}
		for _, k := range []string{"oneOf", "allOf", "anyOf"} {
			if schema[k] != nil {
				return bad("tools.%d.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level", i)
			}
		}
		if name, ok := badProperty(t.Schema); !ok {
			return bad("tools.%d.custom.input_schema.properties: Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$' (%q)", i, name)
		}
	}
	switch c := r.ToolChoice; {
	case c == nil:
	case len(r.Tools) == 0:
		return bad("tool_choice: may only be specified while providing tools")
	case !slices.Contains([]string{"auto", "any", "none", "tool"}, c.Type):
		return bad("tool_choice: Input tag '%s' found using 'type' does not match any of the expected tags", c.Type)
	}
	return nil
}

// badProperty finds a name that the API refuses, at any depth.
func badProperty(schema json.RawMessage) (string, bool) {
	var members map[string]json.RawMessage
	if json.Unmarshal(schema, &members) != nil {
		return "", true
	}
	var properties map[string]json.RawMessage
	_ = json.Unmarshal(members["properties"], &properties) // not there
	for name, s := range properties {
		if !anthropicProperty.MatchString(name) {
			return name, false
		}
		if name, ok := badProperty(s); !ok {
			return name, false
		}
	}
	return badProperty(members["items"])
}

func checkAnthropicThinking(r *anthropicRequest) *refusal {
	t := r.Thinking
	if t == nil || t.Type == "disabled" {
		return nil
	}
	if r.Temperature != nil && *r.Temperature != 1 {
		return bad("`temperature` may only be set to 1 when thinking is enabled or in adaptive mode.")
	}
	switch t.Type {
	case "adaptive":
	case "enabled":
		switch {
		case t.Budget < 1024:
			return bad("thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
		case t.Budget >= r.MaxTokens:
			return bad("`max_tokens` must be greater than `thinking.budget_tokens`.")
		case r.ToolChoice != nil && (r.ToolChoice.Type == "any" || r.ToolChoice.Type == "tool"):
			return bad("Thinking may not be enabled when tool_choice forces tool use.")
		}
	default:
		return bad("thinking: Input tag '%s' found using 'type' does not match any of the expected tags: 'adaptive', 'disabled', 'enabled'", t.Type)
	}
	return nil
}

func checkAnthropicOutput(r *anthropicRequest) *refusal {
	o := r.Output
	if o == nil {
		return nil
	}
	if o.Effort != "" && !slices.Contains([]string{"low", "medium", "high", "xhigh", "max"}, o.Effort) {
		return bad("output_config.effort: Input should be 'low', 'medium', 'high', 'xhigh' or 'max'")
	}
	if f := o.Format; f != nil {
		var schema any
		if f.Type != "json_schema" || json.Unmarshal(f.Schema, &schema) != nil {
			return bad("output_config.format: Input should be a json_schema")
		}
		if why := openObject(schema); why != "" {
			return bad("output_config.format.schema: %s", why)
		}
	}
	return nil
}

// openObject says what the API refuses in the schema of an answer.
func openObject(schema any) string {
	switch s := schema.(type) {
	case []any:
		for _, v := range s {
			if why := openObject(v); why != "" {
				return why
			}
		}
	case map[string]any:
		if s["type"] == "object" && s["additionalProperties"] != false {
			return "For 'object' type, 'additionalProperties' must be explicitly set to false"
		}
		for k, v := range s {
			if _, isSchema := v.(map[string]any); !isSchema && slices.Contains([]string{"minimum", "maximum", "minLength", "maxLength", "maxItems"}, k) {
				return "property '" + k + "' is not supported"
			}
			if why := openObject(v); why != "" {
				return why
			}
		}
	}
	return ""
}

// anthropicTurns walks through the messages of a request.
type anthropicTurns struct {
	request *anthropicRequest
	ids     map[string]bool
	uses    map[string]bool // of tools that the API runs
	open    []string        // calls that await their result
}

func checkAnthropicMessages(r *anthropicRequest) *refusal {
	t := &anthropicTurns{request: r, ids: map[string]bool{}, uses: map[string]bool{}}
	var messages [][]anthropicBlock
	for i, m := range r.Messages {
		want := "user"
		if i%2 == 1 {
			want = "assistant"
		}
		if m.Role != want {
			return bad("messages.%d: roles must alternate between \"user\" and \"assistant\", beginning with \"user\", but found %q", i, m.Role)
		}
		blocks, no := readAnthropic(i, m.Content)
		if no != nil {
			return no
		}
		check := t.user
		if m.Role == "assistant" {
			check = t.assistant
		}
		if no := check(i, blocks); no != nil {
			return no
		}
		messages = append(messages, blocks)
	}
	return t.end(messages)
}

func readAnthropic(i int, content json.RawMessage) ([]anthropicBlock, *refusal) {
	var text string
	if json.Unmarshal(content, &text) == nil && text != "" {
		return []anthropicBlock{{Type: "text", Text: text}}, nil
	}
	var blocks []anthropicBlock
	if err := json.Unmarshal(content, &blocks); err != nil {
		return nil, bad("messages.%d.content: %v", i, err)
	}
	if len(blocks) == 0 {
		return nil, bad("messages.%d: all messages must have non-empty content except for the optional final assistant message", i)
	}
	return blocks, nil
}

func (t *anthropicTurns) user(i int, blocks []anthropicBlock) *refusal {
	others := false
	for k, b := range blocks {
		if b.Type != "tool_result" {
			others = true
			if no := checkAnthropicContent(fmt.Sprintf("messages.%d.content.%d", i, k), &b, false); no != nil {
				return no
			}
			continue
		}
		at := slices.Index(t.open, b.ToolUseID)
		switch {
		case at < 0:
			return bad("messages.%d.content.%d: unexpected `tool_use_id` found in `tool_result` blocks: %s. Each `tool_result` block must have a corresponding `tool_use` block in the previous message.", i, k, b.ToolUseID)
		case others:
			return bad("messages.%d.content.%d: `tool_result` blocks must come first", i, k)
		}
		t.open = slices.Delete(t.open, at, at+1)
		if no := checkAnthropicResult(fmt.Sprintf("messages.%d.content.%d", i, k), &b); no != nil {
			return no
		}
	}
	if len(t.open) > 0 {
		return bad("messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after: %s. Each `tool_use` block must have a corresponding `tool_result` block in the next message.", i-1, strings.Join(t.open, ", "))
	}
	return nil
}

func checkAnthropicResult(where string, b *anthropicBlock) *refusal {
	var text string
	if b.Content == nil || json.Unmarshal(b.Content, &text) == nil {
		return nil
	}
	var inner []anthropicBlock
	if err := json.Unmarshal(b.Content, &inner); err != nil {
		return bad("%s.content: %v", where, err)
	}
	for k := range inner {
		if b.IsError && inner[k].Type != "text" {
			return bad("%s: all content must be type \"text\" if \"is_error\" is true", where)
		}
		if no := checkAnthropicContent(fmt.Sprintf("%s.content.%d", where, k), &inner[k], false); no != nil {
			return no
		}
	}
	return nil
}

// checkAnthropicContent checks a block of text or media.
func checkAnthropicContent(where string, b *anthropicBlock, onlyText bool) *refusal {
	switch {
	case b.Type == "text":
		if strings.TrimSpace(b.Text) == "" {
			return bad("%s: text content blocks must contain non-whitespace text", where)
		}
		return nil
	case onlyText || b.Type != "image" && b.Type != "document":
		return bad("%s: Input tag '%s' found using 'type' does not match any of the expected tags", where, b.Type)
	case b.Source == nil || b.Source.Type != "base64":
		return bad("%s.%s.source: Field required", where, b.Type)
	}
	magic := map[string]string{"image/png": "\x89PNG", "image/jpeg": "\xff\xd8\xff", "image/gif": "GIF8", "image/webp": "RIFF", "application/pdf": "%PDF"}[b.Source.MediaType]
	switch {
	case magic == "" || (b.Type == "document") != (b.Source.MediaType == "application/pdf"):
		return bad("%s.%s.source.base64.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'", where, b.Type)
	case !bytes.HasPrefix(b.Source.Data, []byte(magic)):
		return bad("%s: the data do not match the provided media type %s", where, b.Source.MediaType)
	case b.Type == "image" && !canShow(b.Source.MediaType, b.Source.Data):
		return bad("%s: Could not process image", where)
	case b.Type == "image" && len(b.Source.Data) > 5<<20*3/4:
		return bad("%s.image.source.base64: image exceeds 5 MB maximum", where)
	}
	return nil
}

func (t *anthropicTurns) assistant(i int, blocks []anthropicBlock) *refusal {
	for k := range blocks {
		b := &blocks[k]
		where := fmt.Sprintf("messages.%d.content.%d", i, k)
		if b.thinks() && b.CacheControl != nil {
			return bad("%s.cache_control: Extra inputs are not permitted", where)
		}
		var no *refusal
		switch {
		case b.Type == "thinking":
			if b.Thinking == nil || b.Signature != Signature(*b.Thinking) {
				no = bad("%s: Invalid `signature` in `thinking` block", where)
			}
		case b.Type == "redacted_thinking":
			if b.Data == "" {
				no = bad("%s.redacted_thinking.data: Field required", where)
			}
		case b.Type == "tool_use":
			no = t.call(where, b)
		case b.hosted():
			if b.ToolUseID != "" && !t.uses[b.ToolUseID] {
				no = bad("%s: unexpected `tool_use_id` found in `%s` blocks: %s", where, b.Type, b.ToolUseID)
			}
			t.uses[b.ID] = true
		default:
			no = checkAnthropicContent(where, b, true)
		}
		if no != nil {
			return no
		}
	}
	if blocks[len(blocks)-1].thinks() {
		return bad("messages.%d: The final block in an assistant message cannot be `thinking`.", i)
	}
	return nil
}

func (t *anthropicTurns) call(where string, b *anthropicBlock) *refusal {
	var input map[string]json.RawMessage
	switch {
	case len(t.request.Tools) == 0:
		return bad("Requests which include `tool_use` or `tool_result` blocks must define tools")
	case !anthropicID.MatchString(b.ID):
		return bad("%s.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'", where)
	case t.ids[b.ID]:
		return bad("messages: `tool_use` ids must be unique")
	case !functionName.MatchString(b.Name):
		return bad("%s.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{1,64}$'", where)
	case json.Unmarshal(b.Input, &input) != nil || input == nil:
		return bad("%s.tool_use.input: Input should be a valid dictionary", where)
	}
	t.ids[b.ID] = true
	t.open = append(t.open, b.ID)
	return nil
}

// end checks what only the end of the conversation tells.
func (t *anthropicTurns) end(messages [][]anthropicBlock) *refusal {
	n := len(messages)
	last := messages[n-1]
	if n%2 == 0 { // the assistant's
		b := &last[len(last)-1]
		switch {
		case b.Type == "text" && strings.TrimRight(b.Text, " \t\r\n") != b.Text:
			return bad("messages: final assistant content cannot end with trailing whitespace")
		case !b.hosted():
			return bad("This model does not support assistant message prefill. The conversation must end with a user message.")
		}
	}
	if no := checkHosted(messages, n%2 == 0); no != nil {
		return no
	}
	if r := t.request.Thinking; r != nil && r.Type == "enabled" && last[0].Type == "tool_result" && !messages[n-2][0].thinks() {
		return bad("messages.%d.content.0.type: Expected `thinking` or `redacted_thinking`, but found `%s`. When `thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks).", n-2, messages[n-2][0].Type)
	}
	return nil
}

// checkHosted checks that what the API's own tools were asked has its result. It
// may be missing only where the API itself is to go on.
func checkHosted(messages [][]anthropicBlock, paused bool) *refusal {
	done := map[string]bool{}
	for _, m := range messages {
		for _, b := range m {
			done[b.ToolUseID] = true
		}
	}
	for i, m := range messages {
		calls := slices.ContainsFunc(m, func(b anthropicBlock) bool { return b.Type == "tool_use" })
		goesOn := i >= len(messages)-2 && (paused || calls)
		for _, b := range m {
			if b.Type == "server_tool_use" && !done[b.ID] && !goesOn {
				return bad("messages.%d: `%s` tool use with id `%s` was found without a corresponding `%s_tool_result` block", i, b.Name, b.ID, b.Name)
			}
		}
	}
	return nil
}

func answerAnthropic(out *stream, t *Turn, r *http.Request) {
	event := func(kind, members string) { out.event(kind, `{"type":"`+kind+`"`+members+`}`) }
	u := t.Usage
	event("message_start", fmt.Sprintf(`,"message":{"id":"msg_1","type":"message","role":"assistant","model":"test","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":%d,"cache_creation_input_tokens":0,"cache_read_input_tokens":%d,"output_tokens":1}}`, u.In-u.Cached, u.Cached))
	index := 0
	block := func(start string, deltas ...string) {
		event("content_block_start", fmt.Sprintf(`,"index":%d,"content_block":%s`, index, start))
		if index == 0 {
			event("ping", "")
		}
		for _, d := range deltas {
			event("content_block_delta", fmt.Sprintf(`,"index":%d,"delta":%s`, index, d))
		}
	}
	for i, step := range t.Steps {
		switch {
		case step.Text != "":
			block(`{"type":"text","text":""}`, deltasOf("text_delta", "text", step.Text)...)
		case step.Reasoning != "":
			block(`{"type":"thinking","thinking":"","signature":""}`, append(deltasOf("thinking_delta", "thinking", step.Reasoning), `{"type":"signature_delta","signature":`+quote(Signature(step.Reasoning))+`}`)...)
		case step.Call != nil:
			args := step.Call.Args
			if args == "{}" {
				args = ""
			}
			block(fmt.Sprintf(`{"type":"tool_use","id":%s,"name":%s,"input":{}}`, quote(step.Call.ID), quote(step.Call.Name)), append([]string{`{"type":"input_json_delta","partial_json":""}`}, deltasOf("input_json_delta", "partial_json", args)...)...)
		default:
			out.pause(step, r)
			continue
		}
		if i+1 < len(t.Steps) && t.Steps[i+1].Cut {
			continue // it breaks in the middle of the block
		}
		event("content_block_stop", fmt.Sprintf(`,"index":%d`, index))
		index++
	}
	reason := map[string]string{"stop": "end_turn", "calls": "tool_use", "length": "max_tokens", "filtered": "refusal"}[t.finish()]
	if reason == "" {
		reason = t.finish()
	}
	event("message_delta", fmt.Sprintf(`,"delta":{"stop_reason":%s,"stop_sequence":null},"usage":{"output_tokens":%d,"output_tokens_details":{"thinking_tokens":%d}}`, quote(reason), u.Out, u.Reasoning))
	event("message_stop", "")
}

// deltasOf is a text in pieces.
func deltasOf(kind, member, text string) []string {
	var out []string
	for _, p := range pieces(text) {
		out = append(out, `{"type":"`+kind+`","`+member+`":`+quote(p)+`}`)
	}
	return out
}
