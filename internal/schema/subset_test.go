package schema

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSubsets(t *testing.T) {
	type out = map[string]string
	tests := []struct {
		name, in string
		want     out // by API; the same bytes where it says nothing
	}{
		{"nothing to change", `{"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}`,
			out{"gemini": `{"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}`}},
		{"no schema", ``, out{"openai": `{"type":"object","properties":{}}`, "anthropic": `{"type":"object","properties":{}}`, "gemini": `{"type":"object"}`}},
		{"true", `true`, out{"openai": `{"type":"object","properties":{}}`, "anthropic": `{"type":"object","properties":{}}`, "gemini": `{"type":"object"}`}},
		{"an object without properties, an array without items", `{"type":"object","properties":{"o":{"type":"object"},"a":{"type":["array","null"]}}}`, out{
			"openai": `{"type":"object","properties":{"o":{"type":"object","properties":{},"additionalProperties":true},"a":{"type":["array","null"],"items":{}}}}`,
			"gemini": `{"type":"object","properties":{"o":{"type":"object"},"a":{"nullable":true,"type":"array","items":{"type":"string"}}}}`}},
		{"alternatives at the root", `{"anyOf":[{"properties":{"a":{"type":"string"},"c":{}},"required":["a","c"]},{"properties":{"b":{"type":"string"},"a":{"type":"number"}},"required":["b","c"]}]}`, out{
			"openai":    `{"properties":{"a":{"anyOf":[{"type":"string"},{"type":"number"}]},"c":{},"b":{"type":"string"}},"required":["c"],"description":"Give the arguments of one of these sets: (a, c), (b, c).","type":"object"}`,
			"anthropic": `{"properties":{"a":{"anyOf":[{"type":"string"},{"type":"number"}]},"c":{},"b":{"type":"string"}},"required":["c"],"description":"Give the arguments of one of these sets: (a, c), (b, c).","type":"object"}`,
			"gemini":    `{"description":"Give the arguments of one of these sets: (a, c), (b, c).","type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"type":"number"}]},"c":{"type":"string"},"b":{"type":"string"}},"required":["c"]}`}},
		{"all of them at the root", `{"type":"object","properties":{"x":{"type":"string"}},"allOf":[{"$ref":"#/$defs/d"},{"required":["x"]}],"$defs":{"d":{"properties":{"y":{"type":"integer"}},"required":["y"]}}}`, out{
			"openai":    `{"type":"object","properties":{"x":{"type":"string"},"y":{"type":"integer"}},"$defs":{"d":{"properties":{"y":{"type":"integer"}},"required":["y"]}},"required":["y","x"]}`,
			"anthropic": `{"type":"object","properties":{"x":{"type":"string"},"y":{"type":"integer"}},"$defs":{"d":{"properties":{"y":{"type":"integer"}},"required":["y"]}},"required":["y","x"]}`,
			"gemini":    `{"type":"object","properties":{"x":{"type":"string"},"y":{"type":"integer"}},"required":["y","x"]}`}},
		{"recursion", `{"$ref":"#/definitions/Node","definitions":{"Node":{"type":"object","properties":{"kids":{"type":"array","items":{"$ref":"#/definitions/Node"}}}}}}`, out{
			"openai":    `{"definitions":{"Node":{"type":"object","properties":{"kids":{"type":"array","items":{"$ref":"#/definitions/Node"}}}}},"type":"object","properties":{"kids":{"type":"array","items":{"$ref":"#/definitions/Node"}}}}`,
			"anthropic": `{"definitions":{"Node":{"type":"object","properties":{"kids":{"type":"array","items":{"$ref":"#/definitions/Node"}}}}},"type":"object","properties":{"kids":{"type":"array","items":{"$ref":"#/definitions/Node"}}}}`,
			"gemini":    `{"type":"object","properties":{"kids":{"type":"array","items":{"type":"object","properties":{"kids":{"type":"array","items":{"type":"object","description":"Again a Node, as above."}}}}}}}`}},
		{"older drafts", `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"n":{"type":"number","minimum":0,"exclusiveMinimum":true},"t":{"type":"array","items":[{"type":"string"},true],"additionalItems":{"type":"number"}}}}`, out{
			"openai":    `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"n":{"type":"number","exclusiveMinimum":0},"t":{"type":"array","items":{"anyOf":[{"type":"string"},{},{"type":"number"}]},"description":"By place: string, any, number."}}}`,
			"anthropic": `{"type":"object","properties":{"n":{"type":"number","exclusiveMinimum":0},"t":{"type":"array","prefixItems":[{"type":"string"},true],"items":{"type":"number"}}}}`,
			"gemini":    `{"type":"object","properties":{"n":{"minimum":0,"type":"number","description":"(exclusiveMinimum: true)"},"t":{"type":"array","items":{"anyOf":[{"type":"string"},{"type":"string","description":"Any JSON value."}]},"description":"By place: string, any."}}}`}},
		{"names that Anthropic refuses", `{"type":"object","properties":{"$filter":{"type":"string"},"ok":{"type":"string"}},"required":["$filter","ok"],"additionalProperties":false}`, out{
			"anthropic": `{"type":"object","properties":{"ok":{"type":"string"}},"required":["ok"],"description":"There is also a required property \"$filter\": {\"type\":\"string\"}."}`,
			"gemini":    `{"type":"object","properties":{"$filter":{"type":"string"},"ok":{"type":"string"}},"required":["$filter","ok"]}`}},
		{"constants, enums, null, formats", `{"type":"object","properties":{"c":{"const":"x"},"e":{"enum":["a","",null]},"n":{"enum":[1,2]},"u":{"oneOf":[{"type":"string","format":"uri"},{"type":"null"}]},"m":{"type":["string","integer","null"]}}}`, out{
			"gemini": `{"type":"object","properties":{"c":{"enum":["x"],"type":"string"},"e":{"enum":["a"],"nullable":true,"type":"string"},"n":{"description":"(one of: [1,2])","type":"number"},"u":{"nullable":true,"type":"string","description":"(format: uri)"},"m":{"nullable":true,"anyOf":[{"type":"string"},{"type":"integer"}]}}}`}},
		{"keywords of another type", `{"type":"object","properties":{"s":{"type":"string","items":{"enum":["a"]},"format":"int32"},"n":{"type":"integer","enum":["1","2"]},"u":{"type":["object","string"],"properties":{"x":{"type":"string"}},"required":["x"]},"o":{"properties":{"x":{}},"anyOf":[{"required":["x"]},{"type":"string"}]},"e":{"type":""}}}`, out{
			"openai": `{"type":"object","properties":{"s":{"type":"string","items":{"enum":["a"]},"format":"int32"},"n":{"type":"integer","enum":["1","2"]},"u":{"type":["object","string"],"properties":{"x":{"type":"string"}},"required":["x"]},"o":{"properties":{"x":{}},"anyOf":[{"required":["x"]},{"type":"string"}]},"e":{"type":""}}}`,
			"gemini": `{"type":"object","properties":{"s":{"type":"string","description":"(format: int32)"},"n":{"type":"integer","description":"(one of: [\"1\",\"2\"])"},"u":{"anyOf":[{"type":"object","properties":{"x":{"type":"string"}},"required":["x"]},{"type":"string"}]},"o":{"type":"object","properties":{"x":{"type":"string"}},"anyOf":[{"type":"object"},{"type":"string"}]},"e":{"type":"string"}}}`}},
		{"booleans", `{"type":"object","properties":{"a":true,"b":false},"additionalProperties":false}`, out{
			"openai": `{"type":"object","properties":{"a":{},"b":{"not":{}}},"additionalProperties":false}`,
			"gemini": `{"type":"object","properties":{"a":{"type":"string","description":"Any JSON value."},"b":{"type":"string","description":"Any JSON value."}}}`}},
		{"a definition or null (BUG-SC-01)", `{"type":"object","properties":{"target":{"anyOf":[{"$ref":"#/$defs/Issue"},{"type":"null"}]}},"$defs":{"Issue":{"type":"object","properties":{"id":{"type":"string"}}}}}`, out{
			"gemini": `{"type":"object","properties":{"target":{"nullable":true,"type":"object","properties":{"id":{"type":"string"}}}}}`}},
		{"a reference into properties (BUG-SC-03)", `{"type":"object","properties":{"headers":{"type":"object"},"actions":{"type":"array","items":{"$ref":"#/properties/headers"}},"loose":{"type":"array"}}}`, out{
			"openai": `{"type":"object","properties":{"headers":{"type":"object","properties":{},"additionalProperties":true},"actions":{"type":"array","items":{"$ref":"#/properties/headers"}},"loose":{"type":"array","items":{}}}}`,
			"gemini": `{"type":"object","properties":{"headers":{"type":"object"},"actions":{"type":"array","items":{"type":"object"}},"loose":{"type":"array","items":{"type":"string"}}}}`}},
		{"a union with null, no type at all (BUG-SC-05)", `{"type":"object","properties":{"state":{"type":["string","null"]},"meta":{}}}`, out{
			"gemini": `{"type":"object","properties":{"state":{"nullable":true,"type":"string"},"meta":{"type":"string"}}}`}},
		{"a condition at the root (BUG-SC-08)", `{"type":"object","properties":{"mode":{"type":"string"},"size":{"type":"integer"}},"allOf":[{"if":{"properties":{"mode":{"const":"big"}}},"then":{"required":["size"]}}]}`, out{
			"openai":    `{"type":"object","properties":{"mode":{"type":"string"},"size":{"type":"integer"}}}`,
			"anthropic": `{"type":"object","properties":{"mode":{"type":"string"},"size":{"type":"integer"}}}`,
			"gemini":    `{"type":"object","properties":{"mode":{"type":"string"},"size":{"type":"integer"}}}`}},
		{"nothing but a type (BUG-SC-10)", `{"type":"object"}`, out{
			"openai": `{"type":"object","properties":{}}`, "anthropic": `{"type":"object","properties":{}}`, "gemini": `{"type":"object"}`}},
		{"not even that (BUG-SC-10)", `{}`, out{
			"openai": `{"type":"object","properties":{}}`, "anthropic": `{"type":"object","properties":{}}`, "gemini": `{"type":"object"}`}},
		{"null (BUG-SC-10)", `null`, out{
			"openai": `{"type":"object","properties":{}}`, "anthropic": `{"type":"object","properties":{}}`, "gemini": `{"type":"object"}`}},
		{"an object of any form, in a tool that calls others (BUG-AR-08)", `{"type":"object","properties":{"name":{"type":"string"},"arguments":{"type":"object"},"map":{"type":"object","additionalProperties":{"type":"string"}}}}`, out{
			"openai": `{"type":"object","properties":{"name":{"type":"string"},"arguments":{"type":"object","properties":{},"additionalProperties":true},"map":{"type":"object","additionalProperties":{"type":"string"},"properties":{}}}}`,
			"gemini": `{"type":"object","properties":{"name":{"type":"string"},"arguments":{"type":"object"},"map":{"type":"object","description":"(any other property: {\"type\":\"string\"})"}}}`}},
	}
	apis := map[string]func(json.RawMessage) (json.RawMessage, error){"openai": OpenAI, "anthropic": Anthropic, "gemini": Gemini}
	for _, tt := range tests {
		for api, reduce := range apis {
			t.Run(tt.name+"/"+api, func(t *testing.T) {
				want, ok := tt.want[api]
				if !ok {
					want = tt.in
				}
				got, err := reduce(json.RawMessage(tt.in))
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, string(got)); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				again, err := reduce(got)
				if err != nil || api != "gemini" && string(again) != string(got) {
					t.Errorf("reduced again it is %s (%v)", again, err)
				}
			})
		}
	}
	for _, bad := range []string{`{`, `{"a":1,"a":2}`, "\xff"} {
		for api, reduce := range apis {
			if out, err := reduce(json.RawMessage(bad)); err == nil {
				t.Errorf("%s makes %s of %q", api, out, bad)
			}
		}
	}
}

