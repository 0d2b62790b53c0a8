package guest

import (
	"archive/tar"
	"compress/gzip"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var pin = flag.Bool("pin", false, "write the list of test262 tests that do not pass")

// test262 finds the subset of test262 that continuous integration has.
func test262(t *testing.T) map[string]string {
	t.Helper()
	shared := os.Getenv("CAPSTAN_SHARED")
	if shared == "" {
		shared = filepath.Join("..", "..", "..", "..", "shared")
	}
	f, err := os.Open(filepath.Join(shared, "data", "test262", "test262_subset.tar.gz"))
	if err != nil {
		t.Skipf("no test262 here: %v", err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(h.Name, ".js") {
			b, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			files[strings.TrimPrefix(h.Name, "./")] = string(b)
		}
	}
}

var (
	frontMatter = regexp.MustCompile(`(?s)/\*---(.*?)---\*/`)
	listField   = func(name string) *regexp.Regexp { return regexp.MustCompile(`(?m)^` + name + `:\s*\[(.*)\]`) }
	flagsField  = listField("flags")
	incField    = listField("includes")
	negative    = regexp.MustCompile(`(?s)negative:\s*\n\s*phase:\s*(\w+)\s*\n\s*type:\s*(\w+)`)
)

func list(re *regexp.Regexp, meta string) []string {
	m := re.FindStringSubmatch(meta)
	if m == nil {
		return nil
	}
	var out []string
	for _, s := range strings.Split(m[1], ",") {
		out = append(out, strings.TrimSpace(s))
	}
	return out
}

// run262 runs one test in a vm as a program has it, prelude and all, and
// answers why it fails, or nothing.
func run262(files map[string]string, source string) string {
	meta := ""
	if m := frontMatter.FindStringSubmatch(source); m != nil {
		meta = m[1]
	}
	flags := list(flagsField, meta)
	if slices.Contains(flags, "module") {
		return "module"
	}
	var printed []string
	var v *vm
	v = restore(&imports{now: time.Now, interrupt: func() bool { return false }, rejected: func(_, _ int32, _ bool) {}, call: func(argc, argv int32) int32 {
		if int(v.Xqjs_get_float64(v.load32(argv))) == opText {
			printed = append(printed, v.str(v.load32(argv+4), 1000))
		}
		return v.Xqjs_new_number(accepted)
	}}, make([]byte, 0, 2<<20))
	v.Xqjs_set_memory_limit(64 << 20)
	v.Xqjs_set_max_stack_size(512 << 10)
	all := "var print = text;\n"
	if !slices.Contains(flags, "raw") {
		for _, name := range append([]string{"assert.js", "sta.js", "doneprintHandle.js"}, list(incField, meta)...) {
			all += files["harness/"+name] + "\n"
		}
	}
	if _, err := v.eval(all, "harness.js", 1); err != nil {
		return "harness: " + shown(v, err)
	}
	if slices.Contains(flags, "onlyStrict") {
		source = "'use strict';\n" + source
	}
	_, err := v.eval(source, "test.js", 1)
	for err == nil && v.Xqjs_is_job_pending() != 0 {
		if v.Xqjs_execute_pending_job() < 0 {
			err = v.pendingException()
		}
	}
	got := ""
	if err != nil {
		got = shown(v, err)
	}
	if m := negative.FindStringSubmatch(meta); m != nil {
		if !strings.HasPrefix(got, m[2]) {
			return fmt.Sprintf("want %s, got %q", m[2], got)
		}
		return ""
	}
	if got == "" && slices.Contains(flags, "async") && !slices.Equal(printed, []string{"Test262:AsyncTestComplete"}) {
		return fmt.Sprintf("printed %q", printed)
	}
	return got
}

// The engine, with our prelude in it, passes test262 but for a pinned list.
func TestTest262(t *testing.T) {
	files := test262(t)
	var failed []string
	n := 0
	for name, source := range files {
		if strings.HasPrefix(name, "harness/") || strings.HasSuffix(name, "_FIXTURE.js") {
			continue
		}
		if raceEnabled && n >= 40 {
			break
		}
		n++
		if why := run262(files, source); why != "" {
			t.Logf("%s: %s", name, why)
			failed = append(failed, name)
		}
	}
	slices.Sort(failed)
	got := strings.Join(failed, "\n") + "\n"
	const file = "testdata/test262-failures.txt"
	if *pin {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if raceEnabled {
		return
	}
	t.Logf("%d of %d pass", n-len(failed), n)
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("tests that do not pass (-want +got):\n%s", d)
	}
}
