//go:build !linux && !darwin

package terminal

import (
	"context"
	"errors"
	"os"
)

const portableOnly = true

func openTTY() (*os.File, error) {
	return nil, errors.New("this system has no terminal that is known by name; pass the standard files")
}

func inBackground(*os.File) bool { return false }

func (a *Approver) flush() { a.drain() }

func (a *Approver) readLine(ctx context.Context) (string, error) { return a.nextLine(ctx) }

func (a *Approver) write(_ context.Context, s string) error {
	_, err := a.opt.Out.WriteString(s)
	return err
}

func (a *Approver) newline() { _, _ = a.opt.Out.WriteString("\n") }
