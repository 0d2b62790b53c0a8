package msg

import "testing"

// Only the beginning of a character at the end is taken off.
func TestWholeRunes(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "a": "a", "é": "é", "a\xc3": "a", "\xc3": "", "a\xe2\x82": "a", "€": "€", "a\xf0\x9f\x98": "a", "😀": "😀",
		"a\xff": "a\xff", "é\xa9": "é\xa9", "\xa9\xa9\xa9\xa9": "\xa9\xa9\xa9\xa9",
	} {
		if got := string(WholeRunes([]byte(in))); got != want {
			t.Errorf("%q: %q", in, got)
		}
	}
}
