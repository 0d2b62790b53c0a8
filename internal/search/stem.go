package search

import (
	"strings"
	"unicode/utf8"
)

// stem takes the endings of a folded word that tell its forms apart, so that
// creates, created, creating, creation and creator meet. It is light: in trials a
// full algorithm found no more tools. Words of other languages than English and
// Russian lose at most an s or e, on both sides alike.
func stem(w string) string {
	if len(w) < 4 {
		return w
	}
	if w[0] >= utf8.RuneSelf {
		return stemRussian(w)
	}
	for i := range len(w) {
		if w[i] >= utf8.RuneSelf {
			return w
		}
	}
	w = plural(w)
	if len(w) < 4 {
		return w
	}
	return ending(w)
}

func plural(w string) string {
	switch {
	case w[len(w)-1] != 's':
		return w
	case strings.HasSuffix(w, "sses"):
		return w[:len(w)-2]
	case strings.HasSuffix(w, "ies") && len(w) > 4:
		return w[:len(w)-3] + "y"
	case strings.HasSuffix(w, "xes"), strings.HasSuffix(w, "ches"), strings.HasSuffix(w, "shes"):
		return w[:len(w)-2]
	case strings.HasSuffix(w, "ss"), strings.HasSuffix(w, "us"), strings.HasSuffix(w, "is"):
		return w
	}
	return w[:len(w)-1]
}

func ending(w string) string {
	switch {
	case strings.HasSuffix(w, "ing") && hasVowel(w[:len(w)-3]) && len(w) > 5:
		w = undouble(w[:len(w)-3])
	case strings.HasSuffix(w, "eed"):
	case strings.HasSuffix(w, "ied") && len(w) > 4:
		w = w[:len(w)-3] + "y"
	case strings.HasSuffix(w, "ed") && hasVowel(w[:len(w)-2]):
		w = undouble(w[:len(w)-2])
	case strings.HasSuffix(w, "ation"), strings.HasSuffix(w, "ator"), strings.HasSuffix(w, "sion"), strings.HasSuffix(w, "tion"):
		w = strings.TrimSuffix(strings.TrimSuffix(w, "ion"), "or")
	case strings.HasSuffix(w, "ment") && len(w) > 6:
		w = w[:len(w)-4]
	case strings.HasSuffix(w, "ly") && len(w) > 5:
		w = w[:len(w)-2]
	}
	if len(w) > 3 && w[len(w)-1] == 'e' {
		w = w[:len(w)-1]
	}
	if len(w) > 2 && w[len(w)-1] == 'y' {
		w = w[:len(w)-1] + "i"
	}
	return w
}

// undouble undoes the doubling of `plotting`.
func undouble(w string) string {
	n := len(w)
	if n > 3 && w[n-1] == w[n-2] && !strings.ContainsRune("lsz", rune(w[n-1])) {
		return w[:n-1]
	}
	return w
}

func hasVowel(w string) bool { return strings.ContainsAny(w, "aeiouy") }

// russianEndings are those of nouns, adjectives and verbs, longest first, and how
// many letters of the word they leave at least.
var russianEndings = [...]struct {
	least   int
	endings string
}{
	{4, "ированиями ированием ированный ирования ирование ировать ируется"},
	{4, "ениями аниями остями ируют ирует ением аниям ениях аниях ениям остью"},
	{4, "ующий ующая ующее ующие ющий ющая ющее ющие ются ется утся ится ятся аться иться еться"},
	{4, "ения ение ению ений ания ание анию аний ости ость иями"},
	{3, "ами ями ого его ому ему ыми ими"},
	{4, "ать ять ить еть уть ает яет ует ишь ешь ите ете йте ают яют уют ала ила ило али или"},
	{3, "ах ях ам ям ов ев ей ой ый ий ая яя ое ее ые ие ую юю ом ем им ым их ых ия ья ию ью ии"},
	{4, "ил ал ел ла ло ли ть ет ит ут ют ят"},
	{3, "а я о е у ю ы и й ь"},
}

func stemRussian(w string) string {
	for _, r := range w {
		if r < 'а' || r > 'я' {
			return w
		}
	}
	for _, group := range russianEndings {
		for e := range strings.FieldsSeq(group.endings) {
			if len(w)-len(e) >= 2*group.least && strings.HasSuffix(w, e) {
				return w[:len(w)-len(e)]
			}
		}
	}
	return w
}
