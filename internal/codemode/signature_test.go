package codemode

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/evanw/esbuild/pkg/api"
	"github.com/google/go-cmp/cmp"
)

var updateSignatures = flag.Bool("update-signatures", false, "rewrite testdata/signatures.golden")

// parseTypeScript fails unless sig is a member of an object type.
func parseTypeScript(sig string) error {
	source := "declare const tools: {\n" + sig + "\n}\nafter()"
	result := api.Transform(source, api.TransformOptions{Loader: api.LoaderTS, LogLevel: api.LogLevelSilent})
	if len(result.Errors) > 0 {
		e := result.Errors[0]
		return fmt.Errorf("%s (line %d): %s", e.Text, e.Location.Line, e.Location.LineText)
	}
	if got := strings.TrimSpace(string(result.Code)); got != "after();" { // nothing of it is code
		return fmt.Errorf("it broke out of its type: %s", got)
	}
	return nil
}

type signatureCase struct {
	name, description, input, output string
}

// One case for each form of JSON Schema. S0-089
var signatureCases = []signatureCase{
	{"no_input", "Takes nothing.", ``, ``},
	{"null_input", "", `null`, ``},
	{"empty_object", "", `{"type":"object"}`, ``},
	{"empty_properties", "", `{"type":"object","properties":{},"additionalProperties":false,"$schema":"http://json-schema.org/draft-07/schema#"}`, ``},
	{"empty_schema", "", `{}`, ``},
	{"true_schema", "", `true`, ``},
	{"false_schema", "", `false`, ``},
	{"not_json", "", `{"type":`, `[`},
	{"read_file", "Reads a file.\n\n  Never a directory:\n    - not one", `{"type":"object","properties":{"limit":{"type":"integer","minimum":1,"default":2000},"file_path":{"type":"string","description":"absolute or relative"},"offset":{"type":"integer","minimum":0}},"required":["file_path"],"additionalProperties":false}`, ``},
	{"short", "", `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"boolean"}},"required":["a"]}`, `{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"]}`},
	{"nullable_three_ways", "", `{"type":"object","properties":{"a":{"type":["null","string"]},"b":{"anyOf":[{"type":"null"},{"type":"integer"}]},"c":{"type":"boolean","nullable":true}}}`, ``},
	{"mixed_enum", "", `{"type":"object","properties":{"e":{"enum":["a",1,1.50,null,true,{"k":[1]},[]]},"none":{"enum":[]},"c":{"const":{"x":1}},"n":{"type":"number","const":1e400}}}`, ``},
	{"documented_enum", "", `{"type":"object","properties":{"e":{"oneOf":[{"const":"fast","description":"no checks"},{"const":"safe","title":"Safe"}]}}}`, ``},
	{"union_forms", "", `{"type":"object","properties":{"to":{"anyOf":[{"type":"string","format":"email"},{"type":"array","items":{"type":"string","format":"email"},"minItems":1},{"type":"object","properties":{"id":{"type":"integer"}},"required":["id"]}]}}}`, ``},
	{"any_of_with_siblings", "", `{"type":"object","properties":{"id":{"type":"string"},"name":{"type":"string"}},"anyOf":[{"required":["id"]},{"required":["name","id"]}]}`, ``},
	{"one_of_with_siblings", "", `{"type":"object","properties":{"v":{"type":"string"}},"required":["v"],"oneOf":[{"properties":{"k":{"const":"a"}},"required":["k"]},{"properties":{"k":{"const":"b"},"n":{"type":"number"}},"required":["k","n"]}]}`, ``},
	{"type_beside_any_of", "", `{"type":"object","properties":{"s":{"type":"string","anyOf":[{"pattern":"^a"},{"enum":["x"]}]},"t":{"type":["string","number"],"anyOf":[{"type":"string"},{"type":"number"}]},"n":{"type":"string","anyOf":[{"not":{"const":"x"}},{"const":"y"}]}}}`, ``},
	{"all_of", "", `{"allOf":[{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]},{"type":"object","properties":{"b":{"anyOf":[{"type":"string"},{"type":"number"}]}}},{"required":["b"]}]}`, ``},
	{"tuples", "", `{"type":"object","properties":{"p":{"type":"array","prefixItems":[{"type":"number"},{"type":"number","description":"north"}],"minItems":2,"items":false},"q":{"type":"array","items":[{"type":"string"},{"type":["string","null"]}],"additionalItems":{"type":"boolean"}},"r":{"prefixItems":[{"const":"x"}],"minItems":1,"maxItems":1}}}`, ``},
	{"arrays", "", `{"type":"object","properties":{"a":{"type":"array"},"b":{"type":"array","items":{"type":["string","null"]},"minItems":1,"maxItems":5,"uniqueItems":true},"c":{"type":"array","items":{"type":"array","items":{"enum":["x","y"]}}},"d":{"type":"array","description":"who","items":{"type":"object","description":"one person","properties":{"name":{"type":"string"}},"required":["name"]}},"e":{"items":{"type":"integer"}}}}`, ``},
	{"maps", "", `{"type":"object","properties":{"m":{"type":"object","additionalProperties":{"type":"string"}},"any":{"type":"object","additionalProperties":true},"both":{"type":"object","properties":{"a":{"type":"number"}},"additionalProperties":{"type":"number"}},"pat":{"type":"object","patternProperties":{"^x-":{"type":"string"},"^y":{"type":"number"}},"additionalProperties":false},"closed":{"type":"object","additionalProperties":false},"open":{"type":"object"},"keys":{"type":"object","propertyNames":{"enum":["a","b"]},"additionalProperties":{"type":"integer"}}}}`, ``},
	{"formats_and_bounds", "", `{"type":"object","properties":{"u":{"type":"string","format":"uri","minLength":1,"maxLength":2048},"n":{"type":"number","exclusiveMinimum":0,"maximum":1,"multipleOf":0.01,"default":0.5},"i":{"type":"integer","minimum":-9007199254740991,"maximum":9007199254740991},"o":{"type":"number","minimum":0,"exclusiveMinimum":true},"z":{"type":"string","pattern":"^[a-z]*/$","minLength":3,"maxLength":3},"d":{"type":"array","items":{"type":"string"},"default":["a"]},"b64":{"type":"string","contentEncoding":"base64"}}}`, ``},
	{"local_refs", "", `{"type":"object","properties":{"a":{"$ref":"#/$defs/Id"},"b":{"$ref":"#/definitions/Id","description":"the other"},"c":{"$ref":"#/properties/a"}},"$defs":{"Id":{"type":"string","format":"uuid"}},"definitions":{"Id":{"type":"integer"}}}`, ``},
	{"shared_def", "", `{"type":"object","properties":{"from":{"$ref":"#/$defs/Address"},"to":{"$ref":"#/$defs/Address"},"via":{"type":"array","items":{"$ref":"#/$defs/Address"}}},"$defs":{"Address":{"type":"object","description":"where","properties":{"street":{"type":"string"},"city":{"type":"string","description":"its name"}},"required":["street","city"]}}}`, ``},
	{"recursive", "", `{"type":"object","properties":{"tree":{"$ref":"#/$defs/node"}},"required":["tree"],"$defs":{"node":{"type":"object","properties":{"value":{"type":"string"},"children":{"type":"array","items":{"$ref":"#/$defs/node"}}},"required":["value"]}}}`, `{"$ref":"#/$defs/node","$defs":{"node":{"type":"object","properties":{"next":{"$ref":"#/$defs/node"}}}}}`},
	{"recursive_root", "", `{"type":"object","properties":{"and":{"type":"array","items":{"$ref":"#"}},"field":{"type":"string"}}}`, ``},
	{"mutually_recursive", "", `{"$ref":"#/$defs/a","$defs":{"a":{"type":"object","properties":{"b":{"$ref":"#/$defs/b"}}},"b":{"anyOf":[{"$ref":"#/$defs/a"},{"type":"null"}]}}}`, ``},
	{"self_reference", "", `{"type":"object","properties":{"x":{"$ref":"#/properties/x"}}}`, ``},
	{"dangling_and_remote", "", `{"type":"object","properties":{"a":{"$ref":"#/$defs/nope"},"b":{"$ref":"https://example.com/*/x.json","type":"object","properties":{"k":{"type":"string"}}},"c":{"$ref":"#anchor"}},"$defs":{"z":{"$anchor":"anchor","type":"boolean"}}}`, ``},
	{"escaped_pointer", "", `{"type":"object","properties":{"a":{"$ref":"#/$defs/a~1b%20c"}},"$defs":{"a/b c":{"type":"number"}}}`, ``},
	{"ref_name_is_taken", "", `{"type":"object","properties":{"a":{"$ref":"#/$defs/Result"},"b":{"$ref":"#/$defs/result"}},"$defs":{"Result":{"type":"object","properties":{"r":{"$ref":"#/$defs/Result"}}},"result":{"type":"object","properties":{"r":{"$ref":"#/$defs/result"}}}}}`, ``},
	{"conditions", "", `{"type":"object","properties":{"a":{"type":"string","not":{"enum":["root"]}},"b":{"type":"array","contains":{"type":"string"}}},"if":{"properties":{"a":{"const":"x"}}},"then":{"required":["b"]},"dependentRequired":{"a":["b","c"]}}`, ``},
	{"hostile_names", "", `{"type":"object","properties":{"a-b":{"type":"string"},"class":{"type":"string"},"new":{"type":"string"},"constructor":{"type":"string"},"__proto__":{"type":"string"},"readonly":{"type":"string"},"get":{"type":"string"},"1st":{"type":"string"},"":{"type":"string"},"é":{"type":"string"},"a\"b\\c\nd":{"type":"string"},"\u2028\u202e*/":{"type":"string"},"[key: string]":{"type":"string"}},"required":["a-b","new"]}`, ``},
	{"hostile_text", "Ends here */ }; evil(); /*\u2028 ``` \u0000\u202ereversed\u200b\n\n\n   \nnext*", `{"type":"object","properties":{"a":{"type":"string","description":"*/ evil() /* ` + "```" + `\n\u2029// line","default":"*/","pattern":"a*/b"},"b":{"enum":["*/","\"; evil(); \"","` + "```" + `","\u2028"]},"c":{"$ref":"#/*/\n"}}}`, ``},
	{"root_is_no_object", "", `{"type":"array","items":{"type":"string"},"description":"the names"}`, `{"type":"array","items":{"type":"integer"}}`},
	{"root_union", "", `{"oneOf":[{"type":"object","properties":{"id":{"type":"string"}},"required":["id"]},{"type":"null"}]}`, `{"type":["string","null"]}`},
	{"required_but_undescribed", "", `{"type":"object","required":["x","a b"]}`, ``},
	{"implied_types", "", `{"properties":{"a":{"minLength":1},"b":{"minimum":0},"c":{"format":"date"},"d":{"items":{"type":"string"}},"e":{"description":"whatever"}},"required":["a"]}`, ``},
	{"not_anything", "", `{"type":"object","properties":{"a":{"anyOf":[{"not":{}},{"type":"string"},{"type":"null"}]},"b":{"not":true}}}`, ``},
	{"pattern_ends_in_star", "", `{"type":"object","properties":{"a":{"type":"string","pattern":"a*"},"m":{"type":"object","patternProperties":{"x*":true}},"u":{"anyOf":[{"type":"string","pattern":"u*"},{"type":"null"}]}}}`, ``},
	{"tuple_pattern_ends_in_star", "", `{"type":"object","properties":{"t":{"type":"array","prefixItems":[{"type":"string","pattern":"a*"},{"type":"string","pattern":"b*","description":"}>; evil() /*"}],"minItems":1}}}`, `{"prefixItems":[{"type":"string","pattern":"c*"}],"items":{"type":"string","pattern":"d*"}}`},
	{"deprecated_and_false", "", `{"type":"object","properties":{"old":{"type":"string","deprecated":true},"never":false,"ro":{"type":"string","readOnly":true,"description":"set by the server"}}}`, ``},
	{"output_schema", "Counts.", `{"type":"object","properties":{"q":{"type":"string"}},"required":["q"]}`, `{"type":"object","properties":{"count":{"type":"integer","description":"how many"},"rows":{"type":"array","items":{"type":"object","properties":{"id":{"type":"string"},"score":{"type":"number"}},"required":["id"]}}},"required":["count","rows"]}`},
}

