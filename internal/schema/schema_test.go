package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/dlclark/regexp2"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	code := m.Run()
	regexp2.StopTimeoutClock() // it would end by itself, a second later
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// Ruling 14: strict, and without loss. BUG-AR-03 BUG-MC-25
func TestParse(t *testing.T) {
	deep := strings.Repeat("[", 256) + strings.Repeat("]", 256)
	tests := []struct{ in, want, err string }{
		{` { "b" : 1 , "a" : [ ] } `, `{"b":1,"a":[]}`, ""},
		{`[1915883588174806058,1e400,0.1000,-0,1E+2]`, `[1915883588174806058,1e400,0.1000,-0,1E+2]`, ""},
		{`"\u0041\/\ud83d\ude00\u2028"`, "\"A/😀\u2028\"", ""},
		{`null`, `null`, ""},
		{deep, deep, ""},
		{``, "", "nothing was given; give one JSON value ({} when there are no arguments)"},
		{" \n", "", "nothing was given; give one JSON value ({} when there are no arguments)"},
		{`{"a":{"b":1,"b":2}}`, "", "/a/b: this name occurs more than once in its object; give each name once"},
		{`{"a":1,"\u0061":2}`, "", "/a: this name occurs more than once in its object; give each name once"},
		{`{"a":1}{}`, "", "more than one JSON value was given (the second ends at byte 8); give exactly one"},
		{`{"a":[1,`, "", "/a: not valid JSON: it ends in the middle of a value (after 8 bytes); give it whole"},
		{`{"a":1}x`, "", `not valid JSON at byte 7, at "x": invalid character 'x' at start of value`},
		{`{a:1}`, "", `not valid JSON at byte 1, at "a:1}": invalid character 'a' at start of value`},
		{"\"\xff\"", "", "not valid JSON at byte 1, at \"\\ufffd\\\"\": invalid UTF-8"},
		{`"\ud800"`, "", "not valid JSON at byte 1, at \"\\\\ud800\\\"\": invalid surrogate pair `\\ud800\"` in string"},
		{"[" + deep + "]", "", strings.Repeat("/0", 256) + ": nested deeper than 256 levels"},
		{`[1,1e9999999999999999]`, "", "/1: the exponent of this number is out of any useful range"},
		{`NaN`, "", `not valid JSON at byte 0, at "NaN": invalid character 'N' at start of value`},
		{`[1,]`, "", `not valid JSON at byte 2, at ",]": invalid character ',' at start of value`},
		{`01`, "", "more than one JSON value was given (the second ends at byte 2); give exactly one"},
	}
	for _, tt := range tests {
		got, err := Parse([]byte(tt.in))
		message := ""
		if err != nil {
			message = err.Error()
		}
		if string(got) != tt.want || message != tt.err {
			t.Errorf("Parse(%q)\n got %q, %q\nwant %q, %q", tt.in, got, message, tt.want, tt.err)
		}
	}
}

func compileString(t *testing.T, s string) *Schema {
	t.Helper()
	schema, err := Compile(json.RawMessage(s))
	if err != nil {
		t.Fatalf("Compile(%s): %v", s, err)
	}
	return schema
}

