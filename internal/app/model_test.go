package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"capstan/internal/llm"
	"capstan/internal/msg"
	"capstan/internal/tool"
)

// recorder answers with an error and keeps what it was sent.
func recorder(t *testing.T) (string, *[]string) {
	t.Helper()
	var got []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		keys := fmt.Sprintf("key=%q", r.Header.Get("Authorization"))
		for _, name := range []string{"x-api-key", "x-goog-api-key"} {
			if v := r.Header.Get(name); v != "" {
				keys += fmt.Sprintf(" %s=%q", name, v)
			}
		}
		got = append(got, fmt.Sprintf("%s %s team=%q", r.URL.Path, keys, r.Header.Get("X-Team")))
		http.Error(w, `{"error":{"message":"no"}}`, http.StatusUnauthorized)
	}))
	t.Cleanup(srv.Close)
	return srv.URL, &got
}

// noEnv takes the variables of the families away.
func noEnv(t *testing.T) {
	t.Helper()
	for _, f := range families() {
		t.Setenv(f.keyVar, "")
		t.Setenv(f.baseVar, "")
	}
}

// A model is found where it was named, and gets the key that was set for its
// address and no other.
func TestModel(t *testing.T) {
	for _, tc := range []struct {
		name    string
		env     map[string]string // $URL is the server
		files   map[string]string
		trust   bool
		model   string
		want    string // the model
		request string // as the server saw it
		fails   string
		warns   string
	}{
		{name: "the environment", env: map[string]string{"OPENAI_BASE_URL": "$URL/v1", "OPENAI_API_KEY": "key-of-env"}, model: "openai/m",
			want: "openai/m", request: `/v1/chat/completions key="Bearer key-of-env" team=""`},
		{name: "no key with a local address", env: map[string]string{"OPENAI_BASE_URL": "$URL/v1"}, model: "openai/m",
			want: "openai/m", request: `/v1/chat/completions key="" team=""`},
		{name: "the only endpoint", env: map[string]string{"OPENAI_BASE_URL": "$URL/v1"}, model: "qwen3:8b", want: "openai/qwen3:8b", request: `/v1/chat/completions key="" team=""`},
		{name: "a slash in the name", env: map[string]string{"OPENAI_BASE_URL": "$URL/v1"}, model: "qwen/qwen3", want: "openai/qwen/qwen3", request: `/v1/chat/completions key="" team=""`},
		{name: "a family misspelt", env: map[string]string{"OPENAI_BASE_URL": "$URL/v1"}, model: "opneai/m", fails: `--model: there is no provider "opneai": did you mean openai/m?`},
		{name: "no name", model: "openai/", fails: `--model: "openai/" names no model: want openai/NAME`},
		{name: "nothing configured", model: "m", fails: `--model: "m" says not where to ask: want FAMILY/NAME`},
		{name: "no model, nothing configured", fails: "no model is configured: set OPENAI_API_KEY"},
		{name: "no key", model: "openai/m", fails: "there is no key for openai: set OPENAI_API_KEY, or providers.openai.keyFile in ~/.capstan/settings.json; for a server of your own, which needs none, set OPENAI_BASE_URL"},
		{name: "a family's name at a reseller", env: map[string]string{"OPENAI_BASE_URL": "$URL/v1"}, model: "anthropic/claude", fails: "there is no key for anthropic: set ANTHROPIC_API_KEY, or providers.anthropic.keyFile in ~/.capstan/settings.json; for a server of your own, which needs none, set ANTHROPIC_BASE_URL; for a model of that name at openai write openai/anthropic/claude"},
		{name: "a reseller's name spelt out", env: map[string]string{"OPENAI_BASE_URL": "$URL/v1"}, model: "openai/anthropic/claude", want: "openai/anthropic/claude", request: `/v1/chat/completions key="" team=""`},
		{name: "anthropic", env: map[string]string{"ANTHROPIC_BASE_URL": "$URL", "ANTHROPIC_API_KEY": "key-of-env"}, model: "anthropic/m", want: "anthropic/m", request: `/v1/messages key="Bearer key-of-env" x-api-key="key-of-env" team=""`},
		{name: "gemini, with and without a version", env: map[string]string{"GEMINI_BASE_URL": "$URL", "GEMINI_API_KEY": "key-of-env"}, model: "gemini/m", want: "gemini/m", request: `/v1beta/models/m:streamGenerateContent key="" x-goog-api-key="key-of-env" team=""`},
		{name: "gemini with a version", env: map[string]string{"GEMINI_BASE_URL": "$URL/v1"}, model: "gemini/m", want: "gemini/m", request: `/v1/models/m:streamGenerateContent key="" team=""`},
		{name: "responses", env: map[string]string{"OPENAI_BASE_URL": "$URL/v1", "OPENAI_API_KEY": "key-of-env"}, model: "responses/m", want: "responses/m", request: `/v1/responses key="Bearer key-of-env" team=""`},
		{name: "a profile where there are none", files: map[string]string{"~/.capstan/settings.json": `{"providers": {"gemini": {"profile": "x"}}}`}, env: map[string]string{"GEMINI_API_KEY": "key-of-env"}, model: "gemini/m", fails: `providers.gemini: profile "x": this family has none`},
		{name: "no address", env: map[string]string{"OPENAI_BASE_URL": "localhost:11434"}, model: "openai/m", fails: "OPENAI_BASE_URL is no http or https address"},
		{name: "a key that is none", env: map[string]string{"OPENAI_API_KEY": "two words"}, model: "openai/m", fails: "the key in OPENAI_API_KEY is none"},
		{name: "the setting", env: map[string]string{"OPENAI_BASE_URL": "$URL/v1"}, files: map[string]string{"~/.capstan/settings.json": `{"model": "openai/s"}`},
			want: "openai/s", request: `/v1/chat/completions key="" team=""`},
		{name: "a bad setting", files: map[string]string{"~/.capstan/settings.json": `{"model": "nowhere/s"}`}, fails: `settings.json:1:11: model: "nowhere/s" says not where to ask`},
		{name: "a provider of the settings", env: map[string]string{"WORK_KEY": "key-of-work", "TEAM": "red-team", "OPENAI_API_KEY": "key-of-env"},
			files: map[string]string{"~/.capstan/settings.json": `{"providers": {"work": {"family": "openai", "baseUrl": "$URL/api", "keyEnv": "WORK_KEY", "headers": {"X-Team": "${TEAM}"}}}}`},
			model: "work/m", want: "work/m", request: `/api/chat/completions key="Bearer key-of-work" team="red-team"`},
		{name: "the family's key is not for a provider of another name", env: map[string]string{"OPENAI_API_KEY": "key-of-env"}, files: map[string]string{"~/.capstan/settings.json": `{"providers": {"work": {"family": "openai", "baseUrl": "$URL/v1"}}}`},
			model: "work/m", want: "work/m", request: `/v1/chat/completions key="" team=""`},
		{name: "a key file", files: map[string]string{"~/.capstan/settings.json": `{"providers": {"work": {"family": "openai", "baseUrl": "$URL/v1", "keyFile": "~/work.key"}}}`, "~/work.key": "key-of-file\n"},
			model: "work/m", want: "work/m", request: `/v1/chat/completions key="Bearer key-of-file" team=""`},
		{name: "a key file beside the settings", files: map[string]string{"~/.capstan/settings.json": `{"providers": {"openai": {"baseUrl": "$URL/v1", "keyFile": "work.key"}}}`, "~/.capstan/work.key": "key-of-file\n"},
			model: "openai/m", want: "openai/m", request: `/v1/chat/completions key="Bearer key-of-file" team=""`},
		{name: "a key file that others read", files: map[string]string{"~/.capstan/settings.json": `{"providers": {"work": {"family": "openai", "baseUrl": "$URL", "keyFile": "~/open.txt"}}}`, "~/open.txt": "key-of-file\n"},
			model: "work/m", fails: "run chmod 600 on it"},
		{name: "a key file that is none", files: map[string]string{"~/.capstan/settings.json": `{"providers": {"work": {"family": "openai", "baseUrl": "$URL", "keyFile": "~/big.key"}}}`, "~/big.key": strings.Repeat("k", maxKey+1)},
			model: "work/m", fails: "big.key is larger than 16 KiB, which no key is"},
		{name: "no key file", files: map[string]string{"~/.capstan/settings.json": "{\n  \"providers\": {\"work\": {\"family\": \"openai\", \"baseUrl\": \"$URL\", \"keyFile\": \"~/none.key\"}}}"},
			model: "work/m", fails: "settings.json:2:25: providers.work: keyFile: "},
		{name: "a variable that is not set", files: map[string]string{"~/.capstan/settings.json": `{"providers": {"work": {"family": "openai", "baseUrl": "$URL", "headers": {"X-Team": "${TEAM}"}}}}`},
			model: "work/m", fails: "providers.work: headers.X-Team: the variable TEAM is not set"},
		{name: "a header with a line break", files: map[string]string{"~/.capstan/settings.json": `{"providers": {"work": {"family": "openai", "baseUrl": "$URL", "headers": {"X-Team": "a\nb"}}}}`},
			model: "work/m", fails: "headers.X-Team is no header that can be sent"},
		{name: "no family", files: map[string]string{"~/.capstan/settings.json": `{"providers": {"work": {"baseUrl": "$URL"}}}`}, model: "work/m", fails: `providers.work: it has no "family"`},
		{name: "an unknown family", files: map[string]string{"~/.capstan/settings.json": `{"providers": {"work": {"family": "soap"}}}`}, model: "work/m", fails: `providers.work: family: "soap" is none of openai`},
		{name: "an unknown profile", files: map[string]string{"~/.capstan/settings.json": `{"providers": {"work": {"family": "openai", "baseUrl": "$URL", "profile": "x"}}}`}, model: "work/m", fails: `providers.work: profile "x": expected one of openai, azure`},
		{name: "several endpoints", env: map[string]string{"OPENAI_BASE_URL": "$URL/v1"}, files: map[string]string{"~/.capstan/settings.json": `{"providers": {"work": {"family": "openai", "baseUrl": "$URL"}}}`},
			model: "m", fails: "want one of openai/m, work/m"},

		// A trusted folder may choose an address, and gets no key for it.
		{name: "a folder's address", trust: true, env: map[string]string{"OPENAI_API_KEY": "key-of-env"}, files: map[string]string{".capstan/settings.json": `{"providers": {"openai": {"baseUrl": "$URL/evil"}}}`},
			model: "openai/m", want: "openai/m", request: `/evil/chat/completions key="" team=""`},
		{name: "a folder's address that wants a key", trust: true, env: map[string]string{"OPENAI_API_KEY": "key-of-env"}, files: map[string]string{".capstan/settings.json": `{"providers": {"openai": {"baseUrl": "https://api.groq.com/openai/v1"}}}`},
			model: "openai/m", fails: "there is no key: none is sent to an address that a folder's own settings give"},
		{name: "a folder's address and one of the environment", trust: true, env: map[string]string{"OPENAI_API_KEY": "key-of-env", "OPENAI_BASE_URL": "$URL/v1"}, files: map[string]string{".capstan/settings.json": `{"providers": {"openai": {"baseUrl": "http://evil.example"}}}`},
			model: "openai/m", want: "openai/m", request: `/v1/chat/completions key="Bearer key-of-env" team=""`},
		{name: "a folder's headers with the user's key", trust: true, env: map[string]string{"OPENAI_API_KEY": "key-of-env", "OPENAI_BASE_URL": "$URL/v1"}, files: map[string]string{".capstan/settings.json": `{"providers": {"openai": {"headers": {"X-Team": "evil"}}}}`},
			model: "openai/m", want: "openai/m", request: `/v1/chat/completions key="Bearer key-of-env" team=""`, warns: "providers.openai.headers are not sent"},
		{name: "a folder's headers to its own address", trust: true, env: map[string]string{"OPENAI_API_KEY": "key-of-env"}, files: map[string]string{".capstan/settings.json": `{"providers": {"openai": {"baseUrl": "$URL/v1", "headers": {"X-Team": "own"}}}}`},
			model: "openai/m", want: "openai/m", request: `/v1/chat/completions key="" team="own"`},
		{name: "a folder's entry in place of the user's", trust: true, env: map[string]string{"WORK_KEY": "key-of-work"}, files: map[string]string{
			"~/.capstan/settings.json": `{"providers": {"work": {"family": "openai", "baseUrl": "$URL/mine", "keyEnv": "WORK_KEY"}}}`,
			".capstan/settings.json":   `{"providers": {"work": {"family": "openai", "baseUrl": "$URL/evil"}}}`},
			model: "work/m", want: "work/m", request: `/mine/chat/completions key="Bearer key-of-work" team=""`},
		{name: "a folder that nobody trusts", files: map[string]string{".capstan/settings.json": `{"model": "evil/m", "providers": {"evil": {"family": "openai", "baseUrl": "$URL"}}}`},
			fails: "no model is configured"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			noEnv(t)
			url, got := recorder(t)
			for name, value := range tc.env {
				t.Setenv(name, strings.ReplaceAll(value, "$URL", url))
			}
			files := map[string]string{}
			for name, text := range tc.files {
				files[name] = strings.ReplaceAll(text, "$URL", url)
			}
			s := open(t, Options{Trust: tc.trust}, files)
			for name := range files {
				if rest, ok := strings.CutPrefix(name, "~/"); ok && strings.HasSuffix(name, ".key") {
					if err := os.Chmod(filepath.Join(s.home, rest), 0o600); err != nil {
						t.Fatal(err)
					}
				}
			}
			m, err := s.Model(t.Context(), tc.model)
			if tc.fails != "" {
				if err == nil || !strings.Contains(err.Error(), tc.fails) {
					t.Fatalf("error %v, want %q", err, tc.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			if warned := strings.Join(s.Warnings, "\n"); !strings.Contains(warned, tc.warns) {
				t.Errorf("warned of %q, want %q", warned, tc.warns)
			}
			if len(*got) > 0 {
				t.Errorf("asked before the first request: %q", *got)
			}
			if m.String() != tc.want {
				t.Errorf("%s, want %s", m, tc.want)
			}
			failure := ask(t.Context(), m)
			if diff := cmp.Diff([]string{tc.request}, *got); diff != "" {
				t.Errorf("requests: %s", diff)
			}
			noKey := !strings.Contains(tc.request, `key-of-`)
			if hinted := strings.Contains(m.Explain(failure).Error(), "no key was sent"); hinted != noKey {
				t.Errorf("the refusal is explained as %v", m.Explain(failure))
			}
		})
	}
}

// ask sends one request, which fails.
func ask(ctx context.Context, m *Model) error {
	for _, err := range m.Provider.Stream(ctx, &llm.Request{Model: m.Name, Messages: []msg.Message{{Role: msg.User, Parts: []msg.Part{msg.TextPart("hi")}}}}) {
		if err != nil {
			return err
		}
	}
	return nil
}

// Without a model the error lists what there is, up to a number and a time.
func TestNoModelLists(t *testing.T) {
	noEnv(t)
	n := 2
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, `{"data":[`)
		for i := range n {
			fmt.Fprintf(w, `{"id":"m%03d"},`, i)
		}
		fmt.Fprint(w, `{"id":""}]}`)
	}))
	defer srv.Close()
	t.Setenv("OPENAI_BASE_URL", srv.URL+"/v1")
	s := open(t, Options{}, nil)
	_, err := s.Model(t.Context(), "")
	const want = "no model was chosen: use --model, or \"model\" in ~/.capstan/settings.json\nopenai offers:\n  openai/m000\n  openai/m001"
	if err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
	n = 100
	_, err = s.Model(t.Context(), "")
	if lines := strings.Split(fmt.Sprint(err), "\n"); len(lines) != 2+listNames+1 || lines[len(lines)-1] != "  and 60 more" {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	if _, err = s.Model(ctx, ""); err == nil || !strings.Contains(err.Error(), "openai: ") {
		t.Errorf("%v", err)
	}
}

