package llm

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capstan/internal/msg"
)

// Names over the limit are shortened the same way every time, whatever else is
// declared, and lead back exactly. BUG-TN-01, BUG-TN-03
func TestNames(t *testing.T) {
	rule := Rule{Max: 64, Chars: "_-"}
	gemini := Rule{Max: 64, Chars: "_.:-", Letter: true}
	tests := []struct {
		rule       Rule
		name, want string
	}{
		{rule, "read_file", "read_file"},
		{rule, strings.Repeat("a", 64), strings.Repeat("a", 64)},
		{rule, "mcp__example-billing-cost-management-server__billing_cost_management_get_reservation_purchase_recommendation", "mcp__example-billing-cost-management-server__billing_co_d78d8d81"},
		{rule, "list_all_active_customer_subscriptions_for_account_api_v1_accounts_get", "list_all_active_customer_subscriptions_for_account_api__6b2d3e8b"},
		{rule, "a.b", "a_b_2e7336dc"},
		{rule, "名前", "_______7ec26292"},
		{rule, "", "_e3b0c442"},
		{gemini, "a.b", "a.b"},
		{gemini, "9lives", "t9lives_bc867356"},
		{gemini, "", "t_e3b0c442"},
	}
	for _, tt := range tests {
		alone := NewNames(tt.rule, []msg.Declaration{{Name: tt.name}}, nil)
		among := NewNames(tt.rule, []msg.Declaration{{Name: "zzz"}, {Name: "a b"}, {Name: tt.name}, {Name: "a/b"}}, nil)
		got := alone.Wire(tt.name)
		if got != tt.want || !tt.rule.ok(got) || among.Wire(tt.name) != got || alone.Canonical(got) != tt.name {
			t.Errorf("%q became %q, then %q, back %q; want %q", tt.name, got, among.Wire(tt.name), alone.Canonical(got), tt.want)
		}
	}
	n := NewNames(rule, []msg.Declaration{{Name: "a.b"}, {Name: "a/b"}, {Name: "a b"}}, nil)
	if a, b, c := n.Wire("a.b"), n.Wire("a/b"), n.Wire("a b"); a == b || b == c || a == c {
		t.Errorf("two tools have one name: %s %s %s", a, b, c)
	}
	taken := NewNames(rule, []msg.Declaration{{Name: "a.b"}}, nil).Wire("a.b")
	n = NewNames(rule, []msg.Declaration{{Name: "a.b"}, {Name: taken}}, nil)
	if n.Wire("a.b") == n.Wire(taken) || n.Canonical(taken) != taken || n.Canonical(n.Wire("a.b")) != "a.b" {
		t.Errorf("the name %s of another tool was taken", taken)
	}
	history := []msg.Message{{Role: msg.Assistant, Parts: []msg.Part{{Kind: msg.CallPart, Call: &msg.Call{Name: "old.tool"}}}}}
	n = NewNames(rule, nil, history)
	if w := n.Wire("old.tool"); n.Canonical(w) != "old.tool" || n.Canonical("made_up") != "made_up" {
		t.Errorf("a name of the history does not lead back")
	}
}

func FuzzNames(f *testing.F) {
	f.Add("a.b", "a_b", "a/b")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		for _, rule := range []Rule{{Max: 64, Chars: "_-"}, {Max: 64, Chars: "_.:-", Letter: true}} {
			n := NewNames(rule, []msg.Declaration{{Name: a}, {Name: b}, {Name: c}}, nil)
			for _, name := range []string{a, b, c} {
				if w := n.Wire(name); !rule.ok(w) || n.Canonical(w) != name {
					t.Errorf("%q became %q and that %q", name, w, n.Canonical(w))
				}
			}
		}
	})
}

func TestIDs(t *testing.T) {
	ids := NewIDs([]msg.Message{{Role: msg.Assistant, Parts: []msg.Part{call("a", ""), call("call_3", "")}}})
	var got []string
	for _, wire := range []string{"a", "a", "b", "", "", "call_6"} {
		got = append(got, ids.Take(wire))
	}
	if diff := cmp.Diff([]string{"a_2", "a_3", "b", "call_6", "call_7", "call_6_2"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFinished(t *testing.T) {
	declared := func(schema string) *msg.Declaration {
		return &msg.Declaration{Name: "t", Parameters: []byte(schema)}
	}
	tests := []struct {
		name, args string
		d          *msg.Declaration
		cut        bool
		want       string
		fault      string
	}{
		{"whole", `{"a":1}`, nil, false, `{"a":1}`, ""},
		{"whole at the limit", `{"a":1}`, nil, true, `{"a":1}`, ""},
		{"cut off", `{"a":`, nil, true, `{"a":`, "after 5 bytes"},
		{"cut before they began", "", declared(`{}`), true, "", "after 0 bytes"},
		{"empty, takes nothing", "", declared(`{"$schema":"x","type":"object","properties":{},"required":[],"additionalProperties":false}`), false, "{}", ""},
		{"empty, no schema", "", declared(""), false, "{}", ""},
		{"empty, may take something (BUG-AR-03)", "", declared(`{"type":"object","properties":{"where":{}}}`), false, "", ""},
		{"empty, takes anything", "", declared(`{"type":"object","additionalProperties":true}`), false, "", ""},
		{"empty, takes what a reference says", "", declared(`{"$ref":"#/$defs/a"}`), false, "", ""},
		{"empty, unknown tool", "", nil, false, "", ""},
		{"not JSON", "x", nil, false, "x", ""},
	}
	for _, tt := range tests {
		c := Finished("id", "t", tt.args, tt.d, tt.cut)
		if c.Args != tt.want || (tt.fault == "") != (c.Fault == "") || !strings.Contains(c.Fault, tt.fault) {
			t.Errorf("%s: args %q, fault %q", tt.name, c.Args, c.Fault)
		}
	}
	if c := Finished("id", "", "{}", nil, false); !strings.Contains(c.Fault, "names no tool") {
		t.Errorf("without a name: %q", c.Fault)
	}
}