// S0-089: the text is what the golden file holds, and it is TypeScript.
func TestSignatures(t *testing.T) {
	var out strings.Builder
	for _, c := range signatureCases {
		sig := signature(c.name, c.description, json.RawMessage(c.input), json.RawMessage(c.output))
		if err := parseTypeScript(sig); err != nil {
			t.Errorf("%s: %v\n%s", c.name, err, sig)
		}
		if again := signature(c.name, c.description, json.RawMessage(c.input), json.RawMessage(c.output)); again != sig {
			t.Errorf("%s: not deterministic:\n%s\n%s", c.name, sig, again)
		}
		out.WriteString(sig + "\n\n")
	}
	path := filepath.Join("testdata", "signatures.golden")
	if *updateSignatures {
		if err := os.WriteFile(path, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), out.String()); diff != "" {
		t.Errorf("(-want +got); go test -update-signatures rewrites the file\n%s", diff)
	}
}

// typeScript returns the type that a schema describes. Recursive types in it
// go by a name; the declarations of these names are returned beside it, in the
// form `Name extends Type`.
func typeScript(schema json.RawMessage) (text string, names []string) {
	w := newTypeWriter()
	text = w.resolve(w.document(schema).commented())
	return text, w.declared
}

func TestTypeScriptAlone(t *testing.T) {
	text, names := typeScript(json.RawMessage(`{"type":"object","properties":{"kids":{"type":"array","items":{"$ref":"#"}}},"title":"Node"}`))
	if diff := cmp.Diff([]any{"Node", []string{"Node extends {kids?: Node[]}"}}, []any{text, names}); diff != "" {
		t.Error(diff)
	}
}