// Every fault comes in one go, with its path, in one order. S0-219 S1-003 S1-110 S3-054
func TestFaults(t *testing.T) {
	const shapes = `{"oneOf":[
		{"type":"object","properties":{"kind":{"const":"circle"},"r":{"type":"number","exclusiveMinimum":0}},"required":["kind","r"]},
		{"type":"object","properties":{"kind":{"const":"square"},"side":{"type":"number"}},"required":["kind","side"]}]}`
	tests := []struct{ schema, args, want string }{
		{readFileSchema, `{}`, "/file_path: is required but missing (a string)"},
		{readFileSchema, `{"filePath":"a","offset":-1,"limit":"many"}`, `/filePath: is not a known property; did you mean "file_path"?
/file_path: is required but missing (a string)
/limit: must be an integer, got string "many"
/offset: must be at least 0, got number -1`},
		{readFileSchema, `{"file_path":"a","zzz":1}`, "/zzz: is not a known property; known: file_path, offset, limit"},
		{readFileSchema, `[]`, "must be an object, got an array of 0 items"},
		{readFileSchema, `null`, "must be an object, got null"},
		{readFileSchema, `{"file_path":"a","offset":1.5}`, "/offset: must be an integer, got number 1.5"},
		{`{"type":"object","additionalProperties":false}`, `{"a":1}`, "/a: is not a known property; none is allowed here"},
		{`{"properties":{"a/b~c":{"type":"array","items":{"enum":["x",1,null]}}}}`, `{"a/b~c":["x","X",{}]}`,
			`/a~1b~0c/1: must be one of "x", 1, null, got string "X"
/a~1b~0c/2: must be one of "x", 1, null, got an empty object`},
		{`{"enum":["NA","EU"]}`, `"na"`, `must be one of "NA", "EU", got string "na"; did you mean "NA"?`},
		{`{"enum":[]}`, `1`, "must be one of no values: the schema allows none here, got number 1"},
		{`{"type":["string","null"]}`, `true`, "must be a string or null, got boolean true"},
		{`{"anyOf":[{"type":"string"},{"type":"array","items":{"type":"integer"}}]}`, `[1,"x",true]`,
			"/1: must be an integer, got string \"x\"\n/2: must be an integer, got boolean true"},
		{`{"anyOf":[{"type":"string"},{"type":"integer"}]}`, `null`, "must be a string or an integer, got null"},
		{shapes, `{"kind":"circle","r":0}`, "/r: must be greater than 0, got number 0"},
		{shapes, `{"kind":"hexagon"}`, `must be an object with kind: "circle" or an object with kind: "square", got an object with kind`},
		{`{"oneOf":[{"type":"integer"},{"type":"number"}]}`, `1`, "fits 2 of 2 forms of which exactly one must fit: an integer or a number"},
		{`{"not":{"type":"string"}}`, `"x"`, `must not be a string, got string "x"`},
		{`{"minLength":2,"pattern":"^[a-z]+$"}`, `"É"`, "must have at least 2 characters, got 1 character\nmust match the pattern ^[a-z]+$, got string \"É\""},
		{`{"uniqueItems":true}`, `[{"a":1,"b":2.0},3,{"b":2,"a":1e0}]`, `must not have equal items, but items 0 and 2 are both {"b":2,"a":1e0}`},
		{`{"dependentRequired":{"a":["b"]}}`, `{"a":1}`, `/b: is required when "a" is given`},
		{`{"propertyNames":{"pattern":"^x"}}`, `{"y":1}`, "/y: this property name is not allowed; names must be a string matching ^x"},
		{`{"minimum":1,"maximum":5,"multipleOf":0.1}`, `5.25`, "must be a multiple of 0.1, got number 5.25\nmust be at most 5, got number 5.25"},
		{`{"if":{"required":["a"]},"then":{"required":["b"]}}`, `{"a":1}`, "/b: is required but missing"},
		{`{"properties":{"a":true},"unevaluatedProperties":false}`, `{"a":1,"b":2}`, `/b: is not a known property; known: a`},
		{`{"contains":{"type":"string"},"minContains":2}`, `["a",1]`, "must have at least 2 items that is a string, has 1"},
		{`false`, `{}`, "is not allowed here"},
		{readFileSchema, `{"file_path":"a","file_path":"b"}`, "/file_path: this name occurs more than once in its object; give each name once"},
		{readFileSchema, ``, "nothing was given; give one JSON value ({} when there are no arguments)"},
	}
	for _, tt := range tests {
		canonical, _, err := compileString(t, tt.schema).Validate(json.RawMessage(tt.args))
		var invalid *Invalid
		if !errors.As(err, &invalid) || canonical != nil {
			t.Errorf("%s: %s was accepted as %s", tt.schema, tt.args, canonical)
			continue
		}
		if diff := cmp.Diff(tt.want, err.Error()); diff != "" {
			t.Errorf("%s: %s (-want +got)\n%s", tt.schema, tt.args, diff)
		}
	}
}

