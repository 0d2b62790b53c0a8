package search

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"capstan/bench/search/sets"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// office are a few servers' tools, each with a way to be found of its own.
func office() *Index {
	x := new(Index)
	x.Replace("mail", []Document{
		{Name: "mcp__mail__send", Short: "send", Server: "mail", ServerDescription: "Letters between people.", Description: "Sends a message to an address. Attachments are refused."},
		{Name: "mcp__mail__send_draft", Short: "send_draft", Server: "mail", Description: "Sends what was written before."},
		{Name: "mcp__mail__searchMessages", Short: "searchMessages", Server: "mail", Description: "Finds messages.", Hint: "inbox grep",
			Schema: []byte(`{"type":"object","properties":{"folderName":{"description":"where to look","enum":["archive","spam"]},"filter":{"anyOf":[{"properties":{"correspondent":{}}}]}}}`)},
	})
	x.Replace("weather", []Document{
		{Name: "mcp__weather__get_forecast", Short: "get_forecast", Server: "weather", Title: "Outlook", Description: "Rain and sun of the coming days."},
		{Name: "mcp__weather__get_alerts", Short: "get_alerts", Server: "weather", Description: "Storm warnings."},
	})
	x.Replace("disk", []Document{
		{Name: "mcp__disk__read_file", Short: "read_file", Server: "file_system", Description: "Reads a document."},
		{Name: "mcp__disk__delete", Short: "delete", Server: "file_system", Description: "Deletes a directory."},
		{Name: "mcp__disk__send", Short: "send", Server: "file_system", Description: "Copies to another computer."},
	})
	return x
}

// What finds a tool: every field, other forms of a word, joined and split
// words, synonyms, mistakes, beginnings.
func TestFirstHit(t *testing.T) {
	x := office()
	tests := []struct{ why, query, want string }{
		{"description", "storm warnings", "mcp__weather__get_alerts"},
		{"server's description", "letters", "mcp__mail__send"},
		{"later sentence", "attachments", "mcp__mail__send"},
		{"title", "outlook", "mcp__weather__get_forecast"},
		{"hint", "grep the inbox", "mcp__mail__searchMessages"},
		{"parameter", "by folder", "mcp__mail__searchMessages"},
		{"parameter in a branch", "correspondent", "mcp__mail__searchMessages"},
		{"enum value", "archive", "mcp__mail__searchMessages"},
		{"other form", "warned of a storm", "mcp__weather__get_alerts"},
		{"camelCase", "messages search", "mcp__mail__searchMessages"},
		{"joined", "filesystem delete", "mcp__disk__delete"},
		{"split", "fore cast", "mcp__weather__get_forecast"},
		{"synonym", "erase", "mcp__disk__delete"},
		{"letters swapped", "strom", "mcp__weather__get_alerts"},
		{"letter missing", "direcory", "mcp__disk__delete"},
		{"two mistakes in a long word", "corespondant", "mcp__mail__searchMessages"},
		{"beginning", "attach", "mcp__mail__send"},
		{"accents, width", "Ｓtörm", "mcp__weather__get_alerts"},
		{"a name among words", "please use get_alerts for the coming days of rain and sun", "mcp__weather__get_alerts"},
		{"stop words alone", "what is before", "mcp__mail__send_draft"},
	}
	for _, test := range tests {
		t.Run(test.why, func(t *testing.T) {
			got := names(x.Search(test.query, 1, nil))
			if diff := cmp.Diff([]string{test.want}, got); diff != "" {
				t.Errorf("search %q (-want +got):\n%s", test.query, diff)
			}
		})
	}
}

