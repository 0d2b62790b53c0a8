package builtin

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aymanbagabas/go-udiff"

	"capstan/internal/tool"
)

func TestEdit(t *testing.T) {
	for _, tt := range []struct {
		name, before, old, new string
		all                    bool
		after, text            string
	}{
		{"exact", "a\nb\nc\n", "b\n", "B\nB2\n", false, "a\nB\nB2\nc\n", "Edited f at line 2:\n1: a\n2: B\n3: B2\n4: c"},
		{"no final newline", "a\nb", "b", "c", false, "a\nc", "Edited f at line 2:\n1: a\n2: c"},
		{"delete", "a\nb\nc\n", "b\n", "", false, "a\nc\n", "Edited f at line 2:\n1: a\n2: c"},
		// BUG-ED-01
		{"crlf in the file", "l1\r\nl2\r\nl3", "l1\nl2", "l1\nX\nl2", false, "l1\r\nX\r\nl2\r\nl3", "Edited f at line 2:\n1: l1\n2: X\n3: l2\n4: l3"},
		{"crlf in both", "l1\r\nl2\r\nl3", "l1\r\nl2", "l1\r\nX", false, "l1\r\nX\r\nl3", "Edited f at line 1:\n1: l1\n2: X\n3: l3"},
		{"crlf in the arguments", "l1\nl2\n", "l1\r\nl2", "l1\r\nX", false, "l1\nX\n", "Edited f at line 2:\n1: l1\n2: X"},
		{"crlf kept", "a\r\nb\r\n", "b", "x\ny", false, "a\r\nx\r\ny\r\n", "Edited f at line 2; line ends written as CRLF, like the file's others:\n1: a\n2: x\n3: y"},
		// BUG-ED-03
		{"mixed: exact wins", "a\nb\r\nX\na\r\nb", "a\nb", "c\nd", false, "c\nd\r\nX\na\r\nb", "Edited f at line 1:\n1: c\n2: d\n3: X"},
		{"mixed: the rest stays", "a\r\nb\nc\r\nd\n", "a\nb\nc\n", "a\nB\nc\n", false, "a\r\nB\nc\r\nd\n", "Edited f at line 2:\n1: a\n2: B\n3: c"},
		// BUG-ED-05
		{"bom", "\uFEFFpackage main\n", "package main", "package x", false, "\uFEFFpackage x\n", "Edited f at line 1:\n1: package x"},
		{"bom given", "\uFEFFa\n", "\uFEFFa", "\uFEFFb", false, "\uFEFFb\n", "Edited f at line 1:\n1: b"},
		// BUG-ED-06
		{"quotes as given", "say ‘x’ and \"y\"\n", "\"y\"", "“z”", false, "say ‘x’ and “z”\n", "Edited f at line 1:\n1: say ‘x’ and “z”"},
		// BUG-ED-08
		{"escaped once too often", "a\n\tb\n", `a\n\tb`, `a\n\tc`, false, "a\n\tc\n",
			"Edited f at line 1; old_string and new_string were unescaped once, because the file holds the text only like that:\n1: a\n2: \tc"},
		{"escapes that are meant", `p("a\nb")` + "\na\nb\n", `a\nb`, `a\tb`, false, `p("a\tb")` + "\na\nb\n", "Edited f at line 1:\n1: p(\"a\\tb\")\n2: a"},
		{"all", "x y x\nx\n", "x", "zz", true, "zz y zz\nzz\n", "Edited f in 3 places, the first at line 1:\n1: zz y zz\n2: zz"},
		{"all, overlapping", "aaaa", "aa", "b", true, "bb", "Edited f in 2 places, the first at line 1:\n1: bb"},
		{"all, mixed ends", "a\nb\r\na\r\nb", "a\nb", "a\nc", true, "a\nc\r\na\r\nc", "Edited f in 2 places, the first at line 2:\n1: a\n2: c\n3: a"},
		{"utf-16", "\xff\xfea\x00b\x00\n\x00", "b", "你", false, "\xff\xfea\x00\x60\x4f\n\x00", "Edited f at line 1:\n1: a你"},
		{"windows-1252", "caf\xe9 \x81\n", "é", "è", false, "caf\xe8 \x81\n", "Edited f at line 1:\n1: cafè \u0081"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSession(t)
			s.write("f", tt.before)
			s.ok("read_file", obj{"file_path": "f"})
			args := obj{"file_path": "f", "old_string": tt.old, "new_string": tt.new, "replace_all": tt.all}
			if got := s.ok("edit", args); got != tt.text {
				t.Errorf("got %q\nwant %q", got, tt.text)
			}
			s.holds("f", tt.after)
			s.clean(".", "f")
		})
	}
}

