package shell

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/simplifiedchinese"
)

// decodeIn decodes text in pieces of n bytes.
func decodeIn(text string, n int, legacy encoding.Encoding) string {
	d := decoder{legacy: legacy}
	var out strings.Builder
	for len(text) > 0 {
		k := min(n, len(text))
		out.Write(d.write([]byte(text[:k])))
		text = text[k:]
	}
	out.Write(d.flush())
	return out.String()
}

func TestDecode(t *testing.T) {
	gbk := simplifiedchinese.GBK
	tests := []struct {
		name, in string
		legacy   encoding.Encoding
		want     string
	}{
		{"empty", "", nil, ""},
		{"one byte", "a", nil, "a"},
		{"ASCII", "plain\r\ntext\t\x1b[1m", nil, "plain\r\ntext\t\x1b[1m"},
		{"UTF-8", "你好 ä 😀\n", nil, "你好 ä 😀\n"},
		{"UTF-8 and a legacy locale", "你好 ä 😀\n", gbk, "你好 ä 😀\n"}, // BUG-EN-01
		{"GBK", "\xc4\xe3\xba\xc3\n", gbk, "你好\n"},                 // BUG-EN-01
		{"GBK without newline", "a \xc4\xe3", gbk, "a 你"},
		{"GBK and UTF-8 lines", "one \xc4\xe3\nöne ä\nend", gbk, "one 你\nöne ä\nend"},
		{"Latin-1", "na\xefve\n", charmap.ISO8859_1, "naïve\n"},
		{"Shift JIS with ASCII in a second byte", "\x83\x5c\x83\x7c\n", japanese.ShiftJIS, "ソポ\n"},
		{"GBK without a legacy locale", "ok \xc4\xe3\xba\xc3 ok\n", nil, "ok � ok\n"},
		{"wrong bytes", "a\xff\xfe\xfdb\xc3", nil, "a�b�"},
		{"cut sequence", "abc \xe4\xbd", nil, "abc �"},
		{"NUL in text", "a.go\x00bb.go\x00", nil, "a.go\x00bb.go\x00"}, // find -print0
		{"UTF-16LE with a mark", "\xff\xfeh\x00i\x00\x60\x4f", nil, "hi你"},
		{"UTF-16BE with a mark", "\xfe\xff\x00h\x00i\x4f\x60", nil, "hi你"},
		{"UTF-16LE", "h\x00e\x00l\x00l\x00o\x00\n\x00", nil, "hello\n"},
		{"UTF-16BE", "\x00h\x00e\x00l\x00l\x00o\x00\n", nil, "hello\n"},
		{"UTF-16LE and a legacy locale", "h\x00e\x00l\x00l\x00o\x00\n\x00", gbk, "hello\n"},
		{"UTF-16LE with few letters of ASCII", "\x02\x90\x28\x75\x8e\x4e \x00L\x00i\x00n\x00u\x00x\x00", nil, "适用于 Linux"},
		{"surrogates", "\xff\xfe\x3d\xd8\x00\xde", nil, "😀"},
		{"half a surrogate pair", "\xff\xfe\x3d\xd8a\x00", nil, "�a"},
		{"odd byte", "\xff\xfea\x00b", nil, "a�"},
	}
	for _, tt := range tests {
		// BUG-EN-05: how the bytes are split makes no difference.
		for _, n := range []int{1, 2, 3, 5, 64, 1 << 20} {
			if diff := cmp.Diff(tt.want, decodeIn(tt.in, n, tt.legacy)); diff != "" {
				t.Errorf("%s, %d bytes at a time (-want +got):\n%s", tt.name, n, diff)
			}
		}
	}
}

// ASCII and whole characters do not wait for what comes next.
func TestDecodeAtOnce(t *testing.T) {
	for _, legacy := range []encoding.Encoding{nil, simplifiedchinese.GBK} {
		d := decoder{legacy: legacy}
		if got := string(d.write([]byte("Continue? "))); got != "Continue? " {
			t.Errorf("got %q at once, want the whole prompt", got)
		}
	}
	d := decoder{}
	if got := string(d.write([]byte("你好\xe4"))); got != "你好" {
		t.Errorf("got %q at once", got)
	}
}

// A line without an end is not held for ever.
func TestDecodeLongLine(t *testing.T) {
	d := decoder{legacy: simplifiedchinese.GBK}
	line := strings.Repeat("\xc4\xe3 ", maxLine)
	got := string(d.write([]byte(line)))
	if len(d.held) > maxLine {
		t.Errorf("%d bytes are held", len(d.held))
	}
	got += string(d.flush())
	if want := strings.Repeat("你 ", maxLine); got != want {
		t.Error("the line is not what it was")
	}
}

// Whatever comes out is UTF-8, does not depend on how it came in, and is what
// came in when that was UTF-8.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{"text", "h\x00i\x00", "\xff\xfe", "\xc4\xe3\n", "a\xffb", "\x00\x00\x00\x00"} {
		f.Add([]byte(s), byte(1), false)
		f.Add([]byte(s), byte(3), true)
	}
	f.Fuzz(func(t *testing.T, b []byte, n byte, old bool) {
		var legacy encoding.Encoding
		if old {
			legacy = simplifiedchinese.GBK
		}
		whole := decodeIn(string(b), len(b)+1, legacy)
		if got := decodeIn(string(b), int(n)+1, legacy); got != whole {
			t.Errorf("%q in pieces of %d bytes is %q, in one %q", b, int(n)+1, got, whole)
		}
		if !utf8.ValidString(whole) {
			t.Errorf("%q decodes to %q, which is not UTF-8", b, whole)
		}
		if utf8.Valid(b) && !strings.Contains(string(b), "\x00") && whole != string(b) {
			t.Errorf("%q became %q", b, whole)
		}
	})
}

func TestLegacyEncoding(t *testing.T) {
	for env, want := range map[string]bool{"LANG=zh_CN.GBK": true, "LANG=ja_JP.eucJP": true, "LANG=de_DE.ISO8859-15@euro": true, "LANG=ru_RU.KOI8-R": true,
		"LANG=ru_RU.CP1251": true, "LANG=C.UTF-8": false, "LANG=en_US.utf8": false, "LANG=C": false, "LANG=": false, "LANG=xx.nonsense": false} {
		if got := legacyEncoding([]string{env}) != nil; got != want {
			t.Errorf("%s: a legacy encoding %v, want %v", env, got, want)
		}
	}
	if legacyEncoding([]string{"LANG=zh_CN.GBK", "LC_ALL=C.UTF-8"}) != nil {
		t.Error("LC_ALL does not count before LANG")
	}
}
