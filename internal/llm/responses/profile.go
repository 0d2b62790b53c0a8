package responses

import "capstan/internal/llm"

// A Profile says how an endpoint differs from the others. docs/providers.md
// lists what each flag is for.
type Profile struct {
	llm.Known

	KeyHeader   string // the header of the key; empty: Authorization: Bearer
	Tools       int    // how many may be declared; 0: any number
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

// maxTools is how many tools OpenAI takes in one request.
const maxTools = 128

// Profiles is the table. An address that nobody knows gets "compatible".
func Profiles() llm.Profiles[Profile] {
	return llm.Profiles[Profile]{
		{Known: llm.Known{Name: "openai", Hosts: []string{"api.openai.com"}}, Tools: maxTools, Encrypted: true, Summary: true, CacheKey: true, Images: true, Documents: true, ResultMedia: true},
		{Known: llm.Known{Name: "azure", Hosts: []string{".openai.azure.com", ".services.ai.azure.com", ".cognitiveservices.azure.com"}}, KeyHeader: "Api-Key",
			Tools: maxTools, Encrypted: true, Summary: true, CacheKey: true, Images: true, Documents: true, ResultMedia: true},
		{Known: llm.Known{Name: "openrouter", Hosts: []string{"openrouter.ai"}}, Encrypted: true, CacheKey: true, Images: true, Documents: true},
		{Known: llm.Known{Name: "xai", Hosts: []string{"api.x.ai"}}, Encrypted: true, CacheKey: true, Images: true},
		compatible(),
	}
}

// compatible is for every other host: a local server, most of the time. It
// gives reasoning out in the open, and takes it back so.
func compatible() Profile { return Profile{Known: llm.Known{Name: "compatible"}, Images: true} }
