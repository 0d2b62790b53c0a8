package sched_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"capstan/internal/msg"
	"capstan/internal/sched"
	"capstan/internal/tool"
)

// What each stage can do to a call, for a model's call and a program's alike.
// S0-162 to S0-166 S0-219 S0-250 to S0-254 S3-054 S3-056 S2-087
func TestStages(t *testing.T) {
	args := func(n int) json.RawMessage { b, _ := json.Marshal(map[string]int{"n": n}); return b }
	upTo := func(last string, more ...string) []string {
		for i, s := range everything {
			if s == last {
				return append(append([]string{}, everything[:i+1]...), more...)
			}
		}
		panic(last)
	}
	without := func(stages []string, drop string) (out []string) {
		for _, s := range stages {
			if s != drop {
				out = append(out, s)
			}
		}
		return out
	}
	ask := sched.Verdict{Decision: sched.Ask, Reason: "it writes", Suggestion: "Add a rule."}
	yes := func(context.Context, *sched.Question) (sched.Answer, error) { return sched.Answer{Allow: true}, nil }
	// checks makes work look at its arguments: those given are refused with err,
	// all when none are. No error is a panic.
	checks := func(err error, refused ...string) func(*rig) {
		return func(r *rig) {
			r.add(&checked{r.worker(), func(c *tool.Call) error {
				if len(refused) > 0 && !slices.Contains(refused, string(c.Args)) {
					return nil
				}
				if err == nil {
					panic("lost")
				}
				return err
			}})
		}
	}
	for _, tc := range []struct {
		name    string
		args    json.RawMessage
		prepare func(*rig)
		want    outcome
		unasked bool
	}{
		{name: "allowed by rule, nobody is asked", prepare: func(*rig) {},
			want: outcome{tool.Success, "", "ran with {\"n\":1}", without(everything, "approver")}},
		{name: "a policy without an opinion asks", prepare: func(r *rig) { r.rule = sched.Verdict{}; r.opt.Approver = nil },
			want: outcome{tool.Denied, "DENIED", "work needs approval and nobody can be asked", upTo("policy", "finalizer", "result")}, unasked: true},
		{name: "denied by rule", prepare: func(r *rig) {
			r.rule = sched.Verdict{Decision: sched.Deny, Reason: "rule work(*)", Suggestion: "Remove it."}
		},
			want: outcome{tool.Denied, "DENIED", "work was denied: rule work(*). Remove it.", upTo("policy", "finalizer", "result")}},
		{name: "refused for a reason with a code of its own", prepare: func(r *rig) {
			r.rule = sched.Verdict{Decision: sched.Deny, Code: tool.CodeCallLimit, Reason: "these were all"}
		},
			want: outcome{tool.Failed, "CALL_LIMIT", "work was not run: these were all", upTo("policy", "finalizer", "result")}},
		{name: "a decision that there is not denies", prepare: func(r *rig) { r.rule = sched.Verdict{Decision: 9} },
			want: outcome{tool.Denied, "DENIED", "work was denied", upTo("policy", "finalizer", "result")}},
		{name: "no policy", prepare: func(r *rig) { r.opt.Policy = nil },
			want: outcome{tool.Success, "", "ran with {\"n\":1}", without(without(everything, "approver"), "policy")}},
		{name: "the person says yes", prepare: func(r *rig) { r.rule, r.answer = ask, yes },
			want: outcome{tool.Success, "", "ran with {\"n\":1}", everything}},
		{name: "the person says no", prepare: func(r *rig) {
			r.rule = ask
			r.answer = func(context.Context, *sched.Question) (sched.Answer, error) { return sched.Answer{}, nil }
		}, want: outcome{tool.Denied, "DENIED", "work was denied by the user", upTo("approver", "finalizer", "result")}},
		{name: "the person says no, and why", prepare: func(r *rig) {
			r.rule = ask
			r.answer = func(context.Context, *sched.Question) (sched.Answer, error) {
				return sched.Answer{Reason: "use the other file"}, nil
			}
		}, want: outcome{tool.Denied, "DENIED", "work was denied by the user, who says: use the other file", upTo("approver", "finalizer", "result")}},
		{name: "asking fails, and an error is a no", prepare: func(r *rig) {
			r.rule = ask
			r.answer = func(context.Context, *sched.Question) (sched.Answer, error) {
				return sched.Answer{Allow: true}, errors.New("the terminal is gone")
			}
		}, want: outcome{tool.Denied, "DENIED", "work was denied: asking for approval failed: the terminal is gone", upTo("approver", "finalizer", "result")}},
		{name: "nobody can be asked", prepare: func(r *rig) { r.rule = ask; r.opt.Approver = nil },
			want: outcome{tool.Denied, "DENIED", "work needs approval and nobody can be asked: it writes. Add a rule.", upTo("policy", "finalizer", "result")}, unasked: true},
		{name: "a guard denies what everybody allowed", prepare: func(r *rig) { r.rule, r.answer, r.guard = ask, yes, "the freeze is on" },
			want: outcome{tool.Denied, "DENIED", "work was denied: the freeze is on", upTo("guard", "finalizer", "result")}},
		{name: "recording that it starts fails, so it does not", prepare: func(r *rig) {
			r.begin = func() error { return errors.New("no space left on device") }
		}, want: outcome{tool.Failed, "TOOL_NOT_STARTED", "work was not run: recording that it starts failed: no space left on device", without(upTo("guard", "begin", "finalizer", "result"), "approver")}},
		{name: "recording that it starts panics", prepare: func(r *rig) {
			r.begin = func() error { panic("lost") }
		}, want: outcome{tool.Failed, "TOOL_NOT_STARTED", "work was not run: recording that it starts failed: lost", without(upTo("guard", "begin", "finalizer", "result"), "approver")}},
		{name: "it is recorded after everybody allowed it, and before it runs", prepare: func(r *rig) {
			r.begin = func() error { return nil }
		}, want: outcome{tool.Success, "", "ran with {\"n\":1}", without(upTo("guard", append([]string{"begin"}, everything[slices.Index(everything, "guard")+1:]...)...), "approver")}},
		{name: "a hook's allow skips the question", prepare: func(r *rig) { r.rule = ask; r.hook.Decision = sched.Allow },
			want: outcome{tool.Success, "", "ran with {\"n\":1}", without(everything, "approver")}},
		{name: "but never a deny rule", prepare: func(r *rig) {
			r.rule = sched.Verdict{Decision: sched.Deny, Reason: "no"}
			r.hook.Decision = sched.Allow
		},
			want: outcome{tool.Denied, "DENIED", "work was denied: no", upTo("policy", "finalizer", "result")}},
		{name: "nor what could be one", prepare: func(r *rig) {
			r.rule, r.hook.Decision = sched.Verdict{Decision: sched.Ask, Firm: true}, sched.Allow
			r.answer = yes
		}, want: outcome{tool.Success, "", "ran with {\"n\":1}", everything}},
		{name: "nor a guard", prepare: func(r *rig) { r.rule = ask; r.hook.Decision = sched.Allow; r.guard = "no" },
			want: outcome{tool.Denied, "DENIED", "work was denied: no", without(upTo("guard", "finalizer", "result"), "approver")}},
		{name: "a hook's ask is stricter than a rule's allow", prepare: func(r *rig) { r.hook.Verdict = ask; r.answer = yes },
			want: outcome{tool.Success, "", "ran with {\"n\":1}", everything}},
		{name: "a hook denies", prepare: func(r *rig) { r.hook.Verdict = sched.Verdict{Decision: sched.Deny, Reason: "not on Fridays"} },
			want: outcome{tool.Denied, "DENIED", "work was denied: not on Fridays", upTo("before", "finalizer", "result")}},
		{name: "a hook that fails denies", prepare: func(r *rig) {
			r.hookFn = func(*sched.Request) (sched.HookVerdict, error) {
				return sched.HookVerdict{Verdict: sched.Verdict{Decision: sched.Allow}}, errors.New("exit status 1")
			}
		}, want: outcome{tool.Denied, "DENIED", "work was denied: a hook failed: exit status 1", upTo("before", "finalizer", "result")}},
		{name: "a hook rewrites the arguments", prepare: func(r *rig) { r.hook.Args = args(7) },
			want: outcome{tool.Success, "", "ran with {\"n\":7}", without(everything, "approver")}},
		{name: "a rewrite is coerced, too", prepare: func(r *rig) { r.hook.Args = json.RawMessage(`{"n":"7"}`) },
			want: outcome{tool.Success, "", "ran with {\"n\":7}", without(everything, "approver")}},
		{name: "a rewrite is validated again", prepare: func(r *rig) { r.hook.Args = json.RawMessage(`{"n":[]}`) },
			want: outcome{tool.Failed, "INVALID_ARGS", "", upTo("before", "finalizer", "result")}},
		{name: "a rewrite that is not JSON", prepare: func(r *rig) { r.hook.Args = json.RawMessage(`{"n":1,"n":2}`) },
			want: outcome{tool.Failed, "INVALID_ARGS", "", upTo("before", "finalizer", "result")}},
		{name: "a coercion before all stages", args: json.RawMessage(`{"n":"1"}`), prepare: func(*rig) {},
			want: outcome{tool.Success, "", "ran with {\"n\":1}", without(everything, "approver")}},
		{name: "arguments that the tool itself refuses", prepare: checks(errors.New("/n: there is no such number")),
			want: outcome{tool.Failed, "INVALID_ARGS", "work was not run: /n: there is no such number", []string{"finalizer", "result"}}},
		{name: "the tool's own look at them panics", prepare: checks(nil),
			want: outcome{tool.Failed, "INVALID_ARGS", "work was not run: checking the arguments failed: lost", []string{"finalizer", "result"}}},
		{name: "a rewrite is looked at by the tool, too", prepare: func(r *rig) {
			r.hook.Args = args(7)
			checks(errors.New("/n: 7 is too much"), `{"n":7}`)(r)
		}, want: outcome{tool.Failed, "INVALID_ARGS", "work was not run, since a hook rewrote its arguments to what is not valid: /n: 7 is too much", upTo("before", "finalizer", "result")}},
		{name: "a definition that changed on the way", prepare: func(r *rig) {
			r.rule = ask
			r.answer = func(context.Context, *sched.Question) (sched.Answer, error) {
				w := r.worker()
				w.spec.Description = "does something else now"
				r.add(w)
				return sched.Answer{Allow: true}, nil
			} // BUG-CM-25
		}, want: outcome{tool.Failed, "STALE_TOOL", "the definition of work changed while the call was waiting, so it was not run; look at the tool again and repeat the call", upTo("guard", "finalizer", "result")}},
		{name: "the same definition registered again", prepare: func(r *rig) {
			r.rule = ask
			r.answer = func(context.Context, *sched.Question) (sched.Answer, error) {
				w := r.worker()
				w.run = says("ran on the new connection")
				r.add(w)
				return sched.Answer{Allow: true}, nil
			}
		}, want: outcome{tool.Success, "", "ran on the new connection", without(everything, "body")}},
		{name: "the tool is gone", prepare: func(r *rig) {
			r.rule = ask
			r.answer = func(context.Context, *sched.Question) (sched.Answer, error) {
				_ = r.reg.Replace(func(s *tool.Spec) bool { return s.Name == "work" })
				return sched.Answer{Allow: true}, nil
			}
		}, want: outcome{tool.Failed, "UNKNOWN_TOOL", `there is no tool "work" here`, upTo("guard", "finalizer", "result")}},
		{name: "a hook panics", prepare: func(r *rig) {
			r.hookFn = func(*sched.Request) (sched.HookVerdict, error) { panic("boo") }
		}, want: outcome{tool.Denied, "DENIED", "work was denied: a hook failed: boo", upTo("before", "finalizer", "result")}},
		{name: "the rules panic", prepare: func(r *rig) {
			r.opt.Policy = policyFunc(func(q *sched.Request) sched.Verdict {
				if q.Call.Name == "work" {
					panic("boo")
				}
				return sched.Verdict{Decision: sched.Allow}
			})
		}, want: outcome{tool.Denied, "DENIED", "work was denied: the rules failed: boo", without(upTo("policy", "finalizer", "result"), "policy")}},
		{name: "the approver panics", prepare: func(r *rig) {
			r.rule = ask
			r.answer = func(context.Context, *sched.Question) (sched.Answer, error) { panic("boo") }
		}, want: outcome{tool.Denied, "DENIED", "work was denied: asking for approval failed: boo", upTo("approver", "finalizer", "result")}},
		{name: "a guard panics", prepare: func(r *rig) {
			r.opt.Guards = append(r.opt.Guards, func(_ context.Context, q *sched.Request) string {
				if q.Call.Name == "work" {
					panic("boo")
				}
				return ""
			})
		}, want: outcome{tool.Denied, "DENIED", "work was denied: a guard failed: boo", without(upTo("guard", "finalizer", "result"), "approver")}},
		{name: "a hook after fails", prepare: func(r *rig) {
			r.after = func(context.Context, *sched.Request, *tool.Result) error { return errors.New("boo") }
		}, want: outcome{tool.Success, "", "ran with {\"n\":1}\n[a hook after work failed: boo]", without(everything, "approver")}},
		{name: "a hook after panics", prepare: func(r *rig) {
			r.after = func(context.Context, *sched.Request, *tool.Result) error { panic("boo") }
		}, want: outcome{tool.Success, "", "ran with {\"n\":1}\n[a hook after work failed: boo]", without(everything, "approver")}},
		{name: "a hook after changes the result", prepare: func(r *rig) {
			r.after = func(_ context.Context, _ *sched.Request, res *tool.Result) error {
				*res = tool.Fail("", "censored")
				return nil
			}
		}, want: outcome{tool.Failed, "TOOL_FAILED", "censored", without(everything, "approver")}},
		{name: "the body panics", prepare: func(r *rig) {
			r.addBody(func(context.Context, *tool.Invocation) (tool.Result, error) { panic("boo") })
		}, want: outcome{tool.Failed, "TOOL_FAILED", "work failed: boo", without(without(everything, "approver"), "body")}},
		{name: "the body fails", prepare: func(r *rig) {
			r.addBody(func(context.Context, *tool.Invocation) (tool.Result, error) {
				return tool.Result{}, errors.New("no such file")
			})
		}, want: outcome{tool.Failed, "TOOL_FAILED", "work failed: no such file", without(without(everything, "approver"), "body")}},
		{name: "the body runs out of time", prepare: func(r *rig) {
			r.addBody(func(context.Context, *tool.Invocation) (tool.Result, error) {
				return tool.Result{}, context.DeadlineExceeded
			})
		}, want: outcome{tool.Failed, "TOOL_TIMEOUT", "work ran out of time: context deadline exceeded", without(without(everything, "approver"), "body")}},
		{name: "the body makes up a status", prepare: func(r *rig) {
			r.addBody(func(context.Context, *tool.Invocation) (tool.Result, error) { return tool.Result{Status: "great"}, nil })
		}, want: outcome{tool.Failed, "TOOL_FAILED", "", without(without(everything, "approver"), "body")}},
		{name: "the finalizer panics", prepare: func(r *rig) {
			w := r.worker()
			w.finalize = func(_ context.Context, c *tool.Call, _ *tool.Result) { r.saw("finalizer", c); panic("boo") }
			r.add(w)
		}, want: outcome{tool.Success, "", "ran with {\"n\":1}\n[the finalizer of work failed: boo]", without(everything, "approver")}},
		{name: "the finalizer changes the result", prepare: func(r *rig) {
			w := r.worker()
			w.finalize = func(_ context.Context, c *tool.Call, res *tool.Result) {
				r.saw("finalizer", c)
				*res = tool.Text("final")
			}
			r.add(w)
		}, want: outcome{tool.Success, "", "final", without(everything, "approver")}},
	} {
		for _, where := range []string{"model", "program"} {
			t.Run(tc.name+"/"+where, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newRig(t, tool.Both)
					r.opt.Approver = approver{r}
					r.add(r.worker())
					if where == "program" { // exec itself is let through by all of them
						r.exempt = tool.ExecName
					}
					tc.prepare(r)
					if tc.args == nil {
						tc.args = args(1)
					}
					c := tool.Call{Name: "work", Args: tc.args}
					var got tool.Result
					if where == "program" {
						got = r.oneNested(t.Context(), c, false)
					} else {
						got = r.run(t.Context(), c)[0]
					}
					text := got.Text()
					if tc.want.Code == tool.CodeInvalidArgs && tc.want.Text == "" {
						text = ""
					}
					if diff := cmp.Diff(tc.want, outcome{got.Status, got.Code, text, r.stages("work")}); diff != "" {
						t.Errorf("want -, got +:\n%s", diff)
					}
					if got.Unasked != tc.unasked {
						t.Errorf("Unasked is %v", got.Unasked)
					}
					r.settledOnce()
				})
			})
		}
	}
}

