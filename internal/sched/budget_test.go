package sched_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"capstan/internal/msg"
	"capstan/internal/sched"
	"capstan/internal/tool"
)

// One output budget for every kind of tool: the head and the tail stay, no
// character is split, the end of a failure comes first, and the whole lies in a
// file that the result names (ruling 16). S0-016 S0-167 S0-255 BUG-OT-01
// BUG-OT-03 BUG-OT-05 BUG-OT-06
func TestBudget(t *testing.T) {
	digits := "0123456789012345678901234567890123456789" // 40
	x170 := strings.Repeat("x", 170)
	picture := msg.Part{Kind: msg.Image, MIMEType: "image/png", Data: []byte("12345"), Text: strings.Repeat("c", 30)}
	text := func(s ...string) (parts []msg.Part) {
		for _, p := range s {
			parts = append(parts, msg.TextPart(p))
		}
		return parts
	}
	type result struct {
		Parts     []msg.Part
		Data      string
		Truncated bool
		File      string
		Spilled   []string
	}
	for _, tc := range []struct {
		name   string
		spec   tool.Spec
		nested bool
		limit  int // 20 unless said: bytes of a nested result, notice and all, or characters of a model's
		res    tool.Result
		keep   string // "fails", "none"
		want   result
	}{
		{name: "fits", res: tool.Text(digits[:20]), want: result{Parts: text(digits[:20])}},
		{name: "fits in characters", res: tool.Text(strings.Repeat("é", 20)), want: result{Parts: text(strings.Repeat("é", 20))}},
		{name: "one too many", res: tool.Text(digits[:21]),
			want: result{Parts: text("0123456789\n[… 1 characters, 0 lines left out; the whole is in /spill/call_1 …]\n1234567890"), Truncated: true, File: "/spill/call_1", Spilled: []string{digits[:21]}}},
		{name: "what its tool has bounded", res: tool.Result{Parts: text(strings.Repeat("é", 256<<10)), Uncut: true}, want: result{Parts: text(strings.Repeat("é", 256<<10))}},
		{name: "not for a program", nested: true, limit: 200, res: tool.Result{Parts: text(x170 + x170), Uncut: true}, keep: "none",
			want: result{Parts: text(x170[:25] + "\n[… 289 bytes, 0 lines left out; the rest was not kept …]\n" + x170[:26]), Truncated: true}},
		{name: "lines are counted", res: tool.Text("0123456789a\nb\nc0123456789"),
			want: result{Parts: text("0123456789\n[… 5 characters, 2 lines left out; the whole is in /spill/call_1 …]\n0123456789"), Truncated: true, File: "/spill/call_1", Spilled: []string{"0123456789a\nb\nc0123456789"}}},
		{name: "a failure keeps more of its end", res: tool.Fail(tool.CodeFailed, "%s", digits),
			want: result{Parts: text("0123\n[… 20 characters, 0 lines left out; the whole is in /spill/call_1 …]\n4567890123456789"), Truncated: true, File: "/spill/call_1", Spilled: []string{digits}}},
		{name: "characters count for a model", res: tool.Text(strings.Repeat("é", 10) + "x" + strings.Repeat("😀", 10)),
			want: result{Parts: text(strings.Repeat("é", 10) + "\n[… 1 characters, 0 lines left out; the whole is in /spill/call_1 …]\n" + strings.Repeat("😀", 10)), Truncated: true, File: "/spill/call_1", Spilled: []string{strings.Repeat("é", 10) + "x" + strings.Repeat("😀", 10)}}},
		{name: "a server's tool", spec: tool.Spec{Server: "s"}, res: tool.Text(digits[:21]),
			want: result{Parts: text("0123456789\n[… 1 characters, 0 lines left out; the whole is in /spill/call_1 …]\n1234567890"), Truncated: true, File: "/spill/call_1", Spilled: []string{digits[:21]}}},
		{name: "a gateway", spec: tool.Spec{Class: tool.Gateway}, res: tool.Text(digits[:21]),
			want: result{Parts: text("0123456789\n[… 1 characters, 0 lines left out; the whole is in /spill/call_1 …]\n1234567890"), Truncated: true, File: "/spill/call_1", Spilled: []string{digits[:21]}}},
		{name: "several parts count together, the picture stays", res: tool.Result{Parts: append(text("0123456789", "0123456789"), picture)},
			want: result{Parts: append(text("0123456789\n[… 1 characters, 1 lines left out; the whole is in /spill/call_1 …]\n0123456789"), picture), Truncated: true, File: "/spill/call_1", Spilled: []string{"0123456789\n0123456789"}}},
		{name: "captions do not make a text longer", res: tool.Result{Parts: append(text("short"), picture)}, want: result{Parts: append(text("short"), picture)}},
		{name: "nor a nested one", nested: true, res: tool.Result{Parts: append(text("short"), picture)}, want: result{Parts: append(text("short"), picture)}},
		{name: "the tool has kept the whole itself", res: tool.Result{Parts: text(digits[:21]), File: "/own"},
			want: result{Parts: text("0123456789\n[… 1 characters, 0 lines left out; the whole is in /own …]\n1234567890"), Truncated: true, File: "/own"}},
		{name: "keeping fails", res: tool.Text(digits[:21]), keep: "fails",
			want: result{Parts: text("0123456789\n[… 1 characters, 0 lines left out; the rest could not be kept: disk full …]\n1234567890"), Truncated: true}},
		{name: "keeping is not possible", res: tool.Text(digits[:21]), keep: "none",
			want: result{Parts: text("0123456789\n[… 1 characters, 0 lines left out; the rest was not kept …]\n1234567890"), Truncated: true}},
		{name: "nested: bytes count", nested: true, limit: 179, res: tool.Text(strings.Repeat("é", 90)),
			want: result{Parts: text("ééééé\n[… 160 bytes, 0 lines left out; the whole is in /spill/call_1/1 …]\nééééé"), Truncated: true, File: "/spill/call_1/1", Spilled: []string{strings.Repeat("é", 90)}}},
		{name: "nested: no character is split", nested: true, limit: 179, res: tool.Text("12345678é" + x170 + "é34567890"),
			want: result{Parts: text("12345678é\n[… 170 bytes, 0 lines left out; the whole is in /spill/call_1/1 …]\né34567890"), Truncated: true, File: "/spill/call_1/1", Spilled: []string{"12345678é" + x170 + "é34567890"}}},
		{name: "nested: a cut inside a character backs up", nested: true, limit: 179, res: tool.Text("123456789😀" + x170 + "😀123456789"),
			want: result{Parts: text("123456789\n[… 178 bytes, 0 lines left out; the whole is in /spill/call_1/1 …]\n123456789"), Truncated: true, File: "/spill/call_1/1", Spilled: []string{"123456789😀" + x170 + "😀123456789"}}},
		{name: "nested: a value that is too big", nested: true, limit: 100, res: tool.Result{Parts: text("x"), Data: json.RawMessage(fmt.Sprintf("%q", strings.Repeat("x", 150)))},
			want: result{Parts: text("x", "[the structured content was left out: 152 bytes, more than there is room for of 99]"), Truncated: true}},
		{name: "the tool has cut it before", res: tool.Result{Parts: text(digits), Truncated: true, File: "/own"},
			want: result{Parts: text("0123456789\n[… more than 20 characters, 0 lines left out; more of it is in /own …]\n0123456789"), Truncated: true, File: "/own"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var spilled []string
				if tc.limit == 0 {
					tc.limit = 20
				}
				o := sched.Options{ModelChars: tc.limit, NestedBytes: tc.limit}
				switch tc.keep {
				case "":
					o.Spill = func(id, text string) (string, error) { spilled = append(spilled, text); return "/spill/" + id, nil }
				case "fails":
					o.Spill = func(string, string) (string, error) { return "", errors.New("disk full") }
				}
				tc.spec.Name = "work"
				r := newRig(t, tool.Both).bare(o)
				r.add(&fake{spec: tc.spec, access: overlapping, run: func(context.Context, *tool.Invocation) (tool.Result, error) { return tc.res, nil }})
				var got tool.Result
				if tc.nested {
					got = r.nested(t.Context(), call("work"))[0]
				} else {
					got = r.run(t.Context(), call("work"))[0]
				}
				if diff := cmp.Diff(tc.want, result{got.Parts, string(got.Data), got.Truncated, got.File, spilled}); diff != "" {
					t.Errorf("want -, got +:\n%s", diff)
				}
			})
		})
	}
}

