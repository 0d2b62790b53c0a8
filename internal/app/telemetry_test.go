package app

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Spans go to the collector that the standard variables name, and only when the
// user's own settings say so; a folder's cannot. S0-256
func TestTelemetry(t *testing.T) {
	on := `{"telemetry": {"otlp": true}}`
	for name, tc := range map[string]struct {
		settings map[string]string
		endpoint string
		sent     bool
		fault    string
		warning  string
	}{
		"off":                 {settings: nil, endpoint: "collector"},
		"on":                  {settings: map[string]string{"~/.capstan/settings.json": on}, endpoint: "collector", sent: true},
		"the folder's":        {settings: map[string]string{".capstan/settings.json": on}, endpoint: "collector", warning: "in your own settings only"},
		"without a collector": {settings: map[string]string{"~/.capstan/settings.json": on}, warning: "names no collector"},
		"a bad address":       {settings: map[string]string{"~/.capstan/settings.json": on}, endpoint: "nowhere", fault: "OTEL_EXPORTER_OTLP_ENDPOINT"},
	} {
		t.Run(name, func(t *testing.T) {
			noEnv(t)
			url, _ := recorder(t)
			bodies := make(chan string, 10)
			c := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				b, _ := io.ReadAll(r.Body)
				bodies <- r.URL.Path + " " + string(b)
			}))
			t.Cleanup(c.Close)
			t.Setenv("XDG_DATA_HOME", t.TempDir())
			t.Setenv("OPENAI_BASE_URL", url)
			if tc.endpoint == "collector" {
				tc.endpoint = c.URL
			}
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", tc.endpoint)
			s := open(t, Options{ApprovalMode: "yolo", Trust: true}, tc.settings)
			if tc.fault != "" {
				if _, err := s.Agent(t.Context(), AgentOptions{Model: "openai/m"}); err == nil || !strings.Contains(err.Error(), tc.fault) {
					t.Error(err)
				}
				return
			}
			conv := converse(t, s, AgentOptions{Model: "openai/m"}, call("list_directory", map[string]any{}))
			if err := conv.Close(); err != nil {
				t.Fatal(err)
			}
			got := ""
			if len(bodies) > 0 {
				got = <-bodies
			}
			if tc.sent != strings.Contains(got, `execute_tool list_directory`) || tc.sent && !strings.HasPrefix(got, "/v1/traces ") || !tc.sent && got != "" {
				t.Errorf("sent: %q", got)
			}
			if all := strings.Join(append(s.Warnings, conv.Notes...), "\n"); !strings.Contains(all, tc.warning) {
				t.Errorf("warnings: %s", all)
			}
		})
	}
}