// Only what loses nothing is coerced, and only where the value as given fails.
// BUG-AR-01 BUG-AR-13 BUG-AR-15 BUG-AR-16
func TestCoercion(t *testing.T) {
	const s = `{"type":"object","properties":{"n":{"type":"integer"},"f":{"type":["number","null"]},"b":{"type":"boolean"},"s":{"type":"string"},
		"o":{"type":"object","properties":{"x":{"type":"integer"}}},"a":{"type":"array","items":{"type":"integer"}},
		"u":{"anyOf":[{"type":"integer"},{"type":"string","maxLength":1}]}}}`
	tests := []struct {
		args, want string
		notes      []string
		err        string
	}{
		{`{"n":"5"}`, `{"n":5}`, []string{`/n: the string "5" was taken as number 5`}, ""},
		{`{"n":"1915883588174806058","b":"true"}`, `{"n":1915883588174806058,"b":true}`,
			[]string{`/n: the string "1915883588174806058" was taken as number 1915883588174806058`, `/b: the string "true" was taken as boolean true`}, ""},
		{`{"f":"0.1000"}`, `{"f":0.1000}`, []string{`/f: the string "0.1000" was taken as number 0.1000`}, ""},
		{`{"f":"null"}`, `{"f":null}`, []string{`/f: the string "null" was taken as null`}, ""},
		{`{"o":"{\"x\":1}","a":"[1,2]"}`, `{"o":{"x":1},"a":[1,2]}`,
			[]string{`/o: the string "{\"x\":1}" was taken as an object with x`, `/a: the string "[1,2]" was taken as an array of 2 items`}, ""},
		{`{"o":"{\"x\":\"1\"}"}`, "", nil, `/o: must be an object, got string "{\"x\":\"1\"}"`},
		{`{"s":"5","n":5}`, `{"s":"5","n":5}`, nil, ""},
		{`{"u":"5"}`, `{"u":"5"}`, nil, ""},
		{`{"b":"false"}`, `{"b":false}`, []string{`/b: the string "false" was taken as boolean false`}, ""},
		{`{"s":"020","u":"0"}`, `{"s":"020","u":"0"}`, nil, ""},
		{`{"s":{"name":"demo"}}`, "", nil, "/s: must be a string, got an object with name"},
		{`{"s":5}`, "", nil, "/s: must be a string, got number 5"},
		{`{"n":"5.5","b":"yes","a":"1"}`, "", nil, "/a: must be an array, got string \"1\"\n/b: must be a boolean, got string \"yes\"\n/n: must be an integer, got string \"5.5\""},
		{`{"n":"05"}`, "", nil, `/n: must be an integer, got string "05"`},
		{`{"n":"0x10"}`, "", nil, `/n: must be an integer, got string "0x10"`},
		{`{"n":""}`, "", nil, `/n: must be an integer, got string ""`},
		{`{"o":"{\"x\":1,\"x\":2}"}`, "", nil, `/o: must be an object, got string "{\"x\":1,\"x\":2}"`},
		{`{"n":"5","b":1}`, "", nil, "/b: must be a boolean, got number 1"},
		{`{"a":["1",2]}`, `{"a":[1,2]}`, []string{`/a/0: the string "1" was taken as number 1`}, ""},
		{`"{\"n\":1}"`, `{"n":1}`, []string{`arguments: the string "{\"n\":1}" was taken as an object with n`}, ""},
	}
	schema := compileString(t, s)
	for _, tt := range tests {
		got, notes, err := schema.Validate(json.RawMessage(tt.args))
		message := ""
		if err != nil {
			message = err.Error()
		}
		if diff := cmp.Diff([]any{tt.want, tt.notes, tt.err}, []any{string(got), notes, message}); diff != "" {
			t.Errorf("%s (-want +got)\n%s", tt.args, diff)
		}
	}
}

