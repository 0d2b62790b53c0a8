package search

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// How text is cut: the terms of words, then of whole identifiers, pairs and
// single characters.
func TestScan(t *testing.T) {
	tests := []struct{ text, words, wholes, pairs, singles string }{
		{"read_file", "read fil", "", "", ""},
		{"getUserByIDs", "get user by id", "getuserbyid", "", ""},
		{"HTMLPage2pdf URLs", "html page2pdf url", "htmlpage2pdf", "", ""},
		{"Crème brûlée, naïve Straße", "crem brule naiv strass", "", "", ""},
		{"Ｆｕｌｌ width", "full width", "", "", ""},
		{"查询GitHub仓库", "git hub", "github", "查询 仓库", "查 询 仓 库"},
		{"我的文件", "", "", "文件", "文 件"},
		{"サーバーを確認する", "", "", "サー ーバ バー サーバー 確認", "確 認"},
		{"날씨", "", "", "날씨", ""},
		{"погоды в Москве", "погод в москв", "", "", ""},
		{"", "", "", "", ""},
		{"-_!?\u200b\x00", "", "", "", ""},
		{strings.Repeat("a", 1000), strings.Repeat("a", maxWord), "", "", ""},
	}
	for _, test := range tests {
		var s scanner
		s.scan(test.text)
		got := map[kind][]string{}
		for _, tok := range s.out {
			got[tok.kind] = append(got[tok.kind], tok.term)
		}
		want := map[kind][]string{}
		for k, terms := range []string{word: test.words, whole: test.wholes, pair: test.pairs, single: test.singles} {
			if terms != "" {
				want[kind(k)] = strings.Fields(terms)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("scan %.40q (-want +got):\n%s", test.text, diff)
		}
	}
}

// Forms of a word meet, different words do not.
func TestStem(t *testing.T) {
	same := [][]string{
		{"create", "creates", "created", "creating", "creation", "creator"},
		{"calculate", "calculated", "calculation", "calculating", "calculator"},
		{"query", "queries", "queried"},
		{"plot", "plots", "plotting", "plotted"},
		{"process", "processes", "processed"},
		{"match", "matches"}, {"box", "boxes"}, {"file", "files"}, {"delete", "deletion", "deleting"},
		{"погода", "погоды", "погоде", "погоду"}, {"билет", "билеты", "билетов", "билета"},
	}
	seen := map[string]int{}
	for i, forms := range same {
		for _, f := range forms {
			if stem(f) != stem(forms[0]) {
				t.Errorf("stem(%s) = %s, but stem(%s) = %s", f, stem(f), forms[0], stem(forms[0]))
			}
		}
		if j, ok := seen[stem(forms[0])]; ok {
			t.Errorf("%v and %v meet", same[j], forms)
		}
		seen[stem(forms[0])] = i
	}
	for _, w := range []string{"status", "analysis", "address", "bus", "gas", "feed", "thing", "us", "id"} {
		if got := stem(w); got != w {
			t.Errorf("stem(%s) = %s", w, got)
		}
	}
}

func TestDistance(t *testing.T) {
	var d distance
	for _, test := range []struct {
		a, b  string
		limit int
		want  int
	}{
		{"weather", "weather", 1, 0}, {"weather", "wether", 1, 1}, {"weather", "waether", 1, 1}, {"weather", "weathers", 1, 1},
		{"weather", "feather", 1, 1}, {"weather", "wader", 2, 3}, {"calendar", "calender", 2, 1}, {"calendar", "kalender", 2, 2},
		{"погода", "пагода", 1, 1}, {"a", "abcdef", 2, 3},
	} {
		if got := d.between(test.a, test.b, test.limit); got != test.want {
			t.Errorf("between(%s, %s, %d) = %d, want %d", test.a, test.b, test.limit, got, test.want)
		}
	}
}

func TestSentence(t *testing.T) {
	for _, test := range [][3]string{
		{"Finds things in a tree. Then more.", "Finds things in a tree.", " Then more."},
		{"One line\nTwo", "One line\n", "Two"},
		{"  获取数据。可以过滤", "获取数据。", "可以过滤"},
		{"Use e.g. for this and that", "Use e.g. for this and that", ""},
		{"Version 1.2 of the library.", "Version 1.2 of the library.", ""},
		{"", "", ""},
	} {
		if lead, rest := sentence(test[0]); lead != test[1] || rest != test[2] {
			t.Errorf("sentence(%q) = %q, %q", test[0], lead, rest)
		}
	}
}
