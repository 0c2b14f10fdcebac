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
	env := trust.Environment{
		Proxy: "http://127.0.0.1:3128", NoProxy: []string{"localhost", "127.0.0.1", "::1", "api.test"},
		CA: "/ca", Bundle: "/bundle", JavaStore: "/p12",
	}.Variables()
	for name, want := range map[string]string{
		"https_proxy": "http://127.0.0.1:3128", "NO_PROXY": "localhost,127.0.0.1,::1,api.test",
		"SSL_CERT_FILE": "/bundle", "GIT_SSL_CAINFO": "/bundle", // replace the roots
		"NODE_EXTRA_CA_CERTS": "/ca", "DENO_CERT": "/ca", // add one
		"JAVA_TOOL_OPTIONS": "-Djavax.net.ssl.trustStore=/p12 -Djavax.net.ssl.trustStoreType=PKCS12 " +
			"-Djavax.net.ssl.trustStorePassword=changeit -Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=3128 " +
			"-Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort=3128 -Dhttp.nonProxyHosts=localhost|127.*|[::1]|api.test",
	} {
		if got := variable(t, env, name); got != want {
			t.Errorf("%s = %s, want %s", name, got, want)
		}
	}
	left := []string{"ALL_PROXY", "all_proxy", "NODE_OPTIONS", "SSL_CERT_DIR", "NODE_TLS_REJECT_UNAUTHORIZED"}
	for _, v := range env {
		if name, _, _ := strings.Cut(v, "="); slices.Contains(left, name) {
			t.Errorf("%s is set", v)
		}
	}
}

// Each JVM prints JAVA_TOOL_OPTIONS to stderr, so a token must not be in it.
func TestTheTokenIsNotInJavasOptions(t *testing.T) {
	t.Parallel()
	env := trust.Environment{Proxy: "http://aileron:TOKEN@host.test:8080", JavaStore: "/p12"}.Variables()
	if got := variable(t, env, "JAVA_TOOL_OPTIONS"); strings.Contains(got, "TOKEN") || strings.Contains(got, "proxyHost") {
		t.Errorf("JAVA_TOOL_OPTIONS = %s", got)
	}
	if got := variable(t, env, "HTTPS_PROXY"); got != "http://aileron:TOKEN@host.test:8080" {
		t.Errorf("HTTPS_PROXY = %s", got)
	}
	for _, v := range (trust.Environment{Proxy: "http://127.0.0.1:1"}).Variables() {
		if strings.HasPrefix(v, "JAVA_") {
			t.Errorf("without a store: %s", v)
		}
	}
}