// No number becomes a float on the way: neither its digits nor its verdict change.
func TestNumbers(t *testing.T) {
	tests := []struct {
		schema, args string
		valid        bool
	}{
		{`{"type":"integer"}`, `1e400`, true},
		{`{"type":"integer"}`, `5.0`, true},
		{`{"type":"integer"}`, `1e-400`, false},
		{`{"maximum":9007199254740992}`, `9007199254740993`, false},
		{`{"maximum":9007199254740993}`, `9007199254740993.0`, true},
		{`{"const":1915883588174806058}`, `1915883588174806057`, false},
		{`{"const":1.0}`, `10e-1`, true},
		{`{"enum":[-0]}`, `0.0`, true},
		{`{"minimum":-1e999}`, `-1e998`, true},
		{`{"minimum":-1e999}`, `-1.1e999`, false},
		{`{"exclusiveMaximum":0.3}`, `0.29999999999999999999`, true},
		{`{"multipleOf":0.01}`, `0.07`, true},
		{`{"multipleOf":0.01}`, `19.99`, true},
		{`{"multipleOf":7}`, `1e999999999999999`, false},
		{`{"multipleOf":7}`, `7e999999999999999`, true},
		{`{"multipleOf":1e-9}`, `1e308`, true},
		{`{"multipleOf":0.5}`, `0`, true},
		{`{"minimum":0,"exclusiveMinimum":true}`, `0`, false}, // draft-04's spelling
		{`{"uniqueItems":true}`, `[1,1.0]`, false},
		{`{"uniqueItems":true}`, `[1,true,"1",[1],{"1":1},null,"null"]`, true},
	}
	for _, tt := range tests {
		canonical, notes, err := compileString(t, tt.schema).Validate(json.RawMessage(tt.args))
		if (err == nil) != tt.valid || notes != nil || err == nil && string(canonical) != tt.args {
			t.Errorf("%s: %s: valid = %v, want %v (%s, %v)", tt.schema, tt.args, err == nil, tt.valid, canonical, err)
		}
	}
}

// The drafts read the same keyword in their own way.
func TestDrafts(t *testing.T) {
	const draft7, latest = `"$schema":"http://json-schema.org/draft-07/schema#",`, `"$schema":"https://json-schema.org/draft/2020-12/schema",`
	tests := []struct {
		schema, args string
		valid        bool
	}{
		{`{` + draft7 + `"$ref":"#/definitions/s","maxLength":1,"definitions":{"s":{"type":"string"}}}`, `"ab"`, true},
		{`{` + latest + `"$ref":"#/definitions/s","maxLength":1,"definitions":{"s":{"type":"string"}}}`, `"ab"`, false},
		{`{"$ref":"#/definitions/s","maxLength":1,"definitions":{"s":{"type":"string"}}}`, `"ab"`, false},
		{`{` + draft7 + `"prefixItems":[false]}`, `[1]`, true},
		{`{` + latest + `"prefixItems":[false]}`, `[1]`, false},
		{`{` + draft7 + `"items":[{"type":"string"}],"additionalItems":false}`, `["a",1]`, false},
		{`{"items":[{"type":"string"}],"additionalItems":false}`, `["a",1]`, false}, // what servers mean, whatever they declare
		{`{` + draft7 + `"dependentRequired":{"a":["b"]}}`, `{"a":1}`, true},
		{`{` + draft7 + `"unevaluatedProperties":false}`, `{"a":1}`, true},
		{`{"format":"email"}`, `"no address"`, true}, // an annotation in both
		{`{` + draft7 + `"format":"email"}`, `"no address"`, true},
		{`{"$ref":"https://json-schema.org/draft/2020-12/schema"}`, `{"type":"strin"}`, false},
		{`{"$ref":"http://json-schema.org/draft-07/schema#"}`, `{"type":"string"}`, true},
		// A reference at an unknown place is resolved against the resource that it lies in.
		{`{"$ref":"#/$defs/x/custom/y","$defs":{"t":{"type":"number"},"x":{"$id":"https://example.com/x","custom":{"y":{"$ref":"#/$defs/t"}},"$defs":{"t":{"type":"string"}}}}}`, `"a"`, true},
	}
	for _, tt := range tests {
		if _, _, err := compileString(t, tt.schema).Validate(json.RawMessage(tt.args)); (err == nil) != tt.valid {
			t.Errorf("%s: %s: %v, want valid = %v", tt.schema, tt.args, err, tt.valid)
		}
	}
}

