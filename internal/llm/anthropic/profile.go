package anthropic

import "capstan/internal/llm"

// A Profile says how an endpoint differs from Anthropic. docs/providers.md lists
// what each flag is for.
type Profile struct {
	llm.Known
	Key    Key  // where the key goes
	Images bool // takes image blocks
}

// Key is where an endpoint looks for the key.
type Key string

// The places of a key. KeyBearer is also for a token instead of a key, as in
// ANTHROPIC_AUTH_TOKEN.
const (
	KeyHeader Key = ""       // X-Api-Key
	KeyBearer Key = "bearer" // Authorization: Bearer
	KeyBoth   Key = "both"   // both; imitations want one or the other
)

// Profiles is the table. An address that nobody knows gets "compatible".
func Profiles() llm.Profiles[Profile] {
	return llm.Profiles[Profile]{
		{Known: llm.Known{Name: "anthropic", Hosts: []string{"api.anthropic.com"}}, Images: true},
		{Known: llm.Known{Name: "deepseek", Hosts: []string{"api.deepseek.com"}}, Key: KeyBoth},
		compatible(),
	}
}

// compatible is for every other host: a proxy, or a local server.
func compatible() Profile {
	return Profile{Known: llm.Known{Name: "compatible"}, Key: KeyBoth, Images: true}
}
