package codemode_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capstan/internal/sched"
	"capstan/internal/schema"
	"capstan/internal/tool"
)

// A recorded call was made by a model, or is the right answer to a user's
// request; another validator has said whether it keeps to its tool's schema.
type recorded struct {
	ID     string          `json:"id"`
	Tool   string          `json:"tool"`
	Schema json.RawMessage `json:"schema"`
	Args   json.RawMessage `json:"arguments"`
	Valid  bool            `json:"valid"`
	Faults string          `json:"faults,omitempty"` // what that validator said
}

// recordedCalls reads all calls of the shared data; where it is not here, the
// extract of it (testdata/README.md).
func recordedCalls(t *testing.T) []recorded {
	t.Helper()
	root := filepath.Join("..", "..", "..", "shared")
	if dir := os.Getenv("CAPSTAN_SHARED"); dir != "" {
		root = dir
	}
	data := filepath.Join(root, "data")
	if _, err := os.Stat(data); err != nil {
		t.Logf("only the extract: the big test data is not here: %v", err)
		var calls []recorded
		eachLine(t, filepath.Join("testdata", "calls.jsonl"), func(line []byte) {
			calls = append(calls, decoded[recorded](t, line))
		})
		return calls
	}
	return append(madeCalls(t, data), expectedCalls(t, data)...)
}

func decoded[T any](t *testing.T, raw []byte) (v T) {
	t.Helper()
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func eachLine(t *testing.T, file string, each func([]byte)) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	s.Buffer(nil, 16<<20)
	for s.Scan() {
		each(s.Bytes())
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
}

// madeCalls is the calls that a model made of MCP tools. A schema that the other
// validator could not use tells nothing.
func madeCalls(t *testing.T, data string) (calls []recorded) {
	schemas := map[string]json.RawMessage{}
	eachLine(t, filepath.Join(data, "retrieval", "livemcpbench.corpus.jsonl"), func(line []byte) {
		row := decoded[struct {
			Name       string
			Parameters json.RawMessage
		}](t, line)
		schemas[row.Name] = row.Parameters
	})
	eachLine(t, filepath.Join(data, "calls", "livemcpbench_calls.jsonl"), func(line []byte) {
		row := decoded[struct {
			ID, Tool, AJV string
			Arguments     json.RawMessage
		}](t, line)
		if in := schemas[row.Tool]; in != nil && (row.AJV == "valid" || row.AJV == "invalid") {
			calls = append(calls, recorded{row.ID, row.Tool, in, row.Arguments, row.AJV == "valid", ""})
		}
	})
	return calls
}

// expectedCalls is the right answers of BFCL, and its wrong ones.
func expectedCalls(t *testing.T, data string) (calls []recorded) {
	type call struct {
		Name      string
		Arguments json.RawMessage
	}
	type definition struct {
		Name        string
		InputSchema json.RawMessage
	}
	for _, file := range []string{"single_turn.jsonl", "invalid_arguments.jsonl"} {
		eachLine(t, filepath.Join(data, "bfcl", file), func(line []byte) {
			row := decoded[struct {
				ID        string
				Tools     []definition
				Expected  []call
				AJVErrors []string `json:"ajv_errors"`
			}](t, line)
			for i, c := range row.Expected {
				for _, d := range row.Tools {
					if d.Name != c.Name {
						continue
					}
					r := recorded{fmt.Sprint(row.ID, "/", i), c.Name, d.InputSchema, c.Arguments, true, ""}
					for _, e := range row.AJVErrors {
						if name, faults, _ := strings.Cut(e, ": "); name == c.Name && !(row.ID == "parallel_88" && i == 1) {
							r.Valid, r.Faults = false, faults
						}
					}
					calls = append(calls, r)
				}
			}
		})
	}
	raw, err := os.ReadFile(filepath.Join(data, "bfcl", "multi_turn_tools.json"))
	if err != nil {
		t.Fatal(err)
	}
	tools := decoded[map[string]definition](t, raw)
	eachLine(t, filepath.Join(data, "bfcl", "multi_turn.jsonl"), func(line []byte) {
		row := decoded[struct {
			ID    string
			Turns []struct{ Expected []call }
		}](t, line)
		for i, turn := range row.Turns {
			for j, c := range turn.Expected {
				calls = append(calls, recorded{fmt.Sprint(row.ID, "/", i, "/", j), c.Name, tools[c.Name].InputSchema, c.Arguments, true, ""})
			}
		}
	})
	return calls
}

// A catcher is a tool that keeps the arguments it gets.
type catcher struct {
	*fake
	mu  sync.Mutex
	got []string
}

func newCatcher(name string, in json.RawMessage) *catcher {
	c := &catcher{fake: &fake{spec: tool.Spec{Name: name, Input: in, Effect: tool.EffectRead}, overlap: true}}
	c.run = func(_ context.Context, inv *tool.Invocation) (tool.Result, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.got = append(c.got, string(inv.Call.Args))
		return tool.Text("ran"), nil
	}
	return c
}

// take returns what has arrived and forgets it.
func (c *catcher) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	got := c.got
	c.got = nil
	return got
}

