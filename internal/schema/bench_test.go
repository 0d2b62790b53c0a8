package schema

import (
	"encoding/json"
	"testing"
)

const readFileSchema = `{"type":"object","properties":{"file_path":{"type":"string","description":"the file"},"offset":{"type":"integer","minimum":0},"limit":{"type":"integer","minimum":1}},"required":["file_path"],"additionalProperties":false}`

func BenchmarkValidate(b *testing.B) {
	s, err := Compile(json.RawMessage(readFileSchema))
	if err != nil {
		b.Fatal(err)
	}
	args := json.RawMessage(`{"file_path":"internal/schema/validate.go","offset":0,"limit":200}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := s.Validate(args); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParse(b *testing.B) {
	args := []byte(`{"file_path":"internal/schema/validate.go","offset":0,"limit":200}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(args); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Compile(json.RawMessage(readFileSchema)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkOf(b *testing.B) {
	type args struct {
		FilePath string `json:"file_path" jsonschema:"the file"`
		Offset   int    `json:"offset,omitempty" schema:"minimum=0"`
		Limit    int    `json:"limit,omitempty" schema:"minimum=1"`
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Of[args](); err != nil {
			b.Fatal(err)
		}
	}
}