// A model that an endpoint does not have gets the names of those that it has.
func TestExplainUnknownModel(t *testing.T) {
	for _, tc := range []struct{ name, list, model, want string }{
		{"misspelt", `{"data":[{"id":"llama3"},{"id":"qwen3:8b"}]}`, "qwen3:8", "\ncheck the model's name and the base URL (it usually ends in /v1)\ndid you mean openai/qwen3:8b?\nopenai offers:\n  openai/llama3\n  openai/qwen3:8b"},
		{"like no other", `{"data":[{"id":"llama3"}]}`, "zzzzz", "\ncheck the model's name and the base URL (it usually ends in /v1)\nopenai offers:\n  openai/llama3"},
		{"the name is not what is wrong", `{"data":[{"id":"m"}]}`, "m", "(it usually ends in /v1)"},
		{"no list", ``, "m", "(it usually ends in /v1)"},
	} {
		noEnv(t)
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet && tc.list != "" {
				fmt.Fprint(w, tc.list)
				return
			}
			http.Error(w, `{"error":{"message":"model not found"}}`, http.StatusNotFound)
		}))
		t.Setenv("OPENAI_BASE_URL", srv.URL+"/v1")
		m, err := open(t, Options{}, nil).Model(t.Context(), "openai/"+tc.model)
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Explain(ask(t.Context(), m)).Error(); !strings.HasSuffix(got, tc.want) {
			t.Errorf("%s: %s", tc.name, got)
		}
		m.Close()
		srv.Close()
	}
}

