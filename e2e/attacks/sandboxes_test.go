package attacks

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"io"
	"net"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/proxy"
)

// env: what a box does about its own network and its own trust. Boxes
// themselves are started elsewhere; here their bytes come to the plane as the
// gateway sends them.
func env() category {
	redirected := &fixture{door: proxy.Listener{Sealed: true, Redirected: true}}
	return category{name: "ENV", unrun: map[string]string{
		"ENV-01": "run elsewhere: TestNothingLeavesABox in e2e/seal, TestWhatIsNeitherTCPNorDNSFailsAtOnce and its " +
			"neighbours in sandbox/gateway",
		"ENV-04": "run elsewhere: TestNothingLeavesABox in e2e/seal; metadata addresses are IPX-07's",
		"ENV-05": "run elsewhere: TestNothingLeavesABox in e2e/seal and TestAgentsFinishAPromptWithKeysThatTheyNeverSee " +
			"in e2e search a box's files, environments and memory",
	}, cases: []attack{
		{id: "ENV-02", does: "other resolvers, other addresses for a name, and other kinds of proxy change no decision",
			f: redirected, run: func(c *testCase) {
				evil := places["evil.test"].String()
				query := base64.RawURLEncoding.EncodeToString([]byte("\x00\x00\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00" +
					"\x06stolen\x04evil\x04test\x00\x00\x01\x00\x01"))
				for name, t := range map[string]struct {
					connect, sni, host, target string
					want                       refusal
				}{
					"DNS over HTTPS by address": {"1.1.1.1:443", "", "1.1.1.1", "/dns-query?dns=" + query, hostNotAllowed},
					"DNS over HTTPS by name": {"1.1.1.1:443", "cloudflare-dns.com", "cloudflare-dns.com",
						"/dns-query?dns=" + query, hostNotAllowed},
					"DNS over TLS": {"1.1.1.1:853", "one.one.one.one", "one.one.one.one:853", "/", hostNotAllowed},
					"a name at its address": {places["evil.test"].String() + ":443", "evil.test", "evil.test", "/v1/items",
						hostNotAllowed},
					"connected to somewhere else": {"evil.test:443", "evil.test", "api.good.test", "/v1/items", otherAuthority},
					"the address of a name": {places["api.good.test"].String() + ":443", "", places["api.good.test"].String(),
						"/v1/items", hostNotAllowed},
				} {
					c.each(name, func(c *testCase) {
						l, a := c.connect(t.connect)
						c.rows++
						c.is("CONNECT", a, 200)
						cfg := named(first(t.sni, t.host))
						in, err := c.secure(l, cfg)
						if err != nil {
							c.failf("TLS: %v", err)
							return
						}
						a = c.say(in, head("GET", t.host, t.target), "GET")[0]
						c.refused("the request", a, t.want)
						c.untouched()
					})
				}
				// curl --resolve, or a line in /etc/hosts: the name is what counts.
				c.each("an allowed name at a foreign address", func(c *testCase) {
					l, a := c.connect(evil + ":443")
					c.rows++
					c.is("CONNECT", a, 200)
					in, err := c.secure(l, named("api.good.test"))
					c.must(err)
					c.is("the request", c.say(in, head("GET", "api.good.test", "/v1/items"), "GET")[0], 200)
					if n := len(c.hits("api.good.test")); n != 1 {
						c.failf("the name's own origin got %d requests", n)
					}
				})
				for name, hello := range map[string]string{"SOCKS 5": "\x05\x01\x00",
					"SOCKS 4": "\x04\x01\x01\xbb\x5d\xb8\xd7\x42\x00"} {
					c.each(name, func(c *testCase) {
						l := c.dial()
						c.rows++
						_, err := io.WriteString(l, hello+"\r\n\r\n")
						c.must(err)
						got, _ := io.ReadAll(l)
						if len(got) > 1 && (got[0] == 5 || got[0] == 0) {
							c.failf("it is served: %q", got)
						}
					})
				}
			}},
		{id: "ENV-07", does: "a CA of the box's own, and a proxy of its own that reads along, gain it nothing",
			run: envOwnCA},
		{id: "ENV-08", does: "each runtime's variable names a file that holds the session's CA; the runtimes themselves " +
			"are e2e/matrix's", run: envVariables},
	}}
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