func TestEditRefuses(t *testing.T) {
	for _, tt := range []struct {
		name, before, old, new string
		all                    bool
		want                   string
	}{
		// BUG-ED-10
		{"twice", "x\n--\nx\n", "x", "y", false, "old_string occurs 2 times, at lines 1, 3: add lines around it until it is unique, or set replace_all"},
		// BUG-ED-11
		{"overlapping", "x = 1\nx = 1\nx = 1\n", "x = 1\nx = 1", "y", false, "old_string occurs 2 times, at lines 1, 2: add lines around it until it is unique, or set replace_all"},
		// BUG-ED-03
		{"equal variants", "a\r\nb\r\n-\na\r\nb", "a\nb", "c", false, "old_string occurs 2 times, at lines 1, 4: add lines around it until it is unique, or set replace_all"},
		// BUG-ED-15
		{"the same", "a\na\n", "a", "a", false, "old_string and new_string are the same, so nothing would change"},
		{"the same but for line ends", "a\r\nb\r\n", "a\nb", "a\r\nb", false, "old_string and new_string are the same, so nothing would change"},
		// BUG-ED-06
		{"curly quotes", "She said, “Hello.”\n", `She said, "Hello."`, `She said, "Hi."`, false,
			"old_string is not in the file, but text that differs only in quotation marks, dashes or special spaces is; copy it as it stands there:\n1: She said, “Hello.”"},
		{"white space", "if x {\n\treturn\n}\n", "if x {\n    return\n}", "y", false,
			"old_string is not in the file, but text that differs only in white space is; copy it as it stands there:\n1: if x {\n2: \treturn\n3: }"},
		// BUG-ED-08
		{"unescaped twice", "a\nb\na\nb\n", `a\nb`, "c", false, "old_string is not in the file; the closest there is:\n1: a\n2: b"},
		// BUG-ED-16
		{"one wrong word", strings.Repeat("filler\n", 150) + "func total(items []int) int {\n\tsum := 0\n" + strings.Repeat("filler\n", 150),
			"func total(items []int) int {\n\tresult := 0\n", "x", false,
			"old_string is not in the file; the closest there is:\n150: filler\n151: func total(items []int) int {\n152: \tsum := 0\n153: filler"},
		{"nothing like it", "a\nb\n", "something else entirely", "x", false, "old_string is not in the file, nor is anything like it"},
		{"no place for it", "caf\xe9\n", "caf", "你", false, "the file is not UTF-8 (read as windows-1252), which has no '你'"},
		{"broken utf-16", "\xff\xfea\x00\x00\xd8", "a", "b", false, "it is broken utf-16le with BOM: an edit would change more than the text"},
		{"empty old", "a\n", "", "x", false, "it exists, and an empty old_string is only for creating a file: give the text to replace, or use write_file"},
		{"binary", "\x7fELF\x00", "E", "x", false, "it is not text but application/x-elf"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSession(t)
			s.write("f", tt.before)
			s.call("read_file", obj{"file_path": "f"})
			s.fails("edit f: "+tt.want+"; nothing was changed", "edit", obj{"file_path": "f", "old_string": tt.old, "new_string": tt.new, "replace_all": tt.all})
			s.holds("f", tt.before)
		})
	}
	s := newSession(t)
	s.fails("edit gone: gone does not exist; nothing was changed", "edit", obj{"file_path": "gone", "old_string": "a", "new_string": "b"})
	s.fails("edit .: . is a directory, not a file; nothing was changed", "edit", obj{"file_path": ".", "old_string": "a", "new_string": "b"})
	s.ok("edit", obj{"file_path": "deep/er/new", "old_string": "", "new_string": "hello\n"})
	s.holds("deep/er/new", "hello\n")
	s.ok("edit", obj{"file_path": "deep/er/new", "old_string": "hello", "new_string": "bye"}) // its own text is known
}

// What was not read, or is not what was read, is not changed. S2-092
func TestStale(t *testing.T) { // BUG-ED-13
	s := newSession(t)
	s.write("f", "one\nalpha beta gamma\nthree\n")
	edit := obj{"file_path": "f", "old_string": "alpha beta gamma", "new_string": "x"}
	s.fails("edit f: it has not been read in this session: read_file it first, then edit; nothing was changed", "edit", edit)
	s.fails("write_file f: it exists and has not been read in this session: read_file it first, so that nothing in it is lost unseen; nothing was changed",
		"write_file", obj{"file_path": "f", "content": "x"})
	s.ok("read_file", obj{"file_path": "f", "limit": 1}) // a part counts
	fi, err := os.Stat(s.path("f"))
	if err != nil {
		t.Fatal(err)
	}
	s.write("f", "one\nalpha beta delta\nthree\n")
	if err := os.Chtimes(s.path("f"), fi.ModTime(), fi.ModTime()); err != nil { // the same size and time
		t.Fatal(err)
	}
	s.fails("edit f: it has changed since it was read: read_file it again, then edit; near old_string it is now:\n1: one\n2: alpha beta delta\n3: three; nothing was changed", "edit", edit)
	s.fails("write_file f: it has changed since it was read: read_file it again before replacing it; nothing was changed", "write_file", obj{"file_path": "f", "content": "x"})
	s.holds("f", "one\nalpha beta delta\nthree\n")

	// A link to the file is the file, and a nested read is a read.
	if err := os.Symlink("f", s.path("link")); err != nil {
		t.Fatal(err)
	}
	s.src = tool.FromProgram
	s.ok("read_file", obj{"file_path": "link"})
	s.src = tool.FromModel
	s.ok("edit", obj{"file_path": "f", "old_string": "delta", "new_string": "D"})
	s.ok("edit", obj{"file_path": "link", "old_string": "alpha", "new_string": "A"})
	s.holds("f", "one\nA beta D\nthree\n")
	if fi, err := os.Lstat(s.path("link")); err != nil || fi.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link has become %v (%v)", fi.Mode(), err)
	}
}

