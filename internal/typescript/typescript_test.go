package typescript

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Hostile sources cost their time and memory in a process that is ended. The
// first two are ended by its limits; without limits they would be answered.
func TestHostileSource(t *testing.T) {
	for name, tc := range map[string]struct {
		source string
		ended  bool
	}{
		"type arguments": {strings.Repeat("x<", 60_000), true},
		"parentheses":    {"let q: number = " + strings.Repeat("(", 120_000), true},
		"arrows":         {strings.Repeat("a?(", 40_000), false},
		"templates":      {strings.Repeat("`${", 40_000), false},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := Parse(t.Context(), tc.source)
			if err == nil && r.OK {
				t.Error("it was understood")
			}
			if tc.ended && err == nil {
				t.Errorf("it was answered: %+v", r.Fault)
			}
		})
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r, err := Parse(ctx, "text(1)"); err == nil {
		t.Errorf("a cancelled parser answered %+v", r)
	}
}

// The process answers what the parser answers.
func TestParserInProcess(t *testing.T) {
	r, err := Parse(t.Context(), "const a: number = 1; text(a)")
	if err != nil {
		t.Fatal(err)
	}
	want := read("const a: number = 1; text(a)")
	if diff := cmp.Diff(want, *r); diff != "" {
		t.Error(diff)
	}
}

// Positions of a program whose types were taken away are those of the program
// as it was written.
func TestStripTypesKeepsPositions(t *testing.T) {
	source := `// a comment
interface Row {
  name: string;
}

const rows: Row[] = [{ name: "a" }];
    text((rows as Row[])[0].name); fail(rows);`
	r := read(source)
	if !r.OK {
		t.Fatal("not understood")
	}
	if strings.Contains(r.Code, "Row") {
		t.Fatalf("types are left:\n%s", r.Code)
	}
	for _, word := range []string{"text", "fail", `"a"`} {
		line, column := position(r.Code, word)
		gotLine, gotColumn := r.Position(line, column)
		wantLine, wantColumn := position(source, word)
		if gotLine != wantLine || gotColumn != wantColumn {
			t.Errorf("%s is at %d:%d, mapped to %d:%d, want %d:%d", word, line, column, gotLine, gotColumn, wantLine, wantColumn)
		}
	}
}

func position(source, word string) (line, column int) {
	i := strings.Index(source, word)
	return strings.Count(source[:i], "\n") + 1, i - strings.LastIndexByte(source[:i], '\n')
}

func TestStripTypesRefuses(t *testing.T) {
	for _, source := range []string{"const x: = 3", "let {", "interface X", "a b"} {
		if r := read(source); r.OK {
			t.Errorf("%q was read as %q", source, r.Code)
		}
	}
}

func FuzzStripTypes(f *testing.F) {
	for _, s := range []string{"const a: number = 1", "enum E { A }", "} f(); async function g(){", "<T>(x: T) => x", "text`${1 as any}`", "\x00", "//\u2028x"} {
		f.Add(s, 1, 1)
	}
	f.Fuzz(func(t *testing.T, s string, line, column int) {
		if r := read(s); r.OK {
			if l, c := r.Position(line, column); l < 0 || c < 0 {
				t.Fatalf("position %d:%d of %q is %d:%d", line, column, s, l, c)
			}
		}
	})
}

func TestExplainSyntax(t *testing.T) {
	for _, tc := range []struct {
		name, source string
		want         Fault
	}{
		{"what was expected", "text(1", Fault{1, 7, `expected ")" but found the end of the program`}},
		{"a later line", "const a = 1;\nconst b = ];", Fault{2, 11, `unexpected "]"`}},
		{"return and await are fine", "if (await 1) return 2;\n)", Fault{2, 1, `unexpected ")"`}},
		{"in typed source, the error and not the type", "const a: number = 1;\nconst b: = 2;", Fault{2, 10, `unexpected "="`}},
		{"closing the wrapper", "}); throw 1; (async()=>{", Fault{1, 1, `unexpected "}"`}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, explain(tc.source)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
