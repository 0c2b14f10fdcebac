package attacks

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"net"
	"slices"
	"strings"
)

// env: what a box does about its own network and its own trust. Boxes
// themselves are started elsewhere; here their bytes come to the plane as the
// gateway sends them.
func env() category {
	return category{name: "ENV", unrun: map[string]string{
		"ENV-01": "run elsewhere: TestNothingLeavesABox in e2e/seal, TestWhatIsNeitherTCPNorDNSFailsAtOnce and its " +
			"neighbours in sandbox/gateway",
		"ENV-04": "run elsewhere: TestNothingLeavesABox in e2e/seal; metadata addresses are IPX-07's",
		"ENV-05": "run elsewhere: TestNothingLeavesABox in e2e/seal and TestAgentsFinishAPromptWithKeysThatTheyNeverSee " +
			"in e2e search a box's files, environments and memory",
	}, cases: join(written("sandboxes"), []attack{
		{id: "ENV-07", does: "a CA of the box's own, and a proxy of its own that reads along, gain it nothing",
			run: envOwnCA},
		{id: "ENV-08", does: "each runtime's variable names a file that holds the session's CA; the runtimes themselves " +
			"are e2e/matrix's", run: envVariables},
	})}
}

// named is a client that sends this server name, or none for an address.
func named(host string) *tls.Config {
	host, _, _ = strings.Cut(host, ":")
	return &tls.Config{ServerName: host}
}

func first(values ...string) string {
	return values[slices.IndexFunc(values, func(v string) bool { return v != "" })]
}

func envOwnCA(c *testCase) {
	own, err := newRoots()
	c.must(err)
	c.each("it reads along", func(c *testCase) {
		c.origin("api.good.test").plays((*visit).echo)
		leaf, err := own.leaf("api.good.test")
		c.must(err)
		l, err := tls.Listen("tcp", "127.0.0.1:0",
			&tls.Config{Certificates: []tls.Certificate{*leaf}, MinVersion: tls.VersionTLS12})
		c.must(err)
		defer l.Close()
		c.reaches = func(d dial) bool { return d.to.String() == l.Addr().String() }
		c.rows++
		go func() {
			client, err := l.Accept()
			if err != nil {
				return
			}
			defer client.Close()
			out := c.tunnel("api.good.test") // all that it reads is searched
			if out == nil {
				return
			}
			go func() { _, _ = io.Copy(out, client) }()
			_, _ = io.Copy(client, out)
		}()
		raw, err := net.Dial("tcp", l.Addr().String())
		c.must(err)
		cfg := named("api.good.test")
		cfg.RootCAs = x509.NewCertPool()
		cfg.RootCAs.AddCert(own.cert)
		in, err := c.secure(&line{Conn: raw}, cfg)
		c.must(err)
		_, err = io.WriteString(in, head("GET", "api.good.test", "/v1/echo"))
		c.must(err)
		a := readAnswer(bufio.NewReader(in), "GET")
		c.is("through it", a, 200)
		if !strings.Contains(a.body, "Bearer "+stars(40)) {
			c.failf("it was not injected and wiped: %s", a)
		}
		_ = in.Close()
	})
	c.elsewhere("it vouches for an origin", fixture{}, func(c *testCase) {
		leaf, err := own.leaf("api.good.test")
		c.must(err)
		c.origin("api.good.test").presents(&tls.Config{Certificates: []tls.Certificate{*leaf}, MinVersion: tls.VersionTLS12})
		a := c.get("api.good.test", "/v1/items")
		c.refused("the request", a, notVerified)
		c.untouched()
	})
}

// envVariables asks a command on the host what it was given.
func envVariables(c *testCase) {
	p := newPerson(c.t)
	p.install("plain")
	given := map[string]string{}
	const end = "-- the session's CA --"
	e := p.must("run", "--upstream-ca", on.rootsFile, "--", "sh", "-c",
		`env; for f in "$SSL_CERT_FILE" "$NODE_EXTRA_CA_CERTS"; do echo "`+end+`"; cat "$f"; done`)
	parts := strings.Split(e.out, end)
	if len(parts) != 3 {
		c.failf("it said %q", e.out)
		return
	}
	for l := range strings.Lines(parts[0]) {
		name, value, _ := strings.Cut(strings.TrimSpace(l), "=")
		given[name] = value
	}
	for _, name := range []string{"CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "GIT_SSL_CAINFO", "AWS_CA_BUNDLE", "PIP_CERT",
		"CARGO_HTTP_CAINFO"} {
		if given[name] != given["SSL_CERT_FILE"] || given[name] == "" {
			c.failf("%s is %q", name, given[name])
		}
	}
	if given["DENO_CERT"] != given["NODE_EXTRA_CA_CERTS"] || given["NODE_USE_ENV_PROXY"] != "1" {
		c.failf("Node and Deno are given %q, %q, %q", given["NODE_EXTRA_CA_CERTS"], given["DENO_CERT"],
			given["NODE_USE_ENV_PROXY"])
	}
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"} {
		if !strings.HasPrefix(given[name], "http://aileron:") {
			c.failf("%s is %q", name, given[name])
		}
	}
	alone, _ := pem.Decode([]byte(parts[2]))
	if alone == nil || !strings.Contains(parts[1], strings.TrimSpace(parts[2])) {
		c.failf("the bundle does not hold the session's CA")
	}
	for name, value := range given {
		if strings.Contains(strings.ToUpper(name), "INSECURE") || name == "NODE_TLS_REJECT_UNAUTHORIZED" ||
			name == "GIT_SSL_NO_VERIFY" || name == "AILERON_VAULT_PASSPHRASE" {
			c.failf("it is given %s=%s", name, value)
		}
	}
}
