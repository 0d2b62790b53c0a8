package llmtest

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// Each rule of generateContent refuses what breaks it, and a request that keeps
// them all is taken; the rules that differ by the model, of both kinds.
func TestGeminiRules(t *testing.T) {
	const (
		user  = `{"role":"user","parts":[{"text":"hi"}]}`
		reply = `{"role":"model","parts":[{"text":"ok"}]}`
		sig   = `"thoughtSignature":"skip_thought_signature_validator"`
		call  = `{"role":"model","parts":[{"functionCall":{"id":"a","name":"f","args":{}},` + sig + `}]}`
		res   = `{"role":"user","parts":[{"functionResponse":{"id":"a","name":"f","response":{"output":"A"}}}]}`
	)
	blob := `{"inlineData":{"mimeType":"image/png","data":"` + pixel64 + `"}}`
	contents := func(list ...string) string { return `{"contents":[` + strings.Join(list, ",") + `]}` }
	userParts := func(parts string) string { return contents(`{"role":"user","parts":[` + parts + `]}`) }
	with := func(more string) string { return `{"contents":[` + user + `],` + more + `}` }
	function := func(name, schema string) string {
		return with(`"tools":[{"functionDeclarations":[{"name":"` + name + `","description":"D","parameters":` + schema + `}]}]`)
	}
	property := func(schema string) string { return function("f", `{"type":"object","properties":{"p":`+schema+`}}`) }
	generation := func(s string) string { return with(`"generationConfig":{` + s + `}`) }
	answered := func(from, to string) string { return contents(user, call, strings.Replace(res, from, to, 1)) }
	called := func(from, to string) string { return contents(user, strings.Replace(call, from, to, 1), res) }
	const declared = `"tools":[{"functionDeclarations":[{"name":"f"}]}`
	const unsigned = `{"role":"model","parts":[{"functionCall":{"id":"a","name":"f","args":{}}}]}`
	tests := []struct{ name, body, says string }{
		{"fine", contents(user, reply, user, call, res, call, res), ""},
		{"fine, the user speaks after a result", contents(user, call, strings.Replace(res, `}}}]`, `}}},{"text":"and"}]`, 1)), ""},
		{"fine, media", userParts(`{"text":"x"},` + blob), ""},
		{"fine, a signature alone", contents(user, `{"role":"model","parts":[{"text":"","thoughtSignature":"QQ=="}]}`, user), ""},
		{"fine, an old call without a signature", contents(user, unsigned, res, reply, user), ""},
		{"fine, code", contents(user, `{"role":"model","parts":[{"executableCode":{}},{"codeExecutionResult":{}}]}`, user), ""},
		{"fine, system and functions", with(`"systemInstruction":{"parts":[{"text":"S"}]},` + declared + `],"toolConfig":{"functionCallingConfig":{"mode":"ANY"}}`), ""},
		{"fine, schema", property(`{"type":"ARRAY","nullable":true,"items":{"anyOf":[{"type":"string","enum":["a"],"format":"enum"},{"type":"integer","format":"int32"},{"type":"object"}]}}`), ""},
		{"not JSON", `{`, "Invalid JSON payload"},
		{"unknown field", with(`"model":"m"`), `Unknown name "model"`},
		{"no contents", `{"contents":[]}`, "contents is not specified"},
		{"unknown role", contents(`{"role":"assistant","parts":[{"text":"x"}]}`), "valid role: user, model"},
		{"the model first", contents(reply, user), "first content is of role user"},
		{"the model last", contents(user, reply), "end with a user role"},
		{"two of the user", contents(user, user), "alternate between user and model"},
		{"no parts", contents(`{"role":"user","parts":[]}`), "parts must not be empty"},
		{"an empty part", userParts(`{}`), "required oneof field 'data'"},
		{"two in one part", userParts(`{"text":"x","inlineData":{"mimeType":"image/png","data":"AA=="}}`), "required oneof field 'data'"},
		{"an empty text", userParts(`{"text":""}`), "must have a text parameter"},
		{"an unknown part", userParts(`{"text":"x","foo":1}`), `Unknown name "foo"`},
		{"no picture", userParts(`{"inlineData":{"mimeType":"image/png","data":"AA=="}}`), "Unable to process input image"},
		{"a gif", userParts(`{"inlineData":{"mimeType":"image/gif","data":"AA=="}}`), "Unsupported MIME type: image/gif"},
		{"media without bytes", userParts(`{"inlineData":{"mimeType":"image/png","data":""}}`), "Base64 decoding failed"},
		{"a signature that is no base64", contents(user, `{"role":"model","parts":[{"text":"x","thoughtSignature":"%%"}]}`, user), "Base64 decoding failed"},
		{"a user that calls", contents(strings.Replace(call, "model", "user", 1)), "cannot hold what the model writes"},
		{"a user that thinks", userParts(`{"text":"x","thought":true}`), "cannot hold what the model writes"},
		{"a model that answers a call", contents(user, strings.Replace(res, "user", "model", 1), user), "cannot hold a function_response"},
		{"a call without its result", contents(user, call, user), "number of function response parts"},
		{"a call twice answered", answered(`{"functionResponse":{"id":"a","name":"f","response":{"output":"A"}}}`, strings.Repeat(`,{"functionResponse":{"id":"a","name":"f","response":{}}}`, 2)[1:]), "number of function response parts"},
		{"a result without a call", contents(user, reply, res), "immediately after a function call turn"},
		{"another id", answered(`"id":"a"`, `"id":"b"`), `the id "b"`},
		{"another name", answered(`"name":"f"`, `"name":"g"`), `the name "g"`},
		{"words before the result", answered(`{"functionResponse"`, `{"text":"x"},{"functionResponse"`), "before other parts"},
		{"a result that is no object", answered(`{"output":"A"}`, `"A"`), "function_response.response"},
		{"arguments that are no object", called(`"args":{}`, `"args":"{}"`), "function_call.args"},
		{"a call with a bad name", called(`"name":"f"`, `"name":"9f"`), "Must start with a letter or an underscore"},
		{"no signature", contents(user, unsigned, res), "missing a thought_signature"},
		{"the signature of another call", called(sig, `"thoughtSignature":"c2lnbmVkOiBn"`), "Corrupted thought signature"},
		{"a sound in a result", answered(`{"output":"A"}}`, `{},"parts":[{"inlineData":{"mimeType":"audio/wav","data":"AA=="}}]}`), "Unsupported MIME type: audio/wav"},
		{"an empty system", with(`"systemInstruction":{"parts":[]}`), "system_instruction.parts"},
		{"a system that shows", with(`"systemInstruction":{"parts":[` + blob + `]}`), "only text parts"},
		{"no functions", with(`"tools":[{"functionDeclarations":[]}]`), "must not be empty"},
		{"an unknown tool", with(`"tools":[{"bash":{}}]`), `Unknown name "bash"`},
		{"a name with a space", function("a b", `{"type":"object","properties":{"a":{"type":"string"}}}`), "Invalid function name"},
		{"a long name", function(strings.Repeat("a", 65), `{"type":"object","properties":{"a":{"type":"string"}}}`), "Invalid function name"},
		{"a function twice", with(`"tools":[{"functionDeclarations":[{"name":"f"},{"name":"f"}]}]`), "Duplicate function declaration"},
		{"parameters without any", function("f", `{"type":"object"}`), "should be non-empty for OBJECT type"},
		{"a keyword", property(`{"type":"string","const":"x"}`), `Unknown name "const"`},
		{"additionalProperties", function("f", `{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}`), `Unknown name "additionalProperties"`},
		{"no type", property(`{}`), "type: must be specified"},
		{"an empty type", property(`{"type":"","anyOf":null}`), "type: must be specified"},
		{"a list of types", property(`{"type":["string","null"]}`), "cannot unmarshal"},
		{"an unknown type", property(`{"type":"any"}`), "Invalid value"},
		{"an array without items", property(`{"type":"array"}`), "items: missing field"},
		{"a string with items", property(`{"type":"string","items":{"type":"string"}}`), "only allowed for ARRAY type"},
		{"a string with properties", property(`{"type":"string","properties":{"a":{"type":"string"}}}`), "only allowed for OBJECT type"},
		{"an enum of numbers", property(`{"type":"string","enum":[1]}`), "enum[0]"},
		{"an empty word in an enum", property(`{"type":"string","enum":[""]}`), "cannot be empty"},
		{"an enum of an integer", property(`{"type":"integer","enum":["1"]}`), "only allowed for STRING type"},
		{"a format", property(`{"type":"string","format":"uri"}`), "are supported for STRING type"},
		{"required, but not there", function("f", `{"type":"object","properties":{"a":{"type":"string"}},"required":["b"]}`), "property is not defined"},
		{"deep in anyOf", property(`{"anyOf":[{"type":"array"}]}`), "any_of[0].items: missing field"},
		{"a choice without functions", with(`"toolConfig":{"functionCallingConfig":{"mode":"NONE"}}`), "without function_declarations"},
		{"an unknown choice", with(declared + `],"toolConfig":{"functionCallingConfig":{"mode":"none"}}`), "function_calling_config.mode"},
		{"hosted tools beside functions", with(declared + `,{"googleSearch":{}}]`), "include_server_side_tool_invocations"},
		{"temperature", generation(`"temperature":3`), "temperature must be in the range"},
		{"no tokens", generation(`"maxOutputTokens":0`), "must be positive"},
		{"too many stops", generation(`"stopSequences":["1","2","3","4","5","6"]`), "at most 5"},
		{"a schema without a type of answer", generation(`"responseSchema":{"type":"string"}`), "only allowed with a response_mime_type"},
		{"a bad schema of the answer", generation(`"responseMimeType":"application/json","responseSchema":{"type":"object"}`), "should be non-empty"},
		{"budget and level", generation(`"thinkingConfig":{"thinkingBudget":1,"thinkingLevel":"LOW"}`), "only one of thinking budget and thinking level"},
		{"an unknown level", generation(`"thinkingConfig":{"thinkingLevel":"HUGE"}`), "thinking_level"},
		{"a huge budget", generation(`"thinkingConfig":{"thinkingBudget":99999}`), "The thinking budget 99999 is invalid"},
	}
	check := func(t *testing.T, format, body, says string) {
		t.Helper()
		err := (&Script{}).Check(format, []byte(body))
		if (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want %q", err, says)
		}
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { check(t, "gemini", tt.body, tt.says) })
	}
	for _, tt := range []struct{ name, body, third, second string }{
		{"no signature", contents(user, unsigned, res), "missing a thought_signature", ""},
		{"an image in a result", answered(`{"output":"A"}}`, `{},"parts":[`+blob+`]}`), "", "Multimodal function responses"},
		{"hosted tools beside functions", with(declared + `,{"googleSearch":{}}],"toolConfig":{"includeServerSideToolInvocations":true}`), "", "cannot be combined"},
		{"JSON beside functions", with(declared + `],"generationConfig":{"responseMimeType":"application/json"}`), "", "is unsupported"},
		{"a level", generation(`"thinkingConfig":{"thinkingLevel":"LOW"}`), "", "not supported for this model"},
	} {
		t.Run(tt.name+", by model", func(t *testing.T) {
			check(t, "gemini", tt.body, tt.third)
			check(t, "gemini-2.5", tt.body, tt.second)
		})
	}
}