// What is reduced does not refuse what the full schema takes, for the APIs whose
// result is JSON Schema. (Alternatives describe the same properties here.)
func TestSubsetsAreWider(t *testing.T) {
	parts := []string{`{"type":"string"}`, `{"type":"object"}`, `true`, `{"type":"array","items":[{"type":"string"}]}`, `{"$ref":"#/$defs/d"}`,
		`{"anyOf":[{"type":"null"},{"type":"array"}]}`, `{"type":"number","minimum":0}`, `{"enum":["a",1]}`}
	values := []string{`"a"`, `{}`, `{"x":[1]}`, `[]`, `["a"]`, `null`, `3`, `[1]`}
	r := rand.New(rand.NewPCG(3, 4))
	one := func() string { return parts[r.IntN(len(parts))] }
	side := func(all bool) string {
		names := []string{"a", "b", "$c", "d e"}
		var props, need []string
		for _, n := range names {
			if all || r.IntN(2) == 0 {
				props = append(props, `"`+n+`":`+one())
			}
			if r.IntN(5) == 0 {
				need = append(need, `"`+n+`"`)
			}
		}
		return `"properties":{` + strings.Join(props, ",") + `},"required":[` + strings.Join(need, ",") + `]`
	}
	checked := 0
	for range 2000 {
		k := r.IntN(4)
		full := `{"type":"object",` + side(false) + `,"$defs":{"d":{` + side(k < 3) + `}}`
		if k > 0 {
			full += `,"` + []string{"", "anyOf", "oneOf", "allOf"}[k] + `":[{` + side(k < 3) + `},{"$ref":"#/$defs/d"}]`
		}
		full += `}`
		s, err := Compile(json.RawMessage(full))
		if err != nil {
			t.Fatal(err)
		}
		for api, reduce := range map[string]func(json.RawMessage) (json.RawMessage, error){"openai": OpenAI, "anthropic": Anthropic} {
			reduced, err := reduce(json.RawMessage(full))
			if err != nil {
				t.Fatal(err)
			}
			told, err := Compile(reduced)
			if err != nil {
				t.Fatalf("%s made %s of %s: %v", api, reduced, full, err)
			}
			for range 10 {
				var members []string
				for _, n := range []string{"a", "b", "$c", "d e"} {
					if r.IntN(2) == 0 {
						members = append(members, `"`+n+`":`+values[r.IntN(len(values))])
					}
				}
				v := json.RawMessage(`{` + strings.Join(members, ",") + `}`)
				if _, _, err := s.Validate(v); err != nil {
					continue
				}
				checked++
				if _, _, err := told.Validate(v); err != nil {
					t.Fatalf("%s is valid for\n%s\nbut %s tells\n%s: %v", v, full, api, reduced, err)
				}
			}
		}
	}
	if checked < 1000 {
		t.Errorf("only %d values were valid", checked)
	}
}

