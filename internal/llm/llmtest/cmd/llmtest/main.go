// Command llmtest serves a script of turns on the loopback interface, for tests
// of a whole program and for whoever embeds Capstan:
//
//	llmtest SCRIPT.txtar
//
// It prints its address, serves until its standard input ends, and then fails
// when something did not go as the script has it. Package llmtest describes the
// scripts.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"capstan/internal/llm/llmtest"
)

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "llmtest:", err)
		os.Exit(1)
	}
}

const help = `usage: llmtest SCRIPT.txtar

Serves the answers of a script on the loopback interface, in the wire formats of
Chat Completions, Responses, Messages and generateContent. It prints its address,
serves until standard input ends, and fails when something did not go as the
script has it.

Each file of the script is one turn, the answer to one request, in order. Lines:

  want REGEXP            the body of the request must match
  wantnot REGEXP         ... must not match
  reasoning TEXT         the model thinks
  text TEXT              the model speaks; TEXT may be quoted as in Go
  call NAME [#ID] JSON   the model calls
  usage IN OUT [cached N] [reasoning N]
  finish REASON          stop, calls, length or filtered
  cut                    the connection breaks here
  hang                   nothing more comes until the client goes away
  status CODE, header NAME: VALUE
  body, raw              the rest of the file is the body, or the stream

A file named "server" holds settings: key KEY, models NAME..., limit BYTES.

  OPENAI_BASE_URL=ADDRESS/v1 capstan -p hi --model openai/m
`

func run(args []string, in io.Reader, out io.Writer) error {
	if len(args) == 1 && (args[0] == "-h" || args[0] == "--help") {
		_, err := fmt.Fprint(out, help)
		return err
	}
	if len(args) != 1 {
		return errors.New("usage: llmtest SCRIPT.txtar (--help says what is in one)")
	}
	archive, err := os.ReadFile(args[0])
	if err != nil {
		return fmt.Errorf("reading the script: %w", err)
	}
	script, err := llmtest.Parse(archive)
	if err != nil {
		return err
	}
	s, err := llmtest.Listen(script)
	if err != nil {
		return err
	}
	defer s.Close()
	if _, err := fmt.Fprintln(out, s.URL); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, in); err != nil {
		return fmt.Errorf("waiting: %w", err)
	}
	return s.Err()
}
