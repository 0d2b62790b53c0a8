package headless

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"capstan/internal/msg"
)

// MaxLine bounds a line of the input, in bytes. Images stand in it as base64.
const MaxLine = 32 << 20

// An InputError is a line that cannot be used. The lines after it still are.
type InputError struct {
	Line int // the first is 1
	Err  error
}

func (e *InputError) Error() string { return fmt.Sprintf("line %d of the input: %v", e.Line, e.Err) }

// Unwrap returns what is wrong with it.
func (e *InputError) Unwrap() error { return e.Err }

// command is what one line says: exactly one of its fields is set.
type command struct {
	parts   []msg.Part
	control *control
	reply   *reply
	err     error
}

// control is a request of the client that is no prompt.
type control struct{ id, subtype, mode string }

// commands reads lines of at most so many bytes until the end of in and hands out
// what they say. It ends early when yield returns false.
func commands(in io.Reader, most int, yield func(command) bool) {
	br := bufio.NewReaderSize(in, 64<<10)
	for n := 1; ; n++ {
		line, long, err := readLine(br, most)
		if err != nil && !errors.Is(err, io.EOF) {
			yield(command{err: &InputError{n, err}})
			return
		}
		var c command
		switch {
		case long:
			c.err = fmt.Errorf("it is longer than %d bytes", most)
		case len(bytes.TrimSpace(line)) > 0:
			c, c.err = parse(bytes.TrimPrefix(line, []byte("\ufeff")))
		}
		if c.err != nil {
			c.err = &InputError{n, c.err}
		}
		if (c.err != nil || c.parts != nil || c.control != nil || c.reply != nil) && !yield(c) || err != nil {
			return
		}
	}
}

// readLine returns the next line, or that it is too long, without keeping more
// of it than fits.
func readLine(br *bufio.Reader, most int) (line []byte, long bool, err error) {
	for {
		piece, err := br.ReadSlice('\n')
		if len(line)+len(piece) > most+1 {
			line, long = nil, true
		}
		if !long {
			line = append(line, piece...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, long, err
		}
	}
}

type inputLine struct {
	Type      string `json:"type"`
	RequestID string `json:"request_id"`
	Request   *struct {
		Subtype string `json:"subtype"`
		Mode    string `json:"mode"`
	} `json:"request"`
	Response *struct {
		Subtype  string          `json:"subtype"`
		ID       string          `json:"request_id"`
		Response json.RawMessage `json:"response"`
		Error    string          `json:"error"`
	} `json:"response"`
	Message *struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"message"`
}

// wrongType says where the wrong kind of value stands.
func wrongType(e *json.UnmarshalTypeError) string {
	if e.Field == "" {
		return ": it is of the type " + e.Value
	}
	return fmt.Sprintf(": %q is of the type %s", e.Field, e.Value)
}

// parse reads a line. One that is of no concern here gives neither an error nor
// anything else.
func parse(line []byte) (c command, err error) {
	if !utf8.Valid(line) {
		return c, errors.New("it is not valid UTF-8")
	}
	var in inputLine
	if err := json.Unmarshal(line, &in); err != nil {
		const want = `it is no JSON object of the form {"type":"user","message":{"role":"user","content":"…"}}`
		if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return c, fmt.Errorf("%s%s", want, wrongType(e))
		}
		return c, fmt.Errorf("%s: %w", want, err)
	}
	switch in.Type {
	case "user":
		if in.Message == nil || in.Message.Role != "user" && in.Message.Role != "" {
			return c, errors.New(`a line of type "user" needs a message of role "user"`)
		}
		c.parts, err = content(in.Message.Content)
		return c, err
	case "control_request":
		if in.RequestID == "" || in.Request == nil || in.Request.Subtype == "" {
			return c, errors.New(`a control_request needs a request_id and a request with a subtype`)
		}
		c.control = &control{in.RequestID, in.Request.Subtype, in.Request.Mode}
		return c, nil
	case "control_response":
		if in.Response == nil || in.Response.ID == "" {
			return c, errors.New(`a control_response needs a response with a request_id`)
		}
		c.reply = &reply{id: in.Response.ID, response: in.Response.Response}
		if in.Response.Subtype != "success" {
			c.reply.fault = cmp.Or(in.Response.Error, "it says no more")
		}
		return c, nil
	case "control_cancel_request", "keep_alive": // what a client asks is done at once
		return c, nil
	case "":
		return c, errors.New(`it has no "type": want "user" or "control_request"`)
	}
	return c, fmt.Errorf("unknown type %q: want \"user\" or \"control_request\"", cut(in.Type))
}

type inputBlock struct {
	Type   string `json:"type"`
	Text   string `json:"text"`
	Source *struct {
		Type      string `json:"type"`
		MediaType string `json:"media_type"`
		Data      string `json:"data"`
	} `json:"source"`
}

// content reads a string, or blocks of text and images.
func content(raw json.RawMessage) ([]msg.Part, error) {
	var text string
	if len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, &text) == nil {
		if strings.TrimSpace(text) == "" {
			return nil, errors.New("the content is empty")
		}
		return []msg.Part{msg.TextPart(text)}, nil
	}
	var blocks []inputBlock
	if err := json.Unmarshal(raw, &blocks); err != nil || blocks == nil {
		return nil, errors.New("the content is neither a string nor a list of blocks")
	}
	var parts []msg.Part
	for i, b := range blocks {
		switch {
		case b.Type == "text" && strings.TrimSpace(b.Text) == "": // says nothing
		case b.Type == "text":
			parts = append(parts, msg.TextPart(b.Text))
		case b.Type == "image" && b.Source != nil && b.Source.Type == "base64" && strings.HasPrefix(b.Source.MediaType, "image/"):
			data, err := base64.StdEncoding.DecodeString(b.Source.Data)
			if err != nil || len(data) == 0 {
				return nil, fmt.Errorf("block %d: the image is no base64", i+1)
			}
			parts = append(parts, msg.Part{Kind: msg.Image, MIMEType: b.Source.MediaType, Data: data})
		case b.Type == "image":
			return nil, fmt.Errorf("block %d: an image needs a source of type base64 with a media_type image/…", i+1)
		default:
			return nil, fmt.Errorf("block %d: a prompt has blocks of type text and image, not %q", i+1, cut(b.Type))
		}
	}
	if len(parts) == 0 {
		return nil, errors.New("the content is empty")
	}
	return parts, nil
}

func cut(s string) string { return abridge(s, 60) }
