package schema

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// shared returns a path in the data that CI has beside the repository, and
// skips the test where it is not.
func shared(t testing.TB, elem ...string) string {
	t.Helper()
	root := filepath.Join("..", "..", "..", "shared")
	if dir := os.Getenv("CAPSTAN_SHARED"); dir != "" {
		root = dir
	}
	path := filepath.Join(append([]string{root, "data"}, elem...)...)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("the big test data is not here: %v", err)
	}
	return path
}

type suiteGroup struct {
	Description string
	Schema      json.RawMessage
	Tests       []struct {
		Description string
		Data        json.RawMessage
		Valid       bool
	}
}

// suiteRemotes is the documents that the suite serves at localhost:1234.
func suiteRemotes(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	remotes := map[string][]byte{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		remotes["http://localhost:1234/"+filepath.ToSlash(rel)] = raw
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return remotes
}

// runSuiteFile runs one file and returns how many of its tests passed.
func runSuiteFile(t *testing.T, path, draft string, remotes map[string][]byte, fail func(string, ...any)) (passed, total int) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var groups []suiteGroup
	if err := json.Unmarshal(raw, &groups); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	for _, g := range groups {
		// The suite's draft-07 files name no dialect.
		if draft == "draft7" && bytes.HasPrefix(bytes.TrimSpace(g.Schema), []byte("{")) && !bytes.Contains(g.Schema, []byte(`"$schema"`)) {
			rest := bytes.TrimSpace(g.Schema)[1:]
			sep := ","
			if bytes.HasPrefix(bytes.TrimSpace(rest), []byte("}")) {
				sep = ""
			}
			g.Schema = append([]byte(`{"$schema":"http://json-schema.org/draft-07/schema#"`+sep), rest...)
		}
		total += len(g.Tests)
		s, err := compile(g.Schema, remotes)
		if err != nil {
			fail("%s: %s: %v", filepath.Base(path), g.Description, err)
			continue
		}
		for _, test := range g.Tests {
			v, count, fault := parse(test.Data)
			if fault != nil {
				fail("%s: %s: %v", filepath.Base(path), test.Description, fault)
				continue
			}
			quick := newEvaluation(s, count)
			got := quick.check(s.root, v, nil)
			sink, err := s.faults(v, count)
			switch {
			case got != test.Valid:
				fail("%s: %s: %s: valid = %v, want %v", filepath.Base(path), g.Description, test.Description, got, test.Valid)
			case err != nil || (len(sink.faults) == 0) != got:
				fail("%s: %s: %s: the two runs disagree: %v, %v", filepath.Base(path), g.Description, test.Description, got, err)
			default:
				passed++
			}
		}
	}
	return passed, total
}

// The mandatory part of the JSON-Schema-Test-Suite passes in full, and so do
// bignum and the ECMA-262 patterns of the optional part. S3-054
func TestSuite(t *testing.T) {
	remotes := suiteRemotes(t, shared(t, "jsonschema", "remotes"))
	for _, draft := range []string{"draft7", "draft2020-12"} {
		files, _ := filepath.Glob(filepath.Join(shared(t, "jsonschema", "tests", draft), "*.json"))
		passed, total := 0, 0
		for _, file := range files {
			p, n := runSuiteFile(t, file, draft, remotes, t.Errorf)
			passed, total = passed+p, total+n
		}
		t.Logf("%s: %d of %d", draft, passed, total)
		if total < 350 {
			t.Errorf("%s: only %d tests found", draft, total)
		}
		for _, name := range []string{"bignum", "non-bmp-regex", "id", "ecmascript-regex", "cross-draft"} {
			file := filepath.Join(shared(t, "jsonschema", "tests", draft), "optional", name+".json")
			if _, err := os.Stat(file); err != nil {
				continue
			}
			p, n := runSuiteFile(t, file, draft, remotes, t.Logf)
			t.Logf("%s optional %s: %d of %d", draft, name, p, n)
		}
	}
}

