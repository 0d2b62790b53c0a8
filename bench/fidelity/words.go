package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// unsaid lists what a schema demands beyond a type and its signature's text does
// not name anywhere: the numbers of bounds, formats, patterns, defaults. It does
// not know where in the text they belong.
func unsaid(root any, text string) (out []string) {
	var walk func(v any)
	walk = func(v any) {
		m, ok := v.(map[string]any)
		if !ok {
			return
		}
		for name, value := range m {
			for _, word := range wordsFor(m, name, value) {
				if !strings.Contains(text, word) {
					out = append(out, fmt.Sprintf("nothing is said of %s %s", name, excerpt(string(encode(value)))))
				}
			}
			switch name {
			case "properties", "patternProperties":
				group, _ := value.(map[string]any)
				for _, sub := range group {
					walk(sub)
				}
			case "items", "prefixItems", "additionalProperties", "anyOf", "oneOf", "allOf":
				walk(value)
				for _, sub := range list(value) {
					walk(sub)
				}
			}
		}
	}
	walk(root)
	slices.Sort(out)
	return slices.Compact(out)
}

// wordsFor is what has to stand in a comment for one keyword.
func wordsFor(m map[string]any, name string, value any) []string {
	_, tuple := m["items"].([]any)
	tuple = tuple || m["prefixItems"] != nil
	switch v := value.(type) {
	case json.Number:
		n := string(v)
		switch name {
		case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum":
			if strings.HasSuffix(n, "9007199254740991") {
				return nil // that of every JavaScript integer
			}
			sign := map[bool]string{true: ">", false: "<"}[strings.HasSuffix(name, "inimum")]
			if !strings.HasPrefix(name, "exclusive") && m["exclusive"+strings.ToUpper(name[:1])+name[1:]] != true {
				sign += "="
			}
			return []string{sign + n}
		case "minLength", "maxLength", "minProperties", "maxProperties", "multipleOf":
			if n != "0" {
				return []string{n}
			}
		case "minItems", "maxItems":
			if n != "0" && !tuple {
				return []string{n}
			}
		case "default":
			return []string{"default " + n}
		}
	case string:
		switch {
		case name == "format" || name == "contentEncoding":
			return []string{v}
		case name == "pattern" && len(v) < 100 && !strings.Contains(v, "*/") && !strings.Contains(v, " "):
			return []string{"/" + v}
		case name == "default" && len(v) < 40 && !strings.ContainsAny(v, "\"\\\n*`"):
			return []string{`default "` + v + `"`}
		}
	case bool:
		switch {
		case name == "default":
			return []string{fmt.Sprint("default ", v)}
		case name == "uniqueItems" && v:
			return []string{"unique"}
		case name == "deprecated" && v:
			return []string{"deprecated"}
		}
	}
	return nil
}
