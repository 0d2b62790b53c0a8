package schema

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// References are found where a schema can lie and nowhere else.
func TestInnerReferences(t *testing.T) {
	for raw, want := range map[string][]string{
		`true`: nil,
		`{"$ref":"#/$defs/a","$defs":{"a":{"items":{"$ref":"#"}},"b":{"$ref":"#/$defs/a"}}}`:                {"#/$defs/a", "#"}, // b is used by nobody
		`{"properties":{"$ref":{"const":"#"}},"enum":[{"$ref":"#"}],"examples":["$ref","#"]}`:               nil,
		`{"prefixItems":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/a"}],"$defs":{"a":{}}}`:                      {"#/$defs/a"},
		`{"items":{"$id":"urn:a","properties":{"x":{"$ref":"#"}}}}`:                                         nil,
		`{"$schema":"http://json-schema.org/draft-07/schema#","items":[{"$ref":"#","not":{"$ref":"#/x"}}]}`: {"#"},
		`{"$dynamicAnchor":"n","items":{"$dynamicRef":"#n"}}`:                                               {"#n"},
	} {
		s, err := Compile([]byte(raw))
		if err != nil {
			t.Errorf("%s: %v", raw, err)
			continue
		}
		if diff := cmp.Diff(want, s.InnerReferences()); diff != "" {
			t.Errorf("%s: %s", raw, diff)
		}
	}
}