// An exact name is first, in any spelling, the registered before the short one;
// then come names that begin with it.
func TestNames(t *testing.T) {
	x := office()
	x.Replace("decoy", []Document{
		{Name: "talk", Description: "send send send mcp mail send get alerts read file read file", Title: "send", Server: "send"},
		{Name: "send_all", Description: "x"},
	})
	tests := []struct {
		query string
		want  []Hit // but for the score
	}{
		{"mcp__mail__send", []Hit{{Name: "mcp__mail__send", Exact: true}, {Name: "mcp__mail__send_draft"}}},
		{"MCP mail SEND", []Hit{{Name: "mcp__mail__send", Exact: true}}},
		{"send", []Hit{{Name: "mcp__mail__send", Exact: true}, {Name: "mcp__disk__send", Exact: true}}},
		{"sendDraft", []Hit{{Name: "mcp__mail__send_draft", Exact: true}}},
		{"get_alerts", []Hit{{Name: "mcp__weather__get_alerts", Exact: true}}},
		{"get_al", []Hit{{Name: "mcp__weather__get_alerts"}}},
		{"mcp__weather__get_", []Hit{{Name: "mcp__weather__get_forecast"}, {Name: "mcp__weather__get_alerts"}}},
	}
	for _, test := range tests {
		got := x.Search(test.query, len(test.want), nil)
		for i := range got {
			got[i].Score = 0
		}
		if diff := cmp.Diff(test.want, got, cmp.Transformer("sorted", sortedExact)); diff != "" {
			t.Errorf("search %q (-want +got):\n%s", test.query, diff)
		}
	}
}

// sortedExact leaves the order of hits alone that are equally good by name.
func sortedExact(hits []Hit) []string {
	var out []string
	for _, h := range hits {
		out = append(out, fmt.Sprint(h.Exact, " ", h.Name))
	}
	slices.Sort(out)
	return out
}

func TestRequired(t *testing.T) {
	x := office()
	tests := []struct {
		query string
		want  []string
	}{
		{"+storm rain message", []string{"mcp__weather__get_alerts"}},
		{"message +draft", []string{"mcp__mail__send_draft"}},
		{"+send +computer", []string{"mcp__disk__send"}},
		{"+file_system +delete", []string{"mcp__disk__delete"}},
		{"+searchMessages", []string{"mcp__mail__searchMessages"}},
		{"+unheard rain", nil},
		{"+ rain", []string{"mcp__weather__get_forecast"}},
		{"1+1 rain", []string{"mcp__weather__get_forecast"}},
	}
	for _, test := range tests {
		if diff := cmp.Diff(test.want, names(x.Search(test.query, 10, nil))); diff != "" {
			t.Errorf("search %q (-want +got):\n%s", test.query, diff)
		}
	}
}

func TestSelect(t *testing.T) {
	tests := []struct {
		query string
		want  []string
		ok    bool
	}{
		{"select:A,B", []string{"A", "B"}, true},
		{" Select: \"A\" , 'B',`C`,, A", []string{"A", "B", "C"}, true},
		{"select:", nil, true},
		{"select A", nil, false},
		{"", nil, false},
		{"selecting: A", nil, false},
	}
	for _, test := range tests {
		got, ok := Select(test.query)
		if diff := cmp.Diff(test.want, got); diff != "" || ok != test.ok {
			t.Errorf("Select(%q): ok %v, -want +got:\n%s", test.query, ok, diff)
		}
	}
}

