package attacks

import (
	"context"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ALRubinger/aileron/ca"
	"github.com/ALRubinger/aileron/e2e/harness"
)

// client is a program with a TLS stack of its own. It
// asks for an operation and must get its answer, which it can only when it
// trusts the session's leaf; and it must refuse the leaf without the CA.
type client struct {
	program  string
	prepared bool // scripts/prepare --tests installs it
	argv     func(x exchange) []string
	env      func(x exchange) []string
}

// exchange is the configuration of a client.
type exchange struct {
	proxy, token string // host:port and the session's token
	relay        string // host:port of a tunnel to the origin's name, for those that know no proxy
	ca, store    string // files: the trusted roots, as PEM and for Java
	dir          string // for a program of its own
}

func (x exchange) proxyURL() string { return "http://s:" + x.token + "@" + x.proxy }

const clientURL = "https://api.good.test/v1/items"

const request = "GET /v1/items HTTP/1.1\r\nHost: api.good.test\r\nConnection: close\r\n\r\n"

func clients() map[string]client {
	return map[string]client{
		"curl (OpenSSL)": {program: "curl", prepared: true, argv: func(x exchange) []string {
			return []string{"curl", "-sS", "--max-time", "30", "-x", x.proxyURL(), "--cacert", x.ca, clientURL}
		}},
		"openssl -x509_strict": {program: "openssl", prepared: true, argv: func(x exchange) []string {
			return []string{"openssl", "s_client", "-quiet", "-x509_strict", "-verify_return_error", "-verify_hostname",
				"api.good.test", "-CAfile", x.ca, "-no-CApath", "-no-CAstore",
				"-servername", "api.good.test", "-connect", x.relay}
		}},
		"gnutls-cli": {program: "gnutls-cli", prepared: true, argv: func(x exchange) []string {
			host, port, _ := net.SplitHostPort(x.relay)
			return []string{"gnutls-cli", "--x509cafile", x.ca, "--sni-hostname", "api.good.test", "--verify-hostname",
				"api.good.test", "-p", port, host}
		}},
		"python, strict": {program: "python3", prepared: true, argv: func(x exchange) []string {
			return []string{"python3", "testdata/clients/get.py", x.proxy, x.token, x.ca}
		}},
		"git (curl, GnuTLS)": {program: "git", prepared: true, argv: func(x exchange) []string {
			// which asks for what is not allowed, and must report that
			return []string{"git", "-c", "http.proxy=" + x.proxyURL(), "ls-remote", clientURL}
		}, env: func(x exchange) []string { return []string{"GIT_SSL_CAINFO=" + x.ca, "GIT_TERMINAL_PROMPT=0"} }},
		"wget": {program: "wget", prepared: true, argv: func(x exchange) []string {
			return []string{"wget", "-qO-", "--tries=1", "--timeout=30", "-e", "use_proxy=yes", "-e",
				"https_proxy=http://" + x.proxy, "--proxy-user=s", "--proxy-password=" + x.token,
				"--ca-certificate=" + x.ca, clientURL}
		}},
		"node": {program: "node",
			argv: func(x exchange) []string { return []string{"node", "testdata/clients/get.js", x.proxy, x.token} },
			env:  func(x exchange) []string { return []string{"NODE_EXTRA_CA_CERTS=" + x.ca} }},
		"java": {program: "java", argv: func(x exchange) []string {
			host, port, _ := net.SplitHostPort(x.proxy)
			return []string{"java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Djdk.http.auth.tunneling.disabledSchemes=",
				"-Djavax.net.ssl.trustStore=" + x.store, "-Djavax.net.ssl.trustStoreType=PKCS12",
				"-Djavax.net.ssl.trustStorePassword=changeit", "testdata/clients/Get.java", host, port, x.token}
		}},
		"gh (Go)": {program: "gh", prepared: true, argv: func(exchange) []string {
			return []string{"gh", "api", clientURL} // to another host than its own it sends no token
		}, env: func(x exchange) []string {
			return []string{"SSL_CERT_FILE=" + x.ca, "SSL_CERT_DIR=/nonexistent", "HTTPS_PROXY=" + x.proxyURL(),
				"GH_TOKEN=placeholder", "GH_NO_UPDATE_NOTIFIER=1"}
		}},
	}
}

