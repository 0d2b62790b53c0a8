package oracle

import (
	"net/http"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// A dependency of Google's SDK starts it in its init.
	goleak.VerifyTestMain(tests{m}, goleak.IgnoreTopFunction("go.opencensus.io/stats/view.(*worker).start"))
}

// tests closes what the SDKs keep open: they share the default transport.
type tests struct{ m *testing.M }

func (t tests) Run() int {
	code := t.m.Run()
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	return code
}
