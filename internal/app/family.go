package app

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"capstan/internal/llm"
	"capstan/internal/llm/anthropic"
	"capstan/internal/llm/gemini"
	"capstan/internal/llm/openai"
	"capstan/internal/llm/responses"
)

// A client is what the package of a family makes: a provider that can be asked
// what it offers.
type client interface {
	llm.Provider
	Models(context.Context) ([]string, error)
	Close()
}

// A family is one wire format. To add one, add its line to families.
type family struct {
	name            string
	base            string // the address of the company whose format it is
	keyVar, baseVar string // of the environment
	open            func(e *llm.Endpoint, profile string) (client, error)
	// second: another family has the same variables and goes first when none
	// is named.
	second bool
}

// families lists the wire formats, in the order in which they are spoken of.
func families() []family {
	return []family{
		{name: openai.Family, base: "https://api.openai.com/v1", keyVar: "OPENAI_API_KEY", baseVar: "OPENAI_BASE_URL", open: openOpenAI},
		{name: responses.Family, base: "https://api.openai.com/v1", keyVar: "OPENAI_API_KEY", baseVar: "OPENAI_BASE_URL", open: openResponses, second: true},
		{name: anthropic.Family, base: "https://api.anthropic.com", keyVar: "ANTHROPIC_API_KEY", baseVar: "ANTHROPIC_BASE_URL", open: openAnthropic},
		{name: gemini.Family, base: gemini.BaseURL, keyVar: "GEMINI_API_KEY", baseVar: "GEMINI_BASE_URL", open: openGemini},
	}
}

func familyNamed(name string) *family {
	for _, f := range families() {
		if f.name == name {
			return &f
		}
	}
	return nil
}

func familyNames() []string {
	var out []string
	for _, f := range families() {
		out = append(out, f.name)
	}
	return out
}

func openOpenAI(e *llm.Endpoint, profile string) (client, error) {
	p, err := openai.Profiles().Choose(profile)
	if err != nil {
		return nil, err
	}
	return openai.New(e, p), nil
}

func openResponses(e *llm.Endpoint, profile string) (client, error) {
	p, err := responses.Profiles().Choose(profile)
	if err != nil {
		return nil, err
	}
	return responses.New(e, p), nil
}

func openAnthropic(e *llm.Endpoint, profile string) (client, error) {
	p, err := anthropic.Profiles().Choose(profile)
	if err != nil {
		return nil, err
	}
	return anthropic.New(e, p), nil
}

func openGemini(e *llm.Endpoint, profile string) (client, error) {
	if profile != "" {
		return nil, fmt.Errorf("profile %q: this family has none", profile)
	}
	if u, err := url.Parse(e.BaseURL); err == nil && strings.Trim(u.Path, "/") == "" {
		e.BaseURL = u.JoinPath("v1beta").String() // as other programs take it
	}
	return gemini.New(e), nil
}