// Pictures of a nested result cannot be cut: what there is no room for is left
// out, and the result says so.
func TestNestedMedia(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, tool.Both).bare(sched.Options{NestedBytes: 200})
		parts := []msg.Part{
			{Kind: msg.Image, MIMEType: "image/png", Data: make([]byte, 120)},
			{Kind: msg.Image, MIMEType: "image/gif", Data: make([]byte, 60)},
			{Kind: msg.Audio, MIMEType: "audio/wav", Data: make([]byte, 24)},
		}
		r.add(&fake{spec: tool.Spec{Name: "work"}, access: overlapping, run: func(context.Context, *tool.Invocation) (tool.Result, error) {
			return tool.Result{Parts: parts}, nil
		}})
		got := r.nested(t.Context(), call("work"))[0]
		want := []msg.Part{parts[0], msg.TextPart("[a part of type image/gif, which travels in base64, was left out: 80 bytes, more than there is room for of 197]"), parts[2]}
		if diff := cmp.Diff(want, got.Parts); diff != "" || !got.Truncated {
			t.Errorf("truncated %v, %s", got.Truncated, diff)
		}
		if parts[1].Kind != msg.Image {
			t.Error("the tool's own slice was changed")
		}
	})
}

// The budget of a program's call is not that of a model's: a nested result goes
// to the program whole, and exec's is cut once.
func TestBudgetOfTheReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, tool.Both).bare(sched.Options{})
		long := strings.Repeat("x", 100_000)
		r.add(&fake{spec: tool.Spec{Name: "work"}, access: overlapping, run: says(long)})
		res := r.program(t.Context(), func(ctx context.Context, inv *tool.Invocation) (tool.Result, error) {
			nested := collect(inv.Dispatch(ctx, []tool.Call{call("work")}), 1)[0]
			if nested.Text() != long || nested.Truncated {
				t.Errorf("nested: %d bytes, truncated %v", len(nested.Text()), nested.Truncated)
			}
			return nested, nil
		})
		head, tail, _ := strings.Cut(res.Text(), "\n[… 70000 characters, 0 lines left out; the rest was not kept …]\n")
		if head != long[:15000] || tail != head {
			t.Errorf("exec: %d and %d bytes", len(head), len(tail))
		}
	})
}

