// Command conformance writes docs/conformance.md: which test proves which
// requirement, and what is open.
//
//	go run ./script/conformance
package main

import (
	"fmt"
	"os"

	"capstan/internal/arch/conformance"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

func run() error {
	if _, err := os.Stat("docs/requirements.md"); err != nil {
		return fmt.Errorf("run this from the root of the repository: %w", err)
	}
	text, err := conformance.Report(os.DirFS("."))
	if err != nil {
		return err
	}
	return os.WriteFile("docs/conformance.md", text, 0o644)
}
