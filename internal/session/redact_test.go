package session

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capstan/internal/msg"
)

// Keys of known shapes are replaced; what only looks a little like one stays.
// The keys are made up, and put together here so that no scanner takes this
// file for a leak.
func TestKnownKeys(t *testing.T) {
	a := strings.Repeat("aB3", 20)
	for _, c := range []struct{ in, want string }{
		{"key sk" + "-proj-" + a + ", end", "key [redacted], end"},
		{"sk" + "-ant-api03-" + a, "[redacted]"},
		{"AI" + "za" + a[:35], "[redacted]"},
		{"OPENAI_API_KEY=sk" + "-" + a[:32] + "\n", "OPENAI_API_KEY=[redacted]\n"},
		{"gh" + "p_" + a[:36], "[redacted]"},
		{"github_" + "pat_" + a, "[redacted]"},
		{"gl" + "pat-" + a[:20], "[redacted]"},
		{"xo" + "xb-123456789012-abcdef", "[redacted]"},
		{"AK" + "IAIOSFODNN7EXAMPLE", "[redacted]"},
		{"aws_secret_access_key = " + a[:40], "aws_secret_access_key = [redacted]"},
		{"hf" + "_" + a[:34] + " gs" + "k_" + a[:40] + " xa" + "i-" + a[:40], "[redacted] [redacted] [redacted]"},
		{"ey" + "J" + a + ".ey" + "J" + a + "." + a, "[redacted]"},
		{"Authorization: Bearer " + a, "Authorization: Bearer [redacted]"},
		{"https://me:" + "hunter2@example.org/x", "https://me:[redacted]@example.org/x"},
		{"a\n-----BEGIN RSA " + "PRIVATE KEY-----\nMIIB\n-----END RSA PRIVATE KEY-----\nb", "a\n[redacted]\nb"},
		{"cut off: -----BEGIN " + "PRIVATE KEY-----\nMIIB", "cut off: [redacted]"},

		{"sk-learn-is-what-people-call-it-sometimes", ""},
		{"task-0123456789-0123456789-0123456789", ""},
		{"a bearer of the very best news that there is", ""},
		{"https://example.org:8080/a@b", ""},
		{"-----BEGIN PUBLIC KEY-----", ""},
		{"eyJhbGciOi is how they begin", ""},
	} {
		want := c.want
		if want == "" {
			want = c.in
		}
		if got := redactKeys(c.in); got != want {
			t.Errorf("%q\n got %q\nwant %q", c.in, got, want)
		}
	}
}

