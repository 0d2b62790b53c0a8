package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"capstan/internal/app"
	"capstan/internal/codemode"
	"capstan/internal/msg"
	"capstan/internal/sandbox"
	"capstan/internal/tool"
)

// report is the end of one `capstan exec`, as a person or a program reads it.
type report struct {
	run         *app.ExecResult
	calls       []callRow
	ended       []string // jobs ended with the run
	interrupted error
	timeout     time.Duration
}

func (r *report) code() int {
	switch {
	case errors.Is(r.interrupted, errTimeout):
		return exitFailed
	case r.interrupted != nil:
		return exitInterrupted
	case r.run.Outcome != nil && r.run.Outcome.Denied:
		return exitUnasked
	case r.run.Result.Status != tool.Success:
		return exitFailed
	}
	return exitOK
}

// message is what went wrong, without the output before it; "" when nothing did.
func (r *report) message() string {
	switch {
	case errors.Is(r.interrupted, errTimeout):
		return fmt.Sprintf("error: timeout: the run was ended after %v (--timeout)", r.timeout)
	case r.interrupted != nil:
		return "error: interrupted"
	case r.run.Outcome != nil && r.run.Outcome.Err != nil:
		return codemode.ErrorText(r.run.Outcome.Err, r.run.Outcome.Source)
	case r.run.Result.Status != tool.Success:
		return "error: " + r.run.Result.Text()
	}
	return ""
}

// text writes the program's output to stdout, and nothing else; the rest goes
// to stderr. Media go to files, whose paths stand in the output.
func (r *report) text(stdout, stderr io.Writer, keep func(mimeType string, data []byte) (string, error)) error {
	for _, p := range r.run.Printed() {
		line := p.Text
		if p.Kind != msg.Text {
			path, err := keep(p.MIMEType, p.Data)
			if err != nil {
				return err
			}
			line = fmt.Sprintf("[%s %s, %d bytes: %s]", p.Kind, p.MIMEType, len(p.Data), path)
		}
		if _, err := io.WriteString(stdout, line+"\n"); err != nil {
			return err
		}
	}
	if m := r.message(); m != "" {
		fmt.Fprintln(stderr, m)
	}
	for _, n := range r.notes() {
		fmt.Fprintln(stderr, n)
	}
	return nil
}

func (r *report) notes() []string {
	var notes []string
	if r.run.Outcome != nil {
		notes = append(notes, r.run.Outcome.Notes...)
	}
	if len(r.ended) > 0 {
		notes = append(notes, "[Ended with the run: "+strings.Join(r.ended, "; ")+".]")
	}
	return notes
}

// The form of `exec --json` (docs/cli.md).
type (
	jsonReport struct {
		Status  tool.Status  `json:"status"`
		Code    string       `json:"code"`
		Kind    string       `json:"kind"`
		Message string       `json:"message"`
		Line    int          `json:"line,omitempty"`
		Column  int          `json:"column,omitempty"`
		Output  []jsonOutput `json:"output"`
		Notes   []string     `json:"notes,omitempty"`
		Calls   []callRow    `json:"calls"`
		Limits  jsonLimits   `json:"limits"`
		Missing []string     `json:"missing,omitempty"` // layers of the sandbox that this machine lacks
	}
	jsonOutput struct {
		Type     string `json:"type"`
		Text     string `json:"text,omitempty"`
		MIMEType string `json:"mimeType,omitempty"`
		Data     []byte `json:"data,omitempty"`
	}
	jsonLimits struct {
		CPUMs       float64 `json:"cpuMs"`
		Calls       int     `json:"calls"`
		OutputBytes int64   `json:"outputBytes"`
		PeakBytes   int64   `json:"peakBytes"`
	}
)

func (r *report) json(w io.Writer) error {
	out := jsonReport{Status: r.run.Result.Status, Code: r.run.Result.Code, Output: []jsonOutput{}, Calls: r.calls, Notes: r.notes()}
	for _, p := range r.run.Printed() {
		out.Output = append(out.Output, jsonOutput{string(p.Kind), p.Text, p.MIMEType, p.Data})
	}
	if o := r.run.Outcome; o != nil {
		out.Limits = jsonLimits{float64(o.Usage.CPU.Microseconds()) / 1000, o.Usage.Calls, o.Usage.OutputBytes, o.Usage.PeakBytes}
		out.Missing = o.Usage.Missing
		if o.Err != nil {
			out.Kind, out.Message = string(o.Err.Kind), strings.TrimPrefix(o.Err.Name+": "+o.Err.Message, ": ")
			out.Line, out.Column = o.Err.Line, o.Err.Column
		}
	}
	if r.code() == exitUnasked {
		out.Status = tool.Denied
	}
	if errors.Is(r.interrupted, errTimeout) {
		out.Status, out.Kind = tool.Failed, string(sandbox.KindTimeout)
	}
	if out.Message == "" && out.Status != tool.Success {
		out.Message = strings.TrimPrefix(r.message(), "error: ")
	}
	return writeJSON(w, out)
}

// writeJSON writes one compact line without HTML escapes.
func writeJSON(w io.Writer, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(b.Bytes())
	return err
}
