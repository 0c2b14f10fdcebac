package main

import "strings"

// Where the session's CA stands inside a box. docs/trust.md explains each.
const (
	boxCA     = "/etc/aileron/proxy/ca.pem"     // the session CA alone
	boxBundle = "/etc/aileron/proxy/bundle.pem" // the system's roots and it
	boxJava   = "/etc/aileron/proxy/trust.p12"  // the same for Java
)

// mediationEnv is the environment that makes clients use the proxy and trust
// the session's CA. Variables that add a root get the CA, variables that
// replace the roots get the bundle. Left out on purpose: ALL_PROXY (SOCKS to
// some), NODE_OPTIONS (old Nodes refuse to start with flags they don't know),
// SSL_CERT_DIR, and every switch that turns verification off.
func mediationEnv(proxyURL, ca, bundle, java string, noProxy []string) []string {
	var env []string
	set := func(value string, names ...string) {
		for _, n := range names {
			env = append(env, n+"="+value)
		}
	}
	set(proxyURL, "HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy")
	set(strings.Join(noProxy, ","), "NO_PROXY", "no_proxy")
	set(bundle, "SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "GIT_SSL_CAINFO", "AWS_CA_BUNDLE", "PIP_CERT",
		"CARGO_HTTP_CAINFO", "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE", "PERL_LWP_SSL_CA_FILE", "CODEX_CA_CERTIFICATE")
	set(ca, "NODE_EXTRA_CA_CERTS", "DENO_CERT")
	set("1", "NODE_USE_ENV_PROXY", "UV_SYSTEM_CERTS")
	set("mozilla,system", "DENO_TLS_CA_STORE")
	if java != "" {
		host, port, _ := strings.Cut(strings.TrimPrefix(proxyURL, "http://"), ":")
		opts := "-Djavax.net.ssl.trustStore=" + java + " -Djavax.net.ssl.trustStoreType=PKCS12 -Djavax.net.ssl.trustStorePassword=changeit"
		if !strings.Contains(host, "@") { // Java's properties hold no proxy credentials
			opts += " -Dhttps.proxyHost=" + host + " -Dhttps.proxyPort=" + port + " -Dhttp.proxyHost=" + host + " -Dhttp.proxyPort=" + port +
				" -Dhttp.nonProxyHosts=" + javaHosts(noProxy)
		}
		set(opts, "JAVA_TOOL_OPTIONS")
	}
	return env
}

// javaHosts is a list of hosts as Java writes it: patterns with bars between,
// and IPv6 addresses in brackets.
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

// without removes the named variables from env.
func without(env []string, names ...string) []string {
	var kept []string
next:
	for _, e := range env {
		for _, n := range names {
			if strings.HasPrefix(e, n+"=") {
				continue next
			}
		}
		kept = append(kept, e)
	}
	return kept
}
