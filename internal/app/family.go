package app

import (
	"context"
	"fmt"
	"strings"

	"capstan/internal/llm"
	"capstan/internal/llm/openai"
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
	if profile == "" {
		return openai.New(e, nil), nil
	}
	p, ok := openai.ProfileNamed(profile)
	if !ok {
		return nil, fmt.Errorf("profile %q: expected one of %s", profile, strings.Join(openai.ProfileNames(), ", "))
	}
	return openai.New(e, &p), nil
}