// What doubles with every level, or is wide or deep beyond reason, stays small.
func TestSignatureIsBounded(t *testing.T) {
	var doubling, wide strings.Builder
	doubling.WriteString(`{"$ref":"#/$defs/d0","$defs":{`)
	for i := range 100 {
		fmt.Fprintf(&doubling, `"d%d":{"type":"object","properties":{"left":{"$ref":"#/$defs/d%d"},"right":{"$ref":"#/$defs/d%d"}}},`, i, i+1, i+1)
	}
	doubling.WriteString(`"d100":{"type":"string"}}}`)
	wide.WriteString(`{"type":"object","properties":{"a":true`)
	for i := range 50_000 {
		fmt.Fprintf(&wide, `,"p%d":{"type":"string","description":"property number %d"}`, i, i)
	}
	wide.WriteString(`}}`)
	many := strings.TrimSuffix(strings.Repeat(`"one of very many values",`, 100_000), ",")
	tests := map[string]string{
		"doubling":          doubling.String(),
		"wide":              wide.String(),
		"deep":              strings.Repeat(`{"type":"array","items":`, 200) + `{}` + strings.Repeat("}", 200),
		"too deep":          strings.Repeat(`{"items":`, 5000) + `{}` + strings.Repeat("}", 5000),
		"values":            `{"properties":{"e":{"enum":[` + many + `]}}}`,
		"required":          `{"type":"object","required":[` + numbered(40_000, `"r%d"`) + `]}`,
		"needs":             `{"type":"object","anyOf":[` + numbered(40_000, `{"required":["r%d"]}`) + `]}`,
		"needs all":         `{"type":"object","allOf":[` + numbered(40_000, `{"required":["r%d"]}`) + `]}`,
		"one need":          `{"type":"object","anyOf":[{"required":[` + numbered(40_000, `"r%d"`) + `]}]}`,
		"dependent":         `{"type":"object","dependentRequired":{"a":[` + numbered(40_000, `"r%d"`) + `]}}`,
		"short values":      `{"enum":[` + numbered(60_000, `%d`) + `]}`,
		"patterns":          `{"type":"object","patternProperties":{` + numbered(40_000, `"^p%d":{}`) + `}}`,
		"tuple":             `{"type":"array","prefixItems":[` + numbered(40_000, `{"title":"%d"}`) + `]}`,
		"forms":             `{"anyOf":[` + numbered(40_000, `{"type":"object","properties":{"p%d":{}}}`) + `]}`,
		"literal":           `{"const":[` + numbered(100_000, `%d`) + `]}`,
		"literal in values": `{"enum":[[` + numbered(100_000, `%d`) + `]]}`,
		"name":              `{"type":"object","properties":{"` + strings.Repeat("n", 1_000_000) + `":{}},"required":["` + strings.Repeat("m", 1_000_000) + `"]}`,
		"all of":            `{"allOf":[{"type":"object","additionalProperties":true},` + numbered(30_000, `{"type":"object","additionalProperties":true,"title":"%d"}`) + `]}`,
		"all of types":      `{"allOf":[` + numbered(40_000, `{"type":"object","properties":{"p%d":{}}}`) + `]}`,
		"words of a type":   `{"type":[` + numbered(100_000, `"t%d"`) + `]}`,
		"one name":          `{"allOf":[` + numbered(5_000, `{"properties":{"a%[1]d":{"$ref":"#/$defs/d%[1]d/same"}}}`) + `],"$defs":{` + numbered(5_000, `"d%[1]d":{"same":{"properties":{"x":{"$ref":"#/$defs/d%[1]d/same"}}}}`) + `}}`,
		"chain":             chain(38, 38, 3),
		"wide chain":        chain(39, 4, 30),
		"recursive chain":   `{"properties":{"a":{"$ref":"#/$defs/loop"}},` + strings.Replace(chain(38, 38, 3)[1:], `"$defs":{`, `"$defs":{"loop":{"properties":{"again":{"$ref":"#/$defs/loop"},"down":{"$ref":"#/$defs/d0"}}},`, 1),
		"nested values":     nestedConst(200, 50_000),
		"text":              `{"type":"object","properties":{"a":{"type":"string","description":"` + strings.Repeat("long ", 1_000_000) + `"}}}`,
	}
	for name, schema := range tests {
		start := time.Now()
		sig := signature("f", strings.Repeat("words ", 100_000), json.RawMessage(schema), nil)
		if len(sig) > maxSignature+maxToolDoc+100 {
			t.Errorf("%s: %d bytes", name, len(sig))
		}
		if took := time.Since(start); took > time.Minute {
			t.Errorf("%s: took %v", name, took)
		}
		if err := parseTypeScript(sig); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		t.Logf("%s: %d bytes in %v", name, len(sig), time.Since(start))
	}
}

