package msg_test

import (
	"testing"

	"capstan/internal/msg"
)

// S1-031
func TestInvisible(t *testing.T) {
	hidden := [][2]rune{
		{0, 0x1f}, {0x7f, 0x9f}, {0xad, 0xad}, {0x34f, 0x34f}, {0x61c, 0x61c}, {0x115f, 0x1160}, {0x17b4, 0x17b5}, {0x180b, 0x180f},
		{0x200b, 0x200b}, {0x200e, 0x200f}, {0x202a, 0x202e}, {0x2060, 0x206f}, {0x3164, 0x3164}, {0xfe00, 0xfe0f}, {0xfeff, 0xfeff},
		{0xffa0, 0xffa0}, {0xfff0, 0xfffb}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff},
	}
	for _, span := range hidden {
		for r := span[0]; r <= span[1]; r++ {
			if !msg.Invisible(r) {
				t.Errorf("%U is not invisible", r)
			}
		}
	}
	for _, r := range " ~aé*<日か한\u200c\u200d\u0301\u0600\u06dd\u2028\u3000\ufffd\U0001f600" {
		if msg.Invisible(r) {
			t.Errorf("%U is invisible", r)
		}
	}
}
