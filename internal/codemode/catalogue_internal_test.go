package codemode

import (
	"context"
	"errors"
	"testing"

	"capstan/internal/tool"
)

// named is a tool that is only looked for.
type named struct{ spec tool.Spec }

func (n *named) Spec() *tool.Spec { return &n.spec }
func (n *named) Run(context.Context, *tool.Invocation) (tool.Result, error) {
	return tool.Result{}, nil
}

// The index holds the ordinary tools that there are, and no others: what is gone
// would still count for how rare a word is.
func TestCatalogueForgets(t *testing.T) {
	var r tool.Registry
	c := newCatalogue(nil)
	has := func(want int) {
		t.Helper()
		if err := c.update(t.Context(), r.Tools()); err != nil {
			t.Error(err)
		}
		if got := c.index.Len(); got != want {
			t.Errorf("%d documents, want %d", got, want)
		}
	}
	has(0)
	if err := r.Add(&named{tool.Spec{Name: "own"}}, &named{tool.Spec{Name: "agent"}}, &named{tool.Spec{Name: "mcp__a__x", Server: "a"}}, &named{tool.Spec{Name: "mcp__b__x", Server: "b"}}); err != nil {
		t.Fatal(err)
	}
	has(3)
	has(3)
	if err := r.Replace(func(sp *tool.Spec) bool { return sp.Server == "a" }); err != nil {
		t.Fatal(err)
	}
	has(2)
	if err := r.Replace(func(sp *tool.Spec) bool { return true }); err != nil {
		t.Fatal(err)
	}
	has(0)
}

// The name that a server gave its tool is found first, whatever the server's name
// or its own became when it was registered.
func TestShortNameIsFirst(t *testing.T) {
	var r tool.Registry
	c := newCatalogue(nil)
	prefix := tool.ServerPrefix("mail.app")
	words := "send send mail mail the send mail of mail"
	for _, sp := range []tool.Spec{
		{Name: prefix + "send", Server: "mail.app", Title: words, Description: "None."},
		{Name: prefix + "send_mail_1234", Server: "mail.app", Short: "send.mail"},
		{Name: "mcp__b__mail_send", Server: "b", Title: words, Description: words, Hint: words},
	} {
		if err := r.Add(&named{sp}); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.update(t.Context(), r.Tools()); err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]string{"send": prefix + "send", "send.mail": prefix + "send_mail_1234"} {
		if hits := c.index.Search(query, 3, nil); len(hits) == 0 || hits[0].Name != want {
			t.Errorf("%s: got %v, want %s first", query, hits, want)
		}
	}
}

// Who waits while another caller brings the index up to date, or is cancelled on
// its way, ends; what is missing then comes with the next update.
func TestCatalogueEndsWithItsCaller(t *testing.T) {
	var r tool.Registry
	if err := r.Add(&named{tool.Spec{Name: "mcp__a__x", Server: "a"}}, &named{tool.Spec{Name: "mcp__b__x", Server: "b"}}); err != nil {
		t.Fatal(err)
	}
	var c catalogue
	ctx, cancel := context.WithCancel(t.Context())
	c = newCatalogue(func(string) string {
		done, gone := context.WithCancel(t.Context())
		gone()
		if err := c.update(done, r.Tools()); !errors.Is(err, context.Canceled) { // would wait for itself
			t.Errorf("beside another one: %v", err)
		}
		cancel() // the first source is under way
		return ""
	})
	if err := c.update(ctx, r.Tools()); !errors.Is(err, context.Canceled) || c.index.Len() != 1 {
		t.Errorf("cancelled: %v, %d documents", err, c.index.Len())
	}
	if err := c.update(t.Context(), r.Tools()); err != nil || c.index.Len() != 2 {
		t.Errorf("again: %v, %d documents", err, c.index.Len())
	}
}
