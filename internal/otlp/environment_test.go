package otlp

import (
	"strings"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/must"
)

func TestTheEnvironmentDecidesWhereRowsGo(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		env  []string
		want string // traces and logs
	}{
		"nothing": {nil, "- -"},
		"all signals": {[]string{"EXPORTER_OTLP_ENDPOINT", "http://c:4318"},
			"http://c:4318/v1/traces http://c:4318/v1/logs"},
		"with a path":    {[]string{"EXPORTER_OTLP_ENDPOINT", "https://c/x/"}, "https://c/x/v1/traces https://c/x/v1/logs"},
		"one as it is":   {[]string{"EXPORTER_OTLP_LOGS_ENDPOINT", "https://c/logs"}, "- https://c/logs"},
		"one at no path": {[]string{"EXPORTER_OTLP_TRACES_ENDPOINT", "https://c"}, "https://c/ -"},
		"none":           {[]string{"EXPORTER_OTLP_ENDPOINT", "http://c", "TRACES_EXPORTER", "none"}, "- http://c/v1/logs"},
		"disabled":       {[]string{"EXPORTER_OTLP_ENDPOINT", "http://c", "SDK_DISABLED", "TRUE"}, "- -"},
		"other variables alone": {[]string{"EXPORTER_OTLP_HEADERS", "a=b", "EXPORTER_OTLP_PROTOCOL", "grpc"},
			"- -"},
	} {
		to, err := FromEnvironment(env(c.env...))
		if got := urlOf(to.traces) + " " + urlOf(to.logs); err != nil || got != c.want ||
			to.Enabled() != strings.Contains(got, "//") {
			t.Errorf("%s: %q, %v, want %q", name, got, err, c.want)
		}
	}
}

func urlOf(e *endpoint) string {
	if e == nil {
		return "-"
	}
	return e.url.String()
}

func TestAVariableOfOneSignalTakesPrecedence(t *testing.T) {
	t.Parallel()
	to := must.Get(FromEnvironment(env("EXPORTER_OTLP_ENDPOINT", "http://user:canary@c:1?token=canary",
		"EXPORTER_OTLP_LOGS_ENDPOINT", "http://d:2/", "EXPORTER_OTLP_HEADERS", "a=1,b=%2C",
		"EXPORTER_OTLP_LOGS_HEADERS", "c=3", "EXPORTER_OTLP_TIMEOUT", "2000", "EXPORTER_OTLP_LOGS_TIMEOUT", "50",
		"EXPORTER_OTLP_COMPRESSION", "gzip", "EXPORTER_OTLP_LOGS_COMPRESSION", "none")))(t)
	if h := to.traces.headers; h.Get("A") != "1" || h.Get("B") != "," || to.traces.timeout != 2*time.Second ||
		!to.traces.gzip {
		t.Errorf("traces: %+v", to.traces)
	}
	if h := to.logs.headers; len(h) != 1 || h.Get("C") != "3" || to.logs.timeout != 50*time.Millisecond || to.logs.gzip {
		t.Errorf("logs: %+v", to.logs)
	}
	if got := to.String(); got != "http://c:1 and http://d:2" {
		t.Errorf("the target is called %q: it must have no credential", got)
	}
}

// What is not supported is one line that names the variable, and never its value.
func TestAnUnsupportedVariableIsNamedWithoutItsValue(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ variable, value, want string }{
		"gRPC": {"EXPORTER_OTLP_PROTOCOL", "grpc-canary",
			"OTEL_EXPORTER_OTLP_PROTOCOL is not supported: it must be http/protobuf"},
		"an exporter": {"TRACES_EXPORTER", "canary",
			"OTEL_TRACES_EXPORTER is not supported: it must be otlp or none"},
		"a compression": {"EXPORTER_OTLP_COMPRESSION", "canary",
			"OTEL_EXPORTER_OTLP_COMPRESSION is not supported: it must be gzip or none"},
		"headers": {"EXPORTER_OTLP_HEADERS", "authorization: Bearer canary",
			"OTEL_EXPORTER_OTLP_HEADERS is not a list of NAME=VALUE"},
		"a line end in a header": {"EXPORTER_OTLP_HEADERS", "a=canary%0d%0ab",
			"OTEL_EXPORTER_OTLP_HEADERS is not a list of NAME=VALUE"},
		"a time-out": {"EXPORTER_OTLP_TIMEOUT", "canary",
			"OTEL_EXPORTER_OTLP_TIMEOUT is not a number of milliseconds"},
		"an address": {"EXPORTER_OTLP_ENDPOINT", "canary:4317",
			"OTEL_EXPORTER_OTLP_ENDPOINT is not an http or https URL"},
		"roots": {"EXPORTER_OTLP_CERTIFICATE", "/canary",
			"OTEL_EXPORTER_OTLP_CERTIFICATE is not a file of certificates"},
		"half a pair": {"EXPORTER_OTLP_CLIENT_KEY", "/canary",
			"OTEL_EXPORTER_OTLP_CLIENT_KEY needs a client certificate"},
		"another half": {"EXPORTER_OTLP_CLIENT_CERTIFICATE", "/canary",
			"OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE needs a client key"},
	} {
		all := []string{"EXPORTER_OTLP_ENDPOINT", "http://c", c.variable, c.value}
		to, err := FromEnvironment(env(all...))
		if err == nil || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "canary") ||
			strings.Contains(err.Error(), "\n") || to.traces != nil {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
