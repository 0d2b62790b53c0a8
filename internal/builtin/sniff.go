package builtin

import (
	"bytes"
	"unicode/utf8"
)

// A kind is what a file holds, by its bytes and never by its name.
type kind struct {
	mime  string
	media bool // a model can be given it as it is
	text  bool
}

var plainText = kind{mime: "text/plain", text: true}

// A magic is a run of bytes that a file type has at an offset.
type magic struct {
	offset int
	bytes  string
	kind   kind
}

// magics tells file types apart. The first that fits counts. They are asked
// only about what is not UTF-8 text, so short ones do no harm.
var magics = []magic{
	{0, "\x89PNG\r\n\x1a\n", kind{mime: "image/png", media: true}},
	{0, "\xff\xd8\xff", kind{mime: "image/jpeg", media: true}},
	{0, "GIF87a", kind{mime: "image/gif", media: true}},
	{0, "GIF89a", kind{mime: "image/gif", media: true}},
	{8, "WEBP", kind{mime: "image/webp", media: true}},
	{8, "WAVE", kind{mime: "audio/wav", media: true}},
	{0, "fLaC", kind{mime: "audio/flac", media: true}},
	{0, "OggS", kind{mime: "audio/ogg", media: true}},
	{0, "ID3", kind{mime: "audio/mpeg", media: true}},
	{0, "\xff\xfb", kind{mime: "audio/mpeg", media: true}},
	{0, "\xff\xf3", kind{mime: "audio/mpeg", media: true}},
	{0, "\xff\xf2", kind{mime: "audio/mpeg", media: true}},
	{0, "\xff\xf1", kind{mime: "audio/aac", media: true}},
	{0, "\xff\xf9", kind{mime: "audio/aac", media: true}},
	{4, "ftypM4A", kind{mime: "audio/mp4", media: true}},
	{4, "ftypavif", kind{mime: "image/avif"}},
	{4, "ftypheic", kind{mime: "image/heic"}},
	{4, "ftyp", kind{mime: "video/mp4"}},
	{8, "AVI ", kind{mime: "video/x-msvideo"}},
	{0, "\x1a\x45\xdf\xa3", kind{mime: "video/webm"}},
	{0, "BM", kind{mime: "image/bmp"}},
	{0, "II*\x00", kind{mime: "image/tiff"}},
	{0, "MM\x00*", kind{mime: "image/tiff"}},
	{0, "\x00\x00\x01\x00", kind{mime: "image/x-icon"}},
	{0, "PK\x03\x04", kind{mime: "application/zip"}},
	{0, "PK\x05\x06", kind{mime: "application/zip"}},
	{0, "\x1f\x8b", kind{mime: "application/gzip"}},
	{0, "BZh", kind{mime: "application/x-bzip2"}},
	{0, "\xfd7zXZ\x00", kind{mime: "application/x-xz"}},
	{0, "\x28\xb5\x2f\xfd", kind{mime: "application/zstd"}},
	{0, "7z\xbc\xaf\x27\x1c", kind{mime: "application/x-7z-compressed"}},
	{0, "Rar!\x1a\x07", kind{mime: "application/vnd.rar"}},
	{257, "ustar", kind{mime: "application/x-tar"}},
	{0, "\x7fELF", kind{mime: "application/x-elf"}},
	{0, "MZ", kind{mime: "application/vnd.microsoft.portable-executable"}},
	{0, "\xcf\xfa\xed\xfe", kind{mime: "application/x-mach-binary"}},
	{0, "\xca\xfe\xba\xbe", kind{mime: "application/java-vm"}},
	{0, "\x00asm", kind{mime: "application/wasm"}},
	{0, "SQLite format 3\x00", kind{mime: "application/vnd.sqlite3"}},
	{0, "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", kind{mime: "application/x-ole-storage"}},
	{0, "wOFF", kind{mime: "font/woff"}},
	{0, "wOF2", kind{mime: "font/woff2"}},
	{0, "\x00\x01\x00\x00", kind{mime: "font/ttf"}},
	{0, "OTTO", kind{mime: "font/otf"}},
	{0, "PAR1", kind{mime: "application/vnd.apache.parquet"}},
	{0, "!<arch>\n", kind{mime: "application/x-archive"}},
}

// sniffLen is how much of a file is looked at to tell its type.
const sniffLen = 8192

// sniff tells what a file that begins with these bytes holds.
func sniff(data []byte) kind {
	head := data[:min(len(data), sniffLen)]
	if bytes.HasPrefix(head, []byte("%PDF-")) { // its head is ASCII, the rest is not
		return kind{mime: "application/pdf", media: true}
	}
	if bytes.IndexByte(head, 0) < 0 && validPrefix(head) {
		return plainText
	}
	if enc := markOf(head); enc != nil {
		return plainText
	}
	for _, m := range magics {
		if len(head) > m.offset && bytes.HasPrefix(head[m.offset:], []byte(m.bytes)) {
			return m.kind
		}
	}
	if guessUTF16(head) != nil || looksWritten(head) {
		return plainText
	}
	return kind{mime: "application/octet-stream"}
}

// validPrefix says whether b is UTF-8 but for a character cut off at its end.
func validPrefix(b []byte) bool {
	if utf8.Valid(b) {
		return true
	}
	for cut := 1; cut < utf8.UTFMax && cut <= len(b); cut++ {
		if tail := b[len(b)-cut:]; utf8.RuneStart(tail[0]) {
			return !utf8.FullRune(tail) && utf8.Valid(b[:len(b)-cut])
		}
	}
	return false
}

// looksWritten says whether bytes that are not UTF-8 may be text in some old
// encoding: such text has no NUL and hardly a control character.
func looksWritten(b []byte) bool {
	odd := 0
	for _, c := range b {
		switch {
		case c == 0:
			return false
		case c < ' ' && c != '\t' && c != '\n' && c != '\r' && c != '\f' && c != 0x1b:
			odd++
		}
	}
	return odd*50 <= len(b)
}
