package mcp

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

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

// asking is the stdout of a server that asks n things.
func asking(n int) io.Reader {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"jsonrpc":"2.0","id":%d,"method":"ping"}`+"\n", i)
	}
	return strings.NewReader(b.String())
}

// Requests of a server are read as long as it takes the answers.
func TestOpenRequestsOfAServer(t *testing.T) {
	ctx := context.Background()
	in, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	defer to.Close()
	connect := func(stall time.Duration) *stdio {
		s := &stdio{in: to, out: asking(maxAsked + 10), warn: t.Errorf, passed: func(string) bool { return false }, close: func() {}, stall: stall}
		if _, err := s.Connect(ctx); err != nil {
			t.Fatal(err)
		}
		for i := range maxAsked {
			if _, err := s.Read(ctx); err != nil {
				t.Fatalf("request %d: %v", i, err)
			}
		}
		return s
	}
	if _, err := connect(time.Nanosecond).Read(ctx); err == nil || err.Error() != "it has 256 requests open and takes no answer to them" {
		t.Errorf("one too many: %v", err)
	}
	s := connect(time.Hour)
	for range 10 {
		read := make(chan error)
		go func() {
			_, err := s.Read(ctx)
			read <- err
		}()
		id, _ := jsonrpc.MakeID("any")
		if err := s.Write(ctx, &jsonrpc.Response{ID: id, Result: []byte(`{}`)}); err != nil {
			t.Fatal(err)
		}
		if err := <-read; err != nil {
			t.Errorf("after an answer: %v", err)
		}
	}
	s = connect(time.Hour)
	s.Close()
	if _, err := s.Read(ctx); err != io.ErrClosedPipe {
		t.Errorf("closed: %v", err)
	}
}

// A context that ends just after its message was written breaks no other message.
func TestALateDeadlineBreaksNothing(t *testing.T) {
	in, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		_, _ = io.Copy(io.Discard, in)
		in.Close()
	}()
	s := &stdio{in: to}
	if _, err := s.Connect(context.Background()); err != nil {
		t.Fatal(err)
	}
	m := &jsonrpc.Request{Method: "m"}
	for range 5000 {
		ctx, cancel := context.WithCancel(context.Background())
		go cancel()
		_ = s.send(ctx, []byte("x\n")) // may end either way
		s.in.SetWriteDeadline(time.Time{})
		if err := s.Write(context.Background(), m); err != nil {
			t.Fatal(err)
		}
	}
	to.Close()
	<-drained
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
