package anthropic

import "capstan/internal/llm"

// A Profile says how an endpoint differs from Anthropic. docs/providers.md lists
// what each flag is for.
type Profile struct {
	Name   string
	Hosts  []string // host names
	Key    Key      // where the key goes
	Images bool     // takes image blocks
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

// profiles is a table: the first whose host matches is taken.
func profiles() []Profile {
	return []Profile{
		{Name: "anthropic", Hosts: []string{"api.anthropic.com"}, Images: true},
		{Name: "deepseek", Hosts: []string{"api.deepseek.com"}, Key: KeyBoth},
		compatible(),
	}
}

// compatible is for every other host: a proxy, or a local server.
func compatible() Profile { return Profile{Name: "compatible", Key: KeyBoth, Images: true} }

// ProfileFor returns the profile for a base URL. An address that nobody knows
// gets "compatible".
func ProfileFor(baseURL string) Profile {
	for _, p := range profiles() {
		if llm.AtHost(baseURL, p.Hosts) {
			return p
		}
	}
	return compatible()
}

// ProfileNamed returns the profile of that name, for a setting.
func ProfileNamed(name string) (Profile, bool) {
	for _, p := range profiles() {
		if p.Name == name {
			return p, true
		}
	}
	return Profile{}, false
}

// ProfileNames lists the names, in the order of the table.
func ProfileNames() []string {
	var out []string
	for _, p := range profiles() {
		out = append(out, p.Name)
	}
	return out
}