// casClients: every TLS stack that this machine has takes the session's leaf
// when it is given the session's CA, and refuses it when it is not.
func casClients(c *testCase) {
	x := exchange{proxy: c.s.addr, token: c.s.token, dir: filepath.Join(on.dir, "clients")}
	c.must(os.MkdirAll(x.dir, 0o700))
	file := func(name string, data []byte) string {
		path := filepath.Join(x.dir, name)
		c.must(os.WriteFile(path, data, 0o600))
		return path
	}
	own, err := ca.JavaTrustStore(c.s.plane.ca.RootPEM())
	c.must(err)
	stranger, err := ca.NewSession(ca.Options{Session: "a stranger"})
	c.must(err)
	others, err := ca.JavaTrustStore(stranger.RootPEM())
	c.must(err)
	x.ca, x.store = file("ca.pem", c.s.plane.ca.RootPEM()), file("ca.p12", own)
	without := x
	without.ca, without.store = file("stranger.pem", stranger.RootPEM()), file("stranger.p12", others)
	here := clients()
	maps.DeleteFunc(here, func(name string, client client) bool {
		if client.prepared {
			return !harness.Has(c.t, client.program)
		}
		_, err := exec.LookPath(client.program)
		if t, whole := c.t.(*testing.T); whole && err != nil {
			t.Run(name, func(t *testing.T) { t.Skipf("%s is not installed; e2e/matrix runs it in a box", client.program) })
		}
		return err != nil
	})
	c.each("with its CA", func(c *testCase) {
		c.runClients(here, x, func(name, out string, err error) {
			if !trusts(name, out) {
				c.failf("%s: %v: %.400q", name, err, out)
			}
		})
	})
	c.each("with a stranger's CA", func(c *testCase) {
		c.runClients(here, without, func(name, out string, err error) {
			if err == nil || trusts(name, out) {
				c.failf("%s takes a leaf whose CA it does not have: %.400q", name, out)
			}
		})
		c.untouched()
	})
}

// runClients runs all of them at once.
func (c *testCase) runClients(all map[string]client, x exchange, judge func(name, out string, err error)) {
	c.rows = -1 // a handshake that fails is a row, a CONNECT that is asked for a token is one
	ctx, cancel := context.WithTimeout(c.t.Context(), c.s.patience)
	defer cancel()
	x.relay = c.relay(ctx)
	var running sync.WaitGroup
	for name, client := range all {
		running.Go(func() {
			out, err := runClient(ctx, client, x)
			c.plain(out)
			judge(name, out, err)
		})
	}
	running.Wait() // each ends with ctx
}

// trusts reports a client that got an answer inside its TLS: the operation's,
// or for git and gh, which ask for something else, the plane's refusal.
func trusts(name, out string) bool {
	if strings.HasPrefix(name, "git") {
		return strings.Contains(out, "returned error: 403") // its output names files, too, with random digits
	}
	return strings.HasSuffix(strings.TrimSpace(out), "hello") || strings.Contains(out, "\nhello")
}

// runClient runs a client, with a request on its standard input for those
// that only do TLS, and returns its output.
func runClient(ctx context.Context, client client, x exchange) (string, error) {
	argv := client.argv(x)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + x.dir, "JAVA_HOME=" + os.Getenv("JAVA_HOME")}
	if client.env != nil {
		cmd.Env = append(cmd.Env, client.env(x)...)
	}
	if slices.Contains([]string{"openssl", "gnutls-cli"}, client.program) {
		in, err := cmd.StdinPipe()
		if err != nil {
			return "", err
		}
		defer in.Close() // not before the answer is there: both end with their input
		go func() { _, _ = io.WriteString(in, request) }()
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// relay listens until ctx ends, and makes of each connection a tunnel to
// the origin's name.
func (c *testCase) relay(ctx context.Context) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	c.must(err)
	context.AfterFunc(ctx, func() { _ = l.Close() })
	at := l.Addr().String()
	c.reaches = func(d dial) bool { return d.to.String() == at }
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, a := c.connect("api.good.test")
			if a.status != 200 {
				_ = in.Close()
				continue
			}
			go func() { _, _ = io.Copy(out, in); out.end() }()
			go func() { _, _ = io.Copy(in, out); _ = in.Close() }()
		}
	}()
	return at
}
