package oracle

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"google.golang.org/genai"

	"capstan/internal/llm"
	"capstan/internal/llm/gemini"
	"capstan/internal/msg"
)

var generateContent = family{
	name:   gemini.Family,
	format: "gemini",
	base:   "/v1beta",
	models: []string{"gemini-3-pro-preview", "gemini-2.5-flash", "m"},
	client: func(e *llm.Endpoint) llm.Provider { return gemini.New(e) },
	again: func(body []byte) ([]byte, error) {
		rec := &recorder{}
		_, err := generate(context.Background(), "http://test", "m", body, rec)
		if rec.body == nil {
			return nil, err
		}
		return bytes.ReplaceAll(rec.body, []byte(standard), []byte(placeholder)), nil
	},
	ask: func(ctx context.Context, base, model string, body []byte) (answer, error) {
		return generate(ctx, base[:len(base)-len("/v1beta")], model, body, http.DefaultTransport)
	},
	apart:  map[string]string{"systemInstruction.role": "the SDK adds it"},
	floats: true,
	omits:  true,
	bad: []string{
		`{"messages":[]}`,
		`{"contents":[{"role":"user","content":"x"}]}`,
		`{"contents":[{"role":"model","parts":[{"function_call":{"name":"f","arguments":{}}}]}]}`,
		`{"contents":[{"role":"user","parts":[{"functionResponse":{"name":"f","result":{}}}]}]}`,
		`{"contents":[{"role":"user","parts":[{"text":"x"}]}],"tools":[{"functions":[]}]}`,
		`{"contents":[{"role":"user","parts":[{"text":"x"}]}],"generationConfig":{"maxTokens":1}}`,
		`{"contents":[{"role":"user","parts":[{"text":"x"}]}],"generationConfig":{"maxOutputTokens":"many"}}`,
	},
}

// placeholder stands, as documented, for the signature of a call that another
// model made. It is base64 in the alphabet for addresses, which the API takes and
// the SDK does not; standard is the same bytes in the standard alphabet.
const (
	placeholder = `"skip_thought_signature_validator"`
	standard    = `"skip/thought/signature/validator"`
)

// generate sends a request of the wire with the SDK, whose own form of it is
// flat: what the wire has in generationConfig and beside it is one struct.
func generate(ctx context.Context, base, model string, body []byte, transport http.RoundTripper) (answer, error) {
	var w struct {
		Contents          []*genai.Content       `json:"contents"`
		SystemInstruction *genai.Content         `json:"systemInstruction"`
		Tools             []*genai.Tool          `json:"tools"`
		ToolConfig        *genai.ToolConfig      `json:"toolConfig"`
		GenerationConfig  json.RawMessage        `json:"generationConfig"`
		Safety            []*genai.SafetySetting `json:"safetySettings"`
	}
	if err := strictly(bytes.ReplaceAll(body, []byte(placeholder), []byte(standard)), &w); err != nil {
		return answer{}, err
	}
	config := &genai.GenerateContentConfig{}
	if w.GenerationConfig != nil {
		if err := strictly(w.GenerationConfig, config); err != nil {
			return answer{}, err
		}
	}
	config.SystemInstruction, config.Tools, config.ToolConfig, config.SafetySettings = w.SystemInstruction, w.Tools, w.ToolConfig, w.Safety
	client, err := genai.NewClient(ctx, &genai.ClientConfig{APIKey: "k", Backend: genai.BackendGeminiAPI, HTTPClient: &http.Client{Transport: transport}, HTTPOptions: genai.HTTPOptions{BaseURL: base}})
	if err != nil {
		return answer{}, err
	}
	var a answer
	for r, err := range client.Models.GenerateContentStream(ctx, model, w.Contents, config) {
		if err != nil {
			return answer{}, err
		}
		if err := a.generated(r); err != nil {
			return answer{}, err
		}
	}
	return a, nil
}

func strictly(raw []byte, to any) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	return dec.Decode(to)
}

// generated adds a piece of an answer; the SDK has no accumulator.
func (a *answer) generated(r *genai.GenerateContentResponse) error {
	if u := r.UsageMetadata; u != nil {
		a.Usage = msg.Usage{Input: int(u.PromptTokenCount), Cached: int(u.CachedContentTokenCount),
			Output: int(u.CandidatesTokenCount + u.ThoughtsTokenCount), Reasoning: int(u.ThoughtsTokenCount)}
	}
	for _, c := range r.Candidates {
		if c.Content != nil {
			for _, p := range c.Content.Parts {
				switch {
				case p.FunctionCall != nil:
					args, err := json.Marshal(p.FunctionCall.Args)
					if err != nil {
						return err
					}
					a.Calls = append(a.Calls, msg.Call{ID: p.FunctionCall.ID, Name: p.FunctionCall.Name, Args: string(args)})
				case !p.Thought:
					a.Text += p.Text
				}
			}
		}
		switch c.FinishReason {
		case "":
		case genai.FinishReasonStop:
			a.Finish = llm.FinishStop
			if len(a.Calls) > 0 {
				a.Finish = llm.FinishCalls
			}
		case genai.FinishReasonMaxTokens:
			a.Finish = llm.FinishLength
		case genai.FinishReasonSafety, genai.FinishReasonProhibitedContent:
			a.Finish = llm.FinishFiltered
		default:
			return fmt.Errorf("finish reason %s", c.FinishReason)
		}
	}
	return nil
}
