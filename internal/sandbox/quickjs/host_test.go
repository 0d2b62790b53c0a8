package quickjs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capstan/internal/sandbox"
)

// tool answers one call; args is the JSON text.
type tool func(ctx context.Context, c sandbox.Call) sandbox.Reply

// host is a Host with tools by name, which records what it saw.
type host struct {
	tools map[string]tool
	all   string

	mu      sync.Mutex
	out     []string
	batches []string // "name(args) name(args)" for each batch
	ctx     context.Context
	replies sync.WaitGroup
}

func (h *host) Call(ctx context.Context, batch []sandbox.Call, reply func(int, sandbox.Reply)) {
	var line []string
	for _, c := range batch {
		line = append(line, fmt.Sprintf("%s(%s)", c.Name, c.Args))
	}
	h.mu.Lock()
	h.ctx = ctx
	h.batches = append(h.batches, strings.Join(line, " "))
	h.mu.Unlock()
	for i, c := range batch {
		f := h.tools[c.Name]
		if f == nil {
			reply(i, refuse(c, "UNKNOWN_TOOL", "no tool has this name"))
			continue
		}
		// As from the scheduler, a refusal is there before the answer to any
		// later call: what a test expects of one cannot depend on a race.
		if c.Name == "deny" {
			reply(i, f(ctx, c))
			continue
		}
		h.replies.Go(func() { reply(i, f(ctx, c)) })
	}
}

func (h *host) Output(o sandbox.Output) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if o.Kind == sandbox.Text {
		h.out = append(h.out, string(o.Data))
		return
	}
	h.out = append(h.out, fmt.Sprintf("[%s %s %x]", o.Kind, o.MIMEType, o.Data))
}

func (h *host) AllTools() []byte {
	if h.all == "" {
		return []byte(`[{"name":"echo","jsName":"echo"}]`)
	}
	return []byte(h.all)
}

func callID(c sandbox.Call) string { return fmt.Sprintf("call-%d", c.ID) }

// succeed is a reply with this text.
func succeed(c sandbox.Call, text string) sandbox.Reply {
	v, err := json.Marshal(map[string]string{"callId": callID(c), "name": c.Name, "status": "success"})
	if err != nil {
		panic(err)
	}
	return sandbox.Reply{OK: true, Value: v, Text: text}
}

// structured is a reply with this JSON as structuredContent.
func structured(c sandbox.Call, raw string) sandbox.Reply {
	return sandbox.Reply{OK: true, Value: fmt.Appendf(nil, `{"callId":%q,"name":%q,"status":"success","structuredContent":%s}`, callID(c), c.Name, raw)}
}

func refuse(c sandbox.Call, code, message string) sandbox.Reply {
	v, err := json.Marshal(map[string]string{"callId": callID(c), "tool": c.Name, "code": code, "message": message})
	if err != nil {
		panic(err)
	}
	return sandbox.Reply{Value: v}
}

// echo answers the arguments as text.
func echo(_ context.Context, c sandbox.Call) sandbox.Reply { return succeed(c, string(c.Args)) }

// hang answers when the program has settled.
func hang(ctx context.Context, c sandbox.Call) sandbox.Reply {
	<-ctx.Done()
	return refuse(c, "ABORTED", "aborted")
}

func deny(_ context.Context, c sandbox.Call) sandbox.Reply {
	return refuse(c, "DENIED", "a rule denies this call")
}

// fromData answers the structuredContent that the argument's field json is.
func fromData(_ context.Context, c sandbox.Call) sandbox.Reply {
	var a struct{ JSON string }
	if err := json.Unmarshal(c.Args, &a); err != nil {
		return refuse(c, "INVALID_ARGS", err.Error())
	}
	return structured(c, a.JSON)
}

// A twice is a host that answers every call again, with another answer.
type twice struct{ *host }

func (h twice) Call(ctx context.Context, batch []sandbox.Call, reply func(int, sandbox.Reply)) {
	h.host.Call(ctx, batch, func(i int, r sandbox.Reply) {
		reply(i, r)
		reply(i, refuse(batch[i], "AGAIN", "the second answer"))
	})
}

// A second answer is dropped, as Host says: each call has the first one.
func TestAnsweredTwice(t *testing.T) {
	h := twice{newHost()}
	_, err := newRunner(t, Options{}).Run(t.Context(), sandbox.Program{Source: `for (let i = 0; i < 5; i++) text((await tools.echo(i)).output)`}, h)
	h.replies.Wait()
	if d := cmp.Diff([]string{"0", "1", "2", "3", "4"}, h.out); err != nil || d != "" {
		t.Errorf("Run: %v (-want +got):\n%s", err, d)
	}
}

func newHost() *host {
	return &host{tools: map[string]tool{"echo": echo, "hang": hang, "deny": deny, "data": fromData}}
}

// run runs source with h and waits for h's own goroutines.
func run(t testing.TB, r *Runner, h *host, source string, l sandbox.Limits) (sandbox.Usage, *sandbox.Error) {
	t.Helper()
	u, err := r.Run(t.Context(), sandbox.Program{Source: source, Names: []string{"data", "deny", "echo", "hang"}, Limits: l}, h)
	h.replies.Wait()
	if err == nil {
		return u, nil
	}
	var e *sandbox.Error
	if !errors.As(err, &e) {
		t.Fatalf("Run: %v, not a *sandbox.Error", err)
	}
	return u, e
}
