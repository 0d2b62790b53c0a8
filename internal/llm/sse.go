package llm

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
)

// A Frame is one server-sent event. Data is valid until the next one is read.
type Frame struct {
	Event string
	Data  []byte
}

// Frames reads server-sent events. Lines end in \n or \r\n. Comments, ids and
// retry times are of no use here and skipped. A last event without its empty
// line is taken when it is whole JSON or [DONE]; when it is not, the stream
// was cut off and the error is io.ErrUnexpectedEOF. An event of more than
// MaxFrame bytes is an error.
func Frames(r io.Reader) iter.Seq2[Frame, error] {
	return func(yield func(Frame, error) bool) {
		f := frames{in: bufio.NewReaderSize(r, 32<<10)}
		for {
			frame, err := f.next()
			if err == io.EOF {
				return
			}
			if !yield(frame, err) || err != nil {
				return
			}
		}
	}
}

type frames struct {
	in      *bufio.Reader
	line    []byte
	data    []byte
	started bool
}

func (f *frames) next() (Frame, error) {
	f.data = f.data[:0]
	var frame Frame
	has := false
	for {
		line, err := f.readLine()
		if err == io.EOF && has {
			return f.last(frame)
		}
		if err != nil {
			return Frame{}, err
		}
		if len(line) == 0 {
			if has {
				frame.Data = f.data
				return frame, nil
			}
			frame.Event = ""
			continue
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "event":
			frame.Event = string(value)
		case "data":
			if has {
				f.data = append(f.data, '\n')
			}
			has = true
			f.data = append(f.data, value...)
		}
		if len(f.data) > MaxFrame {
			return Frame{}, errFrame
		}
	}
}

var errFrame = error(&reason{fmt.Sprintf("one event of the stream is longer than %d MiB", MaxFrame>>20), errTooMuch})

// last decides about an event that the end of the stream ended.
func (f *frames) last(frame Frame) (Frame, error) {
	if s := bytes.TrimSpace(f.data); string(s) != "[DONE]" && !json.Valid(s) {
		return Frame{}, io.ErrUnexpectedEOF
	}
	frame.Data = f.data
	return frame, nil
}

// readLine returns the next line without its end. io.EOF comes alone, after a
// last line that had none.
func (f *frames) readLine() ([]byte, error) {
	f.line = f.line[:0]
	for {
		part, err := f.in.ReadSlice('\n')
		f.line = append(f.line, part...)
		if len(f.line) > MaxFrame+64 {
			return nil, errFrame
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil && (err != io.EOF || len(f.line) == 0) {
			return nil, err
		}
		break
	}
	line := bytes.TrimSuffix(bytes.TrimSuffix(f.line, []byte("\n")), []byte("\r"))
	if !f.started {
		f.started = true
		line = bytes.TrimPrefix(line, []byte("\xEF\xBB\xBF"))
	}
	return line, nil
}