// What a program gets is never larger than the sandbox takes, with all that is
// said about the cut; a failure's message, which can grow six-fold on its way,
// is much smaller. S0-255
func TestNestedFits(t *testing.T) {
	const most = 16 << 20
	r := newRig(t, tool.Both).bare(sched.Options{Spill: func(id, _ string) (string, error) { return "/spill/" + id, nil }})
	var res tool.Result
	r.add(&fake{spec: tool.Spec{Name: "work"}, access: overlapping, run: func(context.Context, *tool.Invocation) (tool.Result, error) { return res, nil }})
	for _, tc := range []struct {
		name      string
		res       tool.Result
		least     int // of what has to be left
		most      int
		truncated bool
	}{
		{"as much as may be", tool.Text(strings.Repeat("x", most)), most, most, false},
		{"one byte more", tool.Text(strings.Repeat("x", most+1)), most - 1000, most, true},
		{"a failure of as much as may be", tool.Fail(tool.CodeTimeout, "%s", strings.Repeat("\x01", most/16)), most / 16, most / 16, false},
		{"a failure of more", tool.Fail(tool.CodeTimeout, "%s", strings.Repeat("\x01", most)), most/16 - 1000, most / 16, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			res = tc.res
			got := r.nested(t.Context(), call("work"))[0]
			if n := len(got.Text()); n < tc.least || n > tc.most || got.Truncated != tc.truncated || tc.truncated != (got.File != "") || got.Code != tc.res.Code {
				t.Errorf("%d bytes, of %d to %d; truncated %v, file %q, code %q", n, tc.least, tc.most, got.Truncated, got.File, got.Code)
			}
			if tc.truncated && !strings.Contains(got.Text(), "the whole is in "+got.File) {
				t.Error("the text does not name the file")
			}
		})
	}
}

// Whatever the text and the limit, what is left of it is the text's own head
// and tail, within the limit, and UTF-8 stays UTF-8. BUG-OT-01
func FuzzBudget(f *testing.F) {
	f.Add(strings.Repeat("a", 29998)+"😀"+strings.Repeat("b", 10), 100, true, true)
	f.Add(strings.Repeat("\x80", 50), 20, true, false)
	f.Add("a\xffé😀\n", 2, false, true)
	f.Add(strings.Repeat("é", 300), 349, true, false)
	f.Fuzz(func(t *testing.T, s string, limit int, nested, failed bool) {
		limit = 1 + (limit&0x7fffffff)%400
		o := sched.Options{ModelChars: limit, NestedBytes: limit, Spill: func(string, string) (string, error) { return "F", nil }}
		r := newRig(t, tool.Both).bare(o)
		r.add(&fake{spec: tool.Spec{Name: "work"}, access: overlapping, run: func(context.Context, *tool.Invocation) (tool.Result, error) {
			if failed {
				return tool.Fail(tool.CodeFailed, "%s", s), nil
			}
			return tool.Text(s), nil
		}})
		var got tool.Result
		if nested {
			got = r.nested(t.Context(), call("work"))[0]
		} else {
			got = r.run(t.Context(), call("work"))[0]
		}
		size := utf8.RuneCountInString(s)
		if nested {
			size = len(s)
		}
		if size <= limit {
			if got.Text() != s || got.Truncated {
				t.Fatalf("cut without need: %q", got.Text())
			}
			return
		}
		head, rest, _ := strings.Cut(got.Text(), "\n[… ")
		_, tail, ok := strings.Cut(rest, "F …]\n")
		if !ok || !strings.HasPrefix(s, head) || !strings.HasSuffix(s, tail) || len(head)+len(tail) > len(s) {
			t.Fatalf("%q is not head and tail of %q", got.Text(), s)
		}
		left := utf8.RuneCountInString(head) + utf8.RuneCountInString(tail)
		if nested {
			left = len(head) + len(tail)
		}
		if nested && limit >= len("the whole is in F")+128 && len(got.Text()) > limit {
			t.Fatalf("%d bytes of %d, with the notice", len(got.Text()), limit)
		}
		if left > limit || !got.Truncated || got.File != "F" {
			t.Fatalf("%d of %d left, %+v", left, limit, got)
		}
		if utf8.ValidString(s) && !utf8.ValidString(got.Text()) {
			t.Fatalf("a character was split: %q", got.Text())
		}
	})
}