// worker is a tool that says which arguments it got.
func (r *rig) worker() *finished {
	w := r.tool("work", tool.Ordinary)
	w.spec.Input = json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}`)
	w.run = func(_ context.Context, inv *tool.Invocation) (tool.Result, error) {
		r.saw("body", inv.Call)
		return tool.Text("ran with " + string(inv.Call.Args)), nil
	}
	return w
}

func (r *rig) addBody(run func(context.Context, *tool.Invocation) (tool.Result, error)) {
	w := r.worker()
	w.run = run
	r.add(w)
}

// What the stages are shown: the canonical arguments, the definition, what the
// call touches, who makes it, and after a rewrite the new arguments.
func TestRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, tool.Both)
		look := &fake{spec: tool.Spec{Name: "look", Input: pathArgs}, access: reading, run: says("ok")}
		r.add(look)
		var got []sched.Request
		note := func(q *sched.Request) { got = append(got, *q) }
		r.opt.Policy = policyFunc(func(q *sched.Request) sched.Verdict {
			if q.Call.Name == "look" {
				note(q)
			}
			return sched.Verdict{Decision: sched.Ask, Reason: "why"}
		})
		r.opt.Approver = approver{r}
		r.answer = func(_ context.Context, q *sched.Question) (sched.Answer, error) {
			if q.Call.Name == "look" {
				note(&q.Request)
				if q.Verdict.Reason != "why" {
					t.Errorf("asked because %q", q.Verdict.Reason)
				}
			}
			return sched.Answer{Allow: true}, nil
		}
		r.hookFn = func(q *sched.Request) (sched.HookVerdict, error) {
			if q.Call.Name != "look" {
				return sched.HookVerdict{}, nil
			}
			note(q)
			q.Call.Args, q.Call.Name = nil, "changed" // a hook may not, so it changes nothing
			return sched.HookVerdict{Args: json.RawMessage(`{ "path": "/b" }`)}, nil
		}
		r.oneNested(t.Context(), callOn("look", "/a"), false)
		entry := r.view().Visible("look")
		at := func(path string) sched.Request {
			return sched.Request{Entry: entry, Access: tool.Access{Overlap: true, Reads: []string{path}},
				Call: &tool.Call{ID: "call_1/1", ParentID: "call_1", Source: tool.FromProgram, Name: "look", Args: callOn("", path).Args}}
		}
		want := []sched.Request{at("/a"), at("/b"), at("/b")}
		want[0].Call.Args, want[0].Call.Name = nil, "changed" // in its own copy
		if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b *tool.Entry) bool { return a == b }), cmpopts.IgnoreFields(tool.Call{}, "Parent")); diff != "" {
			t.Error(diff)
		}
	})
}

// The notes of coercions reach observers and the result, a rewrite's too.
func TestNotes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, tool.Direct)
		r.add(r.worker())
		r.hook.Args = json.RawMessage(`{"n":"8"}`)
		got := r.run(t.Context(), tool.Call{Name: "work", Args: json.RawMessage(`{"n":"1"}`)})[0]
		if len(got.Notes) != 2 || len(r.events[0].Notes) != 1 || got.Notes[0] != r.events[0].Notes[0] {
			t.Errorf("result: %q, event: %q", got.Notes, r.events[0].Notes)
		}
	})
}

// A call of tool_call is resolved to the call that it names: every stage sees
// that one, under its true name (ruling 6). S0-256
func TestBridge(t *testing.T) {
	bridged := func(args string) tool.Call { return tool.Call{Name: "tool_call", Args: json.RawMessage(args)} }
	for _, tc := range []struct {
		name, args string
		flip       bool
		want       outcome
		seenAs     string
	}{
		{"a deferred tool", `{"name":"work","arguments":{"n":3}}`, false, outcome{tool.Success, "", `ran with {"n":3}`, everything}, "work"},
		{"a tool that is shown", `{"name":"shown","arguments":{}}`, false, outcome{tool.Success, "", "ran shown", everything}, "shown"},
		{"arguments that break its schema", `{"name":"work","arguments":{}}`, false, outcome{tool.Failed, "INVALID_ARGS", "", []string{"finalizer", "result"}}, "work"},
		{"an unknown name", `{"name":"nobody","arguments":{}}`, false, outcome{tool.Failed, "UNKNOWN_TOOL", `there is no tool "nobody" here`, []string{"result"}}, "nobody"},
		{"itself", `{"name":"tool_call","arguments":{}}`, false, outcome{tool.Failed, "INVALID_ARGS", "", []string{"result"}}, "tool_call"},
		{"exec, which direct has not", `{"name":"exec","arguments":{}}`, false, outcome{tool.Failed, "UNKNOWN_TOOL", `there is no tool "exec" here`, []string{"result"}}, "exec"},
		{"no arguments", `{"name":"work"}`, false, outcome{tool.Failed, "INVALID_ARGS", "", []string{"result"}}, "tool_call"},
		{"other spellings do not count", `{"Name":"work","ARGUMENTS":{}}`, false, outcome{tool.Failed, "INVALID_ARGS", "", []string{"result"}}, "tool_call"},
		{"the mode flips", `{"name":"work","arguments":{"n":3}}`, true, outcome{tool.Failed, "UNKNOWN_TOOL",
			"only exec and the direct controls can be called directly; run work inside exec: `const r = await tools.work({\"n\":3}); text(r.output)`",
			[]string{"started", "before", "policy", "approver", "guard", "finalizer", "result"}}, "work"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, tool.Direct)
				w := r.worker()
				w.spec.Deferred = true
				r.add(w, r.tool("shown", tool.Ordinary), r.tool("tool_search", 0), r.tool("tool_call", 0).fake, execTool(says("")))
				r.rule.Decision, r.opt.Approver = sched.Ask, approver{r}
				r.answer = func(context.Context, *sched.Question) (sched.Answer, error) {
					if tc.flip {
						r.flip(tool.Code)
					}
					return sched.Answer{Allow: true}, nil
				}
				got := r.run(t.Context(), bridged(tc.args))[0]
				text := got.Text()
				if tc.want.Code == tool.CodeInvalidArgs {
					text = ""
				}
				if diff := cmp.Diff(tc.want, outcome{got.Status, got.Code, text, r.stages(tc.seenAs)}); diff != "" {
					t.Errorf("want -, got +:\n%s", diff)
				}
				if got.Name != tc.seenAs {
					t.Errorf("the result is named %s", got.Name)
				}
			})
		})
	}
}

