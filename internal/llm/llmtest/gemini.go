package llmtest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// gemini3 and gemini2 are generateContent of the Gemini API, streamed, with the
// rules that its documentation and its errors state: for the models of the
// third generation and later, and for those before.
var (
	gemini3 = geminiFormat("gemini", true)
	gemini2 = geminiFormat("gemini-2.5", false)
)

func geminiFormat(name string, third bool) format {
	return format{
		name: name,
		serves: func(r *http.Request) bool {
			if r.Method == http.MethodGet {
				return third && strings.Contains(r.URL.Path, "/v1beta/models")
			}
			return strings.HasSuffix(r.URL.Path, ":streamGenerateContent") && isThird(geminiModel(r.URL.Path)) == third
		},
		key:    func(r *http.Request) string { return r.Header.Get("x-goog-api-key") },
		check:  func(body []byte, _ *Script) *refusal { return checkGemini(body, third) },
		model:  geminiModel,
		refuse: refuseGemini,
		answer: func(out *stream, t *Turn, r *http.Request) { answerGemini(out, t, r, third) },
		models: listGemini,
	}
}

// geminiModel is NAME in …/models/NAME:streamGenerateContent.
func geminiModel(path string) string {
	name := path[strings.LastIndexByte(path, '/')+1:]
	name, _, _ = strings.Cut(name, ":")
	return name
}

func isThird(model string) bool {
	for _, old := range []string{"gemini-1", "gemini-2", "gemma"} {
		if strings.HasPrefix(model, old) {
			return false
		}
	}
	return true
}

// listGemini lists the models of the script and one that makes no conversation.
func listGemini(path string, names []string) []byte {
	if !strings.HasSuffix(path, "/models") {
		return nil
	}
	var b strings.Builder
	b.WriteString(`{"models":[{"name":"models/embedding-1","supportedGenerationMethods":["embedContent"]}`)
	for _, n := range names {
		fmt.Fprintf(&b, `,{"name":%s,"version":"1","displayName":"test","inputTokenLimit":1048576,"supportedGenerationMethods":["generateContent","countTokens"]}`, quote("models/"+n))
	}
	b.WriteString("]}")
	return []byte(b.String())
}

