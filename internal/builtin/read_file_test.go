package builtin

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"capstan/internal/msg"
	"capstan/internal/tool"
)

func TestReadText(t *testing.T) {
	const crlf = "one\r\ntwo\nthree"
	for _, tt := range []struct {
		name, content string
		args          obj
		model, exact  string // what a model and what a program gets
		data          string
	}{
		{"whole", crlf, nil, crlf, crlf, `{"path":"f","lines":3,"totalLines":3,"truncated":false,"encoding":"utf-8"}`},
		{"empty", "", nil, "[the file is empty]", "", `{"path":"f","lines":0,"totalLines":0,"truncated":false,"encoding":"utf-8"}`},
		{"range", "a\nb\nc\nd\n", obj{"offset": 1, "limit": 2}, "b\nc\n[2 of 4 lines shown from offset 1; go on with offset 3]", "b\nc\n",
			`{"path":"f","lines":2,"totalLines":4,"truncated":true,"encoding":"utf-8"}`},
		{"numbers", "a\nb\nc", obj{"offset": json.RawMessage("1.0"), "limit": json.RawMessage("1e0")}, "b\n[1 of 3 lines shown from offset 1; go on with offset 2]", "b\n",
			`{"path":"f","lines":1,"totalLines":3,"truncated":true,"encoding":"utf-8"}`},
		{"last", "a\nb", obj{"offset": 1}, "b\n[1 of 2 lines shown from offset 1]", "b", `{"path":"f","lines":1,"totalLines":2,"truncated":false,"encoding":"utf-8"}`},
		{"column", "héllo\nx\n", obj{"column": 2}, "llo\nx\n", "llo\nx\n", `{"path":"f","lines":2,"totalLines":2,"truncated":false,"encoding":"utf-8"}`},
		{"bom", "\uFEFFa\n", nil, "a\n", "a\n", `{"path":"f","lines":1,"totalLines":1,"truncated":false,"encoding":"utf-8 with BOM"}`},
		{"utf-16le", "\xff\xfea\x00\n\x00", nil, "a\n[the file is utf-16le with BOM]", "a\n", `{"path":"f","lines":1,"totalLines":1,"truncated":false,"encoding":"utf-16le with BOM"}`},
		{"utf-16be", "\xfe\xff\x00a\x4f\x60", nil, "a你\n[the file is utf-16be with BOM]", "a你", `{"path":"f","lines":1,"totalLines":1,"truncated":false,"encoding":"utf-16be with BOM"}`},
		{"utf-16 unmarked", "h\x00i\x00!\x00\n\x00", nil, "hi!\n[the file is utf-16le]", "hi!\n", `{"path":"f","lines":1,"totalLines":1,"truncated":false,"encoding":"utf-16le"}`},
		{"windows-1252", "caf\xe9 \x93x\x94\n", nil, "café “x”\n[the file is not UTF-8 and was read as windows-1252]", "café “x”\n",
			`{"path":"f","lines":1,"totalLines":1,"truncated":false,"encoding":"windows-1252"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSession(t)
			s.write("f", tt.content)
			args := obj{"file_path": "f"}
			for k, v := range tt.args {
				args[k] = v
			}
			r := s.call("read_file", args)
			if diff := cmp.Diff([]string{tt.model, tt.data}, []string{r.Text(), string(r.Data)}); diff != "" {
				t.Errorf("for a model (-want +got):\n%s", diff)
			}
			s.src = tool.FromProgram
			r = s.call("read_file", args)
			if diff := cmp.Diff([]string{tt.exact, tt.data}, []string{r.Text(), string(r.Data)}); diff != "" {
				t.Errorf("for a program (-want +got):\n%s", diff)
			}
		})
	}
}

// Reading on as the notes say gives the whole text, and always gets further.
func TestReadOn(t *testing.T) { // BUG-RD-03 BUG-OT-01
	s := newSession(t)
	for name, content := range map[string]string{
		"min.js":    strings.Repeat("x😀y", 50000),
		"lines":     strings.Repeat("a line of text\n", 5000),
		"wide":      strings.Repeat(strings.Repeat("é", 1900)+"\n", 40),
		"lone-page": strings.Repeat("a\n", pageLines),
	} {
		s.write(name, content)
		offset, column, got := 0, 0, ""
		for range 200 {
			text := s.ok("read_file", obj{"file_path": name, "offset": offset, "column": column})
			if n := utf8.RuneCountInString(text); n > 30000 || !utf8.ValidString(text) {
				t.Fatalf("%s: a page of %d characters, valid: %v", name, n, utf8.ValidString(text))
			}
			body, note := text, ""
			if i := strings.LastIndex(text, "["); i >= 0 {
				body, note = text[:i], text[i:]
			}
			if i := strings.LastIndex(note, "offset "); i >= 0 && strings.Contains(note, "go on") || strings.Contains(note, "more characters") {
				offset, column = 0, 0
				if _, err := fmt.Sscanf(note[i:], "offset %d, column %d", &offset, &column); err != nil && column != 0 {
					t.Fatal(err)
				}
				got += strings.TrimSuffix(strings.TrimSuffix(body, "… "), "\n")
				if !strings.HasPrefix(note[i:], fmt.Sprintf("offset %d, column", offset)) {
					got += "\n"
				}
				continue
			}
			got += body
			break
		}
		if got != content {
			t.Errorf("%s: read %d of %d bytes", name, len(got), len(content))
		}
	}
}

func TestReadRefuses(t *testing.T) {
	s := newSession(t)
	s.write("notes.txt", "a\nb\n")
	s.write("db", "SQLite format 3\x00\x10\x00")
	s.write("a.zip", "PK\x03\x04\x14\x00\x00\x00")
	s.write("elf", "\x7fELF\x02\x01\x01\x00")
	s.write("noise", "\x01\x02\x03\x04\x05\x06\x80\x00")
	s.write("x.tiff", "II*\x00\x08\x00\x00\x00")
	if err := os.Symlink("loop", s.path("loop")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("gone", s.path("dangling")); err != nil {
		t.Fatal(err)
	}
	s.fails("reading .: . is a directory, not a file; use list_directory or glob", "read_file", obj{"file_path": "."})
	s.fails("reading note: note does not exist; in that directory there is notes.txt", "read_file", obj{"file_path": "note"})
	s.fails("reading ~/x: ~/x does not exist (`~` is not expanded: give the whole path)", "read_file", obj{"file_path": "~/x"})
	s.fails("reading no/x: no/x does not exist (nor does its directory; the working directory is $DIR)", "read_file", obj{"file_path": "no/x"})
	s.fails("reading dangling: dangling does not exist", "read_file", obj{"file_path": "dangling"})
	s.fails("reading loop: resolving $DIR/loop: its symbolic links lead in a circle (at $DIR/loop)", "read_file", obj{"file_path": "loop"})
	s.fails("reading : the path is empty", "read_file", obj{"file_path": ""})
	s.fails("reading notes.txt: offset 7 is past its end: it has 2 lines (offset counts from 0)", "read_file", obj{"file_path": "notes.txt", "offset": 7})
	s.fails("reading notes.txt: column 9 is past the end of the line at offset 1", "read_file", obj{"file_path": "notes.txt", "offset": 1, "column": 9})
	s.fails("reading db: it is not text but application/vnd.sqlite3, 18 bytes; use a command that understands it", "read_file", obj{"file_path": "db"})
	s.fails("reading a.zip: it is not text but application/zip, 8 bytes; use a command that understands it", "read_file", obj{"file_path": "a.zip"})
	s.fails("reading elf: it is not text but application/x-elf, 8 bytes; use a command that understands it", "read_file", obj{"file_path": "elf"})
	s.fails("reading noise: it is not text but application/octet-stream, 8 bytes; use a command that understands it", "read_file", obj{"file_path": "noise"})
	s.fails("reading x.tiff: it is not text but image/tiff, 8 bytes; convert it to PNG or JPEG first", "read_file", obj{"file_path": "x.tiff"})
}

func TestReadMedia(t *testing.T) { // BUG-RD-01
	s := newSession(t)
	for name, want := range map[string]msg.Part{
		"a.txt": {Kind: msg.File, MIMEType: "application/pdf", Name: "a.txt", Data: []byte("%PDF-1.7\nplain enough\n")},
		"b.png": {Kind: msg.Image, MIMEType: "image/png", Name: "b.png", Data: []byte("\x89PNG\r\n\x1a\n\x00\x00")},
		"c":     {Kind: msg.Audio, MIMEType: "audio/wav", Name: "c", Data: []byte("RIFF\x24\x00\x00\x00WAVEfmt ")},
	} {
		s.write(name, string(want.Data))
		r := s.call("read_file", obj{"file_path": name})
		head := msg.TextPart(fmt.Sprintf("%s: %s, %d bytes", name, want.MIMEType, len(want.Data)))
		if diff := cmp.Diff([]msg.Part{head, want}, r.Parts); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	s.write("big.pdf", "%PDF-1.4\n"+strings.Repeat("x", maxMedia))
	s.fails("reading big.pdf: it is 10.0 MiB of application/pdf; at most 10.0 MiB can be given", "read_file", obj{"file_path": "big.pdf"})
}

func TestReadNotebook(t *testing.T) {
	s := newSession(t)
	const raw = `{"cells":[{"cell_type":"markdown","source":["# T\n","x"]},{"cell_type":"code","source":"1+1","outputs":[{"data":{"text/plain":["2"]}},{"ename":"E","evalue":"bad"}]}],"nbformat":4}`
	s.write("n.ipynb", raw)
	s.write("broken.ipynb", `{"cells":`)
	want := "[notebook; edits match the JSON of the file, not this text]\n--- cell 0: markdown\n# T\nx\n--- cell 1: code\n1+1\n--- output\n2\n--- output\nE: bad\n"
	if got := s.ok("read_file", obj{"file_path": "n.ipynb"}); got != want {
		t.Errorf("got %q", got)
	}
	if got := s.ok("read_file", obj{"file_path": "broken.ipynb"}); got != `{"cells":` {
		t.Errorf("got %q", got)
	}
	s.src = tool.FromProgram
	if got := s.ok("read_file", obj{"file_path": "n.ipynb"}); got != raw {
		t.Errorf("a program got %q", got)
	}
}

// A program gets a whole file up to 16 MiB; a larger one is cut, and says so.
func TestReadLarge(t *testing.T) {
	s := newSession(t)
	s.src = tool.FromProgram
	line := strings.Repeat("0123456789abcde\n", 1<<16) // 1 MiB
	s.write("16", strings.Repeat(line, 16))
	s.write("17", strings.Repeat(line, 17)+"end\n")
	if got := s.ok("read_file", obj{"file_path": "16"}); got != strings.Repeat(line, 16) {
		t.Errorf("got %d bytes", len(got))
	}
	r := s.call("read_file", obj{"file_path": "17"})
	if !r.Truncated || !strings.HasPrefix(r.Text(), strings.Repeat(line, 16)[:maxKept]) || len(r.Text()) > maxWhole || !strings.HasSuffix(r.Text(), "[1048320 of 1114113 lines shown from offset 0; go on with offset 1048320]") {
		t.Errorf("truncated: %v; ends with %q", r.Truncated, r.Text()[len(r.Text())-100:])
	}
	if got := s.ok("read_file", obj{"file_path": "17", "offset": 1114112}); got != "end\n" {
		t.Errorf("the last line is %q", got)
	}
	s.fails("reading 17: offset 1114113 is past its end: it has 1114113 lines (offset counts from 0)", "read_file", obj{"file_path": "17", "offset": 1114113})
	s.src = tool.FromModel
	if got := s.ok("read_file", obj{"file_path": "17", "offset": 5, "limit": 1}); got != "0123456789abcde\n[1 of 1114113 lines shown from offset 5; go on with offset 6]" {
		t.Errorf("got %q", got)
	}
	// What was read in part may be changed.
	s.ok("edit", obj{"file_path": "17", "old_string": "end", "new_string": "END"})
}

// Any bytes can be decoded, and encoded again without loss unless they were
// broken UTF-16; what comes out is valid UTF-8.
func FuzzEncoding(f *testing.F) {
	for _, s := range []string{"", "a", "\xff\xfea\x00", "\xfe\xff\xd8\x00", "\xef\xbb\xbfx", "\x80\x81", "a\x00b\x00", "\x00a\x00b"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s, enc := decode(b)
		if !utf8.ValidString(s) {
			t.Fatalf("%q became %q", b, s)
		}
		back, err := enc.encode(s)
		if enc.order == nil && (err != nil || !bytes.Equal(back, b)) {
			t.Fatalf("%q became %q and then %q (%v)", b, s, back, err)
		}
		if text, _, err := editable(b); err == nil {
			if again, err := enc.encode(text); err != nil || !bytes.Equal(again, b) {
				t.Fatalf("%q is called editable and becomes %q (%v)", b, again, err)
			}
		}
		renderNotebook(b)
	})
}

func TestReadCancelled(t *testing.T) {
	s := newSession(t)
	s.write("a", "x")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for name, args := range map[string]obj{
		"glob": {"pattern": "*"}, "grep_search": {"pattern": "x"}, "list_directory": {},
		"write_file": {"file_path": "new", "content": "x"}, "edit": {"file_path": "new", "old_string": "", "new_string": "x"},
	} {
		raw, err := json.Marshal(args)
		if err != nil {
			t.Fatal(err)
		}
		r, err := s.tools[name].Run(ctx, admitted(s.tools[name], &tool.Call{Name: name, Args: raw}))
		if err != nil || r.Status != tool.Cancelled || r.Code != tool.CodeAborted {
			t.Errorf("%s: %v %v %s", name, err, r.Status, r.Text())
		}
	}
	s.clean(".", "a")
}

// A read that looks for its lines too long answers with those that it has, or
// with how far it came.
func TestReadHugeTime(t *testing.T) { // BUG-SI-01
	s := newSession(t)
	s.f.searchTime = 1 // it is over after the first piece
	line := strings.Repeat("x", 99) + "\n"
	s.write("huge", strings.Repeat(line, maxWhole/100+1000))
	s.write("odd", "a\nb\n"+strings.Repeat("x", maxWhole))
	r := s.call("read_file", obj{"file_path": "huge", "offset": 1_000_000})
	if want := "reading huge: the line at offset 1000000 was not reached in 20s: the first 1.0 MiB of 16.1 MiB have 10486 lines; use a command such as tail"; r.Code != tool.CodeTimeout || r.Text() != want {
		t.Errorf("%s %s", r.Code, r.Text())
	}
	if want := line + line + "[2 lines shown from offset 7 of a file that was not counted to its end; go on with offset 9]"; s.ok("read_file", obj{"file_path": "huge", "offset": 7, "limit": 2}) != want {
		t.Errorf("the lines that were there already: %.300q", s.ok("read_file", obj{"file_path": "huge", "offset": 7, "limit": 2}))
	}
	if want := "a\nb\n[2 lines shown from offset 0 of a file that was not counted to its end; go on with offset 2]"; s.ok("read_file", obj{"file_path": "odd"}) != want {
		t.Errorf("the whole lines: %.300q", s.ok("read_file", obj{"file_path": "odd"}))
	}
	s.src = tool.FromProgram
	r = s.call("read_file", obj{"file_path": "huge"})
	want := `{"path":"huge","lines":10485,"truncated":true,"encoding":"utf-8"}`
	note := "[10485 lines shown from offset 0 of a file that was not counted to its end; go on with offset 10485]"
	if got := strings.TrimPrefix(r.Text(), strings.Repeat(line, 10485)); string(r.Data) != want || !r.Truncated || strings.TrimPrefix(got, "\n") != note {
		t.Errorf("%s, truncated %v, ends %.200q", r.Data, r.Truncated, got)
	}
	if r := s.call("read_file", obj{"file_path": "odd", "offset": 2}); r.Code != tool.CodeTimeout {
		t.Errorf("%s %.200q", r.Code, r.Text())
	}
}

func BenchmarkReadTiny(b *testing.B) {
	dir := b.TempDir()
	write(b, filepath.Join(dir, "a.txt"), "hello\n")
	rd := newReadFile(newFiles(Options{Dir: dir}))
	c := &tool.Call{ID: "c1", Name: "read_file", Args: json.RawMessage(`{"file_path":"a.txt"}`), Source: tool.FromProgram}
	b.ReportAllocs()
	for b.Loop() {
		if r, err := rd.Run(context.Background(), admitted(rd, c)); err != nil || r.Status != tool.Success {
			b.Fatal(err, r.Text())
		}
	}
}
