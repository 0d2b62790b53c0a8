package responses

import (
	"strings"

	"capstan/internal/llm"
	"capstan/internal/msg"
)

// What some models and accounts do not take, and can do without. No list of
// them would stay right, so the endpoint is asked once and what it refuses is
// remembered as long as the client lives.

// A refusable is a part of a request.
type refusable string

const (
	askEncrypted refusable = "include" // models that do not reason
	askSummary   refusable = "summary" // organisations that are not verified
	oldReasoning refusable = "input"   // written under another key, or by a server that is gone
)

// refusals are the words by which the API refuses each.
var refusals = []struct {
	words string
	what  refusable
}{
	{"encrypted content is not supported", askEncrypted},
	{"verified to generate reasoning summaries", askSummary},
	{"reasoning.summary", askSummary},
	{"could not be verified", oldReasoning},
	{"could not be decrypted", oldReasoning},
	{"invalid_encrypted_content", oldReasoning},
}

// takes reports whether nothing is known to speak against asking a model for
// it.
func (c *Client) takes(model string, what refusable) bool {
	_, refused := c.refused.Load(string(what) + " " + model)
	return !refused
}

// void reports whether the endpoint refused this reasoning.
func (c *Client) void(state []byte) bool {
	if _, any := c.refused.Load(oldReasoning); !any {
		return false
	}
	_, refused := c.refused.Load(string(state))
	return refused
}

// retreat reports whether the request was refused for something that it can do
// without, and that was not known. The next encoding leaves it out.
func (c *Client) retreat(r *llm.Request, e *llm.Error) bool {
	if e.Kind != llm.ErrBadRequest {
		return false
	}
	if c.lengths.Refused(r, e) {
		return true
	}
	said := strings.ToLower(e.Code + " " + e.Message)
	for _, x := range refusals {
		if !strings.Contains(said, x.words) {
			continue
		}
		if x.what == oldReasoning {
			return c.forget(r)
		}
		_, known := c.refused.LoadOrStore(string(x.what)+" "+r.Model, true)
		return !known
	}
	return false
}

// forget voids the reasoning that a request holds.
func (c *Client) forget(r *llm.Request) bool {
	c.refused.Store(oldReasoning, true)
	news := false
	for i := range r.Messages {
		if m := &r.Messages[i]; m.Origin == Family+"/"+r.Model {
			for _, p := range m.Parts {
				if p.Kind == msg.Reasoning && p.State != nil {
					_, known := c.refused.LoadOrStore(string(p.State), true)
					news = news || !known
				}
			}
		}
	}
	return news
}
