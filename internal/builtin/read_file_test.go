package builtin

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"capstan/internal/msg"
	"capstan/internal/tool"
)

// call runs a tool as sched does, without its pipeline.
func call(t testing.TB, tl tool.Tool, src tool.Source, args any) tool.Result {
	t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	c := &tool.Call{ID: t.Name(), Name: tl.Spec().Name, Args: raw, Source: src}
	tl.(tool.Accessor).Access(c)
	r, err := tl.Run(context.Background(), &tool.Invocation{Call: c, Progress: func(msg.Part) {}})
	if err != nil {
		t.Fatal(err)
	}
	tl.(tool.Finalizer).Finalize(context.Background(), c, &r)
	return r
}

type obj = map[string]any

func write(t testing.TB, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
		t.Fatal(err)
	}
}

func TestReadExact(t *testing.T) {
	dir := t.TempDir()
	const text = "one\ntwo\r\nthree"
	write(t, filepath.Join(dir, "a.txt"), text)
	f := newFiles(Options{Dir: dir})
	if got := call(t, newReadFile(f), tool.FromProgram, obj{"file_path": "a.txt"}); got.Text() != text {
		t.Errorf("got %q", got.Text())
	}
}

func BenchmarkReadTiny(b *testing.B) {
	dir := b.TempDir()
	write(b, filepath.Join(dir, "a.txt"), "hello\n")
	rd := newReadFile(newFiles(Options{Dir: dir}))
	b.ReportAllocs()
	for b.Loop() {
		call(b, rd, tool.FromProgram, obj{"file_path": "a.txt"})
	}
}