// The schemas of real MCP servers keep each API's rules once they are reduced.
func TestSubsetsOfRealSchemas(t *testing.T) {
	files, _ := filepath.Glob(filepath.Join(shared(t, "mcp"), "*.json"))
	n := 0
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var catalogue struct {
			Tools []struct {
				Name        string
				InputSchema json.RawMessage
			}
		}
		if json.Unmarshal(raw, &catalogue) != nil {
			continue // the index
		}
		for _, tool := range catalogue.Tools {
			n++
			for api, check := range map[string]func(*value) string{"anthropic": breaksAnthropic, "gemini": breaksGemini} {
				reduce := map[string]func(json.RawMessage) (json.RawMessage, error){"anthropic": Anthropic, "gemini": Gemini}[api]
				out, err := reduce(tool.InputSchema)
				if err != nil {
					t.Errorf("%s: %s: %v", filepath.Base(f), tool.Name, err)
					continue
				}
				doc, _, fault := parse(out)
				if fault != nil {
					t.Fatal(fault)
				}
				if why := check(doc); why != "" {
					t.Errorf("%s: %s for %s: %s\n%.600s", filepath.Base(f), tool.Name, api, why, out)
				}
				if len(out) > 3*len(tool.InputSchema)+1000 {
					t.Logf("%s: %s for %s grew from %d to %d bytes", filepath.Base(f), tool.Name, api, len(tool.InputSchema), len(out))
				}
			}
		}
	}
	if n < 100 {
		t.Errorf("only %d tools were found", n)
	}
}