// A call of the model is refused when its tool is not as it was declared: no
// hook, rule or person sees it. What was not declared, or is the same, runs; and
// nobody beyond the executor sees the definition. A program's call and what came
// through tool_call go by other rules.
func TestShown(t *testing.T) {
	const stale = "the definition of work changed after it was declared to you, so nothing was run; the new one is declared now: read it and repeat the call"
	for _, tc := range []struct {
		name   string
		change func(*fake)
		bridge bool
		want   outcome
	}{
		{"the same", func(*fake) {}, false, outcome{tool.Success, "", `ran with {"n":1}`, everything}},
		{"found otherwise", func(f *fake) { f.spec.Hint = "other words" }, false, outcome{tool.Success, "", `ran with {"n":1}`, everything}},
		{"another description", func(f *fake) { f.spec.Description = "other" }, false, outcome{tool.Failed, "STALE_TOOL", stale, []string{"finalizer", "result"}}},
		{"through the bridge", func(f *fake) { f.spec.Description = "other" }, true, outcome{tool.Success, "", `ran with {"n":1}`, everything}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, tool.Direct)
				r.rule.Decision, r.opt.Approver = sched.Ask, approver{r}
				r.answer = func(_ context.Context, q *sched.Question) (sched.Answer, error) {
					if q.Call.Shown != nil {
						t.Error("a person's surface is given the definition")
					}
					return sched.Answer{Allow: true}, nil
				}
				w := r.worker()
				late := r.tool("late", tool.Ordinary)
				late.spec.Deferred = true
				r.add(w, late, r.tool("tool_search", 0), r.tool("tool_call", 0).fake)
				shown := r.view().Visible("work")
				next := r.worker()
				tc.change(next.fake)
				if err := r.reg.Replace(func(sp *tool.Spec) bool { return sp.Name == "work" }, next); err != nil {
					t.Fatal(err)
				}
				c := tool.Call{Name: "work", Args: json.RawMessage(`{"n":1}`), Shown: shown}
				if tc.bridge {
					c.Name, c.Args = "tool_call", json.RawMessage(`{"name":"work","arguments":{"n":1}}`)
				}
				got := r.run(t.Context(), c)[0]
				if diff := cmp.Diff(tc.want, outcome{got.Status, got.Code, got.Text(), r.stages("work")}); diff != "" {
					t.Errorf("want -, got +:\n%s", diff)
				}
			})
		})
	}
}