// Every valid call reaches its tool with the arguments that were given, and every
// other one is refused with all that is wrong, or says what was made of it.
// S1-003 S1-094 S1-099 S1-110 S3-054
func TestRecordedCalls(t *testing.T) {
	valid, refused, coerced := 0, 0, 0
	for _, r := range recordedCalls(t) {
		c := newCatcher(r.Tool, r.Schema)
		var reg tool.Registry
		if err := reg.Add(c); err != nil {
			t.Fatalf("%s: %v", r.ID, err)
		}
		results := sched.New(sched.Options{}).Run(t.Context(), func() *tool.View { return reg.View(tool.Direct, tool.Scope{}) }, []tool.Call{{ID: "c", Name: r.Tool, Args: r.Args}})
		res, got := results[0], c.take()
		switch {
		case r.Valid:
			valid++
			if diff := cmp.Diff([]string{canonical(t, r.Args)}, got); diff != "" || res.Status != tool.Success || len(res.Notes) > 0 {
				t.Errorf("%s %s: %s %s %v\n%s", r.ID, r.Tool, res.Status, res.Text(), res.Notes, diff)
			}
		case res.Status == tool.Success && len(res.Notes) > 0: // ruling 14
			coerced++
		default:
			refused++
			if res.Code != tool.CodeInvalidArgs || len(got) > 0 {
				t.Errorf("%s %s: %s %s, the tool got %v", r.ID, r.Tool, res.Status, res.Code, got)
			}
			for _, name := range missed(t, &r) {
				if !strings.Contains(res.Text(), name) {
					t.Errorf("%s %s: nothing is said of %s: %s", r.ID, r.Tool, name, res.Text())
				}
			}
		}
	}
	t.Logf("%d valid calls, %d refused, %d coerced and said so", valid, refused, coerced)
	if valid == 0 || refused == 0 {
		t.Error("calls of one kind are missing")
	}
}

func canonical(t *testing.T, args json.RawMessage) string {
	t.Helper()
	c, err := schema.Parse(args)
	if err != nil {
		t.Fatal(err)
	}
	return string(c)
}

var faultName = regexp.MustCompile(`required property '([^']+)'|data/([^ ,]+)`)

// missed is the names that a refusal has to speak of: those of the other
// validator's faults, and what the root requires and the call has not.
func missed(t *testing.T, r *recorded) (names []string) {
	for _, m := range faultName.FindAllStringSubmatch(r.Faults, -1) {
		names = append(names, m[1]+m[2])
	}
	args := decoded[map[string]json.RawMessage](t, r.Args)
	for _, name := range decoded[struct{ Required []string }](t, r.Schema).Required {
		if _, given := args[name]; !given {
			names = append(names, name)
		}
	}
	return names
}

// The same through programs: each of 60 calls of deferred tools, valid or not, is
// one line of JavaScript. S1-002 S1-003 S1-094 S1-099 S1-109 S1-110
func TestRecordedCallsInPrograms(t *testing.T) {
	all := recordedCalls(t)
	w := newWorld(t)
	step := max(1, len(all)/60)
	for i := 0; i < len(all); i += step {
		r := all[i]
		if !strings.HasPrefix(r.Tool, "mcp__") { // some have names of our controls
			r.Tool = "mcp__recorded__" + r.Tool
		}
		c := newCatcher(r.Tool, r.Schema)
		c.spec.Deferred, c.spec.Server = true, "recorded"
		one := &world{t: t, mode: tool.Code, exec: w.exec}
		if err := one.reg.Add(c); err != nil {
			t.Fatal(err)
		}
		var args bytes.Buffer
		if err := json.Compact(&args, r.Args); err != nil {
			t.Fatal(err)
		}
		res := one.run(t.Context(), fmt.Sprintf(`try { text((await tools.%s(%s)).output) } catch (e) { text(e.code) }`, tool.JSName(r.Tool), &args))
		want, reached := "ran", []string{inJavaScript(t, r.Args)}
		if !r.Valid {
			want, reached = tool.CodeInvalidArgs, nil
		}
		got := c.take()
		if !r.Valid && res.Text() == "ran" { // it was coerced: TestRecordedCalls
			continue
		}
		if diff := cmp.Diff(append([]string{want}, reached...), append([]string{res.Text()}, got...)); diff != "" {
			t.Errorf("%s %s: %s", r.ID, r.Tool, diff)
		}
	}
}

// inJavaScript is arguments as JSON.stringify spells them: 1.0 is 1 there.
func inJavaScript(t *testing.T, args json.RawMessage) string {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(canonical(t, args)))
	var b strings.Builder
	for {
		before := dec.InputOffset()
		token, err := dec.Token()
		if err != nil {
			break
		}
		text := canonical(t, args)[before:dec.InputOffset()]
		if n, ok := token.(float64); ok {
			lead := text[:strings.IndexAny(text, "-0123456789")]
			text = lead + fmt.Sprint(json.Number(fmt.Sprint(n)))
			if n == float64(int64(n)) {
				text = lead + fmt.Sprint(int64(n))
			}
		}
		b.WriteString(text)
	}
	return b.String()
}
