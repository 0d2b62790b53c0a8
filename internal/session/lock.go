package session

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// errNoLocks says that this system or file system cannot lock a file.
var errNoLocks = errors.New("files cannot be locked here")

// lock makes this process the only writer of the log that f is. The system's
// lock ends with the process, however it ends. Where there is none, a file
// beside the log stands for it.
func lock(f file, system func(file) error) (unlock func(), err error) {
	err = system(f)
	if err == nil {
		return func() {}, nil // ends when f is closed
	}
	if errors.Is(err, errNoLocks) {
		return lockBeside(f.Name() + ".lock")
	}
	return nil, err
}

// holder is what a lock file says.
type holder struct {
	PID   int    `json:"pid"`
	Host  string `json:"host"`
	Nonce string `json:"nonce"`
}

// lockBeside makes the lock file at path. One whose process is gone is taken
// over.
func lockBeside(path string) (unlock func(), err error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	mine, err := encode(holder{os.Getpid(), host, rand.Text()})
	if err != nil {
		return nil, err
	}
	for range 3 {
		err := writeNew(path, mine)
		if err == nil {
			return func() { _ = os.Remove(path) }, nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		if err := takeAway(path, host); err != nil {
			return nil, err
		}
	}
	return nil, ErrBusy
}

// writeNew makes a file that must not be there yet.
func writeNew(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(path)
	}
	return err
}

// takeAway removes the lock file of a process that is gone. It is moved first
// and read again: somebody else may have put a new one in its place.
func takeAway(path, host string) error {
	old, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var h holder
	if err := json.Unmarshal(old, &h); err != nil || h.Host != host || alive(h.PID) {
		return fmt.Errorf("%w: process %d on %q has it; if that is gone, remove %s", ErrBusy, h.PID, h.Host, path)
	}
	moved := path + "." + rand.Text()
	if err := os.Rename(path, moved); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	defer os.Remove(moved)
	if now, err := os.ReadFile(moved); err != nil || string(now) != string(old) {
		_ = writeNew(path, now) // a live one's, taken by mistake
		return ErrBusy
	}
	return nil
}
