package llm

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestList(t *testing.T) {
	for _, tt := range []struct {
		in string
		ok bool
	}{
		{`[]`, true},
		{`null`, true},
		{`[1,2,3]`, true},
		{`[1,2,3,4]`, false},
		{`["a,b,c,d","\",,,\\",[1,2,3,4,{"a":1,"b":[,]}]]`, true},
		{`[` + strings.Repeat("{},", 1<<20) + `{}]`, false},
	} {
		in := strings.Replace(tt.in, "[,]", "[1,2]", 1)
		var got []json.RawMessage
		if err := List([]byte(in), 3, &got); (err == nil) != tt.ok {
			t.Errorf("%.40s: %v", in, err)
		}
	}
}
