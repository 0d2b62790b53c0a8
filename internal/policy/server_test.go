package policy

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capstan/internal/sched"
	"capstan/internal/tool"
)

// A rule for a server is about its resources too, which tools of ours read.
func TestResourcesOfServers(t *testing.T) {
	toolOf := func(server, tool string) string { return "mcp__" + server + "__" + tool }
	for _, c := range []struct {
		rule, tool, args string
		effect           tool.Effect
		mode             Mode
		want             sched.Decision
	}{
		{"", "read_mcp_resource", `{"server":"a"}`, tool.EffectUnknown, Default, sched.Ask},
		{"allow mcp__a", "read_mcp_resource", `{"server":"a"}`, tool.EffectUnknown, Default, sched.Allow},
		{"allow mcp__a", "read_mcp_resource", `{"server":"b"}`, tool.EffectUnknown, Default, sched.Ask},
		{"allow read_mcp_resource", "read_mcp_resource", `{"server":"b"}`, tool.EffectUnknown, Default, sched.Allow},
		{"ask mcp__a__*", "read_mcp_resource", `{"server":"a"}`, tool.EffectUnknown, Yolo, sched.Ask},
		{"deny mcp__a", "read_mcp_resource", `{"server":"a"}`, tool.EffectUnknown, Yolo, sched.Deny},
		{"deny mcp__a", "list_mcp_resources", `{"server":"a"}`, tool.EffectNone, Default, sched.Deny},
		{"deny mcp__a", "list_mcp_resources", `{}`, tool.EffectNone, Default, sched.Allow},
		{"deny mcp__a", "other", `{"server":"a"}`, tool.EffectUnknown, Yolo, sched.Allow},
	} {
		o := Options{Mode: c.mode, Dir: t.TempDir(), ToolOf: toolOf}
		if c.rule != "" {
			o.Rules = ruleOf(c.rule)
		}
		p, _, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		var r tool.Registry
		if err := r.Add(tool.New(tool.Spec{Name: c.tool, Description: "d", Effect: c.effect}, nothing)); err != nil {
			t.Fatal(err)
		}
		v := p.Decide(t.Context(), &sched.Request{Call: &tool.Call{Name: c.tool, Args: json.RawMessage(c.args)}, Entry: r.Tools()[0]})
		if v.Decision != c.want {
			t.Errorf("%s, %s %s: %v (%s), want %v", c.rule, c.tool, c.args, v.Decision, v.Reason, c.want)
		}
	}
}

// Which rules keep a server out of a list of all.
func TestGuards(t *testing.T) {
	for rule, want := range map[string]bool{
		"deny mcp__a": true, "ask mcp__a": true, "deny mcp__a__list_*": true, "ask mcp__a__list_mcp_resources": true, "ask mcp__*__list_*": true, "deny *": true,
		"allow mcp__a": false, "deny mcp__b": false, "ask mcp__a__read_*": false, "deny mcp__ab": false, "ask list_mcp_resources": false, "deny Bash(mcp__a:*)": false,
	} {
		p, _, err := New(Options{Dir: t.TempDir(), Rules: ruleOf(rule)})
		if err != nil {
			t.Fatal(err)
		}
		got := p.Guards("mcp__a__list_mcp_resources")
		if (got != "") != want || want && !strings.HasPrefix(got, "permissions.") {
			t.Errorf("%s guards a: %q, want %v", rule, got, want)
		}
	}
}

// Which rules forbid a server as a whole.
func TestForbids(t *testing.T) {
	for rule, want := range map[string]bool{
		"deny mcp__a": true, "deny mcp__a__*": true, "deny mcp__*": true, "deny *": true, "deny mcp__a*": true,
		"deny mcp__b": false, "deny mcp__a__x": false, "deny mcp__a__x*": false, "allow mcp__a": false, "ask mcp__a": false, "deny Bash(mcp__a:*)": false,
	} {
		p, _, err := New(Options{Dir: t.TempDir(), Rules: ruleOf(rule)})
		if err != nil {
			t.Fatal(err)
		}
		if got := p.ForbidsAll("mcp__a__"); got != want {
			t.Errorf("%s forbids a: %v, want %v", rule, got, want)
		}
	}
}

// What rules withhold of servers that have not answered. S2-019
func TestWithheld(t *testing.T) {
	var rules []Rule
	for _, text := range []string{"deny mcp__a__x", "deny mcp__b", "deny mcp__c__*", "deny mcp__d__x*", "deny mcp__e__*y", "deny mcp__f__x*y*",
		"deny Bash(mcp__a:*)", "deny Bash", "deny *", "ask mcp__g__x", "allow mcp__h__x"} {
		rules = append(rules, ruleOf(text)...)
	}
	p, _, err := New(Options{Dir: t.TempDir(), Rules: rules})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"mcp__a__x", "mcp__b", "mcp__c__*", "mcp__d__x*"}, p.Withheld()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func ruleOf(text string) []Rule {
	list, rule, _ := strings.Cut(text, " ")
	return []Rule{{List: list, Text: rule}}
}

func nothing(context.Context, *tool.Invocation, struct{}) (tool.Result, error) {
	return tool.Result{}, nil
}
