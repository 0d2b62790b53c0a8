package llm

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
)

// maxError bounds an error's body, in bytes.
const maxError = 1 << 20

// Refusal says what an answer that is no success means. It reads the error
// bodies of all four APIs and of the servers that imitate them, also when they
// come as an event in the middle of a stream (status 0).
func (e *Endpoint) Refusal(status int, header http.Header, body []byte) *Error {
	if status == http.StatusProxyAuthRequired {
		return e.unknownToProxy()
	}
	d := readDetail(body[:min(len(body), maxError)])
	out := &Error{
		Provider:   e.Name,
		Status:     status,
		Code:       e.clean(d.code),
		Message:    e.clean(d.message),
		RetryAfter: retryAfter(header, d),
	}
	if status >= 300 && status < 400 {
		out.Message = "the server redirects to " + e.clean(header.Get("Location"))
		out.Advice = "set the base URL to the address where the API really is"
	}
	out.Kind = kindOf(status, d, out.RetryAfter > 0)
	if out.Kind == ErrBadRequest && strings.Contains(d.all, "'tools': array too long") {
		out.Advice = fewerTools
	}
	if advice := noTools(d.all); advice != "" && out.Kind != ErrAuth && out.Kind != ErrQuota && out.Kind != ErrRateLimit {
		out.Kind, out.Advice = ErrBadRequest, advice // which waiting does not mend, whatever the status
	}
	return out
}

// noTools is what to do when an endpoint says that a model cannot call tools, or
// that the server was not started so that it can; else empty.
func noTools(all string) string {
	for _, t := range []struct {
		words  []string // in lower case
		advice string
	}{
		{[]string{"requires --jinja", "unsupported param: tools"}, "start llama-server with --jinja, or choose another model"},
		{[]string{"requires --enable-auto-tool-choice"}, "start vLLM with --enable-auto-tool-choice and the --tool-call-parser of the model, or choose another model"},
		{[]string{"not support tool", "not support function call", "support tool use", "function calling is not enabled", "tool calling is not supported", "tool calling` is not supported", "tools is not supported", "tools are not supported"},
			"choose a model that can call tools: Capstan works with no other"},
	} {
		if holds(all, t.words) {
			return t.advice
		}
	}
	return ""
}

// detail is what an error body tells.
type detail struct {
	message string
	code    string // the most precise of code, type and status
	all     string // everything that names the error, in lower case
	status  int    // of HTTP, where the body repeats it; 0 when it does not
	delay   time.Duration
	spent   bool // a quota that does not come back soon
}

// readDetail finds the error in any of: {"error":{message,type,code,status}},
// {"error":"…"}, [{…}], {"message":…}, {"detail":…}, and a page of HTML.
func readDetail(body []byte) detail {
	var d detail
	var list []json.RawMessage
	if json.Unmarshal(body, &list) == nil && len(list) > 0 {
		body = list[0]
	}
	var top map[string]json.RawMessage
	if json.Unmarshal(body, &top) != nil {
		d.message = pageText(string(body))
		d.all = strings.ToLower(d.message)
		return d
	}
	inner := top
	if raw, ok := top["error"]; ok {
		var m map[string]json.RawMessage
		if json.Unmarshal(raw, &m) == nil && m != nil {
			inner = m
		} else {
			d.message = word(raw)
		}
	}
	for _, k := range []string{"message", "detail", "msg"} {
		if d.message == "" {
			d.message = sentences(inner[k])
		}
	}
	names := []string{word(inner["code"]), word(inner["type"]), word(inner["status"])}
	for _, n := range names {
		if number, err := strconv.Atoi(n); err == nil && number >= 400 && number < 600 {
			d.status = number
		} else if n != "" && err != nil && n != "error" && d.code == "" {
			d.code = n
		}
	}
	d.all = strings.ToLower(strings.Join(append(names, d.message), " "))
	readGoogle(inner["details"], &d)
	return d
}

// readGoogle takes the delay and the quota's name from google.rpc details.
func readGoogle(raw json.RawMessage, d *detail) {
	var details []struct {
		RetryDelay string
		Violations []struct{ QuotaID string }
	}
	if json.Unmarshal(raw, &details) != nil {
		return
	}
	for _, x := range details {
		if delay, err := time.ParseDuration(x.RetryDelay); err == nil && delay > 0 {
			d.delay = delay
		}
		for _, v := range x.Violations {
			d.spent = d.spent || strings.Contains(v.QuotaID, "PerDay")
		}
	}
}