// chain is n definitions of objects that nest deep levels, each with as many
// properties on each level, where the deepest refers to the next definition.
func chain(n, deep, wide int) string {
	var b strings.Builder
	b.WriteString(`{"$ref":"#/$defs/d0","$defs":{`)
	for i := range n {
		fmt.Fprintf(&b, `"d%d":`, i)
		for range deep {
			b.WriteString(`{"type":"object","properties":{` + numbered(wide, `"p%d":{"type":"string","description":"of it"}`) + `,"o":`)
		}
		fmt.Fprintf(&b, `{"$ref":"#/$defs/d%d"}`, i+1)
		b.WriteString(strings.Repeat(`}}`, deep) + ",")
	}
	fmt.Fprintf(&b, `"d%d":{"type":"string"}}}`, n)
	return b.String()
}

// nestedConst is a value in a value, deep times, each referred to as a schema.
func nestedConst(deep, size int) string {
	var refs []string
	for i := range deep {
		refs = append(refs, `{"$ref":"#/x`+strings.Repeat("/const", i)+`"}`)
	}
	return `{"allOf":[` + strings.Join(refs, ",") + `],"x":` + strings.Repeat(`{"const":`, deep) + `[` + numbered(size, `"%d"`) + `]` + strings.Repeat("}", deep) + `}`
}

