package msg

import "unicode"

// Invisible reports characters that show nothing or reorder what is around them:
// controls, line ends and tabs among them, what Unicode calls format characters,
// variation selectors, fillers, and tags, which only a model reads. A text that a person judges and a model
// obeys must not hold them. The joiners U+200C and U+200D are not among them, since
// scripts and emoji need them, nor are marks that stand before a number, which
// are seen (S1-031).
func Invisible(r rune) bool {
	switch {
	case r < 0x7f:
		return r < ' '
	case r == 0x200c, r == 0x200d:
		return false
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) &&
		!unicode.Is(unicode.Prepended_Concatenation_Mark, r)
}
