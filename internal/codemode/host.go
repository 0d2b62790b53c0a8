package codemode

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"capstan/internal/msg"
	"capstan/internal/sandbox"
	"capstan/internal/tool"
)

// host is what a running program reaches outside of its sandbox: nothing but
// the executor's Dispatch.
type host struct {
	ctx     context.Context // of the exec call
	inv     *tool.Invocation
	exec    *Exec
	replies sync.WaitGroup

	mu      sync.Mutex
	out     []msg.Part
	line    strings.Builder // text not yet in out
	printed bool            // line holds a line, even an empty one
	done    map[string]int  // calls that may have changed something, by name
	nobody  map[string]bool // ids of calls denied because nobody could be asked
	missing []string        // servers that ALL_TOOLS was read without
}

// view is what there is by now.
func (h *host) view() *tool.View {
	if r := h.exec.opt.Registry; r != nil {
		return r.View(h.inv.View.Mode(), h.inv.View.Scope())
	}
	return h.inv.View
}

func (h *host) page() *page { return h.exec.docs.of(h.view()) }

// names are the properties of `tools`.
func (h *host) names() []string { return h.page().names }

// AllTools implements sandbox.Host. It waits for all servers, for the answer has
// to be complete; the program waits for it.
func (h *host) AllTools() []byte {
	if await := h.exec.opt.Await; await != nil {
		missing := await(h.ctx)
		h.mu.Lock()
		h.missing = missing
		h.mu.Unlock()
	}
	return h.page().allTools()
}

// absent tells of the servers that ALL_TOOLS was read without.
func (h *host) absent() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Join(h.missing, "; ")
}

// canonical is the tool's name behind a property of `tools`. A name that is
// none stays as it is: the executor refuses it, with its nearest neighbours.
func (h *host) canonical(js string) string {
	if name, ok := h.view().Canonical(js); ok {
		return name
	}
	return js
}

// Call implements sandbox.Host: one batch of calls to the executor. Calls of a
// server that has not answered yet wait for it, together; nothing else does.
func (h *host) Call(ctx context.Context, batch []sandbox.Call, reply func(int, sandbox.Reply)) {
	var now []int
	late := map[string][]int{}
	for i, c := range batch {
		if servers := h.awaited(c.Name); len(servers) > 0 {
			key := strings.Join(servers, "\x00")
			late[key] = append(late[key], i)
		} else {
			now = append(now, i)
		}
	}
	h.dispatch(ctx, batch, now, nil, reply)
	for key, of := range late {
		h.replies.Go(func() {
			h.dispatch(ctx, batch, of, h.exec.opt.Await(ctx, strings.Split(key, "\x00")...), reply)
		})
	}
}

// awaited names the servers that have to be waited for before a call of this name
// can be made.
func (h *host) awaited(js string) []string {
	o := &h.exec.opt
	if o.ServersOf == nil || o.Await == nil {
		return nil
	}
	view := h.view()
	name, known := view.Canonical(js)
	if !known {
		return o.ServersOf(js)
	}
	if e := view.Visible(name); o.Changing != nil && e != nil && e.Spec().Server != "" && o.Changing(e.Spec().Server) {
		return []string{e.Spec().Server}
	}
	return nil
}

// dispatch makes some calls of a batch. A call that is refused because there is
// no such tool says too that its server is missing.
func (h *host) dispatch(ctx context.Context, batch []sandbox.Call, of []int, missing []string, reply func(int, sandbox.Reply)) {
	if len(of) == 0 {
		return
	}
	calls := make([]tool.Call, len(of))
	for i, at := range of {
		calls[i] = tool.Call{Name: h.canonical(batch[at].Name), Args: batch[at].Args}
	}
	results := h.inv.Dispatch(ctx, calls)
	h.replies.Go(func() {
		for s := range results {
			if s.Code == tool.CodeUnknownTool && len(missing) > 0 {
				s.Parts = append(slices.Clip(s.Parts), msg.TextPart(strings.Join(missing, "; ")))
			}
			h.note(&s.Result)
			reply(of[s.Index], toReply(&s.Result))
		}
	})
}

// note keeps what the outer result has to say about a nested one.
func (h *host) note(r *tool.Result) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r.Unasked {
		if h.nobody == nil {
			h.nobody = map[string]bool{}
		}
		h.nobody[r.CallID] = true
	}
	e := h.view().Visible(r.Name)
	if r.Status != tool.Success || e == nil || e.Spec().Effect == tool.EffectRead || e.Spec().Effect == tool.EffectNone {
		return
	}
	if h.done == nil {
		h.done = map[string]int{}
	}
	h.done[r.Name]++
}

func (h *host) unasked(callID string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return callID != "" && h.nobody[callID]
}

// lostDenial says whether a denial that nobody could be asked about is among
// the failures that nothing handled: it was not caught either. Their texts are
// the program's own, so they count only when there was such a denial.
func (h *host) lostDenial(unhandled []string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.nobody) > 0 && slices.ContainsFunc(unhandled, func(s string) bool { return strings.Contains(s, "nobody can be asked") })
}

// changed lists the calls that may have changed something.
func (h *host) changed() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var list []string
	for name, n := range h.done {
		if n > 1 {
			name = fmt.Sprintf("%s (%d times)", name, n)
		}
		list = append(list, name)
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// Output implements sandbox.Host. Each printed text is a line of its own.
func (h *host) Output(o sandbox.Output) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if o.Kind == sandbox.Text {
		if h.printed {
			h.line.WriteByte('\n')
		}
		h.printed = true
		h.line.Write(o.Data)
		return
	}
	h.flush()
	h.out = append(h.out, msg.Part{Kind: msg.Kind(o.Kind), MIMEType: o.MIMEType, Data: slices.Clone(o.Data)})
}

