package llm

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

type readFrame struct{ Event, Data string }

func readFrames(r io.Reader) ([]readFrame, error) {
	var out []readFrame
	for f, err := range Frames(r) {
		if err != nil {
			return out, err
		}
		out = append(out, readFrame{f.Event, string(f.Data)})
	}
	return out, nil
}

func TestFrames(t *testing.T) {
	tests := []struct {
		name, in string
		want     []readFrame
		err      error
	}{
		{"plain", "data: a\n\ndata:b\n\n", []readFrame{{"", "a"}, {"", "b"}}, nil},
		{"all fields", "\xEF\xBB\xBF: hi\nevent: e\nid: 1\nretry: 5\ndata: a\ndata:  b\nnope\n\n", []readFrame{{"e", "a\n b"}}, nil},
		{"crlf", "event: e\r\ndata: a\r\n\r\n", []readFrame{{"e", "a"}}, nil},
		{"no data", "event: ping\n\ndata: a\n\n", []readFrame{{"", "a"}}, nil},
		{"empty data", "data\n\ndata:\n\n", []readFrame{{"", ""}, {"", ""}}, nil},
		{"no end, whole", "data: {\"a\":1}", []readFrame{{"", `{"a":1}`}}, nil},
		{"no end, done", "data: [DONE]\n", []readFrame{{"", "[DONE]"}}, nil},
		{"no end, cut", "data: {\"a\":", nil, io.ErrUnexpectedEOF},
		{"cut outside", "data: a\n\neve", []readFrame{{"", "a"}}, nil},
		{"nothing", "", nil, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, r := range []io.Reader{strings.NewReader(tt.in), iotest.OneByteReader(strings.NewReader(tt.in))} {
				got, err := readFrames(r)
				if diff := cmp.Diff(tt.want, got); diff != "" || !errors.Is(err, tt.err) {
					t.Errorf("error %v (-want +got):\n%s", err, diff)
				}
			}
		})
	}
	if _, err := readFrames(iotest.TimeoutReader(iotest.OneByteReader(strings.NewReader("data: a\n\n")))); !errors.Is(err, iotest.ErrTimeout) {
		t.Errorf("the reader's error became %v", err)
	}
}

func FuzzFrames(f *testing.F) {
	f.Add("event: e\r\ndata: a\n\n")
	f.Fuzz(func(t *testing.T, in string) {
		whole, err := readFrames(strings.NewReader(in))
		pieces, err2 := readFrames(iotest.OneByteReader(strings.NewReader(in)))
		if diff := cmp.Diff(whole, pieces); diff != "" || !errors.Is(err2, err) {
			t.Errorf("in pieces: %v, %v\n%s", err, err2, diff)
		}
	})
}