// keep hides names, whatever they match, and before they are counted.
func TestKeep(t *testing.T) {
	x := office()
	keep := func(name string) bool { return strings.HasPrefix(name, "mcp__disk__") }
	if diff := cmp.Diff([]string{"mcp__disk__send"}, names(x.Search("send", 1, keep))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := x.Search("mcp__weather__get_alerts", 5, keep); len(got) > 0 && got[0].Exact {
		t.Errorf("a hidden tool was found: %v", got)
	}
}

func TestReplace(t *testing.T) {
	x := new(Index)
	steps := []struct {
		source string
		docs   []Document
		want   []string // of a search for rain
		n      int
	}{
		{"a", []Document{{Name: "a1", Description: "rain"}, {Name: "a2", Description: "sun"}}, []string{"a1"}, 2},
		{"b", []Document{{Name: "b1", Description: "rain"}}, []string{"a1", "b1"}, 3},
		{"a", []Document{{Name: "a2", Description: "rain"}}, []string{"a2", "b1"}, 2},
		{"c", []Document{{Name: "b1", Description: "rain rain"}, {Name: "b1", Description: "rain"}}, []string{"b1", "a2"}, 3}, // a name of two sources is found once
		{"b", nil, []string{"b1", "a2"}, 2},
		{"c", nil, []string{"a2"}, 1},
		{"none", nil, []string{"a2"}, 1},
	}
	if got := x.Search("rain", 5, nil); got != nil {
		t.Errorf("an empty index found %v", got)
	}
	for i, s := range steps {
		x.Replace(s.source, s.docs)
		if diff := cmp.Diff(s.want, names(x.Search("rain", 5, nil))); diff != "" || x.Len() != s.n {
			t.Errorf("step %d: %d documents, -want +got:\n%s", i, x.Len(), diff)
		}
	}
}

// The hits depend on the documents alone, not on the order in which they came,
// and equal ones are in order of names.
func TestOrder(t *testing.T) {
	var docs []Document
	for i := range 40 {
		docs = append(docs, Document{Name: fmt.Sprintf("tool_%02d", i), Description: strings.Repeat("rain ", i%3+1) + "sun"})
	}
	forth, back := new(Index), new(Index)
	for i := range 4 {
		forth.Replace(fmt.Sprint(i), docs[i*10:i*10+10])
	}
	for i := 3; i >= 0; i-- {
		part := slices.Clone(docs[i*10 : i*10+10])
		slices.Reverse(part)
		back.Replace(fmt.Sprint(i), part)
	}
	for _, q := range []string{"rain", "sun", "tool", "rain sun", "raim"} {
		a, b := forth.Search(q, 30, nil), back.Search(q, 30, nil)
		if diff := cmp.Diff(a, b); diff != "" || len(a) != 30 {
			t.Errorf("search %q: %d hits, (-forth +back):\n%s", q, len(a), diff)
		}
		if !slices.IsSortedFunc(a, func(x, y Hit) int { return strings.Compare(x.Name, y.Name) }) && q == "sun" {
			for i := 1; i < len(a); i++ {
				if a[i-1].Score == a[i].Score && a[i-1].Name > a[i].Name {
					t.Errorf("search %q: %s before %s", q, a[i-1].Name, a[i].Name)
				}
			}
		}
	}
}

// An index whose sources were replaced, one after another and more than once,
// finds what one that was built at once finds, with the same scores.
func TestReplacedAsRebuilt(t *testing.T) {
	list := func(source string, from, to int) []Document {
		var docs []Document
		for i := from; i < to; i++ {
			docs = append(docs, Document{
				Name: fmt.Sprint(source, "_send_", i), Short: fmt.Sprint("send_", i), Server: source, Title: strings.Repeat("rain ", i%4+1),
				Description: fmt.Sprint("Sends letter ", i, ". 查询余票"), Schema: []byte(fmt.Sprintf(`{"properties":{"storm_%d":{}}}`, i%5)),
			})
		}
		return docs
	}
	updated, built := new(Index), new(Index)
	for i, source := range []string{"c", "a", "b", "d"} {
		updated.Replace(source, list(source, 0, 9))
		updated.Replace(source, list(source, 7, 30))
		docs := list(source, i, 20+i)
		built.Replace(source, docs)
		back := slices.Clone(docs)
		slices.Reverse(back)
		updated.Replace(source, back)
	}
	updated.Replace("c", nil)
	built.Replace("c", nil)
	for _, q := range []string{
		"rain", "sent letters", "a send 3", "send_5", "lettre", "+storm_2 rain", "余票",
		"I would like to know of the rain that is to come. Then please send the letter 5, and do it before the storm_3 is there.",
	} {
		want, got := built.Search(q, 40, nil), updated.Search(q, 40, nil)
		if diff := cmp.Diff(want, got); diff != "" || len(got) == 0 {
			t.Errorf("search %q: %d hits (-built +updated):\n%s", q, len(got), diff)
		}
	}
}

// A search during replacements sees a source as it was or as it is.
func TestSearchDuringReplace(t *testing.T) {
	version := func(v string) []Document {
		var docs []Document
		for i := range 5 {
			docs = append(docs, Document{Name: fmt.Sprint(v, i), Description: "rain"})
		}
		return docs
	}
	x := new(Index)
	x.Replace("s", version("old"))
	var wg sync.WaitGroup
	done := make(chan struct{})
	for range 3 {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				got := names(x.Search("rain", 20, nil))
				if len(got) != 5 || got[0][:3] != got[4][:3] {
					t.Errorf("a mixture: %v", got)
					return
				}
			}
		})
	}
	for i := range 200 {
		x.Replace("s", version([]string{"new", "old"}[i%2]))
		x.Replace(fmt.Sprint(i), []Document{{Name: "other", Description: "sun"}})
	}
	close(done)
	wg.Wait()
}

