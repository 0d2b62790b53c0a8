package openai

import "capstan/internal/llm"

// A Profile says how an endpoint differs from OpenAI. docs/providers.md lists
// what each flag is for.
type Profile struct {
	llm.Known

	KeyHeader   string // the header of the key; empty: Authorization: Bearer
	MaxTokens   string // the field for the limit of tokens; empty: max_tokens
	Tools       int    // how many may be declared; 0: any number
	NoUsage     bool   // refuses stream_options
	Effort      Effort // how an effort of reasoning is asked for
	Output      Output // how a structured answer is asked for
	CacheKey    bool   // takes prompt_cache_key
	CacheMarks  bool   // takes cache_control in content
	Images      bool   // takes image_url
	Audio       bool   // takes input_audio
	Documents   bool   // takes file, for PDF
	Bridge      bool   // refuses a user's message right after a result
	Leaks       bool   // its servers are known to leave calls in the text
	ThinkTags   bool   // its servers are known to leave <think> in the text
	CutsPrompts bool   // its servers are known to cut long prompts silently

	// Reasoning names the field in which reasoning goes back with its message;
	// empty: not at all. ReasoningOwed: a message with calls is refused without
	// the field, so it is sent empty when there is no reasoning.
	Reasoning     Reasoning
	ReasoningOwed bool

	IDs llm.Rule // of call ids; zero: anything
}

// Effort is how an endpoint is asked for an effort of reasoning.
type Effort string

// The ways to ask for an effort.
const (
	EffortNone   Effort = ""                 // not at all
	EffortField  Effort = "reasoning_effort" // a field of its own
	EffortObject Effort = "reasoning"        // {"effort": …} in this field
)

// Output is how an endpoint is asked for a structured answer.
type Output string

// The ways to ask for a structured answer.
const (
	OutputPrompt Output = ""            // only in words, at the end of the system prompt
	OutputObject Output = "json_object" // any JSON object, the schema in words
	OutputSchema Output = "json_schema"
)

// Reasoning is a field of an assistant's message.
type Reasoning string

// The fields in which reasoning goes back.
const (
	ReasoningNone    Reasoning = ""
	ReasoningContent Reasoning = "reasoning_content"
	ReasoningText    Reasoning = "reasoning"
	ReasoningDetails Reasoning = "reasoning_details"
)

// nameRule is what all of them take as the name of a function.
var nameRule = llm.Rule{Max: 64, Chars: "_-"}

// idRule is OpenAI's for the ids of calls. It takes no more than 40 bytes; those
// that other providers give are longer, and stay in a session that goes on with
// another model.
var idRule = llm.Rule{Max: 40, Chars: "_-.:"}

// maxTools is how many tools OpenAI takes in one request, and those that state
// its limit as theirs.
const maxTools = 128

// Profiles is the table. An address that nobody knows gets "compatible".
func Profiles() llm.Profiles[Profile] {
	return llm.Profiles[Profile]{
		{Known: llm.Known{Name: "openai", Hosts: []string{"api.openai.com"}}, MaxTokens: "max_completion_tokens", Tools: maxTools, Effort: EffortField, Output: OutputSchema,
			CacheKey: true, Images: true, Audio: true, Documents: true, IDs: idRule},
		{Known: llm.Known{Name: "azure", Hosts: []string{".openai.azure.com", ".services.ai.azure.com", ".cognitiveservices.azure.com"}}, KeyHeader: "Api-Key", MaxTokens: "max_completion_tokens", Tools: maxTools,
			Effort: EffortField, Output: OutputSchema, CacheKey: true, Images: true, Audio: true, IDs: idRule},
		{Known: llm.Known{Name: "openrouter", Hosts: []string{"openrouter.ai"}}, Effort: EffortObject, Output: OutputSchema, CacheMarks: true, Images: true, Audio: true, Documents: true,
			Reasoning: ReasoningDetails, IDs: idRule},
		{Known: llm.Known{Name: "deepseek", Hosts: []string{"api.deepseek.com"}}, Tools: maxTools, Effort: EffortField, Output: OutputObject, Reasoning: ReasoningContent, ReasoningOwed: true},
		{Known: llm.Known{Name: "dashscope", Hosts: []string{"dashscope.aliyuncs.com", "dashscope-intl.aliyuncs.com", "dashscope-us.aliyuncs.com"}}, Output: OutputObject, Images: true,
			Reasoning: ReasoningContent, Leaks: true},
		{Known: llm.Known{Name: "mistral", Hosts: []string{"api.mistral.ai", "codestral.mistral.ai"}}, NoUsage: true, Output: OutputSchema, Images: true, Bridge: true,
			IDs: llm.Rule{Max: 9, Full: true}},
		{Known: llm.Known{Name: "groq", Hosts: []string{"api.groq.com"}}, MaxTokens: "max_completion_tokens", Effort: EffortField, Output: OutputSchema, Images: true},
		{Known: llm.Known{Name: "cerebras", Hosts: []string{"api.cerebras.ai"}}, MaxTokens: "max_completion_tokens", Effort: EffortField, Output: OutputSchema,
			Reasoning: ReasoningText},
		{Known: llm.Known{Name: "moonshot", Hosts: []string{"api.moonshot.ai", "api.moonshot.cn", "api.kimi.com"}}, Output: OutputObject, Images: true,
			Reasoning: ReasoningContent},
		{Known: llm.Known{Name: "zai", Hosts: []string{"api.z.ai", "open.bigmodel.cn"}}, Output: OutputObject, Images: true, Reasoning: ReasoningContent},
		{Known: llm.Known{Name: "xai", Hosts: []string{"api.x.ai"}}, Effort: EffortField, Output: OutputSchema, Images: true},
		compatible(),
	}
}

// compatible is for every other host: a local server, most of the time.
func compatible() Profile {
	return Profile{Known: llm.Known{Name: "compatible"}, Effort: EffortField, Output: OutputSchema, Images: true,
		Reasoning: ReasoningContent, Leaks: true, ThinkTags: true, CutsPrompts: true}
}
