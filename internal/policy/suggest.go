package policy

import (
	"os"
	"slices"
	"strings"
	"unicode"

	"capstan/internal/sched"
)

// sum makes one verdict of those on the acts of a call: the strictest counts,
// and of equals the one that a rule made.
func (p *judgement) sum(mode Mode, found []finding) Explanation {
	worst := found[0]
	for _, f := range found[1:] {
		if f.decision > worst.decision || f.decision == worst.decision && worst.rule == nil && f.rule != nil {
			worst = f
		}
	}
	out := Explanation{Verdict: sched.Verdict{Decision: worst.decision, By: "approval mode " + string(mode)}}
	if worst.rule != nil {
		out.By, out.Rule = "rule "+worst.rule.String(), worst.rule.Text
	}
	if worst.decision == sched.Allow {
		return out
	}
	out.Firm = worst.decision == sched.Ask && slices.ContainsFunc(found, func(f finding) bool { return f.rule != nil && f.rule.List == "deny" })
	out.Reason = reasons(found, worst.decision)
	out.Rules = p.openers(found)
	out.Suggestion = p.suggest(mode, worst, found, out.Rules)
	return out
}

// asked returns the commands that are asked about, by their first words. What
// they do themselves needs no words of its own then.
func asked(found []finding) func(*act) bool {
	first := map[*word]bool{}
	for _, f := range found {
		if f.act.kind == actCommand && f.act.owner == nil && f.decision != sched.Allow {
			first[&f.act.words[0]] = true
		}
	}
	return func(a *act) bool { return a.owner != nil && first[&a.owner.words[0]] }
}

// reasons joins the reasons of all acts that are as strict as the verdict.
func reasons(found []finding, d sched.Decision) string {
	const most = 4
	var all []string
	implied := asked(found)
	for _, f := range found {
		if f.rule == nil && implied(f.act) {
			continue
		}
		if f.decision == d && !slices.Contains(all, f.reason) {
			all = append(all, f.reason)
		}
	}
	if len(all) > most {
		all = append(all[:most], "and more")
	}
	return strings.Join(all, "; ")
}

// openers returns the allow rules under which the call would run: one for each
// act that the mode asks about. There are none when a rule or plan mode is in
// the way, or when an act is such that no rule can mean it.
func (p *judgement) openers(found []finding) []string {
	var rules []string
	implied := asked(found)
	for _, f := range found {
		if f.decision == sched.Allow || f.rule == nil && f.decision == sched.Ask && implied(f.act) {
			continue
		}
		if f.rule != nil || f.decision == sched.Deny {
			return nil
		}
		text := f.act.opener()
		if text == "" || !p.opens(text, f.act) {
			return nil
		}
		if !slices.Contains(rules, text) {
			rules = append(rules, text)
		}
	}
	return rules
}

// opens tries a rule before it is suggested: it has to be one that the matcher
// will match (BUG-SP-11).
func (p *judgement) opens(text string, a *act) bool {
	r, err := parseRule(Rule{List: "allow", Text: text}, p.place)
	return err == nil && r.matches(a, p.place)
}

// opener returns the narrowest rule that means the act, or "".
func (a *act) opener() string {
	switch a.kind {
	case actRead:
		name := "Read"
		if a.tool != readTool && slices.Contains(specTools, a.tool) && isDir(a.path) { // to see names in it is not to read it
			name = a.tool
		}
		return name + "(" + justThis(a.path) + ")"
	case actWrite:
		return "Edit(" + justThis(a.path) + ")"
	case actCommand:
		return "Bash(" + line(a.words) + ")"
	case actOpaque:
		if a.file && a.owner != nil {
			return a.owner.opener()
		}
	case actUse:
		if a.tool != webTool {
			return a.tool
		}
		if a.host == "" { // no address, so no rule means it: the tool's name would mean every host
			return ""
		}
		return "WebFetch(domain:" + a.host + ")"
	}
	return ""
}

// justThis writes a path so that a rule means it and nothing below it: of a file
// that is there, nothing can be.
func justThis(path string) string {
	if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() {
		return escapePath(path)
	}
	return exactly + escapePath(path)
}

// suggest says what would let the call run.
func (p *judgement) suggest(mode Mode, worst finding, found []finding, rules []string) string {
	switch {
	case worst.decision == sched.Deny && worst.rule != nil:
		return "a deny rule holds in every approval mode; to allow the call, change " + worst.rule.String()
	case worst.rule != nil && worst.rule.List == "deny":
		return "no approval mode answers where a deny rule could hold: write the call so that it can be checked, run it where someone can answer, or change " + worst.rule.String()
	case worst.rule != nil:
		return "no approval mode answers an ask rule: run it where someone can answer, or change " + worst.rule.String()
	}
	var ways []string
	switch {
	case worst.decision == sched.Deny: // plan mode
		ways = append(ways, "--approval-mode default (asks)")
	case mode == Default && editsOnly(found, p.place):
		ways = append(ways, "--approval-mode auto-edit (writes in the workspace)")
	}
	if len(rules) > 0 {
		if flag := p.flag(rules); flag != "" {
			ways = append(ways, flag)
		}
		quoted := make([]string, len(rules))
		for i, r := range rules {
			quoted[i] = quote(r)
		}
		ways = append(ways, strings.Join(quoted, ", ")+" in permissions.allow of "+p.settings)
	}
	ways = append(ways, "--approval-mode yolo (all but what rules forbid)") // the widest, so the last
	return "To allow it, use " + strings.Join(ways, ", or ")
}

// flag returns the rules as the command line has them, or "" when it cannot: the
// flag splits lists at commas and spaces that are in no parentheses.
func (p *Policy) flag(rules []string) string {
	if p.allowFlag == "" || slices.ContainsFunc(rules, func(r string) bool { return !oneEntry(r) }) {
		return ""
	}
	return p.allowFlag + " " + quoteWord(strings.Join(rules, ","))
}

// oneEntry reports whether the parentheses of a rule close at its end only, and
// all of it can be typed.
func oneEntry(rule string) bool {
	depth := 0
	for i, r := range rule {
		switch {
		case !unicode.IsPrint(r):
			return false
		case r == '(':
			depth++
		case r == ')':
			depth--
		case depth == 0 && (r == ',' || r == ' '):
			return false
		}
		if depth < 0 || r == ')' && depth == 0 && i < len(rule)-1 {
			return false
		}
	}
	return depth == 0
}

// editsOnly says whether auto-edit would answer every question.
func editsOnly(found []finding, pl *place) bool {
	for _, f := range found {
		if f.decision == sched.Allow {
			continue
		}
		if f.act.kind != actWrite || !pl.inside(f.act.path) || pl.sensitive(f.act.path) != "" {
			return false
		}
	}
	return true
}