// Queries in scripts without spaces, and Russian, find tools described in them.
func TestLanguages(t *testing.T) {
	x := office()
	foreign := sets.Foreigns()[1:] // the Chinese ones are for tools that are not in this repository
	for _, f := range foreign {
		x.Replace(f.Language, documents(f.Tools))
	}
	for _, f := range foreign {
		s := sets.Measure(f.Queries, func(q string) []string { return names(x.Search(q, 10, nil)) })
		if s.At1 < 0.95 {
			t.Errorf("%s: %+.3v", f.Language, s)
		}
	}
	x.Replace("more", []Document{
		{Name: "a", Description: "查询列车余票"}, {Name: "b", Description: "获取会议记录。可以按日期过滤"}, {Name: "c", Description: "날씨 예보를 가져옵니다"},
		{Name: "d", Description: "ค้นหาร้านอาหารใกล้เคียง"}, {Name: "e", Description: "API调用GitHub仓库列表"}, {Name: "f", Description: "サーバーのログを確認"},
	})
	for query, want := range map[string]string{
		"火车票的余票": "a", "会议": "b", "按日期": "b", "서울 날씨": "c", "ร้านอาหาร": "d", "github仓库": "e", "仓库": "e", "サーバー": "f",
	} {
		if diff := cmp.Diff([]string{want}, names(x.Search(query, 1, nil))); diff != "" {
			t.Errorf("search %q (-want +got):\n%s", query, diff)
		}
	}
}

func documents(tools []sets.Tool) []Document {
	var docs []Document
	for _, t := range tools {
		docs = append(docs, document(t))
	}
	return docs
}

// Hostile documents cost their bound and spoil no others.
func TestHostileDocuments(t *testing.T) {
	x := office()
	deep := strings.Repeat(`{"properties":{"a":`, 5000) + strings.Repeat(`}}`, 5000)
	x.Replace("hostile", []Document{
		{},
		{Name: "\x00\xff\u202e", Description: "\xff\xfe storm"},
		{Name: "long", Description: strings.Repeat("storm ", 1<<20), Title: strings.Repeat("storm", 1<<16)},
		{Name: "deep", Schema: []byte(deep)},
		{Name: "cut", Schema: []byte(`{"properties":{"before":{"description":"barometer"},"after`)},
		{Name: "odd", Schema: []byte(`{"properties":[1],"enum":{"a":1},"description":5,"items":[true,null,3],"anyOf":"x","properties":{"hygrometer":false}}`)},
		{Name: "wide", Schema: []byte(`{"enum":[` + strings.Repeat(`"storm",`, 200_000) + `"x"]}`)},
		{Name: "none", Schema: []byte("storm")},
	})
	for query, want := range map[string]string{"barometer": "cut", "hygrometer": "odd", "deep": "deep", "outlook": "mcp__weather__get_forecast"} {
		if got := names(x.Search(query, 1, nil)); !slices.Equal(got, []string{want}) {
			t.Errorf("search %q: %v, want %s", query, got, want)
		}
	}
	if got := x.Search("storm warnings", 1, nil); got[0].Name != "mcp__weather__get_alerts" {
		t.Errorf("repeating a word a million times won: %v", got)
	}
}

func TestHostileQueries(t *testing.T) {
	x := office()
	for _, q := range []string{
		"", " ", "+", "+++", "\x00", "\xff\xff", "«", "\"", strings.Repeat("\"", 1<<16), strings.Repeat("+storm ", 1<<16), strings.Repeat("a", 1<<20),
		strings.Repeat("查", 1<<16), strings.Repeat("qwx ", 1<<14), strings.Repeat("'a ", 1<<14), "\u202e\u200b",
	} {
		x.Search(q, 10, nil)
	}
	if got := x.Search("storm", -1, nil); got != nil {
		t.Errorf("limit -1: %v", got)
	}
	if got := names(x.Search(strings.Repeat("zzz ", 50)+"storm", 1, nil)); !slices.Equal(got, []string{"mcp__weather__get_alerts"}) {
		t.Errorf("a query of many unknown words: %v", got)
	}
}