// sentences are the texts of a list of faults as FastAPI gives it,
// [{"loc":["body","x"],"msg":"…"}], each with its place; of anything else, its
// word.
func sentences(raw json.RawMessage) string {
	var faults []struct {
		Loc []json.RawMessage
		Msg string
	}
	if json.Unmarshal(raw, &faults) != nil || len(faults) == 0 {
		return word(raw)
	}
	var all []string
	for _, f := range faults {
		var place []string
		for _, l := range f.Loc {
			place = append(place, word(l))
		}
		switch {
		case f.Msg == "": // what it says stands elsewhere
			return word(raw)
		case len(place) > 0:
			f.Msg = strings.Join(place, ".") + ": " + f.Msg
		}
		all = append(all, f.Msg)
	}
	return strings.Join(all, "; ")
}

// word is a JSON string without its quotes, and any other value as it stands.
func word(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	if string(raw) == "null" {
		return ""
	}
	return string(raw)
}

// Compiled when first needed: most runs never see an error page.
var (
	invisible = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?is)<(script|style|head)\b.*?</(script|style|head)>`)
	})
	title = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?is)<title[^>]*>(.*?)</title>`) })
	tag   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?s)<[^>]*>`) })
)

// pageText is what a person would see of an HTML page, or the text as it is.
func pageText(s string) string {
	if !strings.Contains(s, "<") {
		return s
	}
	if m := title().FindStringSubmatch(s); m != nil && strings.TrimSpace(m[1]) != "" {
		return "a web page: " + m[1]
	}
	return "a web page: " + tag().ReplaceAllString(invisible().ReplaceAllString(s, " "), " ")
}

// maxMessage bounds a provider's text in an error, in runes.
const maxMessage = 600

// clean makes a provider's text fit for a person and a terminal: one paragraph,
// no control or invisible characters, no secrets, cut. What is cut is searched
// for secrets before, or the beginning of one would stay.
func (e *Endpoint) clean(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		if unicode.Is(unicode.Cf, r) {
			return -1
		}
		return r
	}, s)
	s = e.Redact(strings.Join(strings.Fields(s), " "))
	if r := []rune(s); len(r) > maxMessage {
		s = string(r[:maxMessage]) + fmt.Sprintf("… (%d characters more)", len(r)-maxMessage)
	}
	return s
}

// retryAfter is how long the answer asks to wait.
func retryAfter(h http.Header, d detail) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 {
		return seconds(ms / 1000)
	}
	v := strings.TrimSpace(h.Get("Retry-After"))
	if s, err := strconv.ParseFloat(v, 64); err == nil && s > 0 {
		return seconds(s)
	}
	if at, err := http.ParseTime(v); err == nil {
		if wait := time.Until(at); wait > 0 {
			return wait
		}
	}
	return d.delay
}

// seconds keeps an absurd number within what a Duration holds.
func seconds(s float64) time.Duration {
	return time.Duration(min(s, 365*24*3600) * float64(time.Second))
}

// kindOf decides by the most telling sign first.
func kindOf(status int, d detail, mayWait bool) Kind {
	if status == 0 { // an event of a stream
		status = d.status
	}
	switch {
	case d.spent || status == 402 || holds(d.all, quotaWords):
		return ErrQuota
	case status == 429:
		if !mayWait && strings.Contains(d.all, "exceeded your current quota") && !strings.Contains(d.all, "resource_exhausted") {
			return ErrQuota
		}
		return ErrRateLimit
	case holds(d.all, contextWords):
		return ErrContext
	case status == 401 || status == 403 || holds(d.all, authWords):
		return ErrAuth
	case status == 404 || status == 405 || status >= 300 && status < 400 || holds(d.all, missingWords):
		return ErrNotFound
	case status == 413 || holds(d.all, sizeWords):
		return ErrTooLarge
	case status == 408 || status == 409 || status == 425 || status >= 500 && status != 501:
		return ErrOverloaded
	case status == 0 && holds(d.all, limitWords):
		return ErrRateLimit
	case status == 0 && holds(d.all, overloadWords):
		return ErrOverloaded
	}
	return ErrBadRequest
}

// The words by which providers name a kind of error where the status does not.
var (
	quotaWords    = []string{"insufficient_quota", "billing_hard_limit", "billing_not_active", "credit balance is too low", "insufficient balance", "insufficient_balance", "insufficient credits", "arrearage", "payment required"}
	contextWords  = []string{"context_length_exceeded", "context length", "context window", "context size", "prompt is too long", "input is too long", "input length", "exceed_context_size", "token count exceeds", "maximum number of tokens allowed"}
	authWords     = []string{"invalid_api_key", "authentication_error", "permission_error", "api key not valid", "api_key_invalid", "invalidapikey", "unauthenticated"}
	missingWords  = []string{"model_not_found", "not_found_error", "does not exist"}
	sizeWords     = []string{"request_too_large", "payload size exceeds"}
	limitWords    = []string{"rate_limit", "rate limit", "too many requests", "throttling"}
	overloadWords = []string{"overloaded", "server_error", "internal_error", "internal error", "api_error", "unavailable", "timeout", "timed out"}
)

func holds(s string, words []string) bool {
	for _, w := range words {
		if strings.Contains(s, w) {
			return true
		}
	}
	return false
}
