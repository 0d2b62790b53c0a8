package oracle

import (
	"context"
	"encoding/json"

	anthropicsdk "github.com/anthropics/anthropic-sdk-go/v2"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/v2/option"

	"capstan/internal/llm"
	"capstan/internal/llm/anthropic"
	"capstan/internal/msg"
)

var anthropicMessages = family{
	name:   anthropic.Family,
	format: "anthropic",
	base:   "",
	models: []string{"claude-sonnet-4-6", "claude-opus-4-7", "claude-3-5-haiku", "m"},
	client: func(e *llm.Endpoint) llm.Provider {
		p, _ := anthropic.Profiles().Named("anthropic")
		return anthropic.New(e, &p)
	},
	again: func(body []byte) ([]byte, error) {
		var p anthropicsdk.MessageNewParams
		if err := json.Unmarshal(body, &p); err != nil {
			return nil, err
		}
		return json.Marshal(p)
	},
	ask: askAnthropic,
	apart: map[string]string{
		"stream":      "the SDK adds it itself when it streams",
		"temperature": "version 2 of the SDK knows the newest models only, which do not take it",
		"top_p":       "likewise",
	},
	floats: true,
	blocks: []string{"system", "messages.content", "messages.content.content"},
	bad: []string{
		`{"model":"m","max_tokens":1,"messages":[{"role":"user","contents":"x"}]}`,
		`{"model":"m","max_tokens":1,"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","arguments":{}}]}]}`,
		`{"model":"m","max_tokens":1,"messages":[{"role":"user","content":[{"type":"tool_result","tool_call_id":"a"}]}]}`,
		`{"model":"m","max_tokens":1,"messages":[{"role":"assistant","content":[{"type":"thinking","thinking":"x","sign":"s"}]}]}`,
		`{"model":"m","max_tokens":1,"messages":[],"tools":[{"name":"f","parameters":{}}]}`,
		`{"model":"m","max_completion_tokens":1,"messages":[]}`,
		`{"model":"m","max_tokens":"many","messages":[]}`,
	},
}

func askAnthropic(ctx context.Context, base, _ string, body []byte) (answer, error) {
	var p anthropicsdk.MessageNewParams
	if err := json.Unmarshal(body, &p); err != nil {
		return answer{}, err
	}
	client := anthropicsdk.NewClient(anthropicoption.WithBaseURL(base), anthropicoption.WithAPIKey("k"), anthropicoption.WithMaxRetries(0))
	stream := client.Messages.NewStreaming(ctx, p)
	defer stream.Close()
	var m anthropicsdk.Message
	for stream.Next() {
		if err := m.Accumulate(stream.Current()); err != nil {
			return answer{}, err
		}
	}
	if err := stream.Err(); err != nil {
		return answer{}, err
	}
	u := m.Usage
	a := answer{Usage: msg.Usage{Input: int(u.InputTokens + u.CacheReadInputTokens + u.CacheCreationInputTokens), Cached: int(u.CacheReadInputTokens),
		CacheWrite: int(u.CacheCreationInputTokens), Output: int(u.OutputTokens), Reasoning: int(u.OutputTokensDetails.ThinkingTokens)}}
	var said []msg.Part
	for _, b := range m.Content {
		switch b := b.AsAny().(type) {
		case anthropicsdk.TextBlock:
			said = append(said, msg.TextPart(b.Text))
		case anthropicsdk.ToolUseBlock:
			a.Calls = append(a.Calls, msg.Call{ID: b.ID, Name: b.Name, Args: string(b.Input)})
		}
	}
	a.Text = msg.JoinText(said)
	a.Finish = map[anthropicsdk.StopReason]llm.Finish{"end_turn": llm.FinishStop, "tool_use": llm.FinishCalls, "max_tokens": llm.FinishLength, "refusal": llm.FinishFiltered}[m.StopReason]
	return a, nil
}
