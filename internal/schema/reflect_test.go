package schema

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"
)

type place struct {
	Lat float64 `json:"lat"`
	Lon float64 `json:"lon"`
}

type common struct {
	Description string `json:"description,omitempty" jsonschema:"why"`
}

type sample struct {
	common
	Named   common            `json:"named,omitzero"`
	Path    string            `json:"file_path" jsonschema:"an \"absolute\" path"`
	Limit   int               `json:"limit,omitempty" schema:"minimum=1;maximum=600000;default=2000"`
	Mode    string            `json:"mode,omitempty" schema:"enum=content|files|count;default=files"`
	Tags    []string          `json:"tags,omitempty" schema:"maxItems=3"`
	Env     map[string]string `json:"env,omitempty"`
	Places  *[]place          `json:"places"`
	Maybe   *bool             `json:"maybe,omitempty"`
	Small   int8              `json:"small"`
	Byte    uint16            `json:"byte"`
	Big     uint64            `json:"big"`
	Pair    [2]int            `json:"pair"`
	Any     any               `json:"any"`
	Raw     json.RawMessage   `json:"raw"`
	Data    []byte            `json:"data"`
	When    time.Time         `json:"when"`
	Exact   json.Number       `json:"exact" schema:"minimum=0.5"`
	NoTag   bool
	Hidden  string `json:"-"`
	private int
}

// The schema is made from the Go struct. S3-020 S3-024
func TestOf(t *testing.T) {
	const want = `{"type":"object","properties":{` +
		`"description":{"type":"string","description":"why"},` +
		`"named":{"type":"object","properties":{"description":{"type":"string","description":"why"}},"additionalProperties":false},` +
		`"file_path":{"type":"string","description":"an \"absolute\" path"},` +
		`"limit":{"type":"integer","minimum":1,"maximum":600000,"default":2000},` +
		`"mode":{"type":"string","enum":["content","files","count"],"default":"files"},` +
		`"tags":{"type":"array","items":{"type":"string"},"maxItems":3},` +
		`"env":{"type":"object","additionalProperties":{"type":"string"}},` +
		`"places":{"type":["array","null"],"items":{"type":"object","properties":{"lat":{"type":"number"},"lon":{"type":"number"}},"required":["lat","lon"],"additionalProperties":false}},` +
		`"maybe":{"type":"boolean"},` +
		`"small":{"type":"integer","minimum":-128,"maximum":127},` +
		`"byte":{"type":"integer","minimum":0,"maximum":65535},` +
		`"big":{"type":"integer","minimum":0},` +
		`"pair":{"type":"array","items":{"type":"integer"},"minItems":2,"maxItems":2},` +
		`"any":{},"raw":{},` +
		`"data":{"type":"string","contentEncoding":"base64"},` +
		`"when":{"type":"string","format":"date-time"},` +
		`"exact":{"type":"number","minimum":0.5},` +
		`"NoTag":{"type":"boolean"}},` +
		`"required":["file_path","places","small","byte","big","pair","any","raw","data","when","exact","NoTag"],"additionalProperties":false}`
	got, err := Of[sample]()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if _, err := Compile(got); err != nil {
		t.Error(err)
	}
	if _, err := Of[struct{}](); err != nil {
		t.Error(err)
	}
	_ = sample{}.private
}

// The library that the MCP SDK uses finds the same properties and requirements.
func TestOfAgreesWithTheLibrary(t *testing.T) {
	mine, err := Of[sample]()
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := jsonschema.ForType(reflect.TypeFor[sample](), &jsonschema.ForOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var parsed struct {
		Properties map[string]json.RawMessage
		Required   []string
	}
	if err := json.Unmarshal(mine, &parsed); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(theirs.Required, parsed.Required); diff != "" {
		t.Error(diff)
	}
	for name := range theirs.Properties {
		if parsed.Properties[name] == nil {
			t.Errorf("%s is missing", name)
		}
	}
	if len(theirs.Properties) != len(parsed.Properties) {
		t.Errorf("%d properties, want %d", len(parsed.Properties), len(theirs.Properties))
	}
}

func TestOfErrors(t *testing.T) {
	type loop struct {
		Next []*loop `json:"next"`
	}
	tests := []struct {
		t    reflect.Type
		want string
	}{
		{reflect.TypeFor[loop](), "contains itself"},
		{reflect.TypeFor[struct{ C chan int }](), "JSON has no form for chan int"},
		{reflect.TypeFor[map[int]string](), "are not strings"},
		{reflect.TypeFor[struct {
			A int `schema:"minimun=1"`
		}](), `unknown keyword "minimun"`},
		{reflect.TypeFor[struct {
			A int `schema:"minimum"`
		}](), "is not keyword=value"},
		{reflect.TypeFor[struct {
			A int `schema:"default=x"`
		}](), "is not JSON"},
		{reflect.TypeFor[struct {
			common
			B int `json:"description"`
		}](), `two fields`},
	}
	for _, tt := range tests {
		got, err := For(tt.t)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("For(%v) = %s, %v, want an error with %q", tt.t, got, err, tt.want)
		}
	}
}