func (h *host) flush() {
	if h.printed {
		h.out = append(h.out, msg.TextPart(h.line.String()))
		h.line.Reset()
		h.printed = false
	}
}

// parts is what the program printed, in order.
func (h *host) parts() []msg.Part {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.flush()
	return h.out
}

// value is a nested result as the program sees it, without the text, which
// travels beside it (S0-101 to S0-106).
type value struct {
	CallID    string          `json:"callId"`
	Name      string          `json:"name"`
	Status    tool.Status     `json:"status"`
	Data      json.RawMessage `json:"structuredContent,omitempty"`
	Content   []block         `json:"content,omitempty"`
	Truncated bool            `json:"truncated,omitempty"`
	File      string          `json:"file,omitempty"`
	Notes     []string        `json:"notes,omitempty"`
}

// block is a content block in MCP's spelling.
type block struct {
	Type        string    `json:"type"`
	Text        string    `json:"text,omitempty"`
	MIMEType    string    `json:"mimeType,omitempty"`
	Data        []byte    `json:"data,omitempty"`
	URI         string    `json:"uri,omitempty"`
	Name        string    `json:"name,omitempty"`
	Description string    `json:"description,omitempty"`
	Resource    *resource `json:"resource,omitempty"`
}

type resource struct {
	URI      string  `json:"uri"`
	MIMEType string  `json:"mimeType,omitempty"`
	Text     *string `json:"text,omitempty"`
	Blob     []byte  `json:"blob,omitempty"`
}

// failure is what a ToolCallError is made of (S0-107, S0-108).
type failure struct {
	Message string `json:"message"`
	Tool    string `json:"tool"`
	CallID  string `json:"callId"`
	Code    string `json:"code"`
}

// A reply has to fit the frame that carries it. Text travels once, as it is; its
// blocks are repeated as JSON only while that is cheap.
const (
	maxValue      = 15 << 20 // bytes of JSON
	maxBlockTexts = 1 << 20
	maxFailure    = 1 << 20 // bytes of a message
)

func toReply(r *tool.Result) sandbox.Reply {
	if r.Status != tool.Success {
		return refusal(r, r.Text())
	}
	v := value{CallID: r.CallID, Name: r.Name, Status: r.Status, Data: r.Data,
		Truncated: r.Truncated, File: r.File, Notes: append(slices.Clone(r.Notes), r.Remarks...), Content: blocks(r)}
	b, err := json.Marshal(v)
	if err != nil { // structured content that is not JSON
		return refusal(r, fmt.Sprintf("the result of %s cannot be passed on: %v", r.Name, err))
	}
	if len(b) > maxValue {
		v.Notes = append(v.Notes, fmt.Sprintf("structuredContent and content were left out: %d bytes are more than a result can carry; ask for less", len(b)))
		v.Data, v.Content, v.Truncated = nil, nil, true
		if b, err = json.Marshal(v); err != nil || len(b) > maxValue {
			return refusal(r, fmt.Sprintf("the result of %s cannot be passed on: it is too large", r.Name))
		}
	}
	return sandbox.Reply{OK: true, Value: b, Text: r.Text()}
}

// refusal is a reply that rejects. Its message travels as JSON, so it is short.
func refusal(r *tool.Result, message string) sandbox.Reply {
	if len(message) > maxFailure {
		where := "."
		if r.File != "" {
			where = "; the whole is in " + r.File
		}
		half := maxFailure / 2
		message = strings.ToValidUTF8(message[:half], "") +
			fmt.Sprintf("\n[… %d bytes left out%s …]\n", len(message)-2*half, where) +
			strings.ToValidUTF8(message[len(message)-half:], "")
	}
	code := r.Code
	if code == "" {
		code = tool.CodeFailed
	}
	b, _ := json.Marshal(failure{message, r.Name, r.CallID, code}) // strings: cannot fail
	return sandbox.Reply{Value: b}
}

// blocks are the content blocks of a result. Nil means one block with the whole
// text, which is made where it arrives.
func blocks(r *tool.Result) []block {
	texts, others := 0, false
	for _, p := range r.Parts {
		texts += len(p.Text)
		others = others || p.Kind != msg.Text || p.URI != ""
	}
	if len(r.Parts) == 1 && !others || texts > maxBlockTexts && !others {
		return nil
	}
	var list []block
	for _, p := range r.Parts {
		if p.Kind == msg.Text && texts > maxBlockTexts {
			continue // it is all in output
		}
		list = append(list, toBlock(p))
	}
	return list
}

func toBlock(p msg.Part) block {
	switch p.Kind {
	case msg.File:
		return block{Type: "resource", Resource: &resource{URI: p.URI, MIMEType: p.MIMEType, Blob: p.Data}}
	case msg.Link:
		return block{Type: "resource_link", URI: p.URI, Name: p.Name, Description: p.Text, MIMEType: p.MIMEType}
	case msg.Text:
		if p.URI != "" { // the text of a resource
			return block{Type: "resource", Resource: &resource{URI: p.URI, MIMEType: p.MIMEType, Text: &p.Text}}
		}
	}
	return block{Type: string(p.Kind), Text: p.Text, MIMEType: p.MIMEType, Data: p.Data, URI: p.URI}
}