// The events of a call and of the calls nested in it: in order, once, with the
// true name, source and parent. S0-168 S0-176 S0-177 S0-178 S0-179 S0-181
// S0-256 S0-257 S0-258 S0-073
func TestEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, tool.Code)
		r.rule.Decision, r.opt.Approver = sched.Ask, approver{r}
		r.answer = func(_ context.Context, q *sched.Question) (sched.Answer, error) {
			return sched.Answer{Allow: true}, nil
		}
		var keep func(msg.Part)
		r.add(&fake{spec: tool.Spec{Name: "mcp__s__t", Server: "s"}, access: overlapping, run: func(_ context.Context, inv *tool.Invocation) (tool.Result, error) {
			inv.Progress(msg.TextPart("half"))
			keep = inv.Progress
			return tool.Text("secret of the nested call"), nil
		}})
		res := r.program(t.Context(), func(ctx context.Context, inv *tool.Invocation) (tool.Result, error) {
			got := collect(inv.Dispatch(ctx, []tool.Call{{ID: "mine", ParentID: "made up", Source: "made up", Name: "mcp__s__t", Args: json.RawMessage(`{}`)}}), 1)
			collect(inv.Dispatch(ctx, []tool.Call{call("nobody")}), 1)
			keep(msg.TextPart("too late"))
			if got[0].CallID != "call_1/1" || got[0].Name != "mcp__s__t" {
				t.Errorf("nested result: %+v", got[0])
			}
			return tool.Text("summary"), nil
		})
		if res.Text() != "summary" { // all that the outer model gets
			t.Errorf("exec: %q", res.Text())
		}
		type event struct{ Kind, ID, Parent, Source, Name, Text string }
		var got []event
		for _, e := range r.events {
			text := e.Part.Text
			if e.Result != nil {
				text = e.Result.Text()
			}
			got = append(got, event{string(e.Kind), e.Call.ID, e.Call.ParentID, string(e.Call.Source), e.Call.Name, text})
		}
		outer := func(kind, text string) event { return event{kind, "call_1", "", "model", "exec", text} }
		inner := func(kind, text string) event {
			return event{kind, "call_1/1", "call_1", "code_mode", "mcp__s__t", text}
		}
		want := []event{
			outer("started", ""), outer("waiting", ""), outer("decided", ""), outer("running", ""),
			inner("started", ""), inner("waiting", ""), inner("decided", ""), inner("running", ""), inner("progress", "half"), inner("settled", "secret of the nested call"),
			{"settled", "call_1/2", "call_1", "code_mode", "nobody", `there is no tool "nobody" here`},
			outer("settled", "summary"),
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		for i := 1; i < len(r.events); i++ {
			if r.events[i].Time.Before(r.events[i-1].Time) {
				t.Errorf("event %d is older than the one before", i)
			}
		}
		r.settledOnce()
	})
}

