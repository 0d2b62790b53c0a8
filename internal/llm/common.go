package llm

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Bearer is the header of a request: the endpoint's key in the header of that
// name, as a bearer token when the name is empty; nothing without a key.
func (e *Endpoint) Bearer(name string) http.Header {
	h := http.Header{}
	switch {
	case e.Key == "":
	case name != "":
		h.Set(name, e.Key)
	default:
		h.Set("Authorization", "Bearer "+e.Key)
	}
	return h
}

// Models lists the ids of GET path, sorted, from the list that OpenAI's APIs
// and their imitators give: {"data":[{"id":…}]}.
func (e *Endpoint) Models(ctx context.Context, path string, header http.Header) ([]string, error) {
	resp, err := e.Do(ctx, path, nil, header)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, MaxFrame))
	if err != nil {
		return nil, e.Failure(ctx, err)
	}
	var list struct {
		Data []struct {
			ID Loose `json:"id"`
		} `json:"data"`
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, e.ProtocolError("the list of models is not what the API promises: %s", e.Excerpt(raw))
	}
	var out []string
	for _, m := range list.Data {
		if m.ID != "" {
			out = append(out, string(m.ID))
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// AtHost reports whether a base URL is at one of these hosts. A host that begins
// with a dot stands for all below it.
func AtHost(baseURL string, hosts []string) bool {
	u, err := url.Parse(strings.TrimSpace(baseURL))
	if err != nil {
		return false
	}
	host := strings.ToLower(u.Hostname())
	for _, h := range hosts {
		if host == h || strings.HasPrefix(h, ".") && strings.HasSuffix(host, h) {
			return true
		}
	}
	return false
}

// Body writes a request as JSON, with every character as it is.
func Body(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("writing the request: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// CacheKey is a key for prompt_cache_key, which takes at most 64 bytes: a longer
// one becomes its hash.
func CacheKey(key string) string {
	if len(key) <= 64 {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}

// Count is a number of tokens, or of an element in a list, as a whole number,
// with a fraction of zero, as a string or null.
type Count int

// UnmarshalJSON takes any JSON value; what is no count is left out.
func (c *Count) UnmarshalJSON(raw []byte) error {
	f, err := strconv.ParseFloat(strings.Trim(string(raw), `" `), 64)
	if err == nil && f >= 0 && f < 1e12 {
		*c = Count(f)
	}
	return nil
}
