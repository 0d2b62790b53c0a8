package oracle

import (
	"context"
	"encoding/json"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"capstan/internal/llm"
	"capstan/internal/llm/openai"
	"capstan/internal/msg"
)

var chat = family{
	name:   openai.Family,
	format: "chat",
	base:   "/v1",
	models: []string{"m"},
	client: func(e *llm.Endpoint) llm.Provider {
		p, _ := openai.Profiles().Named("openai")
		return openai.New(e, &p)
	},
	again: func(body []byte) ([]byte, error) {
		var p sdk.ChatCompletionNewParams
		if err := json.Unmarshal(body, &p); err != nil {
			return nil, err
		}
		return json.Marshal(p)
	},
	ask: askChat,
	apart: map[string]string{
		"stream": "the SDK adds it itself when it streams",
	},
	bad: []string{
		`{"model":"m","mesages":[]}`,
		`{"model":"m","messages":[{"role":"user","contents":"x"}]}`,
		`{"model":"m","messages":[{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","args":"{}"}}]}]}`,
		`{"model":"m","messages":[{"role":"tool","content":"x","call_id":"a"}]}`,
		`{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"uri":"x"}}]}]}`,
		`{"model":"m","messages":[],"tools":[{"type":"function","name":"f"}]}`,
		`{"model":"m","messages":[],"max_tokens":"many"}`,
	},
}

func askChat(ctx context.Context, base, _ string, body []byte) (answer, error) {
	var p sdk.ChatCompletionNewParams
	if err := json.Unmarshal(body, &p); err != nil {
		return answer{}, err
	}
	client := sdk.NewClient(option.WithBaseURL(base), option.WithAPIKey("k"), option.WithMaxRetries(0))
	stream := client.Chat.Completions.NewStreaming(ctx, p)
	defer stream.Close()
	var acc sdk.ChatCompletionAccumulator
	for stream.Next() {
		acc.AddChunk(stream.Current())
	}
	if err := stream.Err(); err != nil {
		return answer{}, err
	}
	u := acc.Usage
	a := answer{Usage: msg.Usage{Input: int(u.PromptTokens), Cached: int(u.PromptTokensDetails.CachedTokens),
		Output: int(u.CompletionTokens), Reasoning: int(u.CompletionTokensDetails.ReasoningTokens)}}
	for _, c := range acc.Choices {
		a.Text += c.Message.Content
		a.Finish = map[string]llm.Finish{"stop": llm.FinishStop, "tool_calls": llm.FinishCalls, "length": llm.FinishLength, "content_filter": llm.FinishFiltered}[c.FinishReason]
		for _, call := range c.Message.ToolCalls {
			a.Calls = append(a.Calls, msg.Call{ID: call.ID, Name: call.Function.Name, Args: call.Function.Arguments})
		}
	}
	return a, nil
}
