package agent

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"capstan/internal/msg"
)

// errNoFile is what a directory or a device is.
var errNoFile = errors.New("it is no regular file")

// readMemory reads a file whose links are resolved, and makes text of it. It
// opens nothing but a regular file, and never waits for one.
func readMemory(path string) (text string, cut bool, warning string, err error) {
	data, size, err := readStart(path, maxMemoryFile)
	if err != nil {
		return "", false, "", err
	}
	switch {
	case bytes.HasPrefix(data, []byte{0xff, 0xfe}) || bytes.HasPrefix(data, []byte{0xfe, 0xff}):
		return "", false, "", errors.New("it is UTF-16: save it as UTF-8")
	case bytes.IndexByte(data, 0) >= 0:
		return "", false, "", errors.New("it is not text: it holds a NUL byte")
	}
	if cut = len(data) > maxMemoryFile; cut {
		data = msg.WholeRunes(data[:maxMemoryFile])
	}
	text = strings.ReplaceAll(strings.TrimPrefix(string(data), "\ufeff"), "\r\n", "\n")
	warning = oddText(text)
	text = strings.TrimLeft(strings.TrimRight(strings.ToValidUTF8(text, "\ufffd"), " \t\r\n"), "\r\n")
	if cut {
		text = cutMemory(text, maxMemoryFile)
		warning = strings.TrimPrefix(warning+fmt.Sprintf("; cut: it has %d KiB, the limit is %d KiB", size>>10, maxMemoryFile>>10), "; ")
	}
	return text, cut, warning, nil
}

// readStart returns what a file begins with, at most a byte more than most, and
// its size.
func readStart(path string, most int64) ([]byte, int64, error) {
	before, err := os.Lstat(path)
	if err != nil {
		return nil, 0, err
	}
	if !before.Mode().IsRegular() {
		return nil, 0, errNoFile
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = f.Close() }() // only read
	after, err := f.Stat()
	if err != nil {
		return nil, 0, err
	}
	if !os.SameFile(before, after) {
		return nil, 0, errors.New("it was exchanged while it was being opened")
	}
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	return data, max(after.Size(), int64(len(data))), err
}

// oddText says what is wrong with a text that is used all the same.
func oddText(text string) string {
	for i, r := range text {
		var what string
		switch _, n := utf8.DecodeRuneInString(text[i:]); {
		case r == utf8.RuneError && n == 1:
			what = "is not valid UTF-8"
		case r >= 0xe0000 && r <= 0xe007f, r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
			what = fmt.Sprintf("holds the character U+%04X, which hides text from a reader but not from the model", r)
		default:
			continue
		}
		return fmt.Sprintf("line %d %s", 1+strings.Count(text[:i], "\n"), what)
	}
	return ""
}

// cutMemory shortens a text to n bytes, at the end of a line if one is near,
// and says so in its last line.
func cutMemory(text string, n int) string {
	if n < len(text) {
		text = string(msg.WholeRunes([]byte(text[:n])))
	}
	if i := strings.LastIndexByte(text, '\n'); i > len(text)*3/4 {
		text = text[:i]
	}
	return strings.TrimLeft(fmt.Sprintf("%s\n[cut here after %d bytes: read the file for the rest]", text, len(text)), "\n")
}

// document says whether a name is that of a text for readers.
func document(path string) bool {
	return slices.Contains([]string{".md", ".markdown", ".mdc", ".txt"}, strings.ToLower(filepath.Ext(path)))
}

// secretName says whether a relative path looks as if it held a secret. It errs on the
// careful side: what it refuses can be renamed.
func secretName(path string) bool {
	for part := range strings.SplitSeq(strings.ToLower(filepath.ToSlash(path)), "/") {
		switch part {
		case ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".git", "gcloud":
			return true
		}
	}
	name := strings.ToLower(filepath.Base(path))
	switch name {
	case ".netrc", "_netrc", ".npmrc", ".pypirc", ".pgpass", ".my.cnf", ".git-credentials", ".htpasswd", ".envrc", ".vault-token", "kubeconfig":
		return true
	case ".env.example", ".env.sample", ".env.template":
		return false
	}
	for _, begin := range []string{".env", "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "credentials", "secrets", "secret."} {
		if strings.HasPrefix(name, begin) {
			return true
		}
	}
	switch filepath.Ext(name) {
	case ".env", ".pem", ".key", ".p12", ".pfx", ".jks", ".keystore", ".kdbx", ".ppk", ".gpg", ".asc", ".tfstate", ".tfvars":
		return true
	}
	return false
}
