package session

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

const (
	maxInline = 128 << 10 // bytes of a line that is written; a longer event goes to a file
	maxLine   = 1 << 20   // bytes of a line that is read; a longer one is damage
	maxBlob   = 256 << 20 // bytes of one file
)

var errTooLarge = errors.New("too large for the session log")

// files is the directory beside a log that holds its blobs.
type files struct {
	dir string
	sys system
}

func (s *Store) files(log string) files {
	return files{strings.TrimSuffix(log, suffix) + ".files", s.sys}
}

const unfinished = ".unfinished-"

// put stores data and returns its blob. When it returns, the data is on the
// disk: a line may name it.
func (d files) put(data []byte, ext string) (blob, error) {
	if len(data) > maxBlob {
		return blob{}, fmt.Errorf("%w: it has %d bytes, at most %d are kept", errTooLarge, len(data), maxBlob)
	}
	sum := sha256.Sum256(data)
	b := blob{SHA256: hex.EncodeToString(sum[:]), Bytes: int64(len(data)), Ext: ext}
	if _, err := d.get(b); err == nil {
		return b, nil
	}
	if err := os.MkdirAll(d.dir, 0o700); err != nil {
		return blob{}, err
	}
	tmp := filepath.Join(d.dir, unfinished+rand.Text())
	defer os.Remove(tmp)
	f, err := d.sys.open(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return blob{}, err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return blob{}, err
	}
	if err := os.Rename(tmp, d.path(b)); err != nil {
		return blob{}, err
	}
	d.sys.syncDir(d.dir)
	return b, nil
}

// get returns the data of b, if it is what was put there.
func (d files) get(b blob) ([]byte, error) {
	if len(b.SHA256) != 2*sha256.Size || strings.Trim(b.SHA256, "0123456789abcdef") != "" || !knownExt(b.Ext) {
		return nil, errors.New("it is named by no hash")
	}
	path := d.path(b)
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() != b.Bytes || b.Bytes > maxBlob {
		return nil, fmt.Errorf("%s is not the file of %d bytes that was kept", path, b.Bytes)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, b.Bytes+1))
	if err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != b.SHA256 {
		return nil, fmt.Errorf("%s has changed", path)
	}
	return data, nil
}

func (d files) path(b blob) string { return filepath.Join(d.dir, b.SHA256+b.Ext) }

// sweep removes what a crash left unfinished. The caller holds the log's lock.
func (d files) sweep() {
	left, _ := filepath.Glob(filepath.Join(d.dir, unfinished+"*"))
	for _, p := range left {
		_ = os.Remove(p)
	}
}

// extensions let a viewer open a blob; they mean nothing to us.
var extensions = map[string]string{
	"image/png": ".png", "image/jpeg": ".jpg", "image/gif": ".gif", "image/webp": ".webp",
	"audio/wav": ".wav", "audio/mpeg": ".mp3", "application/pdf": ".pdf", "text/plain": ".txt",
}

const wholeExt = ".json"

func extOf(mimeType string) string {
	if e, ok := extensions[mimeType]; ok {
		return e
	}
	return ".bin"
}

func knownExt(ext string) bool {
	for _, e := range extensions {
		if e == ext {
			return true
		}
	}
	return ext == ".bin" || ext == wholeExt
}

// syncDir makes the names in a directory last. Where directories cannot be
// synced, the file system has its own way.
func syncDir(dir string) {
	if f, err := os.Open(dir); err == nil {
		_ = f.Sync()
		_ = f.Close()
	}
}

// textual reports whether the data of a part is text, which may hold a secret.
func textual(mimeType string, data []byte) bool {
	switch {
	case strings.HasPrefix(mimeType, "image/"), strings.HasPrefix(mimeType, "audio/"), strings.HasPrefix(mimeType, "video/"):
		return false
	}
	return bytes.IndexByte(data, 0) < 0
}
