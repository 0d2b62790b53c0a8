// Package responses speaks OpenAI's Responses API, as OpenAI, Azure, OpenRouter,
// xAI and local servers do. Where they differ is data, a Profile.
//
// Nothing is stored with the provider: every request holds the whole history,
// and reasoning goes back encrypted. It does not use the API's conversations,
// background answers or previous_response_id, and runs none of its hosted
// tools. Nothing of the wire leaves this package.
package responses

import (
	"bufio"
	"context"
	"errors"
	"iter"
	"sync"

	"capstan/internal/llm"
)

// Family is the name of this wire format in FAMILY/MODEL.
const Family = "responses"

// A Client is one endpoint. It is safe for concurrent use.
type Client struct {
	endpoint *llm.Endpoint
	profile  Profile
	limit    int              // bytes of one answer
	refused  sync.Map         // what the endpoint does not take, see retreat
	lengths  llm.Descriptions // of tools
}

// New returns a client for endpoint, with the profile of its address when
// profile is nil.
func New(endpoint *llm.Endpoint, profile *Profile) *Client {
	c := &Client{endpoint: endpoint, limit: llm.MaxAnswer}
	if profile != nil {
		c.profile = *profile
	} else {
		c.profile = Profiles().For(endpoint.BaseURL)
	}
	return c
}

// Close closes idle connections. Requests that run are not ended.
func (c *Client) Close() { c.endpoint.Close() }

// Models lists the models that the endpoint offers, sorted.
func (c *Client) Models(ctx context.Context) ([]string, error) {
	return c.endpoint.Models(ctx, "/models", c.endpoint.Bearer(c.profile.KeyHeader))
}

// Stream implements llm.Provider.
func (c *Client) Stream(ctx context.Context, r *llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		body, names, err := c.encode(r)
		if err != nil {
			yield(nil, c.endpoint.Failure(ctx, err))
			return
		}
		const noStop = "the Responses API has no stop sequences; those of this request are not sent"
		if len(r.Stop) > 0 && c.endpoint.First(noStop) && !yield(llm.Warning{Text: noStop}, nil) {
			return
		}
		once := func() iter.Seq2[llm.Event, error] { return c.once(ctx, r, &body, names) }
		for e, err := range c.endpoint.Answer(ctx, names, once) {
			if !yield(e, err) {
				return
			}
		}
	}
}

// once makes one request; another one, without what this endpoint does not
// take, when it is refused for that. A repeated request has the last body.
func (c *Client) once(ctx context.Context, r *llm.Request, body *[]byte, names *llm.Names) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		header := c.endpoint.Bearer(c.profile.KeyHeader)
		header.Set("Accept", "text/event-stream")
		resp, err := c.endpoint.Do(ctx, "/responses", *body, header)
		for err != nil {
			var e *llm.Error
			if !errors.As(err, &e) || !c.retreat(r, e) {
				yield(nil, err)
				return
			}
			if *body, names, err = c.encode(r); err == nil {
				resp, err = c.endpoint.Do(ctx, "/responses", *body, header)
			}
		}
		defer resp.Body.Close()
		d := &decoder{client: c, ctx: ctx, request: r, names: names, Emitter: llm.NewEmitter(yield)}
		in := bufio.NewReader(resp.Body)
		if llm.Streamed(in) {
			d.stream(in)
		} else {
			d.whole(in, llm.MediaType(resp))
		}
		if d.Ended() {
			llm.Drain(resp)
		}
	}
}