func breaksAnthropic(v *value) string {
	if v.get("type") == nil || v.get("type").text != "object" || v.get("anyOf") != nil || v.get("oneOf") != nil || v.get("allOf") != nil {
		return "the root is no plain object"
	}
	why := ""
	r := &reducer{doc: v, seen: map[*value]bool{}}
	r.walk(v, 0, func(s *value) {
		if p := s.get("properties"); p != nil {
			for _, name := range memberNames(p) {
				if !nameOK(name) {
					why = "the property " + name
				}
			}
		}
		if items := s.get("items"); items != nil && items.kind == arrayKind {
			why = "items as a list"
		}
	})
	if _, err := Compile(json.RawMessage(v.String())); err != nil {
		why = err.Error()
	}
	return why
}

var geminiWords = strings.Fields("type format title description nullable enum items maxItems minItems properties required minProperties maxProperties minLength maxLength pattern anyOf minimum maximum")

// breaksGemini says which rule of the documented Schema object is broken.
func breaksGemini(v *value) string {
	if v.kind != objectKind {
		return "a schema that is no object: " + v.String()
	}
	for _, m := range v.members {
		if !contains(geminiWords, m.name) {
			return "the keyword " + m.name
		}
	}
	t := v.get("type")
	switch {
	case t == nil && v.get("anyOf") == nil:
		return "no type: " + v.String()
	case t != nil && !contains(strings.Fields("string number integer boolean array object"), t.text):
		return "the type " + t.String()
	case has(t, "array") && v.get("items") == nil:
		return "an array without items"
	}
	kind := ""
	if t != nil {
		kind = t.text
	}
	for word, only := range map[string]string{"items": "array", "properties": "object", "required": "object", "enum": "string"} {
		if v.get(word) != nil && kind != only {
			return word + " beside the type " + kind
		}
	}
	if f := v.get("format"); f != nil && !contains(strings.Fields(map[string]string{"string": "date-time enum", "number": "float double", "integer": "int32 int64"}[kind]), f.text) {
		return "the format " + f.text + " of the type " + kind
	}
	if e := v.get("enum"); e != nil && (len(e.items) == 0 || len(stringsOf(e)) != len(e.items) || contains(stringsOf(e), "")) {
		return "the enum " + e.String()
	}
	var inner []*value
	if p := v.get("properties"); p != nil {
		if len(p.members) == 0 {
			return "properties without any"
		}
		for _, m := range p.members {
			inner = append(inner, m.value)
		}
		for _, name := range stringsOf(v.get("required")) {
			if p.get(name) == nil {
				return "required but not there: " + name
			}
		}
	} else if v.get("required") != nil {
		return "required without properties"
	}
	if items := v.get("items"); items != nil {
		inner = append(inner, items)
	}
	if a := v.get("anyOf"); a != nil {
		if len(a.items) == 0 {
			return "an empty anyOf"
		}
		inner = append(inner, a.items...)
	}
	for _, s := range inner {
		if why := breaksGemini(s); why != "" {
			return why
		}
	}
	return ""
}