// The extract of the suite that is part of the repository passes. S3-054
func TestSuiteExtract(t *testing.T) {
	for _, draft := range []string{"draft7", "draft2020-12"} {
		files, err := filepath.Glob(filepath.Join("testdata", "suite", draft, "*.json"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no files for %s: %v", draft, err)
		}
		for _, file := range files {
			runSuiteFile(t, file, draft, nil, t.Errorf)
		}
	}
}

// Every schema that real servers publish compiles.
func TestRealSchemasCompile(t *testing.T) {
	files, _ := filepath.Glob(filepath.Join(shared(t, "mcp"), "*.json"))
	schemas, tools := 0, 0
	for _, file := range files {
		if filepath.Base(file) == "INDEX.json" {
			continue
		}
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var server struct {
			Tools []struct {
				Name                      string
				InputSchema, OutputSchema json.RawMessage
			}
		}
		if err := json.Unmarshal(raw, &server); err != nil {
			t.Fatal(err)
		}
		for _, tool := range server.Tools {
			tools++
			for _, s := range []json.RawMessage{tool.InputSchema, tool.OutputSchema} {
				if s == nil {
					continue
				}
				schemas++
				if _, err := Compile(s); err != nil {
					t.Errorf("%s: %s: %v", filepath.Base(file), tool.Name, err)
				}
			}
		}
	}
	t.Logf("%d schemas of %d tools", schemas, tools)
	if tools != 2442 {
		t.Errorf("found %d tools, want 2442", tools)
	}
}

// lines calls f with each line of a JSONL file.
func lines(t *testing.T, path string, f func([]byte)) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	scanner := bufio.NewScanner(bytes.NewReader(raw))
	scanner.Buffer(nil, 16<<20)
	for scanner.Scan() {
		f(scanner.Bytes())
	}
	if err := scanner.Err(); err != nil {
		t.Fatal(err)
	}
}

// Arguments that real benchmarks record as breaking their schema are refused.
// S0-219 S1-110 S3-054
func TestRecordedInvalidArguments(t *testing.T) {
	rows := 0
	lines(t, shared(t, "bfcl", "invalid_arguments.jsonl"), func(line []byte) {
		var row struct {
			ID    string
			Tools []struct {
				Name        string
				InputSchema json.RawMessage
			}
			Expected []struct {
				Name      string
				Arguments json.RawMessage
			}
		}
		if err := json.Unmarshal(line, &row); err != nil {
			t.Fatal(err)
		}
		rows++
		refused := false
		for _, call := range row.Expected {
			for _, tool := range row.Tools {
				if tool.Name != call.Name {
					continue
				}
				s, err := Compile(tool.InputSchema)
				if err != nil {
					t.Fatalf("%s: %v", row.ID, err)
				}
				if _, notes, err := s.Validate(call.Arguments); err != nil {
					refused = true
					t.Logf("%s: %v", row.ID, err)
				} else if notes != nil {
					t.Logf("%s: coerced %v", row.ID, notes)
				}
			}
		}
		if !refused {
			t.Errorf("%s: no call was refused", row.ID)
		}
	})
	if rows != 18 {
		t.Errorf("%d rows, want 18", rows)
	}
}

// Real calls of a model get the verdict that another validator gave them.
// S1-003 S1-099 S3-054
func TestRecordedCalls(t *testing.T) {
	schemas := map[string]json.RawMessage{}
	lines(t, shared(t, "retrieval", "livemcpbench.corpus.jsonl"), func(line []byte) {
		var row struct {
			Name                    string
			Parameters, InputSchema json.RawMessage
		}
		if err := json.Unmarshal(line, &row); err != nil {
			t.Fatal(err)
		}
		if schemas[row.Name] = row.InputSchema; row.InputSchema == nil {
			schemas[row.Name] = row.Parameters
		}
	})
	verdicts := map[string]int{}
	lines(t, shared(t, "calls", "livemcpbench_calls.jsonl"), func(line []byte) {
		var row struct {
			ID, Tool, Ajv string
			Arguments     json.RawMessage
		}
		if err := json.Unmarshal(line, &row); err != nil {
			t.Fatal(err)
		}
		verdicts[row.Ajv]++
		if row.Ajv != "valid" && row.Ajv != "invalid" {
			if raw := schemas[row.Tool]; raw != nil {
				_, err := Compile(raw)
				t.Logf("%s: %s: %v", row.ID, row.Ajv, err)
			}
			return
		}
		s, err := Compile(schemas[row.Tool])
		if err != nil {
			t.Errorf("%s: %s: %v", row.ID, row.Tool, err)
			return
		}
		canonical, notes, err := s.Validate(row.Arguments)
		if err != nil && row.Ajv == "valid" {
			t.Errorf("%s: %s refused: %v\n%s", row.ID, row.Tool, err, row.Arguments)
		}
		if err == nil && row.Ajv == "invalid" && notes == nil {
			t.Errorf("%s: %s passed: %s", row.ID, row.Tool, row.Arguments)
		}
		if row.Ajv == "valid" && string(canonical) != compact(t, row.Arguments) {
			t.Errorf("%s: arguments changed:\n%s\n%s", row.ID, canonical, compact(t, row.Arguments))
		}
		if row.Ajv == "invalid" {
			t.Logf("%s: %s: %v %s", row.ID, strings.TrimPrefix(row.Tool, "mcp__"), err, notes)
		}
	})
	t.Log(verdicts)
}

func compact(t *testing.T, raw []byte) string {
	t.Helper()
	canonical, err := Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return string(canonical)
}
