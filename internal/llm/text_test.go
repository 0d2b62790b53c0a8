package llm

import (
	"encoding/json"
	"testing"
	"unicode/utf8"
)

// However a text is cut, as bytes or as escapes, the same comes out.
func TestJoiner(t *testing.T) {
	const text = "a é 漢字 🙂 \U0010FFFF z"
	for i := 0; i <= len(text); i++ {
		for k := i; k <= len(text); k++ {
			var j Joiner
			got := ""
			for _, piece := range []string{text[:i], text[i:k], text[k:]} {
				s := j.Push([]byte(piece))
				if !utf8.ValidString(s) {
					t.Fatalf("cut at %d and %d: %q is no UTF-8", i, k, s)
				}
				got += s
			}
			if got += j.Flush(); got != text {
				t.Fatalf("cut at %d and %d: %q", i, k, got)
			}
		}
	}
	tests := []struct {
		pieces []string // JSON strings
		want   string
	}{
		{[]string{`"\ud83d"`, `"\ude42"`}, "🙂"},
		{[]string{`"x\ud83d\ude42y"`}, "x🙂y"},
		{[]string{`"\ud83d"`, `""`, `"\ude42"`}, "🙂"},
		{[]string{`"\ud83d"`, `"x"`}, "\uFFFDx"},
		{[]string{`"\ude42"`, `"\ud83d"`}, "\uFFFD\uFFFD"},
		{[]string{`"\ud83d\ud83d\ude42"`}, "\uFFFD🙂"},
		{[]string{"\"\xe6\xbc\"", "\"\xa2\""}, "漢"},
		{[]string{"\"\xe6\xbc\"", `"x"`}, "\uFFFD\uFFFDx"},
		{[]string{"\"\xff\xfe\""}, "\uFFFD\uFFFD"},
		{[]string{`"\"\\\/\b\f\n\r\t\u0041\u00E9"`}, "\"\\/\b\f\n\r\tAé"},
		{[]string{`null`, `12`, `"x"`, `{"a": 1}`}, `12x{"a": 1}`},
	}
	for _, tt := range tests {
		var j Joiner
		got := ""
		for _, raw := range tt.pieces {
			var p Piece
			if err := json.Unmarshal([]byte(raw), &p); err != nil {
				t.Fatal(err)
			}
			got += j.Push(p.Text)
		}
		if got += j.Flush(); got != tt.want {
			t.Errorf("%s became %q, want %q", tt.pieces, got, tt.want)
		}
	}
}

// A Piece reads every JSON string as encoding/json does, but for halves and
// bytes that are no UTF-8; and what comes out of a Joiner is UTF-8.
func FuzzPiece(f *testing.F) {
	f.Add([]byte(`"a\ud83d\ude42\n"`), 3)
	f.Add([]byte("\"\xf0\x9f\x99\x82\""), 2)
	f.Fuzz(func(t *testing.T, raw []byte, cut int) {
		var p Piece
		if json.Unmarshal(raw, &p) != nil {
			return
		}
		var j Joiner
		whole := j.Push(p.Text)
		whole += j.Flush()
		if cut >= 0 && cut <= len(p.Text) {
			if a := j.Push(p.Text[:cut]); a+j.Push(p.Text[cut:])+j.Flush() != whole && utf8.Valid(p.Text) {
				t.Errorf("%q cut at %d is not %q", p.Text, cut, whole)
			}
		}
		var want string
		if !utf8.ValidString(whole) || json.Unmarshal(raw, &want) == nil && raw[0] == '"' && utf8.Valid(raw) && want != whole {
			t.Errorf("%s became %q, want %q", raw, whole, want)
		}
	})
}

func TestLoose(t *testing.T) {
	for raw, want := range map[string]Loose{`"a"`: "a", `7`: "7", `null`: "", `true`: "true", `{"a":1}`: `{"a":1}`} {
		var l Loose
		if err := json.Unmarshal([]byte(raw), &l); err != nil || l != want {
			t.Errorf("%s became %q (%v)", raw, l, err)
		}
	}
}
