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

func run(args []string, in io.Reader, out io.Writer) error {
	if len(args) != 1 {
		return fmt.Errorf("usage: llmtest SCRIPT.txtar")
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
