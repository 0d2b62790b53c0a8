package search

import (
	_ "embed"
	"strings"
	"sync"
)

var (
	//go:embed stop.txt
	stopText string
	//go:embed synonyms.txt
	synonymText string
)

// hanFunction are the characters of Chinese grammar. No word is paired with them.
const hanFunction = "的了吗呢吧啊呀嘛么们我你您他她它这那哪些是在和与及或也都就请把被让帮"

// hiraganaFunction are pairs of Japanese endings and particles.
const hiraganaFunction = " する した して しま ます まし です でし ませ せん ない から まで こと もの ため くだ ださ さい され れる られ でき きる いる ある あり とし この その あの これ それ どの どこ いつ なに たい よう うに うな など また おり たち には では とは との への にお おい いて って った たら れば れた える れて うか すか かを えて ほし しい "

// vocabulary is read from the lists on first use.
type vocabulary struct {
	stop  map[string]bool     // before stemming
	group map[string][]string // a word's synonyms, in order
}

var words = sync.OnceValue(func() *vocabulary {
	v := &vocabulary{stop: map[string]bool{}, group: map[string][]string{}}
	var s scanner
	for line := range lines(stopText) {
		s.out = s.out[:0]
		s.scan(line)
		for _, t := range s.out {
			v.stop[t.plain] = t.kind != single
		}
	}
	for line := range lines(synonymText) {
		s.out = s.out[:0]
		s.scan(line)
		var group []string
		for _, t := range s.out {
			group = append(group, t.term)
		}
		for i, t := range group {
			v.group[t] = append(append(v.group[t], group[:i]...), group[i+1:]...)
		}
	}
	return v
})

// lines are those of a list that are no comments.
func lines(text string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for line := range strings.Lines(text) {
			if !strings.HasPrefix(line, "#") && !yield(line) {
				return
			}
		}
	}
}
