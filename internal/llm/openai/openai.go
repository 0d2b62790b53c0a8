// Package openai speaks OpenAI's chat completions, as OpenAI and the many
// servers that imitate it do: Ollama, llama.cpp, LM Studio, vLLM, OpenRouter,
// DeepSeek, DashScope, Mistral and more. Where they differ is data, a Profile.
//
// The wire structs are our own: these servers bend the dialect (arguments as
// objects, numeric ids, missing indexes, reasoning in three fields), and the
// official library refuses what they send. Nothing of the wire leaves this
// package.
package openai

import (
	"bufio"
	"context"
	"errors"
	"iter"
	"net/http"

	"capstan/internal/llm"
)

// Family is the name of this wire format in FAMILY/MODEL.
const Family = "openai"

// A Client is one endpoint. It is safe for concurrent use.
type Client struct {
	endpoint *llm.Endpoint
	profile  Profile
	limit    int              // bytes of one answer
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

// Stream implements llm.Provider.
func (c *Client) Stream(ctx context.Context, r *llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		body, names, err := c.encode(r)
		if err != nil {
			yield(nil, c.endpoint.Failure(ctx, err))
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

// once makes one request; another one, with shorter descriptions, when it is
// refused for those. A repeated request has the last body.
func (c *Client) once(ctx context.Context, r *llm.Request, body *[]byte, names *llm.Names) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		header := c.header()
		header.Set("Accept", "text/event-stream")
		resp, err := c.endpoint.Do(ctx, "/chat/completions", *body, header)
		for err != nil {
			var e *llm.Error
			if !errors.As(err, &e) || !c.lengths.Refused(r, e) {
				yield(nil, err)
				return
			}
			if *body, names, err = c.encode(r); err == nil {
				resp, err = c.endpoint.Do(ctx, "/chat/completions", *body, header)
			}
		}
		defer resp.Body.Close()
		d := &decoder{client: c, ctx: ctx, request: r, names: names, sent: len(*body), Emitter: llm.NewEmitter(yield)}
		d.assembler.init(r, names)
		d.filter.init(c.profile, r, names)
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

func (c *Client) header() http.Header { return c.endpoint.Bearer(c.profile.KeyHeader) }

// Models lists the models that the endpoint offers, sorted.
func (c *Client) Models(ctx context.Context) ([]string, error) {
	return c.endpoint.Models(ctx, "/models", c.header())
}