// An answer reaches the call that asked, though several ask at once. S0-180
func TestAnswersReachTheirCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, tool.Both)
		r.rule.Decision, r.opt.Approver = sched.Ask, approver{r}
		r.answer = func(_ context.Context, q *sched.Question) (sched.Answer, error) {
			return sched.Answer{Allow: q.Call.Name != "b", Reason: q.Call.ID}, nil
		}
		for _, n := range []string{"a", "b", "c"} {
			r.add(&fake{spec: tool.Spec{Name: n}, access: overlapping, run: says("ran " + n)})
		}
		want := []string{"ran a", "b was denied by the user, who says: call_1/2", "ran c"}
		if diff := cmp.Diff(want, texts(r.nested(t.Context(), call("a"), call("b"), call("c")))); diff != "" {
			t.Error(diff)
		}
	})
}

// A tool's slice is never written to: results are its own.
func TestPartsAreNotShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, tool.Direct)
		parts := make([]msg.Part, 1, 2)
		parts[0] = msg.TextPart("cached")
		r.addBody(func(context.Context, *tool.Invocation) (tool.Result, error) { return tool.Result{Parts: parts}, nil })
		r.after = func(context.Context, *sched.Request, *tool.Result) error { return errors.New("boo") }
		r.run(t.Context(), tool.Call{Name: "work", Args: json.RawMessage(`{"n":1}`)})
		if diff := cmp.Diff([]msg.Part{msg.TextPart("cached"), {}}, parts[:2]); diff != "" {
			t.Error(diff)
		}
	})
}