// numbered is format with the numbers below n, with commas between.
func numbered(n int, format string) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// signatureData returns a path in the data that CI has beside the repository, and
// skips the test where it is not.
func signatureData(t testing.TB, elem ...string) string {
	t.Helper()
	root := filepath.Join("..", "..", "..", "shared")
	if dir := os.Getenv("CAPSTAN_SHARED"); dir != "" {
		root = dir
	}
	path := filepath.Join(append([]string{root, "data"}, elem...)...)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("the big test data is not here: %v", err)
	}
	return path
}

// Every tool of the real servers has a signature that parses, and nothing that
// its schema describes is unknown in it.
func TestRealSignatures(t *testing.T) {
	files, _ := filepath.Glob(filepath.Join(signatureData(t, "mcp"), "*.json"))
	tools, subschemas, bytes, raw, named, largest, largestName, cut := 0, 0, 0, 0, 0, 0, "", 0
	for _, file := range files {
		if filepath.Base(file) == "INDEX.json" {
			continue
		}
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var server struct {
			Tools []struct {
				Name, Description         string
				InputSchema, OutputSchema json.RawMessage
			}
		}
		if err := json.Unmarshal(content, &server); err != nil {
			t.Fatal(err)
		}
		var all strings.Builder
		for _, tool := range server.Tools {
			tools++
			sig := signature(strings.ReplaceAll(tool.Name, "-", "_"), tool.Description, tool.InputSchema, tool.OutputSchema)
			all.WriteString(sig + "\n")
			raw += len(tool.InputSchema) + len(tool.OutputSchema) + len(tool.Description)
			if bytes += len(sig); len(sig) > largest {
				largest, largestName = len(sig), filepath.Base(file)+" "+tool.Name
			}
			if strings.Contains(sig, " extends ") {
				named++
			}
			if strings.Contains(sig, "see the schema") {
				cut++
				t.Errorf("%s %s: cut at %d bytes", filepath.Base(file), tool.Name, len(sig))
			}
			for _, s := range []json.RawMessage{tool.InputSchema, tool.OutputSchema} {
				if len(s) > 0 {
					subschemas += checkDescribable(t, filepath.Base(file)+" "+tool.Name, s)
				}
			}
		}
		if err := parseTypeScript(all.String()); err != nil {
			t.Errorf("%s: %v", filepath.Base(file), err)
		}
	}
	t.Logf("%d tools, %d bytes of signatures for %d of schemas and descriptions; %d with named types; %d subschemas looked at; largest %d (%s); %d cut",
		tools, bytes, raw, named, subschemas, largest, largestName, cut)
	if tools != 2442 {
		t.Errorf("found %d tools, want 2442", tools)
	}
}