func TestCompileErrors(t *testing.T) {
	tests := []struct{ schema, want string }{
		{``, "reading schema: nothing was given; give one JSON value ({} when there are no arguments)"},
		{`[]`, "compiling schema: it must be an object or a boolean, not an array of 0 items"},
		{`{"properties":{"a":{"type":"strin"}}}`, `compiling schema: /properties/a/type: must be one of string, integer, number, boolean, object, array, null, or a list of them, not string "strin"`},
		{`{"required":true}`, "compiling schema: /required: must be a list of names, not boolean true"},
		{`{"minLength":-1}`, "compiling schema: /minLength: must be an integer of 0 or more, not number -1"},
		{`{"multipleOf":0}`, "compiling schema: /multipleOf: must be greater than 0, not 0"},
		{`{"properties":{"a":1}}`, "compiling schema: /properties/a/: a schema must be an object or a boolean, not number 1"},
		{`{"$ref":"#/$defs/nope"}`, `compiling schema: /$ref: $ref "#/$defs/nope": the schema has nothing at "/$defs/nope"`},
		{`{"$ref":"https://example.com/x.json"}`, `compiling schema: /$ref: $ref "https://example.com/x.json": it names another document, and none is ever loaded; put the definition into $defs`},
		{`{"$ref":"file:///etc/passwd"}`, `compiling schema: /$ref: $ref "file:///etc/passwd": it names another document, and none is ever loaded; put the definition into $defs`},
		{`{"$ref":"#/required","required":["a"]}`, `compiling schema: /$ref: $ref "#/required": what it points at is no schema`},
		{`{"$ref":"#"}`, "compiling schema: a $ref leads back to itself without going into a property or an item"},
		{`{"$defs":{"a":{"anyOf":[{"$ref":"#/$defs/b"}]},"b":{"not":{"$ref":"#/$defs/a"}}},"items":{"$ref":"#/$defs/a"}}`, "compiling schema: a $ref leads back to itself without going into a property or an item"},
		{`{"$schema":"https://example.com/mine"}`, `compiling schema: $schema names an unknown dialect "https://example.com/mine" (known: https://json-schema.org/draft/2020-12/schema and http://json-schema.org/draft-07/schema#)`},
		{`{"pattern":"("}`, "compiling schema: /pattern: pattern \"(\" is no regular expression that can be used: error parsing regexp: missing closing ) in `(`"},
		{`{"pattern":"\\a"}`, `compiling schema: /pattern: pattern "\\a": \a is no escape of ECMA-262`},
		{`{"type":"object","type":"string"}`, "reading schema: /type: this name occurs more than once in its object; give each name once"},
	}
	for _, tt := range tests {
		_, err := Compile(json.RawMessage(tt.schema))
		if err == nil || err.Error() != tt.want {
			t.Errorf("Compile(%s)\n got %v\nwant %s", tt.schema, err, tt.want)
		}
	}
}