// What the session knows to be secret does not show.
func TestRedact(t *testing.T) {
	noEnv(t)
	t.Setenv("OPENAI_API_KEY", "secret-key-1")
	t.Setenv("OTHER", "secret-key-1-and-more")
	t.Setenv("TOKEN", "secret-token")
	s := open(t, Options{}, map[string]string{"~/.capstan/settings.json": `{"providers": {"o": {"family": "openai", "baseUrl": "http://me:secret-password@127.0.0.1:1", "keyEnv": "OTHER", "headers": {"X": "Token ${TOKEN}"}}}}`})
	m, err := s.Model(t.Context(), "o/m")
	if err != nil {
		t.Fatal(err)
	}
	m.Close()
	if got := s.Redact("a secret-key-1 b secret-key-1-and-more c secret-token d secret-password"); got != "a [redacted] b [redacted] c [redacted] d [redacted]" {
		t.Error(got)
	}
}

// What stands for a key where none is needed is a word like others.
func TestRedactLeavesWords(t *testing.T) {
	for _, word := range []string{"ollama", "lm-studio", "not-needed", "EMPTY", "x1"} {
		noEnv(t)
		t.Setenv("OPENAI_API_KEY", word)
		s := open(t, Options{}, nil)
		if got, want := s.Redact("rename "+word+"/client.go"), "rename "+word+"/client.go"; got != want {
			t.Errorf("%s: %s", word, got)
		}
	}
	for _, key := range []string{"sk-1234", "correct horse", "hunter2hunter2"} {
		if !guarded(key) {
			t.Errorf("%s would be shown", key)
		}
	}
}

