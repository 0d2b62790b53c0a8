package quickjs

import (
	"context"
	"fmt"
	"testing"

	"capstan/internal/sandbox"
)

type echo struct{ out []string }

func (e *echo) Call(ctx context.Context, batch []sandbox.Call, reply func(int, sandbox.Reply)) {
	for i, c := range batch {
		reply(i, sandbox.Reply{OK: true, Value: []byte(fmt.Sprintf(`{"callId":"c%d","name":%q,"status":"success"}`, c.ID, c.Name)), Text: string(c.Args)})
	}
}
func (e *echo) Output(o sandbox.Output) { e.out = append(e.out, string(o.Data)) }
func (e *echo) AllTools() []byte        { return []byte(`[{"name":"x"}]`) }

func TestHello(t *testing.T) {
	r := New(Options{})
	defer r.Close()
	for _, src := range []string{
		`const r = await tools.hello({who: "world"}); text(r.output); text(r)`,
		`return 1+1`,
		`text(1); throw new TypeError('x')`,
		"text(1);\nfoo(",
		`await new Promise(()=>{})`,
		`text(ALL_TOOLS); exit(); text(2)`,
		`text(Object.keys(tools)); text('a' in tools, 'b' in tools)`,
		`const r = await Promise.all([1,2,3].map(i => tools.x({i}))); text(r.map(x=>x.output))`,
		`}); throw 1; (async()=>{`,
		`}, f(), async()=>{`,
		`} f(); async function g(){`,
		"text(1)\n}",
	} {
		h := &echo{}
		u, err := r.Run(context.Background(), sandbox.Program{Source: src, Names: []string{"a", "hello"}}, h)
		t.Logf("%s\n  %q\n  %+v\n  %v", src, h.out, u, err)
	}
}