func refuseGemini(w http.ResponseWriter, r *refusal) {
	status, word, message, details := r.status, "INVALID_ARGUMENT", r.message, ""
	switch {
	case r.status == http.StatusUnauthorized:
		status, message = http.StatusBadRequest, "API key not valid. Please pass a valid API key."
		details = `,"details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID","domain":"googleapis.com"}]`
	case r.status == http.StatusRequestEntityTooLarge:
		status, message = http.StatusBadRequest, "Request payload size exceeds the limit: 20971520 bytes."
	case r.status == http.StatusNotFound:
		word = "NOT_FOUND"
	}
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"error":{"code":%d,"message":%s,"status":%s%s}}`, status, quote(message), quote(word), details)
}

// signatureOf is what this server signs a call with, so that it sees when a
// signature comes back with another one.
func signatureOf(name string) string {
	return base64.StdEncoding.EncodeToString([]byte("signed: " + name))
}

// answerGemini streams a turn as events, or as the JSON list that the API sends
// without alt=sse.
func answerGemini(out *stream, t *Turn, r *http.Request, signs bool) {
	sse := r.URL.Query().Get("alt") == "sse"
	n := 0
	candidate := func(parts, finish string) {
		u := t.Usage
		s := fmt.Sprintf(`{"candidates":[{"content":{"parts":[%s],"role":"model"}%s,"index":0}],"usageMetadata":{"promptTokenCount":%d,"cachedContentTokenCount":%d,"candidatesTokenCount":%d,"thoughtsTokenCount":%d,"totalTokenCount":%d},"modelVersion":"test","responseId":"r1"}`,
			parts, finish, u.In, u.Cached, u.Out-u.Reasoning, u.Reasoning, u.In+u.Out)
		switch {
		case sse:
			out.event("", s)
		case n == 0:
			out.write("[" + s)
		default:
			out.write(",\r\n" + s)
		}
		n++
	}
	finish := map[string]string{"length": "MAX_TOKENS", "filtered": "SAFETY"}[t.finish()]
	if finish == "" {
		finish = "STOP"
	}
	message, signed := "", !signs
	for _, step := range t.Steps {
		switch {
		case step.Text != "":
			for _, p := range pieces(step.Text) {
				candidate(`{"text":`+quote(p)+`}`, "")
			}
		case step.Reasoning != "":
			for _, p := range pieces(step.Reasoning) {
				candidate(`{"text":`+quote(p)+`,"thought":true}`, "")
			}
		case step.Call != nil:
			c := step.Call
			if !isJSONObject([]byte(c.Args)) { // arguments are JSON here, or the call is none
				if finish != "MAX_TOKENS" {
					finish, message = "MALFORMED_FUNCTION_CALL", "Malformed function call: "+c.Name+"("+c.Args+")"
				}
				continue
			}
			signature := ""
			if !signed {
				signature = `,"thoughtSignature":` + quote(signatureOf(c.Name))
				signed = true
			}
			candidate(fmt.Sprintf(`{"functionCall":{"id":%s,"name":%s,"args":%s}%s}`, quote(c.ID), quote(c.Name), c.Args, signature), "")
		default:
			out.pause(step, r)
		}
	}
	last := `{"text":""}`
	if !signed {
		last = `{"text":"","thoughtSignature":` + quote(base64.StdEncoding.EncodeToString([]byte("signed: end"))) + `}`
	}
	if finish = `,"finishReason":` + quote(finish); message != "" {
		finish += `,"finishMessage":` + quote(message)
	}
	candidate(last, finish)
	if !sse {
		out.write("]")
	}
}

func isJSONObject(raw []byte) bool {
	var m map[string]json.RawMessage
	return json.Unmarshal(raw, &m) == nil && m != nil
}

// unknown says which field of raw an API that reads strictly does not know.
func unknown(raw json.RawMessage, at, known string) *refusal {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil || fields == nil {
		return bad("Invalid value at '%s': expected an object", at)
	}
	for _, name := range sortedKeys(fields) {
		if !slices.Contains(strings.Fields(known), name) {
			return bad("Invalid JSON payload received. Unknown name \"%s\" at '%s': Cannot find field.", name, at)
		}
	}
	return nil
}

func sortedKeys(m map[string]json.RawMessage) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

type geminiRequest struct {
	Contents          []json.RawMessage `json:"contents"`
	SystemInstruction json.RawMessage   `json:"systemInstruction"`
	Tools             []json.RawMessage `json:"tools"`
	ToolConfig        json.RawMessage   `json:"toolConfig"`
	GenerationConfig  json.RawMessage   `json:"generationConfig"`
}

func checkGemini(body []byte, third bool) *refusal {
	if !json.Valid(body) {
		return bad("Invalid JSON payload received.")
	}
	if no := unknown(body, "", "contents systemInstruction tools toolConfig generationConfig safetySettings cachedContent"); no != nil {
		return no
	}
	var r geminiRequest
	if err := json.Unmarshal(body, &r); err != nil {
		return bad("Invalid value: %v", err)
	}
	if len(r.Contents) == 0 {
		return bad("* GenerateContentRequest.contents: contents is not specified")
	}
	if r.SystemInstruction != nil {
		if no := checkGeminiSystem(r.SystemInstruction); no != nil {
			return no
		}
	}
	functions, no := checkGeminiTools(&r, third)
	if no == nil && r.GenerationConfig != nil {
		no = checkGeneration(r.GenerationConfig, functions, third)
	}
	if no != nil {
		return no
	}
	return checkContents(r.Contents, third)
}

func checkGeminiSystem(raw json.RawMessage) *refusal {
	if no := unknown(raw, "system_instruction", "role parts"); no != nil {
		return no
	}
	var s struct{ Parts []struct{ Text string } }
	if json.Unmarshal(raw, &s) != nil || len(s.Parts) == 0 {
		return bad("* GenerateContentRequest.system_instruction.parts: contents.parts must not be empty.")
	}
	for _, p := range s.Parts {
		if p.Text == "" {
			return bad("system_instruction: only text parts are supported")
		}
	}
	return nil
}

type geminiConfig struct {
	Temperature      *float64
	MaxOutputTokens  *int
	StopSequences    []string
	ResponseMIMEType string `json:"responseMimeType"`
	ResponseSchema   json.RawMessage
	ThinkingConfig   json.RawMessage
}

// checkGeneration checks generationConfig. functions says that some are declared.
func checkGeneration(raw json.RawMessage, functions, third bool) *refusal {
	if no := unknown(raw, "generation_config", "candidateCount stopSequences maxOutputTokens temperature topP topK seed presencePenalty frequencyPenalty responseMimeType responseSchema responseJsonSchema responseModalities thinkingConfig mediaResolution"); no != nil {
		return no
	}
	var g geminiConfig
	if err := json.Unmarshal(raw, &g); err != nil {
		return bad("Invalid value at 'generation_config': %v", err)
	}
	switch {
	case g.Temperature != nil && (*g.Temperature < 0 || *g.Temperature > 2):
		return bad("* GenerateContentRequest.generation_config.temperature: temperature must be in the range [0.0, 2.0].")
	case g.MaxOutputTokens != nil && *g.MaxOutputTokens < 1:
		return bad("* GenerateContentRequest.generation_config.max_output_tokens: max_output_tokens must be positive.")
	case len(g.StopSequences) > 5:
		return bad("* GenerateContentRequest.generation_config.stop_sequences: at most 5 are allowed")
	case g.ResponseSchema != nil && g.ResponseMIMEType != "application/json":
		return bad("* GenerateContentRequest.generation_config.response_schema: only allowed with a response_mime_type of application/json")
	case !third && functions && g.ResponseMIMEType == "application/json":
		return bad("Function calling with a response mime type: 'application/json' is unsupported")
	}
	if g.ResponseSchema != nil {
		if why := checkGeminiSchema(g.ResponseSchema, "generation_config.response_schema", true); why != "" {
			return bad("* GenerateContentRequest.%s", why)
		}
	}
	if g.ThinkingConfig == nil {
		return nil
	}
	if no := unknown(g.ThinkingConfig, "generation_config.thinking_config", "includeThoughts thinkingBudget thinkingLevel"); no != nil {
		return no
	}
	var t struct {
		ThinkingBudget *int
		ThinkingLevel  string
	}
	if err := json.Unmarshal(g.ThinkingConfig, &t); err != nil {
		return bad("Invalid value at 'generation_config.thinking_config': %v", err)
	}
	switch {
	case t.ThinkingBudget != nil && t.ThinkingLevel != "":
		return bad("You can only set only one of thinking budget and thinking level.")
	case t.ThinkingLevel != "" && !third:
		return bad("Thinking level is not supported for this model.")
	case t.ThinkingLevel != "" && !slices.Contains([]string{"MINIMAL", "LOW", "MEDIUM", "HIGH"}, t.ThinkingLevel):
		return bad("Invalid value at 'generation_config.thinking_config.thinking_level'")
	case t.ThinkingBudget != nil && (*t.ThinkingBudget < -1 || *t.ThinkingBudget > 32768):
		return bad("The thinking budget %d is invalid. Please choose a value between 0 and 24576.", *t.ThinkingBudget)
	}
	return nil
}