// A command gets no variable that the settings take a key from.
func TestKeysOfCommands(t *testing.T) {
	noEnv(t)
	t.Setenv("OPENAI_API_KEY", "secret-key-1")
	t.Setenv("OTHER", "secret-key-2")
	t.Setenv("TOKEN", "secret-token")
	t.Setenv("PLAIN", "seen")
	s := open(t, Options{ApprovalMode: "yolo"}, map[string]string{"~/.capstan/settings.json": `{"providers": {"o": {"family": "openai", "baseUrl": "http://127.0.0.1:1", "keyEnv": "OTHER", "headers": {"X": "Token ${TOKEN}"}}}}`})
	args := `{"command": "echo \"$OPENAI_API_KEY,$OTHER,$TOKEN,$PLAIN\""}`
	got := s.rt.Run(t.Context(), s.View, []tool.Call{{Name: "run_shell_command", Args: json.RawMessage(args)}})[0].Text()
	if !strings.HasPrefix(got, ",,,seen\n") {
		t.Error(got)
	}
}

// A conversation is not sent elsewhere because its provider is gone.
func TestResumeElsewhere(t *testing.T) {
	noEnv(t)
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	t.Setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
	s := open(t, Options{}, map[string]string{"~/.capstan/settings.json": `{"providers": {"work": {"family": "openai", "baseUrl": "http://127.0.0.1:2/v1"}}}`})
	c, err := s.Agent(t.Context(), AgentOptions{Model: "work/m"})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.log.Message(msg.Message{Role: msg.User, Parts: []msg.Part{msg.TextPart("a secret")}}), c.Close()); err != nil {
		t.Fatal(err)
	}
	later := func(o AgentOptions) (*Conversation, error) {
		t.Helper()
		s, err := Open(s.opt)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		return s.Agent(t.Context(), o)
	}
	if c, err = later(AgentOptions{Continue: true}); err != nil || c.Model.String() != "work/m" {
		t.Fatal(err)
	}
	if err := errors.Join(c.Close(), os.Remove(filepath.Join(s.home, ".capstan", "settings.json"))); err != nil {
		t.Fatal(err)
	}
	if _, err := later(AgentOptions{Continue: true}); err == nil || !strings.Contains(err.Error(), `there is no provider "work" now: choose a model with --model`) {
		t.Errorf("%v", err)
	}
	if c, err = later(AgentOptions{Continue: true, Model: "openai/m"}); err != nil || c.Model.String() != "openai/m" {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// A key that came from a file does not show either.
func TestRedactKeyFile(t *testing.T) {
	noEnv(t)
	s := open(t, Options{}, map[string]string{"~/.capstan/settings.json": `{"providers": {"o": {"family": "openai", "baseUrl": "http://127.0.0.1:1", "keyFile": "~/o.key"}}}`, "~/o.key": "secret-of-file\n"})
	if err := os.Chmod(filepath.Join(s.home, "o.key"), 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := s.Model(t.Context(), "o/m")
	if err != nil {
		t.Fatal(err)
	}
	m.Close()
	if got := s.Redact("a secret-of-file b"); got != "a [redacted] b" {
		t.Error(got)
	}
}

// A key that travels unencrypted is told of, unless it stays in this network.
func TestUnencryptedKey(t *testing.T) {
	for base, want := range map[string]bool{
		"http://models.example.com/v1": true, "https://models.example.com/v1": false, "http://192.168.1.7/v1": false,
	} {
		noEnv(t)
		t.Setenv("OPENAI_BASE_URL", base)
		t.Setenv("OPENAI_API_KEY", "secret-key-1")
		s := open(t, Options{}, nil)
		m, err := s.Model(t.Context(), "openai/m")
		if err != nil {
			t.Fatal(err)
		}
		m.Close()
		if got := strings.Contains(strings.Join(s.Warnings, "\n"), "travels unencrypted"); got != want {
			t.Errorf("%s: warnings %q", base, s.Warnings)
		}
	}
}

func TestLocal(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "127.0.0.1": true, "::1": true, "192.168.1.7": true, "ollama": true, "nas.local": true, "host.docker.internal": true, "LOCALHOST.": true,
		"api.openai.com": false, "8.8.8.8": false, "localhost.evil.com": false, "notlocalhost.com": false, "2001:db8::1": false,
	} {
		if local(host) != want {
			t.Errorf("local(%q) = %t", host, !want)
		}
	}
}

// doctor says where models are asked, without what is secret in an address.
func TestDoctorModels(t *testing.T) {
	noEnv(t)
	s := open(t, Options{}, nil)
	if c := models(s); c.OK || !strings.Contains(c.Detail, "set OPENAI_API_KEY or ANTHROPIC_API_KEY or GEMINI_API_KEY") {
		t.Error(c)
	}
	t.Setenv("OPENAI_BASE_URL", "https://me:secret-password@llm.example/v1?key=secret-key")
	if c := models(s); !c.OK || c.Detail != "openai at llm.example" {
		t.Error(c)
	}
	t.Setenv("ANTHROPIC_API_KEY", "two words")
	if c := models(s); c.OK || !strings.Contains(c.Detail, "the key in ANTHROPIC_API_KEY is none") {
		t.Error(c)
	}
}
