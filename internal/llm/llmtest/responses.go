package llmtest

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// responses is OpenAI's Responses API, used without its storage, with the rules
// that its documentation and its errors state, and Azure's, which refuses the
// ids of reasoning that it does not keep.
//
// The list of models is the one of chat completions.
var responses = format{
	name: "responses",
	serves: func(r *http.Request) bool {
		return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/responses")
	},
	key:    bearer,
	check:  checkResponses,
	refuse: refuseChat,
	answer: answerResponses,
	models: func(string, []string) []byte { return nil },
}

// responsesFields are the fields that a request may have.
var responsesFields = strings.Fields(`model input instructions tools tool_choice text reasoning include store stream
	max_output_tokens temperature top_p prompt_cache_key prompt_cache_retention parallel_tool_calls max_tool_calls truncation
	metadata user safety_identifier service_tier stream_options top_logprobs background`)

// includable is what include may name.
var includable = strings.Fields(`reasoning.encrypted_content message.output_text.logprobs message.input_image.image_url
	file_search_call.results web_search_call.results web_search_call.action.sources code_interpreter_call.outputs
	computer_call_output.output.image_url`)

type responsesRequest struct {
	Model           string            `json:"model"`
	Input           json.RawMessage   `json:"input"`
	Tools           []responsesTool   `json:"tools"`
	Include         []string          `json:"include"`
	Store           *bool             `json:"store"`
	Stream          bool              `json:"stream"`
	MaxOutputTokens *int              `json:"max_output_tokens"`
	CacheKey        string            `json:"prompt_cache_key"`
	Text            *responsesText    `json:"text"`
	Reasoning       map[string]string `json:"reasoning"`
}

type responsesText struct {
	Format *struct {
		Type   string          `json:"type"`
		Name   string          `json:"name"`
		Schema json.RawMessage `json:"schema"`
	} `json:"format"`
}

type responsesTool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      *bool           `json:"strict"`
}

func checkResponses(body []byte, s *Script) *refusal {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return bad("We could not parse the JSON body of your request. (%v)", err)
	}
	for f := range fields {
		if !slices.Contains(responsesFields, f) {
			return bad("Unknown parameter: '%s'.", f)
		}
	}
	var r responsesRequest
	if err := json.Unmarshal(body, &r); err != nil {
		return bad("Invalid type: %v", err)
	}
	switch {
	case r.Model == "":
		return bad("Missing required parameter: 'model'.")
	case len(s.Models) > 0 && !slices.Contains(s.Models, r.Model):
		return &refusal{http.StatusNotFound, "model_not_found", fmt.Sprintf("The requested model '%s' does not exist.", r.Model)}
	case !r.Stream:
		return bad("this server only streams")
	case r.Store == nil || *r.Store:
		return bad("this server stores nothing: 'store' must be false")
	case r.MaxOutputTokens != nil && *r.MaxOutputTokens < 16:
		return bad("Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got %d instead.", *r.MaxOutputTokens)
	case len(r.CacheKey) > 64:
		return bad("Invalid 'prompt_cache_key': string too long. Expected a string with maximum length 64, but got a string with length %d instead.", len(r.CacheKey))
	case fields["tools"] == nil && fields["tool_choice"] != nil && string(fields["tool_choice"]) != `"none"`:
		return bad("Tool choice '%s' must be specified with 'tools' parameter.", fields["tool_choice"])
	}
	for i, name := range r.Include {
		if !slices.Contains(includable, name) {
			return bad("Invalid value: '%s' ('include[%d]').", name, i)
		}
	}
	for k := range r.Reasoning {
		if k != "effort" && k != "summary" {
			return bad("Unknown parameter: 'reasoning.%s'.", k)
		}
	}
	if r.Text != nil && r.Text.Format != nil {
		if f := r.Text.Format; f.Type == "json_schema" && (!functionName.MatchString(f.Name) || len(f.Schema) == 0) {
			return bad("Missing required parameter: 'text.format.name' or schema.")
		}
	}
	if no := checkResponsesTools(r.Tools, s.Descriptions); no != nil {
		return no
	}
	return checkResponsesInput(r.Input)
}

func checkResponsesTools(tools []responsesTool, most int) *refusal {
	if len(tools) > 128 {
		return bad("Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length %d instead.", len(tools))
	}
	seen := map[string]bool{}
	for i, t := range tools {
		switch {
		case t.Type == "":
			return bad("Missing required parameter: 'tools[%d].type'.", i)
		case t.Type != "function":
			continue // hosted by the provider
		case t.Name == "":
			return bad("Missing required parameter: 'tools[%d].name'.", i)
		case !functionName.MatchString(t.Name):
			return bad("Invalid 'tools[%d].name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$' of at most 64 characters.", i)
		case seen[t.Name]:
			return bad("Duplicate function name: %s", t.Name)
		}
		seen[t.Name] = true
		if no := longDescription(fmt.Sprintf("tools[%d].description", i), t.Description, most); no != nil {
			return no
		}
		why := checkOpenAISchema(t.Parameters, true)
		if why == "" && (t.Strict == nil || *t.Strict) { // strict unless it is said
			why = checkStrict(t.Parameters)
		}
		if why != "" {
			return bad("Invalid schema for function '%s': %s", t.Name, why)
		}
	}
	return nil
}

