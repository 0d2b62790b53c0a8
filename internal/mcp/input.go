package mcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	strict "github.com/go-json-experiment/json"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxRounds is how often a server may want more before it answers one request.
const maxRounds = 10

// maxWanted is how much it may want at once: a person answers it.
const maxWanted = 100

// needed is what a server of the newest protocol answers instead of a result
// when it wants something first. The request is then sent anew, with what it
// wanted and the state that it gave; nothing of it was kept in between.
type needed struct {
	Requests map[string]inputRequest
	State    string
}

type inputRequest struct {
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// rounds sends a request until its answer is a result.
func (c *conn) rounds(ctx context.Context, method string, p *params) (json.RawMessage, error) {
	for round := 1; ; round++ {
		sent, trip := withTrip(ctx)
		a, err := sdk.CallCustomMethod[*params, *answer](sent, c.session, method, p)
		if err = trip.judge(err); err != nil {
			if u := (*unsentError)(nil); round > 1 && errors.As(err, &u) {
				err = &lostError{u.error} // the person is not asked all over again
			}
			return nil, err
		}
		want, err := wants(a.raw)
		switch {
		case want == nil && err == nil:
			return a.raw, nil
		case err != nil:
			return nil, err
		case round == maxRounds:
			return nil, fmt.Errorf("it asked for input %d times without coming to a result", round)
		case len(want.Requests) == 0:
			return nil, fmt.Errorf("it is too busy now and wants the call later")
		}
		next := *p
		if next.Responses, err = c.provide(ctx, want); err != nil {
			return nil, err
		}
		next.State = want.State
		p = &next
	}
}

// wants reads an answer that is no result; nil when it is one.
func wants(raw json.RawMessage) (*needed, error) {
	const word = "input_required"
	var kind struct {
		Type string `json:"resultType"`
	}
	if !bytes.Contains(raw, []byte(word)) || strict.Unmarshal(raw, &kind, lenient) != nil || kind.Type != word {
		return nil, nil
	}
	want := &needed{Requests: map[string]inputRequest{}}
	in, err := members(raw, "inputRequests", "requestState")
	if err == nil && !missing(in[1]) {
		err = strict.Unmarshal(in[1], &want.State, lenient)
	}
	n := 0 // a name that is given again counts as well: it takes as long
	if err == nil && !missing(in[0]) {
		var fault error
		err = entries(in[0], func(key string, v json.RawMessage) bool {
			var one inputRequest
			fault = strict.Unmarshal(v, &one, lenient)
			want.Requests[key] = one
			n++
			return fault == nil && n <= maxWanted
		})
		err = cmp.Or(err, fault)
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("it wants input that cannot be understood: %s", excerpt(err.Error(), 300))
	case n > maxWanted:
		return nil, fmt.Errorf("it wants more than %d things at once, which is more than a person is asked", maxWanted)
	}
	return want, nil
}

// provide gets what a server wants, one after the other: a person answers one
// question at a time.
func (c *conn) provide(ctx context.Context, wanted *needed) (sdk.InputResponseMap, error) {
	got := sdk.InputResponseMap{}
	for _, key := range slices.Sorted(maps.Keys(wanted.Requests)) {
		switch q := wanted.Requests[key]; q.Method {
		case "elicitation/create":
			ask := c.elicitation()
			if ask == nil {
				return nil, errNobody
			}
			var p sdk.ElicitParams
			if err := json.Unmarshal(q.Params, &p); err != nil {
				return nil, fmt.Errorf("it asks what cannot be understood: %s", excerpt(err.Error(), 300))
			}
			r, err := ask(ctx, &sdk.ElicitRequest{Params: &p})
			if err != nil {
				return nil, fmt.Errorf("asking for what it wants: %w", err)
			}
			got[key] = r
		case "roots/list":
			got[key] = &sdk.ListRootsResult{Roots: c.roots()}
		case "sampling/createMessage":
			return nil, errNoSampling
		default:
			return nil, fmt.Errorf("it wants %s, which there is not", excerpt(q.Method, 100))
		}
	}
	return got, nil
}

// roots are the directories that a server is told of.
func (c *conn) roots() []*sdk.Root {
	list := []*sdk.Root{}
	for _, dir := range c.s.m.o.Roots {
		list = append(list, &sdk.Root{URI: fileURI(dir), Name: filepath.Base(dir)})
	}
	return list
}
