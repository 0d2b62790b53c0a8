package telemetry

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Secrets are the variables that may hold a key of the collector's: no command
// that a session runs inherits them.
var Secrets = []string{"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"}

// FromEnv reads the standard variables of OpenTelemetry. ok is false when they
// switch it off or name no collector. The error says which variable is wrong.
func FromEnv(env func(string) string) (o Options, ok bool, err error) {
	// get is the variable for traces, else that for everything.
	get := func(name string) string {
		if v := strings.TrimSpace(env("OTEL_EXPORTER_OTLP_TRACES_" + name)); v != "" {
			return v
		}
		return strings.TrimSpace(env("OTEL_EXPORTER_OTLP_" + name))
	}
	if strings.EqualFold(env("OTEL_SDK_DISABLED"), "true") || strings.EqualFold(env("OTEL_TRACES_EXPORTER"), "none") {
		return o, false, nil
	}
	if o.URL = strings.TrimSpace(env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")); o.URL == "" {
		if base := strings.TrimSpace(env("OTEL_EXPORTER_OTLP_ENDPOINT")); base != "" {
			o.URL = strings.TrimRight(base, "/") + "/v1/traces"
		}
	}
	if o.URL == "" {
		return o, false, nil
	}
	if u, err := url.Parse(o.URL); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return o, false, fmt.Errorf("OTEL_EXPORTER_OTLP_ENDPOINT is no address such as http://localhost:4318: %s", where(o.URL))
	}
	if p := get("PROTOCOL"); p == "grpc" {
		return o, false, errors.New("OTEL_EXPORTER_OTLP_PROTOCOL is grpc: only http/json is spoken here, by most collectors on port 4318")
	}
	if ms := get("TIMEOUT"); ms != "" {
		n, err := strconv.Atoi(ms)
		if err != nil || n <= 0 || n > 600_000 {
			return o, false, fmt.Errorf("OTEL_EXPORTER_OTLP_TIMEOUT is %q: want milliseconds, 1 to 600000", ms)
		}
		o.Timeout = time.Duration(n) * time.Millisecond
	}
	headers, err := pairs(get("HEADERS"))
	if err != nil {
		return o, false, fmt.Errorf("OTEL_EXPORTER_OTLP_HEADERS: %w", err)
	}
	o.Headers = http.Header{}
	for _, h := range headers {
		o.Headers.Set(h[0], h[1])
	}
	o.Resource = map[string]string{"service.name": "capstan"}
	attributes, err := pairs(env("OTEL_RESOURCE_ATTRIBUTES"))
	if err != nil {
		return o, false, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	for _, a := range attributes {
		o.Resource[a[0]] = a[1]
	}
	if name := env("OTEL_SERVICE_NAME"); name != "" {
		o.Resource["service.name"] = name
	}
	return o, true, nil
}

// where is what may be shown of an address: the rest can hold a key.
func where(address string) string {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return "it cannot be read"
	case u.Host == "":
		return fmt.Sprintf("it has %d bytes and no host", len(address))
	}
	return u.Scheme + "://" + u.Host
}

// pairs reads a list such as "a=1,b=x%2Cy". An error does not show values, which
// may be keys.
func pairs(list string) (out [][2]string, err error) {
	for i, item := range strings.Split(list, ",") {
		if strings.TrimSpace(item) == "" {
			continue
		}
		name, v, ok := strings.Cut(item, "=")
		name = strings.TrimSpace(name)
		text, err := url.PathUnescape(strings.TrimSpace(v))
		if !ok || name == "" || strings.ContainsAny(name, " \t\r\n:") || err != nil || strings.ContainsAny(text, "\r\n\x00") {
			return nil, fmt.Errorf("entry %d is not name=value", i+1)
		}
		out = append(out, [2]string{name, text})
	}
	return out, nil
}