// Hostile schemas are reduced in bounded time and size, and what comes out is
// JSON that needs no reducing again.
func FuzzSubsets(f *testing.F) {
	f.Add(`{"anyOf":[{"$ref":"#"},{"allOf":[{"$ref":"#/anyOf/0"}]}]}`)
	f.Add(`{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`)
	f.Add(doubling(24))
	f.Add(`{"$ref":"#/$defs/d","$defs":{"d":{"anyOf":[{"$ref":"#/$defs/d"},{"$ref":"#/$defs/d"},{"$ref":"#/$defs/d"}],"allOf":[{"$ref":"#/$defs/d"},{"$ref":"#/$defs/d"}]}}}`)
	f.Fuzz(func(t *testing.T, in string) {
		for api, reduce := range map[string]func(json.RawMessage) (json.RawMessage, error){"openai": OpenAI, "anthropic": Anthropic, "gemini": Gemini} {
			out, err := reduce(json.RawMessage(in))
			if err != nil {
				continue
			}
			doc, _, fault := parse(out)
			if fault != nil {
				t.Fatalf("%s: %v: %s", api, fault, out)
			}
			if why := breaksGemini(doc); api == "gemini" && why != "" {
				t.Errorf("gemini: %s: %s", why, out)
			}
		}
	})
}

// doubling is a schema each of whose definitions refers twice to the next.
func doubling(n int) string {
	var b strings.Builder
	b.WriteString(`{"type":"object","properties":{"a":{"$ref":"#/$defs/0"}},"$defs":{`)
	for i := range n {
		ref := `{"$ref":"#/$defs/` + string(rune('0'+i+1)) + `"}`
		b.WriteString(`"` + string(rune('0'+i)) + `":{"type":"object","properties":{"a":` + ref + `,"b":` + ref + `}},`)
	}
	b.WriteString(`"` + string(rune('0'+n)) + `":{}}}`)
	return b.String()
}
