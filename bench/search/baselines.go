package main

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"unicode"

	"capstan/bench/search/sets"
)

// A ranker returns the names of the best ten tools for a text.
type ranker func(text string) []string

// baseline is what search is compared with: how other agents look for tools.
type baseline struct {
	name string
	make func([]sets.Tool) ranker
}

var baselines = []baseline{
	{"keywords", keywords},
	{"regular expressions", expressions},
	{"BM25 1.2/0.75", func(t []sets.Tool) ranker { return bm25(t, bm25Options{k1: 1.2, b: 0.75, nameTimes: 1}) }},
	{"BM25 tuned", func(t []sets.Tool) ranker { return bm25(t, tuned) }},
	{"BM25 tuned, with title and server", func(t []sets.Tool) ranker {
		o := tuned
		o.labels = true
		return bm25(t, o)
	}},
}

// scored is a tool with its score.
type scored struct {
	name  string
	score float64
}

func bestTen(all []scored) []string {
	all = slices.DeleteFunc(all, func(s scored) bool { return s.score <= 0 })
	slices.SortFunc(all, func(a, b scored) int { return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.name, b.name)) })
	var out []string
	for _, s := range all[:min(len(all), 10)] {
		out = append(out, s.name)
	}
	return out
}

// shortStop are the stop words of the baselines, those of any textbook.
var shortStop = func() map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(`a an and are as at be but by can could did do does for from had has have he her his how i if in
		into is it its me my no not of on or our please she should so some such than that the their them then there these they this
		those to up us was we were what when where which who will with would you your`) {
		m[w] = true
	}
	return m
}()

// keywords scores by words between blanks: as the end of the name, in the name,
// in the description. This is what agents with a tool search do today.
func keywords(tools []sets.Tool) ranker {
	type doc struct{ name, low, about string }
	docs := make([]doc, len(tools))
	for i, t := range tools {
		docs[i] = doc{t.Name, strings.ToLower(t.Name), strings.ToLower(t.Description)}
	}
	edge := func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_.+#-", r)
	}
	return func(text string) []string {
		var terms []string
		for w := range strings.FieldsSeq(strings.ToLower(text)) {
			if w = strings.TrimFunc(w, edge); len(w) > 1 && !shortStop[w] {
				terms = append(terms, w)
			}
		}
		var all []scored
		for _, d := range docs {
			score := 0.0
			for _, w := range terms {
				switch {
				case d.low == w, strings.HasSuffix(d.low, "_"+w), strings.HasSuffix(d.low, "."+w):
					score += 12
				case strings.Contains(d.low, w):
					score += 6
				}
				if strings.Contains(d.about, w) {
					score += 2
				}
			}
			all = append(all, scored{d.name, score})
		}
		return bestTen(all)
	}
}

// expressions matches the words of the text as one alternative of a regular
// expression over name and description and counts the different ones found.
func expressions(tools []sets.Tool) ranker {
	docs := make([]string, len(tools))
	for i, t := range tools {
		docs[i] = strings.ToLower(t.Name + " " + t.Description)
	}
	return func(text string) []string {
		var terms []string
		for _, w := range simpleWords(strings.ToLower(text)) {
			if len(w) > 2 && !shortStop[w] && !slices.Contains(terms, w) {
				terms = append(terms, w)
			}
		}
		var all []scored
		for i, d := range docs {
			n := 0
			for _, w := range terms {
				if strings.Contains(d, w) {
					n++
				}
			}
			all = append(all, scored{tools[i].Name, float64(n)})
		}
		return bestTen(all)
	}
}

func simpleWords(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) })
}

// bm25Options are the variants of plain BM25.
type bm25Options struct {
	k1, b                   float64
	nameTimes               int
	params, stem, stop, han bool
	labels                  bool // title (like the name) and server too
}

// tuned is the best plain BM25 of the shared figures.
var tuned = bm25Options{k1: 0.9, b: 0.4, nameTimes: 2, params: true, stem: true, stop: true, han: true}

// posting is how often a tool has a word.
type posting struct {
	doc int
	tf  float64
}

