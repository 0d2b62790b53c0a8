package search

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds on what is read of hostile text. Real tools stay below all of them,
// but for some descriptions of over 10,000 characters that list examples.
const (
	maxText   = 16 << 10 // bytes of one description
	maxWord   = 40       // bytes of a word after folding, the rest is cut
	maxPieces = 8        // parts of one identifier
)

// kind tells apart how a term was made.
type kind uint8

const (
	word   kind = iota // of a script with spaces, stemmed
	whole              // an identifier with its parts written together
	pair               // two neighbours in a script without spaces, or a run of Katakana
	single             // one Han character
)

// token is one term of a text.
type token struct {
	term string
	kind kind
	// plain is the term before stemming.
	plain string
	// number is for whoever reads many texts, to keep what it knows of the term;
	// nil if the scanner does not remember words.
	number *int32
}

// scanner cuts text into terms. It is reused to keep allocations few.
type scanner struct {
	out  []token
	fold []byte // the word being read
	// known are the words read before. Texts of one server repeat themselves;
	// nil in a scanner for a short text.
	known map[string]token
}

// scan appends the terms of text.
func (s *scanner) scan(text string) {
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		switch class := classify(r); class {
		case classNone:
			i += n
		case classLetter:
			i += s.identifier(text[i:])
		default:
			i += s.unbroken(text[i:], class)
		}
	}
}

type class uint8

const (
	classNone class = iota
	classLetter
	classHan
	classHiragana
	classKatakana
	classOther // Thai, Lao, Khmer, Burmese, Hangul: pairs of letters
)

func classify(r rune) class {
	switch {
	case r < utf8.RuneSelf:
		if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' {
			return classLetter
		}
		return classNone
	case r < 0x0e00:
		if unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) {
			return classLetter
		}
		return classNone
	case r == 'ー' || r >= 0x30a1 && r <= 0x30fa || r >= 0x31f0 && r <= 0x31ff:
		return classKatakana
	case r >= 0x3041 && r <= 0x309f:
		return classHiragana
	case r >= 0xff01 && r <= 0xff5e: // ASCII in full width
		return classify(r - 0xfee0)
	case unicode.Is(unicode.Han, r):
		return classHan
	case unicode.In(r, unicode.Hangul, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar):
		return classOther
	case unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r):
		return classLetter
	}
	return classNone
}

// identifier reads letters and digits up to the next separator and appends the
// parts of `camelCase` and, if there are some, the whole.
func (s *scanner) identifier(text string) int {
	s.fold = s.fold[:0]
	start, parts := 0, 0
	var before, last rune
	i := 0
	for i < len(text) {
		if c := text[i]; 'a' <= c && c <= 'z' && !unicode.IsUpper(last) { // most letters
			if len(s.fold) < maxWord {
				s.fold = append(s.fold, c)
			}
			before, last = last, rune(c)
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(text[i:])
		if classify(r) != classLetter {
			break
		}
		i += n
		acronym := unicode.IsLower(r) && unicode.IsUpper(last) && unicode.IsUpper(before)
		switch {
		case unicode.IsUpper(r) && unicode.IsLower(last):
			start, parts = s.part(start, parts)
		case acronym && r == 's' && endsPart(text[i:]): // IDs
			before, last = last, r
			continue
		case acronym:
			start, parts = s.split(start, parts)
		}
		if len(s.fold) < maxWord {
			s.fold = appendFolded(s.fold, r)
		}
		before, last = last, r
	}
	if parts > 0 {
		s.part(start, parts)
		s.word(s.fold, whole)
	} else if len(s.fold) > 0 {
		s.word(s.fold, word)
	}
	return i
}

// endsPart says that no more small letters follow.
func endsPart(text string) bool {
	r, _ := utf8.DecodeRuneInString(text)
	return !unicode.IsLower(r)
}

// part ends a part of an identifier.
func (s *scanner) part(start, parts int) (int, int) {
	if len(s.fold) > start && parts < maxPieces {
		s.word(s.fold[start:], word)
		parts++
	}
	return len(s.fold), parts
}

// split ends a part before its last letter: `HTMLPage` is html and page.
func (s *scanner) split(start, parts int) (int, int) {
	_, n := utf8.DecodeLastRune(s.fold)
	at := len(s.fold) - n
	if at > start && parts < maxPieces {
		s.word(s.fold[start:at], word)
		return at, parts + 1
	}
	return start, parts
}

// unbroken reads a run of one class of a script without spaces.
func (s *scanner) unbroken(text string, c class) int {
	i, count := 0, 0
	var last rune
	lastAt := 0
	for i < len(text) {
		r, n := utf8.DecodeRuneInString(text[i:])
		if rc := classify(r); rc != c {
			break
		}
		if c == classHan && strings.ContainsRune(hanFunction, r) {
			last = 0
		} else {
			if c == classHan {
				s.emit(text[i:i+n], single)
			}
			if last != 0 && !(c == classHiragana && strings.Contains(hiraganaFunction, text[lastAt:i+n])) {
				s.emit(text[lastAt:i+n], pair)
			}
			last, lastAt = r, i
		}
		i += n
		count++
	}
	if c == classKatakana && count > 2 && i <= maxWord || c == classOther && count == 1 {
		s.emit(text[:i], pair)
	}
	return i
}

func (s *scanner) word(plain []byte, k kind) {
	if len(plain) > 0 {
		s.out = append(s.out, s.token(plain, k))
	}
}

// joined is two words written as one.
func (s *scanner) joined(one, two string) token {
	s.fold = append(append(s.fold[:0], one...), two...)
	return s.token(s.fold, whole)
}

func (s *scanner) token(plain []byte, k kind) token {
	t, ok := s.known[string(plain)]
	if !ok {
		t.plain = string(plain)
		t.term = stem(t.plain)
		if s.known != nil {
			t.number = new(int32)
			s.known[t.plain] = t
		}
	}
	t.kind = k
	return t
}

func (s *scanner) emit(term string, k kind) {
	s.out = append(s.out, token{term: term, kind: k, plain: term})
}

// appendFolded appends r in lower case, without accents, in half width.
func appendFolded(b []byte, r rune) []byte {
	switch {
	case r < utf8.RuneSelf:
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		return append(b, byte(r))
	case r >= 0xff01 && r <= 0xff5e:
		return appendFolded(b, r-0xfee0)
	case r == 'ß':
		return append(b, "ss"...)
	case unicode.Is(unicode.Mn, r):
		return b
	}
	r = unicode.ToLower(r)
	if r == 'ё' {
		r = 'е'
	}
	if r < 0x180 {
		if at := strings.IndexRune(accented, r); at >= 0 {
			return append(b, plain[utf8.RuneCountInString(accented[:at])])
		}
	}
	return utf8.AppendRune(b, r)
}

const (
	accented = "àáâãäåçèéêëìíîïñòóôõöøùúûüýÿāăąćĉċčďđēĕėęěĝğġģĥħĩīĭįıĵķĺļľłńņňōŏőŕŗřśŝşšţťŧũūŭůűųŵŷźżž"
	plain    = "aaaaaaceeeeiiiinoooooouuuuyyaaaccccddeeeeegggghhiiiiijkllllnnnooorrrsssstttuuuuuuwyzzz"
)

// squash is a name reduced to letters and digits, for comparing spellings of it:
// get_weather, getWeather and "get weather" are the same.
func squash(name string) string {
	b := make([]byte, 0, len(name))
	for _, r := range name {
		if classify(r) != classNone {
			b = appendFolded(b, r)
		}
	}
	return string(b)
}

// clip is at most n bytes of s, cut between characters.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
