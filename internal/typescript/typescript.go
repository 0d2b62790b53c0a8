// Package typescript understands programs that are no plain JavaScript: it takes
// TypeScript's types away, and says where and why a program does not parse.
//
// The parser is esbuild's. It is quick for what people write, but hostile source
// can make it take minutes and gigabytes, and it cannot be stopped. So it runs
// in a process of its own, the same binary re-executed, with limits on memory
// and time. What it answers is not trusted: the engine compiles it again before
// anything of it runs.
package typescript

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// marker is the argument that makes the binary a parser.
const marker = "capstan-typescript-parser"

// The parser's limits. A program of 128 KiB that is not hostile takes some
// hundredths of a second and megabytes.
const (
	maxWall   = 10 * time.Second
	maxCPU    = 3         // seconds
	maxMemory = 768 << 20 // bytes
	maxAnswer = 8 << 20   // bytes
)

// A Reading is what the parser made of a source.
type Reading struct {
	// OK says that it is TypeScript, or JavaScript. Code is then the same
	// program without types.
	OK   bool
	Code string
	// Fault is the syntax error, when it is neither.
	Fault Fault
	// Mappings lead from Code to the source.
	Mappings sourceMap
}

// A Fault is a syntax error at the author's own position, counted from 1 in
// lines and characters. Its zero value says that none was found.
type Fault struct {
	Line, Column int
	Text         string // what was expected, or is not expected
}

// Position maps a position in Code, from 1, to the author's.
func (r *Reading) Position(line, column int) (int, int) {
	l, c := r.Mappings.original(line, column-1) // the wrapper's first line is gone from Code, theirs counts from 0
	return l, c + 1                             // in the map it stands in front of the author's
}

// Parse reads a source in a process of its own. The error says that no answer
// was to be had: the source was too much for the limits, or ctx ended.
func Parse(ctx context.Context, source string) (*Reading, error) {
	binary, err := self()
	if err != nil {
		return nil, fmt.Errorf("starting the parser: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, maxWall)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, marker)
	cmd.Env = []string{}
	cmd.Stdin = strings.NewReader(source)
	cmd.WaitDelay = time.Second
	var answer bounded
	cmd.Stdout = &answer
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, fmt.Errorf("parsing the program: %w", err)
	}
	r := &Reading{}
	if err := json.Unmarshal(answer.Bytes(), r); err != nil {
		return nil, fmt.Errorf("reading the parser's answer: %w", err)
	}
	return r, nil
}

// bounded is a buffer that refuses to grow without end.
type bounded struct{ bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > maxAnswer {
		return 0, errors.New("the answer is too long")
	}
	return b.Buffer.Write(p)
}

// init makes this process a parser when it was started as one: also a test's
// binary, which would otherwise run its tests again.
func init() {
	if len(os.Args) != 2 || os.Args[1] != marker {
		return
	}
	limit()
	source, err := io.ReadAll(io.LimitReader(os.Stdin, 1<<20))
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(read(string(source)))
	}
	if err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

func read(source string) Reading {
	var r Reading
	if r.Code, r.Mappings, r.OK = strip(source); !r.OK {
		r.Fault = explain(source)
	}
	return r
}