// A call that its model could not write down as a whole is refused with the
// text that it brings, seen by the final observer alone, whatever there is of
// its arguments and whoever could have run it.
func TestFault(t *testing.T) {
	for _, tc := range []struct {
		name string
		call tool.Call
	}{
		{"cut off", tool.Call{Name: "work", Args: json.RawMessage(`{"n":`)}},
		{"no name", tool.Call{Args: json.RawMessage(`{}`)}},
		{"whole, and faulty all the same", tool.Call{Name: "work", Args: json.RawMessage(`{"n":1}`)}},
		{"unknown", tool.Call{Name: "wrok", Args: json.RawMessage(`{"n":1}`)}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRig(t, tool.Direct)
			r.add(r.tool("work", tool.Ordinary))
			tc.call.Fault = "The call was cut off; make it again."
			got := r.run(t.Context(), tc.call)[0]
			if got.Code != tool.CodeInvalidArgs || got.Text() != tc.call.Fault {
				t.Errorf("%s: %s", got.Code, got.Text())
			}
			if seen := r.stages(tc.call.Name); slices.Contains(seen, "body") || seen[len(seen)-1] != "result" {
				t.Errorf("seen by %v", seen)
			}
		})
	}
}

// Recording that a call starts takes a while. One that was cancelled meanwhile
// does not run.
func TestCancelledWhileRecorded(t *testing.T) {
	r := newRig(t, tool.Direct)
	r.add(r.tool("work", tool.Ordinary))
	ctx, cancel := context.WithCancel(t.Context())
	r.begin = func() error { cancel(); return nil }
	got := r.run(ctx, tool.Call{Name: "work", Args: json.RawMessage(`{"n":1}`)})[0]
	if got.Code != tool.CodeAbortedBefore || slices.Contains(r.stages("work"), "body") {
		t.Errorf("%s: %s, seen by %v", got.Code, got.Text(), r.stages("work"))
	}
}