// checkStrict says what strict mode refuses at the root of a schema.
func checkStrict(raw json.RawMessage) string {
	var s struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
		Additional json.RawMessage            `json:"additionalProperties"`
	}
	if json.Unmarshal(raw, &s) != nil || string(s.Additional) != "false" {
		return "In context=(), 'additionalProperties' is required to be supplied and to be false."
	}
	for p := range s.Properties {
		if !slices.Contains(s.Required, p) {
			return fmt.Sprintf("In context=(), 'required' is required to be supplied and to be an array including every key in properties. Missing '%s'.", p)
		}
	}
	return ""
}

type responsesItem struct {
	Type      string          `json:"type"`
	ID        *string         `json:"id"`
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	Phase     string          `json:"phase"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Output    json.RawMessage `json:"output"`
	Summary   []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	} `json:"summary"`
	Encrypted *string `json:"encrypted_content"`
}

// itemPrefixes are what the ids of items begin with.
var itemPrefixes = map[string]string{"message": "msg", "function_call": "fc", "reasoning": "rs", "web_search_call": "ws"}

func checkResponsesInput(raw json.RawMessage) *refusal {
	var text string
	if json.Unmarshal(raw, &text) == nil && text != "" {
		return nil
	}
	var items []responsesItem
	if err := json.Unmarshal(raw, &items); err != nil || len(items) == 0 {
		return bad("Invalid type for 'input': expected a string, or a list of items that is not empty (%v).", err)
	}
	c := inputCheck{ids: map[string]bool{}, calls: map[string]bool{}}
	for i := range items {
		if no := c.item(i, &items[i]); no != nil {
			return no
		}
		if items[i].Type != "reasoning" {
			continue
		}
		if i+1 == len(items) || !follows(&items[i+1]) {
			return bad("Item '%d' of type 'reasoning' was provided without its required following item.", i)
		}
	}
	for id, open := range c.calls {
		if open {
			return bad("No tool output found for function call %s.", id)
		}
	}
	return nil
}

// follows reports whether an item can be what reasoning led to.
func follows(it *responsesItem) bool {
	switch it.Type {
	case "reasoning", "function_call", "web_search_call":
		return true
	case "message", "":
		return it.Role == "assistant"
	}
	return false
}

type inputCheck struct {
	ids   map[string]bool
	calls map[string]bool // by call_id: true while there is no output
}

func (c *inputCheck) item(i int, it *responsesItem) *refusal {
	if it.ID != nil {
		if no := c.id(i, it); no != nil {
			return no
		}
	}
	switch it.Type {
	case "message", "":
		return checkResponsesMessage(i, it)
	case "reasoning":
		return checkReasoningItem(i, it)
	case "function_call":
		if no := checkResponsesCall(i, it); no != nil {
			return no
		}
		if _, twice := c.calls[it.CallID]; twice {
			return bad("Duplicate function call with call_id %s ('input[%d]').", it.CallID, i)
		}
		c.calls[it.CallID] = true
	case "function_call_output":
		switch open, known := c.calls[it.CallID]; {
		case !known:
			return bad("No tool call found for function call output with call_id %s.", it.CallID)
		case !open:
			return bad("Duplicate function call output with call_id %s ('input[%d]').", it.CallID, i)
		case !isString(it.Output) && !hasInput(it.Output, "input_text", "input_image", "input_file"):
			return bad("Invalid type for 'input[%d].output': expected a string, or a list of content that is not empty.", i)
		}
		c.calls[it.CallID] = false
	case "web_search_call":
	default:
		return bad("Invalid value: '%s' ('input[%d].type').", it.Type, i)
	}
	return nil
}

func (c *inputCheck) id(i int, it *responsesItem) *refusal {
	id, prefix := *it.ID, itemPrefixes[it.Type]
	switch {
	case !strings.HasPrefix(id, prefix) || id == "":
		return bad("Invalid 'input[%d].id': '%s'. Expected an ID that begins with '%s'.", i, id, prefix)
	case len(id) > 64:
		return bad("Invalid 'input[%d].id': string too long. Expected a string with maximum length 64, but got a string with length %d instead.", i, len(id))
	case c.ids[id]:
		return bad("Duplicate item found with id %s. Remove duplicate items from your input and try again.", id)
	case it.Type == "reasoning":
		return bad("Item with id '%s' not found. Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item from your input.", id)
	}
	c.ids[id] = true
	return nil
}

func checkResponsesMessage(i int, it *responsesItem) *refusal {
	ok := false
	switch it.Role {
	case "user", "system", "developer":
		ok = hasInput(it.Content, "input_text", "input_image", "input_file")
	case "assistant":
		ok = hasInput(it.Content, "output_text", "refusal")
	default:
		return bad("Invalid value: '%s'. Supported values are: 'assistant', 'system', 'developer', and 'user' ('input[%d].role').", it.Role, i)
	}
	if !ok {
		return bad("Invalid value for 'input[%d].content' of role %s.", i, it.Role)
	}
	if it.Phase != "" && (it.Role != "assistant" || it.Phase != "commentary" && it.Phase != "final_answer") {
		return bad("Invalid value: '%s' ('input[%d].phase').", it.Phase, i)
	}
	return nil
}

func checkResponsesCall(i int, it *responsesItem) *refusal {
	var args string
	var object map[string]json.RawMessage
	switch {
	case it.CallID == "":
		return bad("Missing required parameter: 'input[%d].call_id'.", i)
	case len(it.CallID) > 64:
		return bad("Invalid 'input[%d].call_id': string too long. Expected a string with maximum length 64, but got a string with length %d instead.", i, len(it.CallID))
	case !functionName.MatchString(it.Name):
		return bad("Invalid 'input[%d].name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.", i)
	case json.Unmarshal(it.Arguments, &args) != nil:
		return bad("Invalid type for 'input[%d].arguments': expected a string.", i)
	case json.Unmarshal([]byte(args), &object) != nil || object == nil:
		return bad("input[%d]: 'arguments' must be a JSON object.", i)
	}
	return nil
}

// checkReasoningItem wants reasoning back as it was given out: this server's
// encrypted content is made of the summary.
func checkReasoningItem(i int, it *responsesItem) *refusal {
	if it.Summary == nil {
		return bad("Missing required parameter: 'input[%d].summary'.", i)
	}
	var text strings.Builder
	for _, s := range it.Summary {
		if s.Type != "summary_text" {
			return bad("Invalid value: '%s' ('input[%d].summary').", s.Type, i)
		}
		text.WriteString(s.Text)
	}
	if it.Encrypted == nil || *it.Encrypted == "" {
		return bad("Missing required parameter: 'input[%d].encrypted_content': items are not persisted when `store` is set to false.", i)
	}
	if *it.Encrypted != encrypted(text.String()) {
		return &refusal{http.StatusBadRequest, "invalid_encrypted_content", fmt.Sprintf("The encrypted content %s could not be verified.", *it.Encrypted)}
	}
	return nil
}

func encrypted(summary string) string {
	sum := sha256.Sum256([]byte(summary))
	return "gAAA" + base64.StdEncoding.EncodeToString(sum[:])
}

// ReasoningItem is an item of reasoning as a server of the format responses
// gives it out and wants it back.
func ReasoningItem(id, summary string) json.RawMessage {
	list := "[]"
	if summary != "" {
		list = `[{"type":"summary_text","text":` + quote(summary) + `}]`
	}
	return json.RawMessage(fmt.Sprintf(`{"id":%s,"type":"reasoning","summary":%s,"encrypted_content":%s}`, quote(id), list, quote(encrypted(summary))))
}

func isString(raw json.RawMessage) bool {
	var s *string
	return json.Unmarshal(raw, &s) == nil && s != nil
}

type responsesPart struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	Refusal  string `json:"refusal"`
	ImageURL string `json:"image_url"`
	Detail   string `json:"detail"`
	Filename string `json:"filename"`
	FileData string `json:"file_data"`
}

var pdfURL = regexp.MustCompile(`^data:application/pdf;base64,[A-Za-z0-9+/]+=*$`)

// hasInput reports whether content is a string that is not empty, or a list of
// parts of these types that is not, each of which says something.
func hasInput(raw json.RawMessage, types ...string) bool {
	var s *string
	if json.Unmarshal(raw, &s) == nil {
		return s != nil && *s != ""
	}
	var parts []responsesPart
	if json.Unmarshal(raw, &parts) != nil || len(parts) == 0 {
		return false
	}
	for _, p := range parts {
		if !slices.Contains(types, p.Type) {
			return false
		}
		ok := p.Text != "" || p.Refusal != ""
		switch p.Type {
		case "input_image":
			ok = isPicture(p.ImageURL) && slices.Contains([]string{"", "auto", "low", "high"}, p.Detail)
		case "input_file":
			ok = p.Filename != "" && pdfURL.MatchString(p.FileData)
		}
		if !ok {
			return false
		}
	}
	return true
}

// A responder streams one answer.
type responder struct {
	out      *stream
	sequence int
	items    []string // that are done
}

// event sends an event. fields begin with a comma when there are any.
func (a *responder) event(name, fields string) {
	a.out.event(name, fmt.Sprintf(`{"type":%s,"sequence_number":%d%s}`, quote(name), a.sequence, fields))
	a.sequence++
}

func answerResponses(out *stream, t *Turn, r *http.Request) {
	a := &responder{out: out}
	a.event("response.created", `,"response":`+a.response("in_progress", "null", "null"))
	a.event("response.in_progress", `,"response":`+a.response("in_progress", "null", "null"))
	for i, step := range t.Steps {
		id := fmt.Sprintf("%x", sha256.Sum256(fmt.Append(nil, t.Name, i)))[:24]
		switch {
		case step.Text != "":
			a.text("msg_"+id, step.Text)
		case step.Reasoning != "":
			a.reasoning("rs_"+id, step.Reasoning)
		case step.Call != nil:
			a.call("fc_"+id, step.Call)
		default:
			out.pause(step, r)
		}
	}
	u := t.Usage
	usage := fmt.Sprintf(`{"input_tokens":%d,"input_tokens_details":{"cached_tokens":%d},"output_tokens":%d,"output_tokens_details":{"reasoning_tokens":%d},"total_tokens":%d}`,
		u.In, u.Cached, u.Out, u.Reasoning, u.In+u.Out)
	status, details := "completed", "null"
	switch t.finish() {
	case "length":
		status, details = "incomplete", `{"reason":"max_output_tokens"}`
	case "filtered":
		status, details = "incomplete", `{"reason":"content_filter"}`
	}
	a.event("response."+status, `,"response":`+a.response(status, details, usage))
}

func (a *responder) response(status, details, usage string) string {
	return fmt.Sprintf(`{"id":"resp_1","object":"response","created_at":0,"status":%s,"error":null,"incomplete_details":%s,"model":"test","output":[%s],"store":false,"usage":%s}`,
		quote(status), details, strings.Join(a.items, ","), usage)
}

// item sends the events that begin and end an item, and inner between them.
func (a *responder) item(begin, end string, inner func(at string)) {
	index := fmt.Sprintf(`,"output_index":%d`, len(a.items))
	a.event("response.output_item.added", index+`,"item":`+begin)
	inner(index)
	a.event("response.output_item.done", index+`,"item":`+end)
	a.items = append(a.items, end)
}

func (a *responder) text(id, s string) {
	message := func(status, content string) string {
		return fmt.Sprintf(`{"id":%s,"type":"message","status":%s,"content":[%s],"role":"assistant"}`, quote(id), quote(status), content)
	}
	part := func(s string) string {
		return `{"type":"output_text","annotations":[],"logprobs":[],"text":` + quote(s) + `}`
	}
	a.item(message("in_progress", ""), message("completed", part(s)), func(at string) {
		at = `,"item_id":` + quote(id) + at + `,"content_index":0`
		a.event("response.content_part.added", at+`,"part":`+part(""))
		for _, p := range pieces(s) {
			a.event("response.output_text.delta", at+`,"delta":`+quote(p)+`,"logprobs":[]`)
		}
		a.event("response.output_text.done", at+`,"text":`+quote(s)+`,"logprobs":[]`)
		a.event("response.content_part.done", at+`,"part":`+part(s))
	})
}

func (a *responder) reasoning(id, s string) {
	begin := fmt.Sprintf(`{"id":%s,"type":"reasoning","summary":[],"encrypted_content":"gAAA"}`, quote(id))
	a.item(begin, string(ReasoningItem(id, s)), func(at string) {
		at = `,"item_id":` + quote(id) + at + `,"summary_index":0`
		a.event("response.reasoning_summary_part.added", at+`,"part":{"type":"summary_text","text":""}`)
		for _, p := range pieces(s) {
			a.event("response.reasoning_summary_text.delta", at+`,"delta":`+quote(p))
		}
		a.event("response.reasoning_summary_text.done", at+`,"text":`+quote(s))
		a.event("response.reasoning_summary_part.done", at+`,"part":{"type":"summary_text","text":`+quote(s)+`}`)
	})
}

func (a *responder) call(id string, c *Call) {
	call := func(status, args string) string {
		return fmt.Sprintf(`{"id":%s,"type":"function_call","status":%s,"arguments":%s,"call_id":%s,"name":%s}`, quote(id), quote(status), quote(args), quote(c.ID), quote(c.Name))
	}
	a.item(call("in_progress", ""), call("completed", c.Args), func(at string) {
		at = `,"item_id":` + quote(id) + at
		for _, p := range pieces(c.Args) {
			a.event("response.function_call_arguments.delta", at+`,"delta":`+quote(p))
		}
		a.event("response.function_call_arguments.done", at+`,"arguments":`+quote(c.Args))
	})
}