func TestPreview(t *testing.T) {
	s := newSession(t)
	s.write("f", "a\nb\nc\n")
	s.ok("read_file", obj{"file_path": "f"})
	for _, tt := range []struct {
		name, args, want string
	}{
		{"edit", `{"file_path":"f","old_string":"b","new_string":"B"}`, "--- f\n+++ f\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n"},
		{"edit", `{"file_path":"new","old_string":"","new_string":"x\n"}`, "--- /dev/null\n+++ new\n@@ -0,0 +1 @@\n+x\n"},
		{"write_file", `{"file_path":"f","content":"a\nc\n"}`, "--- f\n+++ f\n@@ -1,3 +1,2 @@\n a\n-b\n c\n"},
		{"write_file", `{"file_path":"d/new","content":"x"}`, "--- /dev/null\n+++ d/new\n@@ -0,0 +1 @@\n+x\n\\ No newline at end of file\n"},
	} {
		c := &tool.Call{ID: "p", Name: tt.name, Args: []byte(tt.args)}
		if got, err := s.tools[tt.name].(tool.Previewer).Preview(t.Context(), c, s.tools[tt.name].(tool.Accessor).Access(c)); err != nil || got != tt.want {
			t.Errorf("%s %s: %q, %v", tt.name, tt.args, got, err)
		}
		s.clean(".", "f")
		s.holds("f", "a\nb\nc\n")
	}
	// What a person sees is what the call was judged by, wherever a link leads by then.
	s.write("other", "secret\n")
	c := &tool.Call{ID: "q", Name: "edit", Args: []byte(`{"file_path":"link","old_string":"b","new_string":"B"}`)}
	if err := os.Symlink("f", s.path("link")); err != nil {
		t.Fatal(err)
	}
	judged := s.tools["edit"].(tool.Accessor).Access(c)
	if err := errors.Join(os.Remove(s.path("link")), os.Symlink("other", s.path("link"))); err != nil {
		t.Fatal(err)
	}
	if got, err := s.tools["edit"].(tool.Previewer).Preview(t.Context(), c, judged); err != nil || !strings.HasPrefix(got, "--- f\n") {
		t.Errorf("preview after the link was moved: %q, %v", got, err)
	}
	r := s.call("edit", obj{"file_path": "f", "old_string": "b", "new_string": "B"})
	if r.Display != "--- f\n+++ f\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n" {
		t.Errorf("display %q", r.Display)
	}
}

// On text without carriage returns an edit is strings.Replace, and on any text
// the bytes outside of what was replaced stay.
func FuzzEdit(f *testing.F) {
	for _, s := range [][3]string{{"a\nb\n", "b", "c"}, {"a\r\nb\r\n", "a\nb", "c\nd"}, {"aaa", "aa", "b"}, {"a\r\nb\nc", "b\nc", ""}, {"x\\n", "x\n", "y"}} {
		f.Add(s[0], s[1], s[2], false)
		f.Add(s[0], s[1], s[2], true)
	}
	f.Fuzz(func(t *testing.T, text, old, new string, all bool) {
		if old == "" || old == new {
			return
		}
		e := editor{text: text, old: old, new: new, all: all}
		edits, err := e.edits()
		if err != nil {
			return
		}
		got, err := udiff.Apply(text, edits)
		if err != nil {
			t.Fatal(err)
		}
		first, last := edits[0], edits[len(edits)-1]
		if !strings.HasPrefix(got, text[:first.Start]) || !strings.HasSuffix(got, text[last.End:]) {
			t.Fatalf("%q became %q by %v", text, got, edits)
		}
		n := 1
		if all {
			n = -1
		}
		if !strings.Contains(text+old+new, "\r") && strings.Contains(text, old) {
			if want := strings.Replace(text, old, new, n); got != want {
				t.Fatalf("%q: %q to %q gives %q, want %q", text, old, new, got, want)
			}
		}
		if want := strings.Replace(unixEnds(text), unixEnds(old), unixEnds(new), n); e.notes == nil && strings.Contains(unixEnds(text), unixEnds(old)) && !all && unixEnds(got) != want {
			t.Fatalf("but for line ends %q: %q to %q gives %q, want %q", text, old, new, got, want)
		}
	})
}

func BenchmarkEdit(b *testing.B) {
	path := filepath.Join(b.TempDir(), "f")
	write(b, path, strings.Repeat("a line of text\n", 1000)+"end\n")
	text, err := os.ReadFile(path)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		e := editor{text: string(text), old: "end\n", new: "END\n"}
		if _, err := e.edits(); err != nil {
			b.Fatal(err)
		}
	}
}
