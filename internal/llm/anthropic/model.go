package anthropic

import (
	"slices"
	"strings"
)

// A model is what the documentation says of the models whose names begin with
// prefix. The API refuses a request that asks a model for what it has not.
type model struct {
	prefix  string
	tokens  int      // the most that it writes in one answer
	think   thinking // how it is asked to think
	efforts []string // the words of output_config.effort, if it takes it
	format  bool     // takes output_config.format
	free    bool     // takes temperature and top_p
	claude  bool     // and so keeps to the letter of the API, whoever serves it
}

// thinking is how a model is asked to think.
type thinking int

const (
	never  thinking = iota
	budget          // enabled, with a number of tokens
	adapts          // adaptive
	shows           // adaptive, and shows what it thinks only when asked to
	always          // shows, and cannot be told not to think
)

// efforts are the words for an effort, in ascending order.
var efforts = []string{"low", "medium", "high", "xhigh", "max"}

// models is a table: the first whose prefix matches is taken. Names that are
// newer than this table are taken for the newest models.
func models() []model {
	upToHigh, noXhigh := efforts[:3], []string{"low", "medium", "high", "max"}
	return []model{
		{prefix: "claude-3-7", tokens: 64000, think: budget, free: true, claude: true},
		{prefix: "claude-3-5", tokens: 8192, free: true, claude: true},
		{prefix: "claude-3", tokens: 4096, free: true, claude: true},
		{prefix: "claude-opus-4-5", tokens: 64000, think: budget, efforts: upToHigh, format: true, free: true, claude: true},
		{prefix: "claude-opus-4-6", tokens: 128000, think: adapts, efforts: noXhigh, format: true, free: true, claude: true},
		{prefix: "claude-opus-4-7", tokens: 128000, think: shows, efforts: efforts, format: true, claude: true},
		{prefix: "claude-opus-4-8", tokens: 128000, think: shows, efforts: efforts, format: true, claude: true},
		{prefix: "claude-opus-4", tokens: 32000, think: budget, free: true, claude: true},
		{prefix: "claude-sonnet-4-5", tokens: 64000, think: budget, format: true, free: true, claude: true},
		{prefix: "claude-sonnet-4-6", tokens: 64000, think: adapts, efforts: noXhigh, format: true, free: true, claude: true},
		{prefix: "claude-sonnet-4", tokens: 64000, think: budget, free: true, claude: true},
		{prefix: "claude-haiku-4", tokens: 64000, think: budget, format: true, free: true, claude: true},
		{prefix: "claude-fable", tokens: 128000, think: always, efforts: efforts, format: true, claude: true},
		{prefix: "claude-mythos", tokens: 128000, think: always, efforts: efforts, format: true, claude: true},
		{prefix: "claude", tokens: 64000, think: shows, efforts: efforts, format: true, claude: true},
		// All others imitate: what they do not know they are known to ignore.
		{prefix: "", tokens: 8192, think: budget, free: true},
	}
}

// modelFor finds a model by name. Clouds and proxies put words before it:
// us.anthropic.claude-…, anthropic/claude-….
func modelFor(name string) model {
	name = strings.ToLower(name)
	if i := strings.Index(name, "claude"); i >= 0 {
		name = name[i:]
	}
	all := models()
	return all[slices.IndexFunc(all, func(m model) bool { return strings.HasPrefix(name, m.prefix) })]
}

// effort is the strongest word that the model takes and that is no stronger
// than the one asked for. minimal is low; a word that nobody knows is passed
// on, so that the API says what it takes.
func (m model) effort(asked string) string {
	if asked == "minimal" {
		asked = "low"
	}
	rank := slices.Index(efforts, asked)
	if len(m.efforts) == 0 || rank < 0 {
		return asked
	}
	for ; rank > 0 && !slices.Contains(m.efforts, efforts[rank]); rank-- {
	}
	return efforts[rank]
}

// The tokens that thinking gets of an answer where it has a budget.
const (
	leastBudget = 1024 // the API takes no less
	usualTokens = 32000
	mostTokens  = 64000 // for the strongest efforts
)

func budgetFor(effort string) int {
	switch effort {
	case "minimal":
		return leastBudget
	case "low":
		return 4096
	case "medium":
		return 10000
	case "high":
		return 20000
	}
	return 40000
}

// answerTokens is the limit of an answer whose request sets none. It has to
// hold a long file in a call, and thinking; the API bills what is written, not
// what was allowed.
func (m model) answerTokens(effort string) int {
	usual := usualTokens
	if effort == "xhigh" || effort == "max" {
		usual = mostTokens
	}
	return min(usual, m.tokens)
}
