package schema

import (
	"cmp"
	"math/big"
	"strconv"
	"strings"
)

// maxExponentDigits keeps every sum of exponents and lengths inside an int64.
const maxExponentDigits = 15

// maxMultipleDigits bounds the numbers that multipleOf divides.
const maxMultipleDigits = 10_000

// decimal is an exact decimal number, 0.digits × 10^exp. digits has neither
// leading nor trailing zeros and is empty for zero.
type decimal struct {
	negative bool
	digits   string
	exp      int64
}

// numberInRange reports whether the exponent of a JSON number is one that
// parseDecimal can hold.
func numberInRange(text string) bool {
	_, exponent := splitExponent(text)
	return len(strings.TrimLeft(exponent, "+-0")) <= maxExponentDigits
}

func splitExponent(text string) (mantissa, exponent string) {
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		return text[:i], text[i+1:]
	}
	return text, ""
}

// parseDecimal reads a valid JSON number whose exponent is in range.
func parseDecimal(text string) decimal {
	mantissa, exponent := splitExponent(text)
	var d decimal
	mantissa, d.negative = strings.CutPrefix(mantissa, "-")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := whole
	if fraction != "" {
		digits += fraction
	}
	d.exp = int64(len(whole))
	if exponent != "" {
		e, _ := strconv.ParseInt(strings.TrimPrefix(exponent, "+"), 10, 64)
		d.exp += e
	}
	trimmed := strings.TrimLeft(digits, "0")
	d.exp -= int64(len(digits) - len(trimmed))
	d.digits = strings.TrimRight(trimmed, "0")
	if d.digits == "" {
		return decimal{}
	}
	return d
}

// isInteger reports whether d has no fractional part. 5.0 is an integer.
func (d decimal) isInteger() bool { return int64(len(d.digits)) <= d.exp || d.digits == "" }

// sign is -1, 0 or 1.
func (d decimal) sign() int {
	switch {
	case d.digits == "":
		return 0
	case d.negative:
		return -1
	}
	return 1
}

func (d decimal) compare(o decimal) int {
	if c := cmp.Compare(d.sign(), o.sign()); c != 0 || d.digits == "" {
		return c
	}
	c := cmp.Compare(d.exp, o.exp)
	if c == 0 {
		c = strings.Compare(d.digits, o.digits)
	}
	if d.negative {
		return -c
	}
	return c
}

// key is equal for equal numbers only.
func (d decimal) key() string {
	if d.digits == "" {
		return "0"
	}
	sign := "+"
	if d.negative {
		sign = "-"
	}
	return sign + d.digits + "e" + strconv.FormatInt(d.exp, 10)
}

// multipleOf reports whether d is an integer times m, which is positive. known
// is false when the numbers are too long to say.
func (d decimal) multipleOf(m decimal) (yes, known bool) {
	if d.digits == "" {
		return true, true
	}
	if len(d.digits) > maxMultipleDigits || len(m.digits) > maxMultipleDigits {
		return false, false
	}
	// As integers: d = a·10^x and m = b·10^y, a and b without trailing zeros.
	x, y := d.exp-int64(len(d.digits)), m.exp-int64(len(m.digits))
	if x < y {
		return false, true // m has a factor of ten that d lacks
	}
	a, _ := new(big.Int).SetString(d.digits, 10)
	b, _ := new(big.Int).SetString(m.digits, 10)
	if len(m.digits) > 100 && x-y > 1000 {
		return false, false // the modular power below would take long
	}
	power := new(big.Int).Exp(big.NewInt(10), big.NewInt(x-y), b)
	a.Mul(a, power)
	return a.Mod(a, b).Sign() == 0, true
}
