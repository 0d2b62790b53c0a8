package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	oracle "github.com/santhosh-tekuri/jsonschema/v6"
)

func FuzzParse(f *testing.F) {
	for _, s := range []string{`{"a":[1,1e400,"\u0041"]}`, `{"a":1,"a":2}`, `[[[`, `"\ud800"`, "\xff", ``, `0.1000`, `{"":{"":null}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		canonical, err := Parse(raw)
		if err != nil {
			var invalid *Invalid
			if !errors.As(err, &invalid) || len(invalid.Faults) != 1 {
				t.Fatalf("error %T: %v", err, err)
			}
			return
		}
		if !json.Valid(canonical) || !utf8.Valid(canonical) {
			t.Fatalf("canonical form %q is not JSON", canonical)
		}
		if !json.Valid(raw) {
			t.Fatalf("%q is not JSON but was read as %q", raw, canonical)
		}
		again, err := Parse(canonical)
		if err != nil || !bytes.Equal(again, canonical) {
			t.Fatalf("not idempotent: %q, then %q, %v", canonical, again, err)
		}
	})
}

func FuzzValidate(f *testing.F) {
	f.Add([]byte(readFileSchema), []byte(`{"file_path":"a","limit":"5"}`))
	f.Add([]byte(`{"anyOf":[{"$ref":"#/$defs/a"},{"type":"null"}],"$defs":{"a":{"properties":{"x":{"$ref":"#"}}}}}`), []byte(`{"x":{"x":1}}`))
	f.Add([]byte(`{"$dynamicRef":"#x","$dynamicAnchor":"x","unevaluatedItems":false}`), []byte(`[1]`))
	f.Add([]byte(`{"$schema":"http://json-schema.org/draft-07/schema#","dependencies":{"a":["b"]},"items":[{},false]}`), []byte(`[1,2]`))
	f.Add([]byte(`{"pattern":"(?=a)(a|b)*$","multipleOf":1e-9,"uniqueItems":true}`), []byte(`"ab"`))
	f.Fuzz(func(t *testing.T, schema, args []byte) {
		s, err := Compile(schema)
		if err != nil {
			return
		}
		canonical, _, err := s.Validate(args)
		if err != nil {
			var invalid *Invalid
			if !errors.As(err, &invalid) || len(invalid.Faults) == 0 || canonical != nil {
				t.Fatalf("refused with %T %v and %q", err, err, canonical)
			}
			if _, _, again := s.Validate(args); !invalid.Unchecked && again.Error() != err.Error() {
				t.Fatalf("not deterministic:\n%v\n%v", err, again)
			}
			return
		}
		again, notes, err := s.Validate(canonical)
		var invalid *Invalid
		if errors.As(err, &invalid) && invalid.Unchecked {
			return
		}
		if err != nil || notes != nil || !bytes.Equal(again, canonical) {
			t.Fatalf("%s: canonical %q gives %q, %v, %v", schema, canonical, again, notes, err)
		}
	})
}

// random makes small schemas and values, on which two validators can be compared.
type random struct{ *rand.Rand }

func (r random) pick(options ...string) string { return options[r.IntN(len(options))] }

func (r random) schema(depth int) string {
	if depth == 0 || r.IntN(8) == 0 {
		return r.pick(`true`, `false`, `{}`, `{"type":"string"}`, `{"type":"integer"}`, `{"const":1}`, `{"type":["null","object"]}`)
	}
	keywords := map[string]string{}
	for range 1 + r.IntN(4) {
		sub := func() string { return r.schema(depth - 1) }
		switch r.IntN(24) {
		case 0:
			keywords["type"] = r.pick(`"object"`, `"array"`, `"number"`, `"integer"`, `["string","null"]`, `"boolean"`)
		case 1:
			keywords["properties"] = fmt.Sprintf(`{"a":%s,"b":%s}`, sub(), sub())
		case 2:
			keywords["required"] = r.pick(`["a"]`, `["a","b"]`, `["c"]`)
		case 3:
			keywords["additionalProperties"] = sub()
		case 4:
			keywords["patternProperties"] = fmt.Sprintf(`{"^[bc]$":%s}`, sub())
		case 5:
			keywords["items"] = sub()
		case 6:
			keywords["prefixItems"] = fmt.Sprintf(`[%s,%s]`, sub(), sub())
		case 7:
			keywords["contains"] = sub()
		case 8:
			keywords["minContains"] = r.pick("0", "1", "2")
		case 9:
			keywords["allOf"] = fmt.Sprintf(`[%s,%s]`, sub(), sub())
		case 10:
			keywords["anyOf"] = fmt.Sprintf(`[%s,%s]`, sub(), sub())
		case 11:
			keywords["oneOf"] = fmt.Sprintf(`[%s,%s]`, sub(), sub())
		case 12:
			keywords["not"] = sub()
		case 13:
			keywords["if"], keywords["then"], keywords["else"] = sub(), sub(), sub()
		case 14:
			keywords["unevaluatedProperties"] = sub()
		case 15:
			keywords["unevaluatedItems"] = sub()
		case 16:
			keywords["minimum"] = r.pick("1", "0.5", "-1e1")
		case 17:
			keywords["multipleOf"] = r.pick("2", "0.5", "0.1")
		case 18:
			keywords["enum"] = r.pick(`[1,"a"]`, `[1.0,[1],{"a":1}]`, `[null,true]`)
		case 19:
			keywords["uniqueItems"] = "true"
		case 20:
			keywords["minLength"], keywords["pattern"] = r.pick("0", "2"), r.pick(`"^a"`, `"b$"`, `"(?!a)"`)
		case 21:
			keywords["$ref"] = r.pick(`"#/$defs/x"`, `"#/$defs/y"`)
		case 22:
			keywords["dependentRequired"] = `{"a":["b"]}`
		case 23:
			keywords["propertyNames"], keywords["maxProperties"] = sub(), r.pick("0", "1", "2")
		}
	}
	var parts []string
	for name, s := range keywords {
		parts = append(parts, fmt.Sprintf("%q:%s", name, s))
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func (r random) value(depth int) string {
	if depth == 0 || r.IntN(3) == 0 {
		return r.pick("null", "true", "0", "1", "1.0", "2", "-3.5", "1e1", `""`, `"a"`, `"ab"`, `"é"`)
	}
	var parts []string
	if r.IntN(2) == 0 {
		for range r.IntN(4) {
			parts = append(parts, r.value(depth-1))
		}
		return "[" + strings.Join(parts, ",") + "]"
	}
	for _, name := range []string{"a", "b", "c"} {
		if r.IntN(2) == 0 {
			parts = append(parts, fmt.Sprintf("%q:%s", name, r.value(depth-1)))
		}
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// judge is the other validator's verdict; known is false when it has none.
func judge(schema, value string) (valid, known bool) {
	doc, err := oracle.UnmarshalJSON(strings.NewReader(schema))
	if err != nil {
		return false, false
	}
	c := oracle.NewCompiler()
	c.UseRegexpEngine(func(s string) (oracle.Regexp, error) {
		p, err := new(patterns).compile(s)
		return oraclePattern{p}, err
	})
	if c.AddResource("mem:///x", doc) != nil {
		return false, false
	}
	s, err := c.Compile("mem:///x")
	if err != nil {
		return false, false
	}
	v, err := oracle.UnmarshalJSON(strings.NewReader(value))
	if err != nil {
		return false, false
	}
	return s.Validate(v) == nil, true
}

type oraclePattern struct{ *pattern }

func (p oraclePattern) String() string { return p.source }
func (p oraclePattern) MatchString(s string) bool {
	ok, _ := p.match(s, new(time.Duration))
	return ok
}

func differ(t *testing.T, seed uint64) {
	r := random{rand.New(rand.NewPCG(seed, 1))}
	schema := fmt.Sprintf(`{"$defs":{"x":{"type":"object","properties":{"a":{"$ref":"#"}}},"y":{"type":["integer","string"]}},"allOf":[%s]}`, r.schema(3))
	s, err := Compile(json.RawMessage(schema))
	if err != nil {
		t.Fatalf("%s: %v", schema, err)
	}
	for range 8 {
		text := r.value(3)
		want, known := judge(schema, text)
		if !known {
			t.Fatalf("the oracle does not know %s", schema)
		}
		v, count, _ := parse([]byte(text))
		got := newEvaluation(s, count).check(s.root, v, nil)
		sink, err := s.faults(v, count)
		if err != nil {
			t.Fatal(err)
		}
		if got != want || (len(sink.faults) == 0) != want {
			t.Fatalf("seed %d: %s\non %s: valid = %v (%d faults), the oracle says %v", seed, schema, text, got, len(sink.faults), want)
		}
	}
}

// On random schemas and values the verdict is that of an independent
// implementation. S3-054
func TestAgreesWithOracle(t *testing.T) {
	for seed := range uint64(400) {
		differ(t, seed)
	}
}

func FuzzOracle(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(differ)
}