func FuzzSearch(f *testing.F) {
	f.Add("mcp__a__b", "Reads a file. Or not.", `{"properties":{"a":{"enum":["x"]}}}`, "+read 'file' a_b")
	f.Add("查询", "获取。", `[`, "查 询カタ ひら")
	f.Add("send_all", "Sends storm warnings. To all!", `{"properties":{"rain":{}}}`, "Please send a message to all of the people in the house. Is there a storm? Rain; 'sun' +file.")
	x := office()
	f.Fuzz(func(t *testing.T, name, description, schema, q string) {
		x.Replace("fuzz", []Document{{Name: name, Title: q, Description: description, Schema: []byte(schema)}, {Name: name + "2", Hint: description}})
		hits := x.Search(q, 5, nil)
		if diff := cmp.Diff(hits, x.Search(q, 5, nil)); diff != "" {
			t.Errorf("two searches differ: %s", diff)
		}
		if key := squash(clip(name, maxName)); key != "" && !strings.Contains(name, "+") {
			if hits := x.Search(name, 1, nil); len(name) <= maxName && (len(hits) == 0 || !hits[0].Exact) {
				t.Errorf("the name %q is not first for itself: %v", name, hits)
			}
		}
	})
}

// What a query says loudly or in quotes does not drown the rest, and the
// fellows of Chinese hits are found, those of English ones not.
func TestWeighing(t *testing.T) {
	x := new(Index)
	x.Replace("a", []Document{
		{Name: "one", Description: "storm"}, {Name: "two", Description: "rain sun"},
		{Name: "three", Description: "列车余票，查询班次"}, {Name: "four", Description: "查询班次"}, {Name: "five", Description: "天气"},
	})
	for _, test := range []struct {
		query string
		want  []string
	}{
		{`storm rain sun`, []string{"two", "one"}},
		{`storm "rain sun"`, []string{"one", "two"}},
		{`storm “rain sun”`, []string{"one", "two"}},
		{`storm's rain's sun`, []string{"two", "one"}}, // apostrophes are no quotes
		{`"storm rain sun"`, []string{"two", "one"}},   // nothing else is there
		{`storm storm storm storm storm rain sun`, []string{"two", "one"}},
		{`余票`, []string{"three", "four"}},
		{`rain`, []string{"two"}},
	} {
		if diff := cmp.Diff(test.want, names(x.Search(test.query, 9, nil))); diff != "" {
			t.Errorf("search %s (-want +got):\n%s", test.query, diff)
		}
	}
}

// Long queries get no guesses, but joined words; a name of its own goes before
// the short name of another; a rare synonym is worth no more than the word.
func TestRanking(t *testing.T) {
	deep := strings.Repeat(`{"properties":{"a":`, maxDepth+1) + `{"properties":{"abyss":{}}}` + strings.Repeat(`}}`, maxDepth+1)
	docs := []Document{
		{Name: "joined", Description: "filesystem"}, {Name: "parted", Title: "snow fall"}, {Name: "from", Server: "quokka"},
		{Name: "alpha", Description: "x"}, {Name: "b__alpha", Short: "alpha", Title: "alpha", Description: "alpha alpha"},
		{Name: "listed", Schema: []byte(`{"properties":{"rows":{"items":{"properties":{"wombat":{}}}}}}`)},
		{Name: "deep", Schema: []byte(deep)}, {Name: "rare", Description: "purge"},
	}
	for i := range 100 {
		docs = append(docs, Document{Name: fmt.Sprint("n", i), Description: "nothing"}, Document{Name: fmt.Sprint("d", i), Description: "deleting"})
	}
	x := new(Index)
	x.Replace("", docs)
	for _, test := range []struct {
		query string
		want  []string
	}{
		{"please could you tell me what is in the file system now", []string{"joined"}},
		{"please could you tell me about the snowfall of the last days", []string{"parted"}},
		{"please could you tell me about the snowfalk of the last days", nil},
		{"quokka", []string{"from"}},
		{"alpha", []string{"alpha", "b__alpha"}},
		{"wombat", []string{"listed"}},
		{"abyss", nil}, // deeper than is read
	} {
		if diff := cmp.Diff(test.want, names(x.Search(test.query, 9, nil))); diff != "" {
			t.Errorf("search %q (-want +got):\n%s", test.query, diff)
		}
	}
	if got := names(x.Search("delete", maxHits, nil)); len(got) != 101 || got[100] != "rare" {
		t.Errorf("search delete: %d hits, rare at %d", len(got), slices.Index(got, "rare"))
	}
}

