package oracle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	api "github.com/openai/openai-go/v3/responses"

	"capstan/internal/llm"
	"capstan/internal/llm/responses"
	"capstan/internal/msg"
)

var openAIResponses = family{
	name:   responses.Family,
	format: "responses",
	base:   "/v1",
	models: []string{"m"},
	client: func(e *llm.Endpoint) llm.Provider {
		p, _ := responses.Profiles().Named("openai")
		return responses.New(e, &p)
	},
	again: func(body []byte) ([]byte, error) {
		var p api.ResponseNewParams
		if err := json.Unmarshal(body, &p); err != nil {
			return nil, err
		}
		return json.Marshal(p)
	},
	ask: askResponses,
	apart: map[string]string{
		"stream":   "the SDK adds it itself when it streams",
		"input.id": "the SDK adds an empty one to reasoning; nothing is stored, so there is no id to send",
	},
	bad: []string{
		`{"model":"m","messages":[]}`,
		`{"model":"m","input":[{"role":"user","contents":"x"}]}`,
		`{"model":"m","input":[{"type":"function_call","call_id":"a","name":"f","args":"{}"}]}`,
		`{"model":"m","input":[{"type":"function_call_output","id":"a","outputs":"x"}]}`,
		`{"model":"m","input":[{"type":"reasoning","id":"a","encrypted":"x","summary":[]}]}`,
		`{"model":"m","input":[],"tools":[{"type":"function","function":{"name":"f"}}]}`,
		`{"model":"m","input":[],"text":{"format":{"type":"json_schema","json_schema":{}}}}`,
		`{"model":"m","input":[],"max_output_tokens":"many"}`,
	},
}

func askResponses(ctx context.Context, base, _ string, body []byte) (answer, error) {
	var p api.ResponseNewParams
	if err := json.Unmarshal(body, &p); err != nil {
		return answer{}, err
	}
	client := sdk.NewClient(option.WithBaseURL(base), option.WithAPIKey("k"), option.WithMaxRetries(0))
	stream := client.Responses.NewStreaming(ctx, p)
	defer stream.Close()
	var deltas strings.Builder
	var last *api.Response
	for stream.Next() {
		switch e := stream.Current().AsAny().(type) {
		case api.ResponseTextDeltaEvent:
			deltas.WriteString(e.Delta)
		case api.ResponseCompletedEvent:
			last = &e.Response
		case api.ResponseIncompleteEvent:
			last = &e.Response
		}
	}
	if err := stream.Err(); err != nil {
		return answer{}, err
	}
	switch {
	case last == nil:
		return answer{}, errors.New("no response.completed and no response.incomplete came")
	case last.OutputText() != deltas.String():
		return answer{}, fmt.Errorf("the pieces are %q, the whole is %q", deltas.String(), last.OutputText())
	}
	u := last.Usage
	a := answer{Text: last.OutputText(), Usage: msg.Usage{Input: int(u.InputTokens), Cached: int(u.InputTokensDetails.CachedTokens),
		Output: int(u.OutputTokens), Reasoning: int(u.OutputTokensDetails.ReasoningTokens)}, Finish: llm.FinishStop}
	for _, item := range last.Output {
		if c, ok := item.AsAny().(api.ResponseFunctionToolCall); ok {
			a.Calls = append(a.Calls, msg.Call{ID: c.CallID, Name: c.Name, Args: c.Arguments})
			a.Finish = llm.FinishCalls
		}
	}
	switch last.IncompleteDetails.Reason {
	case "max_output_tokens":
		a.Finish = llm.FinishLength
	case "content_filter":
		a.Finish = llm.FinishFiltered
	}
	return a, nil
}
