package schema

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// describe says what v is: its type, and its text when that is short.
func (v *value) describe() string {
	switch v.kind {
	case nullKind:
		return "null"
	case boolKind:
		return "boolean " + v.String()
	case numberKind:
		return "number " + clip(v.text, 40)
	case stringKind:
		return "string " + clip(v.String(), 80)
	case arrayKind:
		return "an array of " + plural(len(v.items), "item")
	}
	if len(v.members) == 0 {
		return "an empty object"
	}
	names := make([]string, 0, 5)
	for _, m := range v.members {
		if len(names) == 5 {
			names = append(names, "…")
			break
		}
		names = append(names, clip(m.name, 40))
	}
	return "an object with " + strings.Join(names, ", ")
}

// anything is what a subschema without constraints expects.
const anything = "any value"

// expected says in a few words what n accepts.
func (n *node) expected() string {
	for depth := 0; n.ref != nil && n.types == 0 && n.enum == nil && depth < 8; depth++ {
		n = n.ref
	}
	switch {
	case n.enum != nil:
		return strings.TrimPrefix(n.enum.expected(), "must be ")
	case n.types != 0:
		return n.types.String() + n.limits()
	case n.always < 0:
		return "nothing"
	case n.anyOf != nil:
		return describeForms(n.anyOf)
	case n.oneOf != nil:
		return describeForms(n.oneOf)
	case n.str != nil:
		return "a string" + n.limits()
	case n.object != nil:
		return "an object"
	case n.array != nil:
		return "an array"
	}
	return anything
}

// limits adds the pattern, when that is what a value has to follow.
func (n *node) limits() string {
	if n.str != nil && n.str.pattern != nil {
		return " matching " + clip(n.str.pattern.source, 100)
	}
	if n.number != nil && n.number.min != nil && n.number.max != nil {
		return " from " + n.number.min.text + " to " + n.number.max.text
	}
	return ""
}

func (en *enum) expected() string {
	if len(en.strings)+len(en.others) == 0 {
		return "must be one of no values: the schema allows none here"
	}
	if len(en.strings)+len(en.others) == 1 {
		return "must be " + en.shown
	}
	return "must be one of " + en.shown
}

// hint names the value that v may be meant to be.
func (en *enum) hint(v *value) string {
	if v.kind != stringKind || len(en.strings) < 2 {
		return ""
	}
	if best := nearest(v.text, slices.Collect(maps.Keys(en.strings))); best != "" {
		return "; did you mean " + strconv.Quote(best) + "?"
	}
	return ""
}

// negated says what a value must not be.
func (n *node) negated() string {
	if words := n.expected(); words != anything {
		return " " + words
	}
	return " what the schema excludes"
}

func (t typeSet) String() string {
	var names []string
	for _, known := range typeNames {
		if t&known.bit == 0 {
			continue
		}
		switch known.bit {
		case nullType:
			names = append(names, "null")
		case integerType, objectType, arrayType:
			names = append(names, "an "+known.name)
		default:
			names = append(names, "a "+known.name)
		}
	}
	return orList(names)
}

// describeForms says what each form of an anyOf or oneOf accepts.
func describeForms(forms []*node) string {
	var words []string
	for _, form := range forms {
		w := form.formWords()
		if !slices.Contains(words, w) {
			words = append(words, w)
		}
		if len(words) > 8 {
			words = append(words[:8], "…")
			break
		}
	}
	return clip(orList(words), 600)
}

// formWords tells one form from another: for an object, by its constants or
// else by what it requires.
func (n *node) formWords() string {
	for depth := 0; n.ref != nil && n.object == nil && depth < 8; depth++ {
		n = n.ref
	}
	if n.anyOf != nil || n.oneOf != nil || n.object == nil {
		return n.shallow()
	}
	var parts []string
	for _, name := range n.object.names {
		if sub := n.object.properties[name]; sub.enum != nil && sub.enum.only {
			parts = append(parts, name+": "+sub.enum.shown)
		}
	}
	if len(parts) == 0 {
		parts = n.object.required
	}
	if len(parts) == 0 {
		return "an object"
	}
	return "an object with " + clip(strings.Join(parts, ", "), 120)
}

// shallow is expected without going into nested forms, which could be many.
func (n *node) shallow() string {
	if n.types == 0 && n.enum == nil && (n.anyOf != nil || n.oneOf != nil) {
		return "one of several forms"
	}
	return n.expected()
}

// orList joins words with commas and a final or.
func orList(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

func plural(n int, noun string) string {
	switch {
	case n == 1:
		return "1 " + noun
	case noun == "property":
		return strconv.Itoa(n) + " properties"
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// unknown says that name is no property here, and which one may be meant.
func (r *objectRules) unknown(name string) string {
	message := "is not a known property"
	if best := nearest(name, r.names); best != "" {
		return message + "; did you mean " + strconv.Quote(best) + "?"
	}
	if len(r.names) == 0 {
		return message + "; none is allowed here"
	}
	shown := slices.Clone(r.names)
	if len(shown) > 20 {
		shown = append(shown[:20], "…")
	}
	return message + "; known: " + clip(strings.Join(shown, ", "), 400)
}

// nearest returns the name that differs least from given, ignoring case and
// separators, or "" when none is close.
func nearest(given string, names []string) string {
	given = foldName(given)
	if len(given) > 100 || len(names) > 200 {
		return ""
	}
	type candidate struct {
		name     string
		distance int
	}
	var best []candidate
	for _, name := range names {
		folded := foldName(name)
		limit := max(len(folded), len(given)) / 3
		if len(folded) > 100 {
			continue
		}
		d := editDistance(given, folded)
		if len(given) >= 3 && (strings.Contains(folded, given) || len(folded) >= 3 && strings.Contains(given, folded)) {
			d = min(d, limit)
		}
		if d <= limit {
			best = append(best, candidate{name, d})
		}
	}
	if len(best) == 0 {
		return ""
	}
	return slices.MinFunc(best, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), strings.Compare(a.name, b.name))
	}).name
}

func foldName(s string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("_- .", r) {
			return -1
		}
		return unicode.ToLower(r)
	}, s)
}

// editDistance counts the bytes to insert, remove or replace to get from a to b.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diagonal
			if a[i-1] != b[j-1] {
				cost++
			}
			diagonal = row[j]
			row[j] = min(cost, row[j]+1, row[j-1]+1)
		}
	}
	return row[len(b)]
}