// The server streams as the API does: events with alt=sse, a JSON list without;
// errors in the API's form; a call that is no JSON as the end of the answer.
func TestGeminiServer(t *testing.T) {
	s, err := Parse([]byte("-- server --\nkey k\nmodels gemini-3-pro gemini-2.5-pro\nlimit 300\n" +
		"-- 1 --\nreasoning R\ntext T\nusage 9 5 cached 4 reasoning 2\n-- 2 --\ncall f #c {\"a\":1}\n-- 3 --\ncall f {\"a\n-- 4 --\ntext T\nfinish length\n"))
	if err != nil {
		t.Fatal(err)
	}
	server, err := Listen(s)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	ask := func(method, path, key, body string) string {
		req, err := http.NewRequestWithContext(t.Context(), method, server.URL+"/v1beta/models"+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("x-goog-api-key", key)
		req.Close = true
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		out, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.Status[:4] + string(out)
	}
	const hi = `{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}`
	const stream = ":streamGenerateContent?alt=sse"
	chunk := func(parts, finish, usage string) string {
		return `{"candidates":[{"content":{"parts":[` + parts + `],"role":"model"}` + finish + `,"index":0}],"usageMetadata":{` + usage + `},"modelVersion":"test","responseId":"r1"}`
	}
	event := func(s string) string { return "data: " + s + "\n\n" }
	const some = `"promptTokenCount":9,"cachedContentTokenCount":4,"candidatesTokenCount":3,"thoughtsTokenCount":2,"totalTokenCount":14`
	const none = `"promptTokenCount":0,"cachedContentTokenCount":0,"candidatesTokenCount":0,"thoughtsTokenCount":0,"totalTokenCount":0`
	for i, tt := range []struct{ method, path, key, body, want string }{
		{"POST", "/gemini-3-pro" + stream, "wrong", hi, `400 {"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID","domain":"googleapis.com"}]}}`},
		{"POST", "/x" + stream, "k", hi, `404 {"error":{"code":404,"message":"models/x is not found for API version v1beta, or is not supported for generateContent.","status":"NOT_FOUND"}}`},
		{"POST", "/gemini-3-pro" + stream, "k", strings.Repeat(" ", 301), `400 {"error":{"code":400,"message":"Request payload size exceeds the limit: 20971520 bytes.","status":"INVALID_ARGUMENT"}}`},
		{"GET", "", "k", "", `200 {"models":[{"name":"models/embedding-1","supportedGenerationMethods":["embedContent"]},{"name":"models/gemini-3-pro","version":"1","displayName":"test","inputTokenLimit":1048576,"supportedGenerationMethods":["generateContent","countTokens"]},{"name":"models/gemini-2.5-pro","version":"1","displayName":"test","inputTokenLimit":1048576,"supportedGenerationMethods":["generateContent","countTokens"]}]}`},
		{"POST", "/gemini-3-pro" + stream, "k", hi, "200 " + event(chunk(`{"text":"R","thought":true}`, "", some)) + event(chunk(`{"text":"T"}`, "", some)) +
			event(chunk(`{"text":"","thoughtSignature":"c2lnbmVkOiBlbmQ="}`, `,"finishReason":"STOP"`, some))},
		{"POST", "/gemini-3-pro:streamGenerateContent", "k", hi, "200 [" + chunk(`{"functionCall":{"id":"c","name":"f","args":{"a":1}},"thoughtSignature":"c2lnbmVkOiBm"}`, "", none) + ",\r\n" + chunk(`{"text":""}`, `,"finishReason":"STOP"`, none) + "]"},
		{"POST", "/gemini-2.5-pro" + stream, "k", hi, "200 " + event(chunk(`{"text":""}`, `,"finishReason":"MALFORMED_FUNCTION_CALL","finishMessage":"Malformed function call: f({\"a)"`, none))},
		{"POST", "/gemini-2.5-pro" + stream, "k", hi, "200 " + event(chunk(`{"text":"T"}`, "", none)) + event(chunk(`{"text":""}`, `,"finishReason":"MAX_TOKENS"`, none))},
	} {
		if got := ask(tt.method, tt.path, tt.key, tt.body); got != tt.want {
			t.Errorf("request %d:\ngot  %s\nwant %s", i, got, tt.want)
		}
	}
	if err := server.Err(); err != nil {
		t.Error(err)
	}
}
