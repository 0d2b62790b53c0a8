package policy

import (
	"context"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capstan/internal/sched"
	"capstan/internal/tool"
)

// The mode changes for the calls that are judged from then on, and an unknown
// one changes nothing. S0-057
func TestSetMode(t *testing.T) {
	w := newWorld(t)
	p, _, err := New(Options{Mode: Plan, Dir: w.ws, Home: w.home})
	if err != nil {
		t.Fatal(err)
	}
	type step struct {
		Mode     Mode
		Decision string
		By       string
	}
	var got []step
	judge := func() {
		v := p.Decide(context.Background(), w.request(t, "write_file a.txt"))
		got = append(got, step{p.Mode(), decisions[v.Decision], v.By})
	}
	judge()
	for _, m := range []Mode{AutoEdit, "wild", "", Default} {
		if err := p.SetMode(m); (err != nil) != (m == "wild" || m == "") {
			t.Errorf("setting %q: %v", m, err)
		}
		judge()
	}
	want := []step{
		{Plan, "deny", "approval mode plan"},
		{AutoEdit, "allow", "approval mode auto-edit"},
		{AutoEdit, "allow", "approval mode auto-edit"},
		{AutoEdit, "allow", "approval mode auto-edit"},
		{Default, "ask", "approval mode default"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A call is judged under one mode, whoever changes it meanwhile: the decision
// is that of the mode which the verdict names.
func TestOneModeForACall(t *testing.T) {
	w := newWorld(t)
	p, _, err := New(Options{Dir: w.ws, Home: w.home})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]sched.Decision{"approval mode plan": sched.Deny, "approval mode auto-edit": sched.Allow, "approval mode default": sched.Ask}
	req := w.request(t, "write_file a.txt")
	for range 3 { // several acts, each of which could be judged under another mode
		req.Access.Writes = append(req.Access.Writes, req.Access.Writes...)
	}
	done := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			default:
				if err := p.SetMode([]Mode{Plan, Default, AutoEdit}[i%3]); err != nil {
					t.Error(err)
				}
			}
		}
	})
	for range 2000 {
		if v := p.Decide(context.Background(), req); v.Decision != want[v.By] {
			t.Fatalf("%s by %s", decisions[v.Decision], v.By)
		}
	}
	close(done)
	group.Wait()
}

// What a person is asked about a page names its host, and so does the rule that
// is suggested.
func TestFetchNamesTheHost(t *testing.T) {
	w := newWorld(t)
	for _, tc := range []struct {
		mode              Mode
		url, reason, rule string
	}{
		{Default, "https://User.example:8443/a?b=c", "using web_fetch on user.example needs approval in approval mode default", "WebFetch(domain:user.example)"},
		{Plan, "http://go.dev", "using web_fetch on go.dev needs approval in approval mode plan", "WebFetch(domain:go.dev)"},
		{Default, "https://[2001:db8::1]/", "using web_fetch on 2001:db8::1 needs approval in approval mode default", "WebFetch(domain:2001:db8::1)"},
		{Default, "https://[::FFFF:192.0.2.1]/", "using web_fetch on 192.0.2.1 needs approval in approval mode default", "WebFetch(domain:192.0.2.1)"},
		// What cannot be read as an address is no reason to open all of them.
		{Default, "not a url\x00", "using web_fetch needs approval in approval mode default", ""},
		{Default, "http://[::1/x", "using web_fetch needs approval in approval mode default", ""},
		{Plan, "file:///etc/passwd", "using web_fetch needs approval in approval mode plan", ""},
	} {
		p, _, err := New(Options{Mode: tc.mode, Dir: w.ws, Home: w.home})
		if err != nil {
			t.Fatal(err)
		}
		v := p.Explain(w.request(t, "fetch "+tc.url))
		var rules []string
		if tc.rule != "" {
			rules = []string{tc.rule}
		}
		if v.Decision != sched.Ask || v.Reason != tc.reason || !cmp.Equal(v.Rules, rules) {
			t.Errorf("%s: %s, %q, %q", tc.url, decisions[v.Decision], v.Reason, v.Rules)
		}
	}
	// Another tool's argument of that name means nothing to us.
	req := &sched.Request{Call: &tool.Call{Name: "other", Args: []byte(`{"url":"https://go.dev"}`)}, Entry: entry(t, "other", tool.EffectUnknown)}
	p, _, err := New(Options{Dir: w.ws, Home: w.home})
	if err != nil {
		t.Fatal(err)
	}
	if v := p.Explain(req); v.Reason != "using other needs approval in approval mode default" {
		t.Error(v.Reason)
	}
}
