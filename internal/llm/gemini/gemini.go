// Package gemini speaks Google's generateContent, as the Gemini API serves it.
//
// The wire structs are our own: the official library brings a second transport,
// a second layer of retries and 8 MB. Nothing of the wire leaves this package.
// It does not speak Vertex AI, whose addresses and keys are other ones.
package gemini

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"capstan/internal/llm"
)

// Family is the name of this wire format in FAMILY/MODEL.
const Family = "gemini"

// BaseURL is the address of Google's own endpoint, with its version.
const BaseURL = "https://generativelanguage.googleapis.com/v1beta"

// A Client is one endpoint. It is safe for concurrent use.
type Client struct {
	endpoint *llm.Endpoint
	limit    int // bytes of one answer
}

// New returns a client for endpoint, whose BaseURL has the version in it.
func New(endpoint *llm.Endpoint) *Client {
	return &Client{endpoint: endpoint, limit: llm.MaxAnswer}
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
		once := func() iter.Seq2[llm.Event, error] { return c.once(ctx, r, body, names) }
		for e, err := range c.endpoint.Answer(ctx, names, once) {
			if !yield(e, err) {
				return
			}
		}
	}
}

// once makes one request.
func (c *Client) once(ctx context.Context, r *llm.Request, body []byte, names *llm.Names) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		header := c.header()
		header.Set("Accept", "text/event-stream")
		resp, err := c.endpoint.Do(ctx, modelPath(r.Model)+":streamGenerateContent?alt=sse", body, header)
		if err != nil {
			yield(nil, err)
			return
		}
		defer resp.Body.Close()
		d := newDecoder(ctx, c, r, names, yield)
		body := bufio.NewReader(resp.Body)
		if llm.Streamed(body) {
			d.stream(body)
		} else {
			d.whole(body, llm.MediaType(resp))
		}
		if d.Ended() {
			llm.Drain(resp)
		}
	}
}

// header holds the key. The API takes it in the query too, where logs and
// proxies would see it.
func (c *Client) header() http.Header {
	h := http.Header{}
	if c.endpoint.Key != "" {
		h.Set("X-Goog-Api-Key", c.endpoint.Key)
	}
	return h
}

// modelPath is where a model is: models/NAME, or as named when the name has a
// collection of its own (tunedModels/NAME).
func modelPath(model string) string {
	if strings.Contains(model, "/") {
		return "/" + model
	}
	return "/models/" + model
}

// modelRule is what may stand in the name of a model, which becomes a part of
// the address.
func modelRule(model string) bool {
	for i := range len(model) {
		c := model[i]
		if !(c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || strings.IndexByte("._-@/", c) >= 0) {
			return false
		}
	}
	return !strings.Contains(model, "..") && !strings.HasPrefix(model, "/")
}

// maxPages bounds the list of models.
const maxPages = 100

// Models lists the models that the endpoint offers for conversations, sorted,
// without the "models/" before their names.
func (c *Client) Models(ctx context.Context) ([]string, error) {
	var out []string
	token := ""
	for range maxPages {
		names, next, err := c.page(ctx, token)
		if err != nil {
			return nil, err
		}
		out = append(out, names...)
		if next == "" {
			slices.Sort(out)
			return slices.Compact(out), nil
		}
		token = next
	}
	return nil, c.endpoint.ProtocolError("the list of models has more than %d pages", maxPages)
}

// page reads one page of the list and the token of the next.
func (c *Client) page(ctx context.Context, token string) (names []string, next string, err error) {
	query := url.Values{"pageSize": {"1000"}}
	if token != "" {
		query.Set("pageToken", token)
	}
	resp, err := c.endpoint.Do(ctx, "/models?"+query.Encode(), nil, c.header())
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, llm.MaxFrame))
	if err != nil {
		return nil, "", c.endpoint.Failure(ctx, err)
	}
	var list struct {
		Models []struct {
			Name    llm.Loose `json:"name"`
			Methods []string  `json:"supportedGenerationMethods"`
		} `json:"models"`
		Next llm.Loose `json:"nextPageToken"`
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, "", c.endpoint.ProtocolError("the list of models is not what the API promises: %s", c.endpoint.Excerpt(raw))
	}
	for _, m := range list.Models {
		name := strings.TrimPrefix(string(m.Name), "models/")
		if name != "" && slices.Contains(m.Methods, "generateContent") {
			names = append(names, name)
		}
	}
	return names, string(list.Next), nil
}

func (c *Client) refuse(advice, format string, a ...any) *llm.Error {
	return &llm.Error{Kind: llm.ErrBadRequest, Provider: c.endpoint.Name, Message: fmt.Sprintf(format, a...), Advice: advice}
}
