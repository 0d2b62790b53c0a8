package mcp

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// read gives what a server's stdout holds, a line for each message and warning.
func read(t testing.TB, out io.Reader, pending ...float64) (list []string) {
	s := &stdio{out: out, warn: func(format string, a ...any) { list = append(list, cut("! "+fmt.Sprintf(format, a...), 60)) },
		passed: func(string) bool { return false }}
	c, err := s.Connect(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range pending {
		id, err := jsonrpc.MakeID(n)
		if err != nil {
			t.Fatal(err)
		}
		s.pending[id] = true
	}
	for {
		m, err := c.Read(context.Background())
		if err != nil {
			return append(list, err.Error())
		}
		switch m := m.(type) {
		case *jsonrpc.Response:
			list = append(list, fmt.Sprint(m.ID.Raw(), " ", string(m.Result), m.Error))
		case *jsonrpc.Request:
			list = append(list, m.Method)
		}
	}
}

func TestReadingMessages(t *testing.T) {
	big := strings.Repeat("x", maxMessage)
	for _, test := range []struct {
		name, out string
		want      []string
	}{
		{"two", `{"jsonrpc":"2.0","id":1,"result":{}}` + "\n" + `{"jsonrpc":"2.0","method":"m"}` + "\r\n\r\n \n", []string{"1 {}<nil>", "m", "EOF"}},
		{"no end of line", `{"jsonrpc":"2.0","id":1,"result":{}}`, []string{"1 {}<nil>", "EOF"}},
		{"no UTF-8", `{"jsonrpc":"2.0","id":1,"result":"caf` + "\xe9" + `"}` + "\n", []string{"! it sends bytes that are not UTF-8; they were replaced", "1 \"caf\uFFFD\"<nil>", "EOF"}},
		{"the same twice", strings.Repeat(`{"jsonrpc":"2.0","id":1,"result":{}}`+"\n", 2), []string{"1 {}<nil>", "! it answers a request that is not open (id 1)", "EOF"}},
		{"large, id first", `{"jsonrpc":"2.0","id":2,"result":"` + big + "\"}\n" + `{"jsonrpc":"2.0","id":1,"result":{}}`,
			[]string{"! it sent a message of more than 32 MiB, which was not read", "2 " + errTooLarge.Error(), "1 {}<nil>", "EOF"}},
		{"large, id last", `{"result":"` + big + `","id":1}` + "\n", []string{"! it sent a message of more than 32 MiB, which was not read", "1 " + errTooLarge.Error(), "EOF"}},
		{"large, not ours", `{"jsonrpc":"2.0","id":77,"result":"` + big + "\"}\n", []string{"! it sent a message of more than 32 MiB, which was not read", "EOF"}},
		{"large, without end", big + big, []string{"EOF"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, read(t, strings.NewReader(test.out), 1, 2)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	// Nothing says whose it is: every call that waits would wait for ever.
	if got := read(t, strings.NewReader(big+"x\n"), 1, 2); len(got) != 4 {
		t.Errorf("%q", got)
	}
}

func FuzzReadingMessages(f *testing.F) {
	f.Add([]byte("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\nnoise\n{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"params\":[]}\n"))
	f.Fuzz(func(t *testing.T, out []byte) {
		answers := 0
		for _, line := range read(t, bytes.NewReader(out), 1) {
			if strings.HasPrefix(line, "1 ") {
				answers++
			}
		}
		if answers > 1 {
			t.Errorf("%d answers to one request", answers)
		}
	})
}
