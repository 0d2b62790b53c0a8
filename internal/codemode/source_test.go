package codemode

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capstan/internal/sandbox"
)

func TestUnfence(t *testing.T) {
	for _, tc := range []struct {
		name, in, want string
		fenced         bool
	}{
		{"plain", "text(1)", "text(1)", false},
		{"js", "```js\ntext(1)\n```", "\ntext(1)\n", true},
		{"no language", "```\ntext(1)\n```\n", "\ntext(1)\n", true},
		{"blank lines around", "\n\n```typescript\ntext(1)\n```\n\n", "\n\n\ntext(1)\n", true},
		{"longer fence", "````js\nconst s = `\n```\n`;\n````", "\nconst s = `\n```\n`;\n", true},
		{"tildes", "~~~js\ntext(1)\n~~~", "\ntext(1)\n", true},
		{"CRLF", "```js\r\ntext(1)\r\n```\r\n", "\ntext(1)\r\n", true},
		{"empty program", "```js\n```", "\n", true},
		{"not closed", "```js\ntext(1)", "\ntext(1)", true},
		{"indented", "  ```js\n  text(1)\n  ```", "\n  text(1)\n", true},
		{"a script", "#!/usr/bin/env capstan\ntext(1)", "///usr/bin/env capstan\ntext(1)", true},
		{"closed in the middle of a line", "```js\ntext(1) ```", "```js\ntext(1) ```", false},
		{"template literal", "`a`\ntext(1)\n`b`", "`a`\ntext(1)\n`b`", false},
		{"empty", "", "", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, fenced := unfence(tc.in)
			if got != tc.want || fenced != tc.fenced {
				t.Errorf("unfence(%q) = %q, %v; want %q, %v", tc.in, got, fenced, tc.want, tc.fenced)
			}
		})
	}
}

// A fence keeps its lines, so that positions in what is left are the author's.
func FuzzUnfence(f *testing.F) {
	for _, s := range []string{"```js\na\n```", "~~~\n\n~~~", "``````", "```\n```", "\ufeff```\nx\n```"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, fenced := unfence(s)
		if !fenced {
			if got != s {
				t.Fatalf("unfence(%q) changed it to %q", s, got)
			}
			return
		}
		want := strings.Split(s, "\n")
		for i, line := range strings.Split(got, "\n") {
			if line != "" && line != want[i] && !(i == 0 && strings.HasPrefix(s, "#!")) {
				t.Fatalf("unfence(%q): line %d is %q, was %q", s, i+1, line, want[i])
			}
		}
	})
}

func TestTypeArguments(t *testing.T) {
	for source, want := range map[string]bool{
		`await tools.f<Foo>({})`:                            true,
		`tools . read_file < Array<{a: string}> > ({})`:     true,
		`tools.a<Map<string, number>>(x)`:                   true,
		`const big = tools.n < 3; f(2)`:                     false,
		`for (let i = 0; i < tools.length; i++) f(i > (2))`: false,
		`text(1 < 2, 3 > (4))`:                              false,
	} {
		if got := typeArguments().MatchString(source); got != want {
			t.Errorf("%q taken for type arguments: %v, want %v", source, got, want)
		}
	}
}

func TestErrorText(t *testing.T) {
	long := "const r = [" + strings.Repeat("1, ", 100) + "2]; r.x.y"
	for _, tc := range []struct {
		name   string
		err    sandbox.Error
		source string
		want   string
	}{
		{"with a position", sandbox.Error{Kind: sandbox.KindStack, Name: "RangeError", Message: "too deep", Line: 2, Column: 3}, "a\nb\tc\r\nd",
			"error: stack: RangeError: too deep\nat line 2, column 3\nb c\n  ^"},
		{"without one", sandbox.Error{Kind: sandbox.KindTimeout, Message: "30 s of CPU time are used up"}, "",
			"error: timeout: Error: 30 s of CPU time are used up"},
		{"beyond the source", sandbox.Error{Kind: sandbox.KindException, Name: "E", Message: "m", Line: 9, Column: 1}, "a",
			"error: exception: E: m\nat line 9, column 1"},
		{"a long line", sandbox.Error{Kind: sandbox.KindException, Name: "TypeError", Message: "m", Line: 1, Column: 316}, long,
			"error: exception: TypeError: m\nat line 1, column 316\n…, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2]; r.x.y\n" + strings.Repeat(" ", 61) + "^"},
		{"hostile text", sandbox.Error{Kind: sandbox.KindException, Name: "E", Message: "m", Line: 1, Column: 4}, "a\x1b[31m\u202eb",
			"error: exception: E: m\nat line 1, column 4\na·[31m·b\n   ^"},
		{"other line ends", sandbox.Error{Kind: sandbox.KindException, Name: "E", Message: "m", Line: 4, Column: 1}, "a\r\nb\rc\u2028foo()\r\n",
			"error: exception: E: m\nat line 4, column 1\nfoo()\n^"},
		{"advice", sandbox.Error{Kind: sandbox.KindException, Name: "ReferenceError", Message: "console is not defined"}, "console.log(1)",
			"error: exception: ReferenceError: console is not defined (exec has no console: print with text(value))"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, ErrorText(&tc.err, tc.source)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