// What is made to take for ever ends, refused or judged, and says why.
func TestHostile(t *testing.T) {
	var doubling strings.Builder
	doubling.WriteString(`{"$ref":"#/$defs/d0","$defs":{`)
	for i := range 60 {
		fmt.Fprintf(&doubling, `"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	doubling.WriteString(`"d60":{"type":"integer"}}}`)
	ones := "[" + strings.Repeat("1,", 50_000) + "1]"
	tests := []struct{ name, schema, args, want string }{
		{"backtracking", `{"pattern":"(?=a)(a+)+$"}`, `"` + strings.Repeat("a", 50_000) + `b"`, "could not be checked: the pattern (?=a)(a+)+$ takes too long on this text"},
		{"backtracking names", `{"properties":{"x":{"patternProperties":{"(?=a)(a+)+$":{}}}}}`, `{"x":{"` + strings.Repeat("a", 5_000) + `b":1}}`,
			"/x/" + strings.Repeat("a", 5_000) + "b: could not be checked: the pattern (?=a)(a+)+$ takes too long on this text"},
		{"backtracking under not", `{"not":{"pattern":"(?=a)(a+)+$"}}`, `"` + strings.Repeat("a", 50_000) + `b"`, "could not be checked: the pattern (?=a)(a+)+$ takes too long on this text"},
		{"many patterns", `{"items":{"pattern":"(?=a)((a+)+$|a+b)"}}`, "[" + strings.Repeat(`"aaaaaaaaaab",`, 20_000) + `"b"]`, "takes too long on this text"},
		{"doubling references", doubling.String(), `1`, "could not be checked: it takes too many steps; the schema or the arguments are too complex"},
		{"exponent", `{"minimum":0,"multipleOf":0.3}`, `1e999999999999999`, "must be a multiple of 0.3, got number 1e999999999999999"},
		{"digits", `{"multipleOf":3}`, strings.Repeat("1", 20_000), "could not be checked: a number has too many digits for multipleOf"},
		{"unique", `{"uniqueItems":true}`, ones, "must not have equal items, but items 0 and 1 are both 1"},
		{"many faults", `{"items":{"type":"string"}}`, ones, "and 49901 more"},
		{"dynamic loop", `{"$dynamicRef":"#x","$dynamicAnchor":"x"}`, `1`, "could not be checked: the schema refers to itself too deeply"},
		{"linear", `{"pattern":"(a+)+$"}`, `"` + strings.Repeat("a", 50_000) + `b"`, "must match the pattern (a+)+$"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := compileString(t, tt.schema)
			start := time.Now()
			_, _, err := s.Validate(json.RawMessage(tt.args))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %s, want %s", clip(fmt.Sprint(err), 300), tt.want)
			}
			var invalid *Invalid
			if errors.As(err, &invalid) && invalid.Unchecked != strings.Contains(tt.want, "too") {
				t.Errorf("Unchecked = %v", invalid.Unchecked)
			}
			if took := time.Since(start); took > 30*time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
}

// The time of all matches of one validation counts together, however short each is.
func TestPatternTimesAdd(t *testing.T) {
	p, err := new(patterns).compile("(?=a)(a+)+$")
	if err != nil {
		t.Fatal(err)
	}
	spent := matchLimit / 2
	if ok, err := p.match("aaaaaaaa", &spent); !ok || err != nil || spent <= matchLimit/2 {
		t.Errorf("%v, %v, spent %v", ok, err, spent)
	}
	spent = matchLimit
	if ok, err := p.match("a", &spent); ok || err == nil {
		t.Errorf("with no time left: %v, %v", ok, err)
	}
}

func TestHostileSchemas(t *testing.T) {
	nested := strings.Repeat(`{"items":`, 300) + `{}` + strings.Repeat("}", 300)
	if _, err := Compile(json.RawMessage(nested)); err == nil || !strings.Contains(err.Error(), "nested deeper than 256") {
		t.Errorf("deep nesting: %v", clip(fmt.Sprint(err), 300))
	}
	var chain strings.Builder
	chain.WriteString(`{"$ref":"#/$defs/0","$defs":{`)
	for i := range 20_000 {
		fmt.Fprintf(&chain, `"%d":{"$ref":"#/$defs/%d"},`, i, i+1)
	}
	chain.WriteString(`"20000":{}}}`)
	s, err := Compile(json.RawMessage(chain.String()))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Validate(json.RawMessage(`1`)); err == nil || !strings.Contains(err.Error(), "too deeply") {
		t.Errorf("long chain: %v", err)
	}
	if _, err := Compile(json.RawMessage(`{"a":"` + strings.Repeat("x", maxSchema) + `"}`)); err == nil {
		t.Error("a schema over the limit was read")
	}
}

// What the patterns of one schema take when compiled is bounded, however few bytes
// spell it, and one that is used often counts once.
func TestPatternsAreBounded(t *testing.T) {
	many := func(n int, format, value string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, ","+format+":"+value, i)
		}
		return "{" + b.String()[1:] + "}"
	}
	tests := []struct {
		name, schema string
		refused      bool
	}{
		{"nested repeats", `{"properties":` + many(12_000, `"p%d"`, `{"pattern":"((a{1,9}){1,9}){1,9}N"}`) + `}`, false},
		{"different nested repeats", `{"patternProperties":` + many(12_000, `"((a{1,9}){1,9}){1,9}%d"`, `{}`) + `}`, true},
		{"classes", `{"pattern":"` + strings.Repeat(`\\p{L}`, 2_500) + `"}`, true},
		{"literals", `{"patternProperties":` + many(500, `"`+strings.Repeat("x", 1000)+`%d"`, `{}`) + `}`, true},
		{"short", `{"patternProperties":` + many(12_000, `"%d"`, `{}`) + `}`, true},
		{"backtracking", `{"patternProperties":` + many(12_000, `"(?=%d)"`, `{}`) + `}`, true},
		{"references", `{"$defs":{"a":{"patternProperties":` + many(400, `"a{500}%d"`, `{}`) + `}},"$ref":"#/$defs/a"}`, true},
		{"as many as people write", `{"patternProperties":` + many(500, `"^x-%d$"`, `{}`) + `}`, false},
	}
	for _, tt := range tests {
		_, err := Compile(json.RawMessage(tt.schema))
		if want := "the patterns of this schema take more than 1048576 bytes when compiled"; (err != nil) != tt.refused || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %.300v, want refused %v", tt.name, err, tt.refused)
		}
	}
}

// What a schema says that its patterns take is nothing without one, counts each
// once, and is near what is kept.
func TestPatternBytes(t *testing.T) {
	cost := func(raw string) int {
		s, err := Compile(json.RawMessage(raw))
		if err != nil {
			t.Fatal(err)
		}
		return s.PatternBytes()
	}
	one := cost(`{"pattern":"((a{1,9}){1,9}){1,8}X"}`)
	if one < 50<<10 || one > 200<<10 {
		t.Errorf("one takes %d bytes", one)
	}
	for raw, want := range map[string]int{
		`true`:                                   0,
		`{"properties":{"a":{"type":"string"}}}`: 0,
		`{"properties":{"a":{"pattern":"((a{1,9}){1,9}){1,8}X"},"b":{"pattern":"((a{1,9}){1,9}){1,8}X"}}}`: one,
		`{"properties":{"a":{"pattern":"((a{1,9}){1,9}){1,8}X"},"b":{"pattern":"((a{1,9}){1,9}){1,8}Y"}}}`: 2 * one,
	} {
		if got := cost(raw); got != want {
			t.Errorf("%s: %d bytes, want %d", raw, got, want)
		}
	}
}

// Patterns mean what they mean in ECMA-262, in either engine.
func TestPatterns(t *testing.T) {
	tests := []struct {
		pattern, text string
		want          bool
	}{
		{`^a$`, "a\n", false},
		{`^a$`, "a", true},
		{`^\d+$`, "٣", false},
		{`^\w+$`, "é", false},
		{`^\s$`, "\ufeff", true},
		{`^[\S]$`, "\u00a0", false},
		{`^[^\s]$`, "\u2029", false},
		{`^.$`, "\u2028", false},
		{`^.$`, "😀", true},
		{`^\u{1F600}\ud83d\ude00$`, "😀😀", true},
		{`^\p{Script=Greek}\p{Letter}\p{Lu}$`, "αbC", true},
		{`^[\p{L}]+\/\-\_$`, "é/-_", true},
		{`[]`, "", false},
		{`[^]`, "\n", true},
		{`^[[a]$`, "[", true},
		{`^\cA\0\x41[\b]$`, "\x01\x00A\b", true},
		{`\bfoo\b`, "éfoo", true},
		{`^(?<y>\d{4})-(?:x)$`, "2026-x", true},
		{`\Aab\Z`, "ab", true},
		{`\Aab\Z`, "ab\n", false},
		{`^é\é$`, "éé", true},
	}
	for _, tt := range tests {
		for _, prefix := range []string{"", "(?=)", "(?!x{9}y)"} { // the latter two need the backtracking engine
			p, err := new(patterns).compile(prefix + tt.pattern)
			if err != nil {
				t.Errorf("%s: %v", prefix+tt.pattern, err)
				continue
			}
			if (p.linear != nil) != (prefix == "") {
				t.Errorf("%s: wrong engine", prefix+tt.pattern)
			}
			spent := time.Duration(0)
			if got, err := p.match(tt.text, &spent); err != nil || got != tt.want {
				t.Errorf("%s on %q = %v, %v, want %v", prefix+tt.pattern, tt.text, got, err, tt.want)
			}
		}
	}
	for pattern, text := range map[string]string{`^(?!-)[a-z-]+(?<!-)$`: "a-b", `^(a|b)\1$`: "aa", `^a{1,1001}$`: "aaa", `^(?<q>['"]).\k<q>$`: "'x'"} {
		p, err := new(patterns).compile(pattern)
		if err != nil || p.linear != nil {
			t.Errorf("%s: %v, linear %v", pattern, err, p != nil && p.linear != nil)
			continue
		}
		spent := time.Duration(0)
		if ok, err := p.match(text, &spent); !ok || err != nil {
			t.Errorf("%s on %q: %v, %v", pattern, text, ok, err)
		}
	}
}
