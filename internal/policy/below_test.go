package policy

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A rule that protects holds for a relative path at the root of the workspace,
// from whatever directory below it a run starts, and in that directory as well. A
// rule that allows holds in the directory only.
func TestRelativeRulesFromBelow(t *testing.T) {
	w := newWorld(t)
	w.put(t, "src/.env", "x\n")
	p, _, err := New(Options{Mode: Yolo, Dir: filepath.Join(w.ws, "sub"), Home: w.home, Roots: []string{w.ws},
		Rules: w.rules("deny Read(./.env); deny Edit(src/**); ask Read(./a.txt); allow Edit(./a.txt)")})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, text := range []string{"read_file .env", "read_file sub/.env", "read_file src/.env", "sh cat ../.env", "sh cat .env",
		"sh cat ../src/.env", "write_file src/main.go", "write_file sub/src/x", "write_file sub/x", "read_file a.txt", "read_file sub/a.txt", "sh echo x > ../src/y"} {
		got[text] = decisions[p.Decide(context.Background(), w.request(t, text)).Decision]
	}
	want := map[string]string{"read_file .env": "deny", "read_file sub/.env": "deny", "read_file src/.env": "allow", "sh cat ../.env": "deny", "sh cat .env": "deny",
		"sh cat ../src/.env": "allow", "write_file src/main.go": "deny", "write_file sub/src/x": "deny", "write_file sub/x": "allow", "read_file a.txt": "ask", "read_file sub/a.txt": "ask", "sh echo x > ../src/y": "deny"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
	if err := p.SetMode(Default); err != nil {
		t.Fatal(err)
	}
	edits := map[string]string{}
	for _, text := range []string{"write_file a.txt", "write_file sub/a.txt"} {
		edits[text] = decisions[p.Decide(context.Background(), w.request(t, text)).Decision]
	}
	if diff := cmp.Diff(map[string]string{"write_file a.txt": "ask", "write_file sub/a.txt": "allow"}, edits); diff != "" {
		t.Errorf("allowed: want -, got +:\n%s", diff)
	}
}