var unknownWord = regexp.MustCompile(`^unknown($| /)`)

// checkDescribable checks that no subschema which says something is unknown. It
// walks the plain JSON and shares no code with the writer.
func checkDescribable(t *testing.T, where string, raw []byte) (seen int) {
	var doc any
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	ordered, err := parseOrdered(raw)
	if err != nil {
		t.Fatal(err)
	}
	says := []string{"type", "enum", "const", "properties", "items", "prefixItems", "anyOf", "oneOf", "allOf", "$ref", "pattern", "minimum", "format"}
	var walk func(v any, o *jsonValue, path string)
	visit := func(v any, o *jsonValue, path string) {
		if m, ok := v.(map[string]any); ok {
			for _, keyword := range says {
				if list, isList := m[keyword].([]any); m[keyword] == nil || isList && len(list) == 0 && keyword != "enum" {
					continue
				}
				seen++
				w := newTypeWriter()
				w.open(ordered)
				if got := w.resolve(w.schema(o).text); unknownWord.MatchString(got) {
					t.Errorf("%s%s: %s though it has %s", where, path, got, keyword)
				}
				break
			}
		}
		walk(v, o, path)
	}
	walk = func(v any, o *jsonValue, path string) {
		m, _ := v.(map[string]any)
		for _, keyword := range []string{"properties", "$defs", "definitions", "patternProperties"} {
			if group, ok := m[keyword].(map[string]any); ok {
				for name, sub := range group {
					visit(sub, o.members[keyword].members[name], path+"/"+keyword+"/"+name)
				}
			}
		}
		for _, keyword := range []string{"items", "additionalProperties"} {
			if sub, ok := m[keyword].(map[string]any); ok {
				visit(sub, o.members[keyword], path+"/"+keyword)
			}
		}
		for _, keyword := range []string{"anyOf", "oneOf", "allOf", "prefixItems"} {
			if list, ok := m[keyword].([]any); ok {
				for i, sub := range list {
					visit(sub, o.members[keyword].items[i], path+"/"+keyword+"/"+strconv.Itoa(i))
				}
			}
		}
	}
	visit(doc, ordered, "")
	return seen
}

func FuzzSignature(f *testing.F) {
	for _, c := range signatureCases {
		f.Add(c.name, c.description, []byte(c.input), []byte(c.output))
	}
	f.Fuzz(func(t *testing.T, name, description string, input, output []byte) {
		sig := signature(name, description, input, output)
		if err := parseTypeScript(sig); err != nil {
			t.Fatalf("%v\n%s", err, sig)
		}
		if strings.Contains(sig, "```") || strings.ContainsAny(sig, "\u2028\u2029\u202e\u2062\u206a\u180e\ufff9\u115f\u3164\ufe01\U000e0041\x00\x01\x02\x03") {
			t.Fatalf("harmful characters in %q", sig)
		}
		if again := signature(name, description, input, output); again != sig {
			t.Fatalf("not deterministic:\n%s\n%s", sig, again)
		}
	})
}

func BenchmarkSignature(b *testing.B) {
	c := signatureCases[8]
	for b.Loop() {
		signature(c.name, c.description, json.RawMessage(c.input), nil)
	}
}
