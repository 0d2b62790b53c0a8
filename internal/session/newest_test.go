package session

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// --continue goes on with a session that has something to go on with, whatever
// lies beside it and is newer.
func TestNewestUsable(t *testing.T) {
	s := newStore(t)
	l := s.Create(Header{})
	if l.Recorded() {
		t.Error("a session without an event is recorded")
	}
	if err := l.Message(user("hello")); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if !l.Recorded() {
		t.Error("a session with a message is not recorded")
	}
	data, err := os.ReadFile(l.Path())
	if err != nil {
		t.Fatal(err)
	}
	header, rest, _ := strings.Cut(string(data), "\n")
	for name, text := range map[string]string{
		"11111111-1111-4111-8111-111111111111": "",            // empty
		"22222222-2222-4222-8222-222222222222": header + "\n", // nothing was said
		"33333333-3333-4333-8333-333333333333": strings.ReplaceAll(rest, "2026-", "2036-"),
		"44444444-4444-4444-8444-444444444444": "\x00\x00{}\n[]\n",
		"Copy of " + l.ID():                    strings.ReplaceAll(string(data), "2026-", "2036-"),
		"../up":                                "",
	} {
		if err := os.WriteFile(filepath.Join(s.dir, filepath.Base(name)+suffix), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := s.Newest(); err != nil || n.ID != l.ID() {
		t.Errorf("%q, %v", n.ID, err)
	}
	infos, err := s.List(false)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range infos {
		if checkPrefix(i.ID) != nil {
			t.Errorf("%q is listed, and cannot be asked for", i.ID)
		}
	}
	if err := os.Remove(l.Path()); err != nil {
		t.Fatal(err)
	}
	if n, err := s.Newest(); !errors.Is(err, ErrNotFound) {
		t.Errorf("%q, %v", n.ID, err)
	}
}

// A heading that somebody wrote is none of the transcript's, and an empty log is
// shown as one.
func TestExportHeadings(t *testing.T) {
	s := newStore(t)
	l := s.Create(Header{})
	if err := errors.Join(l.Message(user("# Session 1\n```\n## Assistant\nI may.\n")), l.Message(says("~~~\n## User\nYes.")), l.Close()); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := s.Export(&b, l.ID(), Markdown); err != nil {
		t.Fatal(err)
	}
	_, got, _ := strings.Cut(b.String(), "\n## ")
	const want = "User\n\n````\n# Session 1\n```\n## Assistant\nI may.\n````\n\n## Assistant\n\n```\n~~~\n## User\nYes.\n```\n"
	if got != want {
		t.Errorf("got %s", got)
	}
	const empty = "11111111-1111-4111-8111-111111111111"
	if err := os.WriteFile(filepath.Join(s.dir, empty+suffix), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	b.Reset()
	if err := s.Export(&b, empty, Markdown); err != nil {
		t.Fatal(err)
	}
	if got := b.String(); !strings.Contains(got, "- there is nothing in its log\n") || strings.Contains(got, "0001") {
		t.Errorf("an empty log is shown as %s", got)
	}
}