// bm25 ranks the tool as one bag of words.
func bm25(tools []sets.Tool, o bm25Options) ranker {
	lists := map[string][]posting{}
	lengths := make([]float64, len(tools))
	average := 0.0
	for i, t := range tools {
		text := strings.Repeat(t.Name+" ", o.nameTimes) + t.Description
		if o.labels {
			text += " " + strings.Repeat(t.Title+" ", o.nameTimes) + t.Server
		}
		if o.params {
			text += " " + schemaText(t.Parameters)
		}
		for _, w := range o.words(text) {
			l := lists[w]
			if len(l) == 0 || l[len(l)-1].doc != i {
				l = append(l, posting{doc: i})
			}
			l[len(l)-1].tf++
			lists[w] = l
			lengths[i]++
		}
		average += lengths[i] / float64(len(tools))
	}
	return func(text string) []string {
		scores := make([]float64, len(tools))
		for _, w := range o.words(text) {
			n := float64(len(lists[w]))
			idf := math.Log1p((float64(len(tools)) - n + 0.5) / (n + 0.5))
			for _, p := range lists[w] {
				scores[p.doc] += idf * p.tf * (o.k1 + 1) / (p.tf + o.k1*(1-o.b+o.b*lengths[p.doc]/average))
			}
		}
		all := make([]scored, len(tools))
		for i := range tools {
			all[i] = scored{tools[i].Name, scores[i]}
		}
		return bestTen(all)
	}
}

func (o bm25Options) words(text string) []string {
	var out []string
	for _, w := range simpleWords(splitCamel(text)) {
		w = strings.ToLower(w)
		if o.han && hasHan(w) {
			out = append(out, hanTerms(w)...)
			continue
		}
		if o.stop && shortStop[w] {
			continue
		}
		if o.stem {
			w = porter1(w)
		}
		out = append(out, w)
	}
	return out
}

func splitCamel(s string) string {
	var b strings.Builder
	last := ' '
	for _, r := range s {
		if unicode.IsUpper(r) && unicode.IsLower(last) {
			b.WriteByte(' ')
		}
		b.WriteRune(r)
		last = r
	}
	return b.String()
}

func hasHan(w string) bool {
	return strings.ContainsFunc(w, func(r rune) bool {
		return unicode.Is(unicode.Han, r) || unicode.In(r, unicode.Hiragana, unicode.Katakana)
	})
}

// hanTerms are characters and pairs of them; runs of other letters stay whole.
func hanTerms(w string) []string {
	var out []string
	runes := []rune(w)
	for i := 0; i < len(runes); i++ {
		if !hasHan(string(runes[i])) {
			from := i
			for i+1 < len(runes) && !hasHan(string(runes[i+1])) {
				i++
			}
			out = append(out, string(runes[from:i+1]))
			continue
		}
		out = append(out, string(runes[i]))
		if i+1 < len(runes) && hasHan(string(runes[i+1])) {
			out = append(out, string(runes[i:i+2]))
		}
	}
	return out
}

// porter1 is the first step of Porter's algorithm and its final e, in short.
func porter1(w string) string {
	for _, e := range [][2]string{{"sses", "ss"}, {"ies", "i"}, {"ss", "ss"}, {"s", ""}, {"ing", ""}, {"ed", ""}} {
		if strings.HasSuffix(w, e[0]) && len(w)-len(e[0]) >= 3 {
			w = strings.TrimSuffix(w, e[0]) + e[1]
			break
		}
	}
	if n := len(w); n > 3 && w[n-1] == w[n-2] && !strings.ContainsRune("lsz", rune(w[n-1])) {
		w = w[:n-1]
	}
	if strings.HasSuffix(w, "y") && len(w) > 2 {
		w = w[:len(w)-1] + "i"
	}
	if len(w) > 4 {
		w = strings.TrimSuffix(w, "e")
	}
	return w
}

// schemaText is the names and descriptions of all properties.
func schemaText(raw json.RawMessage) string {
	var schema any
	if json.Unmarshal(raw, &schema) != nil {
		return ""
	}
	var b strings.Builder
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, e := range v {
				walk(e)
			}
		case map[string]any:
			if props, ok := v["properties"].(map[string]any); ok {
				for name := range props {
					b.WriteString(name + " ")
				}
			}
			if about, ok := v["description"].(string); ok {
				b.WriteString(about + " ")
			}
			for _, e := range v {
				walk(e)
			}
		}
	}
	walk(schema)
	return b.String()
}
