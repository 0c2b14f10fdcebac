package trust_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/internal/trust"
)

// variable returns the value of a variable, which must be there once.
func variable(t *testing.T, env []string, name string) string {
	t.Helper()
	var values []string
	for _, v := range env {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			values = append(values, value)
		}
	}
	if len(values) != 1 {
		t.Fatalf("%s is there %d times", name, len(values))
	}
	return values[0]
}

func TestVariables(t *testing.T) {
	t.Parallel()
	environment := trust.Environment{
		Proxy: "http://127.0.0.1:3128", NoProxy: []string{"localhost", "127.0.0.1", "::1", "api.test"},
		CA: "/ca", Bundle: "/bundle", JavaStore: "/p12",
	}
	env := environment.Variables()
	for name, want := range map[string]string{
		"https_proxy": "http://127.0.0.1:3128", "NO_PROXY": "localhost,127.0.0.1,::1,api.test",
		"SSL_CERT_FILE": "/bundle", "GIT_SSL_CAINFO": "/bundle", // replace the roots
		"NODE_EXTRA_CA_CERTS": "/ca", "DENO_CERT": "/ca", // add one
	} {
		if got := variable(t, env, name); got != want {
			t.Errorf("%s = %s, want %s", name, got, want)
		}
	}
	want := "-Djavax.net.ssl.trustStore=/p12 -Djavax.net.ssl.trustStoreType=PKCS12 " +
		"-Djavax.net.ssl.trustStorePassword=changeit -Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=3128 " +
		"-Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort=3128 -Dhttp.nonProxyHosts=localhost|127.*|[::1]|api.test"
	if got := environment.JavaOptions(); got != want {
		t.Errorf("Java's options are %s, want %s", got, want)
	}
	left := []string{"JAVA_TOOL_OPTIONS", "ALL_PROXY", "all_proxy", "NODE_OPTIONS", "SSL_CERT_DIR",
		"NODE_TLS_REJECT_UNAUTHORIZED"}
	for _, v := range env {
		if name, _, _ := strings.Cut(v, "="); slices.Contains(left, name) {
			t.Errorf("%s is set", v)
		}
	}
}

// Each JVM prints JAVA_TOOL_OPTIONS to stderr, so a token must not be in it.
func TestTheTokenIsNotInJavasOptions(t *testing.T) {
	t.Parallel()
	env := trust.Environment{Proxy: "http://aileron:TOKEN@host.test:8080", JavaStore: "/p12"}
	if got := env.JavaOptions(); strings.Contains(got, "TOKEN") || strings.Contains(got, "proxyHost") {
		t.Errorf("Java's options are %s", got)
	}
	if got := variable(t, env.Variables(), "HTTPS_PROXY"); got != "http://aileron:TOKEN@host.test:8080" {
		t.Errorf("HTTPS_PROXY = %s", got)
	}
	if got := (trust.Environment{Proxy: "http://127.0.0.1:1"}).JavaOptions(); got != "" {
		t.Errorf("without a store: %s", got)
	}
}
