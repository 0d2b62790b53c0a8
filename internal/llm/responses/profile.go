package responses

import "capstan/internal/llm"

// A Profile says how an endpoint differs from the others. docs/providers.md
// lists what each flag is for.
type Profile struct {
	Name  string
	Hosts []string // host names; one that begins with a dot stands for all below it

	KeyHeader   string // the header of the key; empty: Authorization: Bearer
	Encrypted   bool   // gives reasoning out encrypted, and takes no other back
	Summary     bool   // may be asked for a summary of its reasoning
	CacheKey    bool   // takes prompt_cache_key
	Images      bool   // takes input_image
	Documents   bool   // takes input_file, for PDF
	ResultMedia bool   // takes both in the output of a call
}

// nameRule is what all of them take as the name of a function, idRule as the id
// of a call.
var (
	nameRule = llm.Rule{Max: 64, Chars: "_-"}
	idRule   = llm.Rule{Max: 64, Chars: "_-"}
)

// profiles is a table: the first whose host matches is taken.
func profiles() []Profile {
	return []Profile{
		{Name: "openai", Hosts: []string{"api.openai.com"}, Encrypted: true, Summary: true, CacheKey: true, Images: true, Documents: true, ResultMedia: true},
		{Name: "azure", Hosts: []string{".openai.azure.com", ".services.ai.azure.com", ".cognitiveservices.azure.com"}, KeyHeader: "Api-Key",
			Encrypted: true, Summary: true, CacheKey: true, Images: true, Documents: true, ResultMedia: true},
		{Name: "openrouter", Hosts: []string{"openrouter.ai"}, Encrypted: true, CacheKey: true, Images: true, Documents: true},
		{Name: "xai", Hosts: []string{"api.x.ai"}, Encrypted: true, CacheKey: true, Images: true},
		compatible(),
	}
}

// compatible is for every other host: a local server, most of the time. It
// gives reasoning out in the open, and takes it back so.
func compatible() Profile { return Profile{Name: "compatible", Images: true} }

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
