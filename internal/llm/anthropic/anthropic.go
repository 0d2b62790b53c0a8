// Package anthropic speaks Anthropic's Messages API, to Anthropic itself and to
// the servers that imitate it: Ollama, llama.cpp, vLLM, LiteLLM, DeepSeek and
// more. How endpoints differ is data, a Profile; how models do is a table too.
//
// The wire structs are our own, so that what the API wants back (signatures of
// thinking, blocks of the tools that it runs itself) goes back byte for byte,
// and so that an imitation's slips can be taken. Nothing of the wire leaves
// this package.
package anthropic

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"capstan/internal/llm"
	"capstan/internal/msg"
)

// Family is the name of this wire format in FAMILY/MODEL.
const Family = "anthropic"

// version is the API's, which it wants with each request.
const version = "2023-06-01"

// interleaved allows thinking between calls where a budget is set for it.
// Models that adapt do it unasked.
const interleaved = "interleaved-thinking-2025-05-14"

// maxRounds bounds how often an answer that the API pauses is taken up again.
const maxRounds = 20

// A Client is one endpoint. It is safe for concurrent use.
type Client struct {
	endpoint *llm.Endpoint
	profile  Profile
	limit    int // bytes of one answer
}

// New returns a client for endpoint, with the profile of its address when
// profile is nil. The base URL may have its /v1 or not.
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
		e, err := c.encode(r, false)
		if err != nil {
			yield(nil, c.endpoint.Failure(ctx, err))
			return
		}
		for _, w := range e.warnings {
			if c.endpoint.First(w) && !yield(llm.Warning{Text: w}, nil) {
				return
			}
		}
		once := func() iter.Seq2[llm.Event, error] { return c.once(ctx, r, e) }
		for event, err := range c.endpoint.Answer(ctx, e.names, once) {
			if !yield(event, err) {
				return
			}
		}
	}
}

// once asks for one answer. That takes several requests when the API pauses,
// because a tool that it runs itself takes long: it wants what it said so far
// back, and goes on.
func (c *Client) once(ctx context.Context, r *llm.Request, e *encoded) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		said := llm.NewTurn(Family + "/" + r.Model)
		var spent msg.Usage
		for range maxRounds {
			d := c.round(ctx, r, e, spent, func(event llm.Event, err error) bool {
				if len(r.Hosted) > 0 && err == nil {
					said.Add(event)
				}
				return yield(event, err)
			})
			if !d.paused || d.Stopped() {
				return
			}
			so := said.Message()
			if !slices.ContainsFunc(so.Parts, func(p msg.Part) bool { return p.Kind == msg.Text && p.State != nil }) {
				d.Fail(c.endpoint.ProtocolError("the answer was paused with nothing to go on with"))
				return
			}
			longer := *r
			longer.Messages = append(slices.Clip(r.Messages), so)
			next, err := c.encode(&longer, true)
			if err != nil {
				d.Fail(err)
				return
			}
			e, spent = next, said.Usage
		}
		yield(nil, c.endpoint.ProtocolError("the answer was paused more than %d times", maxRounds))
	}
}

// round makes one request and yields its events.
func (c *Client) round(ctx context.Context, r *llm.Request, e *encoded, spent msg.Usage, yield func(llm.Event, error) bool) *decoder {
	d := &decoder{client: c, ctx: ctx, request: r, names: e.names, spent: spent, Emitter: llm.NewEmitter(yield)}
	d.init()
	header := c.header()
	header.Set("Accept", "text/event-stream")
	if e.beta != "" {
		header.Set("Anthropic-Beta", e.beta)
	}
	resp, err := c.endpoint.Do(ctx, c.path("/messages"), e.body, header)
	if err != nil {
		d.Fail(err)
		return d
	}
	defer resp.Body.Close()
	body := bufio.NewReader(resp.Body)
	if llm.Streamed(body) {
		d.stream(body)
	} else {
		d.whole(body, llm.MediaType(resp))
	}
	if d.Ended() || d.paused {
		llm.Drain(resp)
	}
	return d
}

// path is where p is, under a base URL with or without its version.
func (c *Client) path(p string) string {
	if u, err := url.Parse(strings.TrimSpace(c.endpoint.BaseURL)); err == nil && strings.HasSuffix(strings.TrimRight(u.Path, "/"), "/v1") {
		return p
	}
	return "/v1" + p
}

func (c *Client) header() http.Header {
	h := c.endpoint.Bearer("")
	if c.profile.Key != KeyBearer {
		maps.Copy(h, c.endpoint.Bearer("X-Api-Key"))
	}
	if c.profile.Key == KeyHeader {
		h.Del("Authorization")
	}
	h.Set("Anthropic-Version", version)
	return h
}

// maxPages bounds a list of models that does not end.
const maxPages = 100

// Models lists the models that the endpoint offers, sorted.
func (c *Client) Models(ctx context.Context) ([]string, error) {
	var out []string
	after := ""
	for range maxPages {
		page, err := c.page(ctx, after)
		if err != nil {
			return nil, err
		}
		for _, m := range page.Data {
			if m.ID != "" {
				out = append(out, string(m.ID))
			}
		}
		if !page.HasMore || page.LastID == "" || string(page.LastID) == after {
			break
		}
		after = string(page.LastID)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// page is one page of the list of models.
type page struct {
	Data []struct {
		ID llm.Loose `json:"id"`
	} `json:"data"`
	HasMore bool      `json:"has_more"`
	LastID  llm.Loose `json:"last_id"`
}

func (c *Client) page(ctx context.Context, after string) (*page, error) {
	query := url.Values{"limit": {"1000"}}
	if after != "" {
		query.Set("after_id", after)
	}
	resp, err := c.endpoint.Do(ctx, c.path("/models?"+query.Encode()), nil, c.header())
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, llm.MaxFrame))
	if err != nil {
		return nil, c.endpoint.Failure(ctx, err)
	}
	var p page
	if err := json.Unmarshal(raw, &p); err != nil {
		return nil, c.endpoint.ProtocolError("the list of models is not what the API promises: %s", c.endpoint.Excerpt(raw))
	}
	return &p, nil
}
