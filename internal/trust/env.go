package trust

import (
	"net/url"
	"strings"
)

// Environment is what clients learn from variables.
type Environment struct {
	Proxy     string   // the URL of an HTTP proxy
	NoProxy   []string // hosts that are reached without it
	CA        string   // the file of the root alone
	Bundle    string   // the file of all roots
	JavaStore string   // the file of all roots for Java; "" is none
}

// Variables returns the environment that makes clients use the proxy and trust
// the root. Variables that add a root name the CA, those that replace the roots
// name the bundle. Left out on purpose: ALL_PROXY (SOCKS to some), NODE_OPTIONS
// (old Nodes refuse to start with flags they don't know), SSL_CERT_DIR, and
// every switch that turns verification off.
func (e Environment) Variables() []string {
	var env []string
	set := func(value string, names ...string) {
		for _, n := range names {
			env = append(env, n+"="+value)
		}
	}
	set(e.Proxy, "HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy")
	set(strings.Join(e.NoProxy, ","), "NO_PROXY", "no_proxy")
	set(e.Bundle, "SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "GIT_SSL_CAINFO", "AWS_CA_BUNDLE", "PIP_CERT",
		"CARGO_HTTP_CAINFO", "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE", "PERL_LWP_SSL_CA_FILE", "CODEX_CA_CERTIFICATE")
	// Files of a project have precedence over those above, and these over them. npm reads any case of its variables,
	// and an image may have set the other.
	set(e.Proxy, "npm_config_https_proxy", "NPM_CONFIG_HTTPS_PROXY", "pnpm_config_https_proxy", "CARGO_HTTP_PROXY")
	set(strings.Join(e.NoProxy, ","), "npm_config_noproxy", "NPM_CONFIG_NOPROXY", "pnpm_config_noproxy")
	set(e.Bundle, "npm_config_cafile", "NPM_CONFIG_CAFILE", "pnpm_config_cafile")
	set(e.CA, "NODE_EXTRA_CA_CERTS", "DENO_CERT")
	set("1", "NODE_USE_ENV_PROXY", "UV_SYSTEM_CERTS")
	set("mozilla,system", "DENO_TLS_CA_STORE")
	return env
}

// JavaVariable is the variable from which every JVM takes options, and prints them to its standard error. It is for
// images whose Javas do not have the root in their own stores: see [Installed].
const JavaVariable = "JAVA_TOOL_OPTIONS"

// JavaOptions returns the system properties for a JVM, which reads no variables
// of proxies and roots; "" without a store.
func (e Environment) JavaOptions() string {
	if e.JavaStore == "" {
		return ""
	}
	options := "-Djavax.net.ssl.trustStore=" + e.JavaStore +
		" -Djavax.net.ssl.trustStoreType=PKCS12 -Djavax.net.ssl.trustStorePassword=changeit"
	proxy, err := url.Parse(e.Proxy)
	if err != nil || proxy.User != nil { // these properties hold no credentials, and each JVM prints them
		return options
	}
	host, port := proxy.Hostname(), proxy.Port()
	return options + " -Dhttps.proxyHost=" + host + " -Dhttps.proxyPort=" + port +
		" -Dhttp.proxyHost=" + host + " -Dhttp.proxyPort=" + port + " -Dhttp.nonProxyHosts=" + javaHosts(e.NoProxy)
}

// javaHosts returns a list of hosts as Java reads it: patterns with bars
// between, and IPv6 addresses in brackets.
func javaHosts(hosts []string) string {
	var out []string
	for _, h := range hosts {
		switch {
		case h == "127.0.0.1":
			h = "127.*"
		case strings.Contains(h, ":"):
			h = "[" + h + "]"
		}
		out = append(out, h)
	}
	return strings.Join(out, "|")
}

// Exports returns variables, each NAME=VALUE, as lines that a POSIX shell and fish evaluate.
func Exports(env []string) string {
	var lines strings.Builder
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		// In quotes a backslash is itself for the one and may be an escape for the other, so that it is outside of them.
		lines.WriteString("export " + name + "='" + strings.NewReplacer("'", `'\''`, `\`, `'\\'`).Replace(value) + "'\n")
	}
	return lines.String()
}