// A long message of several sentences finds tools for each of them, though the
// first alone would fill the list; a short one, and one sentence, do not.
func TestSeveralTasks(t *testing.T) {
	x := new(Index)
	var docs []Document
	for i := range 12 { // so that the words of the other tools are a little less worth
		for _, w := range []string{"delete", "survey", "archive", "letter"} {
			docs = append(docs, Document{Name: fmt.Sprint(w, i), Description: w})
		}
		for j := range 5 {
			docs = append(docs, Document{Name: fmt.Sprintf("school_%d_%d", i, j)})
		}
	}
	x.Replace("common", docs)
	for i := range 9 {
		x.Replace(fmt.Sprint("flyer", i), []Document{{Name: fmt.Sprint("sketch_flyer_", i), Description: "Sketches a flyer"}})
	}
	x.Replace("survey", []Document{{Name: "delete_survey", Description: "Deletes a survey"}})
	x.Replace("mail", []Document{{Name: "archive_letter", Description: "Archives a letter"}})
	const first, rest = "Please sketch a flyer for the guests of the big summer party at our school", "delete the survey and archive the letter"
	several := []string{"archive_letter", "delete_survey", "sketch_flyer_0"}
	one := []string{"sketch_flyer_0", "sketch_flyer_1", "sketch_flyer_2"}
	for _, test := range []struct {
		query string
		want  []string // in order of names
	}{
		{first + ". Then " + rest + ".", several},
		{first + "?) Then " + rest, several},
		{first + "; then " + rest, several},
		{first + " then " + rest, one},
		{"Sketch a flyer at school. Delete the survey.", one},
	} {
		got := names(x.Search(test.query, 3, nil))
		slices.Sort(got)
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("search %q (-want +got):\n%s", test.query, diff)
		}
		all := names(x.Search(test.query, maxHits, nil))
		found := len(all)
		if slices.Sort(all); len(slices.Compact(all)) != found || found <= maxPool {
			t.Errorf("search %q: %d tools, want more than are picked, and each once", test.query, found)
		}
	}
}

// A tool that the message does not tell from others follows a hit of its server.
func TestKin(t *testing.T) {
	x := new(Index)
	x.Replace("b", []Document{{Name: "b_get_user", Short: "get_user", Server: "bellows", Description: "Reads a user."}})
	x.Replace("c", []Document{
		{Name: "c_get_user", Short: "get_user", Server: "tongs", Description: "Reads a user."},
		{Name: "c_timeline", Short: "timeline", Server: "tongs", Description: "Timeline of an account."},
	})
	for query, want := range map[string][]string{
		"Show me the timeline of this account from the first to the last day. Then read the user too.":    {"c_timeline", "c_get_user"},
		"Show me the timeline of this account from the first to the last day and then read the user too.": {"c_timeline", "b_get_user"},
	} {
		if diff := cmp.Diff(want, names(x.Search(query, 2, nil))); diff != "" {
			t.Errorf("search %q (-want +got):\n%s", query, diff)
		}
	}
}

// A source of many tools with many words of their own has a share of the index and
// no more: its later tools are found by name, and those of others as before.
func TestSourceIsBounded(t *testing.T) {
	var flood []Document
	for i := range 150 {
		var b strings.Builder
		for j := range 1500 {
			fmt.Fprintf(&b, "ticke%dx%d ", j, i)
		}
		flood = append(flood, Document{Name: fmt.Sprintf("flood_%d", i), Description: b.String(), Schema: []byte(`{"properties":{"param` + fmt.Sprint(i) + `":{}}}`)})
	}
	var x Index
	x.Replace("a flood", flood)
	x.Replace("git", []Document{{Name: "open", Description: "Opens tickets."}, {Name: "close", Description: "Closes tickets."}})
	seg := x.state.Load().segments[0]
	if most := maxSourceTerms + fieldsOfOne; seg.source != "a flood" || len(seg.terms) > most || len(seg.docs) != len(flood) {
		t.Errorf("%s: %d terms of %d documents", seg.source, len(seg.terms), len(seg.docs))
	}
	for query, want := range map[string]string{"flood_0": "flood_0", "flood_149": "flood_149", "param3": "flood_3", "tickt": "close", "ticke": "close"} {
		got := ""
		if hits := x.Search(query, 1, nil); len(hits) > 0 {
			got = hits[0].Name
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", query, got, want)
		}
	}
}

// fieldsOfOne is what the document that reaches the bound may have beyond it.
const fieldsOfOne = 2 * maxTokens