// A secret is in no file of a session, wherever it came in: a text, a name, the
// arguments of a call, which are JSON in a string, a text that is kept as a
// file, a long event. Everything else is as it was, each digit too.
func TestSecretsAreNotWritten(t *testing.T) {
	const secret = `pa"ss\wörd/<7>`
	s := newStore(t)
	s.redact = func(t string) string { return strings.ReplaceAll(t, secret, "***") }
	quoted, err := json.Marshal(map[string]any{"command": "login " + secret, "n": json.Number("1.000000000000000000001"), secret: 1})
	if err != nil {
		t.Fatal(err)
	}
	doc := msg.Part{Kind: msg.File, MIMEType: "text/plain", Data: []byte("the key is " + secret)}
	state := json.RawMessage(`{"signature":"abc"}`)
	m := msg.Message{Role: msg.Assistant, Parts: []msg.Part{
		{Kind: msg.Reasoning, Text: secret, State: state},
		{Kind: msg.Reasoning, Text: "nothing", State: state},
		doc,
		{Kind: msg.CallPart, Call: &msg.Call{ID: "c", Name: "run_shell_command", Args: string(quoted)}},
	}}
	path := write(t, s, func(l *Log) error {
		return errors.Join(l.Message(user("log in with "+secret)), l.Message(m), l.Start(Start{ID: "c", Name: "x", Args: string(quoted)}),
			l.Result("", ok("c", "run_shell_command", strings.Repeat("x", maxInline)+secret)),
			l.Set("key", secret), l.EndTurn(TurnEnd{Reason: secret}), l.Compact([]msg.Message{user(secret)}))
	})
	err = filepath.WalkDir(s.root, func(p string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text := string(contents(t, p))
		for _, piece := range []string{"pa\"ss", `pa\"ss`, `pa\\\"ss`, "wörd"} {
			if strings.Contains(text, piece) {
				t.Errorf("%s has %q", p, piece)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var whole []msg.Message
	f, _, err := s.fold(path)
	if err != nil {
		t.Fatal(err)
	}
	f.finish()
	whole = messages(f.entries)
	want := []msg.Message{
		user("log in with ***"),
		{Role: msg.Assistant, Parts: []msg.Part{
			{Kind: msg.Reasoning, Text: "***"}, // its signature would no longer fit
			{Kind: msg.Reasoning, Text: "nothing", State: state},
			{Kind: msg.File, MIMEType: "text/plain", Data: []byte("the key is ***")},
			{Kind: msg.CallPart, Call: &msg.Call{ID: "c", Name: "run_shell_command", Args: `{"command":"login ***","n":1.000000000000000000001,"***":1}`}},
		}},
		results(ok("c", "run_shell_command", strings.Repeat("x", maxInline)+"***")),
		user("***"),
	}
	if d := cmp.Diff(want, whole); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

// A text that is cut leaves no piece of a secret before the cut.
func TestNoHalfSecrets(t *testing.T) {
	const secret = "correct-horse-battery-staple"
	s := newStore(t)
	s.redact = func(t string) string { return strings.ReplaceAll(t, secret, "***") }
	path := write(t, s, func(l *Log) error {
		var errs []error
		for i := range len(secret) {
			errs = append(errs, l.Result("p", ok("p.1", "read_file", strings.Repeat("x", nestedText-i)+secret+strings.Repeat("y", 100))))
		}
		return errors.Join(append(errs, l.Message(user(strings.Repeat("x", 110)+secret)))...)
	})
	if log := string(contents(t, path)); strings.Contains(log, "xco") || !strings.Contains(log, `"title":"`+strings.Repeat("x", 110)+`***"`) {
		t.Errorf("a piece of the secret is there:\n%s", log)
	}
}

// What is no secret stays as it is, where it looks like one too: an address and a
// mail address in neighbouring strings of arguments, results that are JSON, and what
// a provider keeps encrypted.
func TestHarmlessStays(t *testing.T) {
	lines := []string{
		`{"args":"{\"old\":\"https://example.com\",\"new\":\"me@example.com\"}"}`,
		`{"text":"{\"homepage\":\"https://x.io\",\"author\":\"me@x.io\",\"k\":1}"}`,
		`{"text":"see <http://a.example>, 'https://b.example', write to <me@example.com>: or \u0060https://c.example\u0060:x@y"}`,
		`{"text":"{\"a\":\"https://h\",\"b\": \"c:d@e\"}, half of"}`,
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		raw := make([]byte, 6000)
		for i := range raw {
			raw[i] = byte(random.Uint32())
		}
		lines = append(lines, `{"state":{"encrypted_content":"gAAAA`+base64.URLEncoding.EncodeToString(raw)+`"}}`, `{"state":{"signature":"`+base64.StdEncoding.EncodeToString(raw)+`"}}`)
	}
	same := cleaner{func(s string) string { return s }}
	for _, line := range lines {
		if got := redactLine([]byte(line), same); string(got) != line {
			t.Errorf("%.200s became %.200s", line, got)
		}
	}
}

// Arguments that are JSON are JSON afterwards, whatever secret was in them.
func FuzzRedactedArguments(f *testing.F) {
	f.Add("https://example.com", "me@example.com")
	f.Add("postgres://u:p4ssw0rd@h", "sk-abcdefghijklmnopqrstuvwxyz012345")
	f.Fuzz(func(t *testing.T, a, b string) {
		args, err := json.Marshal(map[string]string{"a": a, "b": b})
		if err != nil {
			t.Skip()
		}
		line, err := encode(map[string]string{"args": string(args)})
		if err != nil {
			t.Fatal(err)
		}
		var out struct{ Args string }
		if err := json.Unmarshal(redactLine(line, cleaner{func(s string) string { return s }}), &out); err != nil || !json.Valid([]byte(out.Args)) {
			t.Fatalf("%s became %q, %v", args, out.Args, err)
		}
	})
}
