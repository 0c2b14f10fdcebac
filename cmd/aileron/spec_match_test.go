package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/ca"
	speccmd "github.com/ALRubinger/aileron/cmd/aileron/internal/spec"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/proxy"
	"github.com/ALRubinger/aileron/proxy/front"
	"github.com/ALRubinger/aileron/proxy/upstream"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/store"
	"github.com/ALRubinger/aileron/vault"
)

const decideManifest = `[connector]
name = "github://acme/tracker"
version = "1.2.0"
[capabilities.network]
hosts = ["api.good.test", "any.good.test", "plain.good.test:80", "*.wild.test"]
[capabilities.credential]
kind = "bearer"
[provides]
intents = ["test"]
`

const decideSpec = `{"schema_version":"aileron.connector.v1",
"connector":{"fqn":"github://acme/tracker","version":"1.2.0"},
"tools":[{"name":"tracker","operations":[
 {"name":"list","method":"GET","path":"/repos/{owner}/{repo}/issues","hosts":["api.good.test"],"credential":"bearer"},
 {"name":"search","method":"GET","path":"/search","hosts":["api.good.test"],
  "credential":"bearer","inputs":[{"name":"q"}]},
 {"name":"merge","method":"POST","path":"/merge","hosts":["api.good.test"],"credential":"bearer","approval":"required"},
 {"name":"wild","method":"GET","path":"/v1/{rest...}","hosts":["*.wild.test"]},
 {"name":"any","hosts":["any.good.test","plain.good.test:80"]}]}]}`

// decisions is a plane that can reach nothing, so that a request which the
// policy allows ends with a network error, and the command beside it.
type decisions struct {
	runner
	addr  string
	roots *x509.CertPool
}

func newDecisions(t *testing.T) decisions {
	t.Helper()
	c := newRunner(t)
	dir := t.TempDir()
	for name, text := range map[string]string{"manifest.toml": decideManifest, "aileron.connector.v1.json": decideSpec} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	c.ok("connector", "install", dir, "--yes")
	s := must.Get(store.Open(filepath.Join(c.Flag, "store")))(t)
	connectors, broken := s.Current()
	if len(broken) > 0 {
		t.Fatal(broken)
	}
	index := must.Get(spec.NewIndex(connectors))(t)
	secret := must.Get(vault.NewSecret([]byte("S1-secret-of-the-table")))(t)
	authority := must.Get(ca.NewSession(ca.Options{Session: "table"}))(t)
	log := must.Get(audit.Open(filepath.Join(t.TempDir(), "audit.db"), audit.Options{}))(t)
	closed := netip.MustParseAddrPort("127.0.0.1:1")
	pins := map[string]netip.AddrPort{"x.wild.test:443": closed, "any.good.test:443": closed, "plain.good.test:80": closed,
		"api.good.test:443": closed}
	plane := must.Get(proxy.New(proxy.Config{Session: "01TABLE", Token: "t", CA: authority, Audit: log,
		Upstream: upstream.Options{Resolve: pins}}))(t)
	plane.SetGrants(&proxy.Grants{Index: index, Bound: map[spec.FQN]proxy.Bound{
		"github://acme/tracker": {Binding: "bearer/tracker/x", Credential: vault.Credential{Kind: "bearer",
			Secret: secret}}}})
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan struct{})
	go func() { defer close(served); _ = front.New(plane).Serve(ctx, l, front.Listener{Sealed: true}) }()
	t.Cleanup(func() { cancel(); <-served; plane.Drain(context.Background()); must.Do(t, log.Close()) })
	roots := x509.NewCertPool()
	roots.AddCert(authority.Root())
	return decisions{c, l.Addr().String(), roots}
}

// verdict of a request: "allowed", or the reason of its denial.
func (d decisions) verdict(conn net.Conn, head string) string {
	d.t.Helper()
	_ = conn.SetDeadline(time.Now().Add(patience))
	must.Get(io.WriteString(conn, head))(d.t)
	return d.read(conn, head)
}

func (d decisions) read(from io.Reader, head string) string {
	d.t.Helper()
	res, err := http.ReadResponse(bufio.NewReader(from), nil)
	if err == nil {
		defer res.Body.Close()
	}
	if err != nil {
		d.t.Fatalf("%q: %v", head, err)
	}
	body := must.Get(io.ReadAll(res.Body))(d.t)
	var e struct {
		Error struct {
			Class   string
			Details struct{ Reason string }
		}
	}
	if err := json.Unmarshal(body, &e); err != nil || e.Error.Class == "" {
		d.t.Fatalf("%q: %d %q", head, res.StatusCode, body)
	}
	if e.Error.Class == "network_error" {
		return "allowed"
	}
	return e.Error.Class + " " + e.Error.Details.Reason
}

func (d decisions) dial() net.Conn {
	conn := must.Get(net.Dial("tcp", d.addr))(d.t)
	return conn
}

// forwarded asks for a URL in absolute form.
func (d decisions) forwarded(method, raw string) string {
	conn := d.dial()
	defer conn.Close()
	return d.verdict(conn, fmt.Sprintf("%s %s HTTP/1.0\r\n\r\n", method, raw))
}

const established = "HTTP/1.1 200 Connection Established\r\n\r\n"

// tunnelled asks for a URL as most clients do: in TLS, behind a CONNECT.
func (d decisions) tunnelled(method, raw string) string {
	scheme, rest, _ := strings.Cut(raw, "://")
	end := strings.IndexAny(rest+"/", "/?")
	named, target := rest[:end], rest[end:]
	if !strings.HasPrefix(target, "/") {
		target = "/" + target
	}
	at := named
	if !regexp.MustCompile(`:\d+$`).MatchString(named) {
		at += map[string]string{"https": ":443", "http": ":80"}[scheme]
	}
	conn := d.dial()
	defer conn.Close()
	fmt.Fprintf(conn, "CONNECT %s HTTP/1.0\r\n\r\n", at)
	answer := must.Get(io.ReadAll(io.LimitReader(conn, int64(len(established)))))(d.t)
	if string(answer) != established {
		rest, _ := io.ReadAll(conn)
		return d.read(io.MultiReader(bytes.NewReader(answer), bytes.NewReader(rest)), at)
	}
	head := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", method, target, named)
	if scheme == "http" {
		return d.verdict(conn, head)
	}
	authority, _, _ := proxy.ParseURL(raw)
	secure := tls.Client(conn, &tls.Config{ServerName: authority.Host, RootCAs: d.roots, MinVersion: tls.VersionTLS12})
	must.Do(d.t, secure.Handshake())
	return d.verdict(secure, head)
}

// asked is what the command says, in the words of verdict.
func (d decisions) asked(method, raw string) string {
	out, errs, code := d.run("spec", "match", method, raw, "--json")
	if code == 2 {
		return "usage: " + errs
	}
	j := decode[speccmd.MatchJSON](d.t, out)
	if (j.Verdict == "allowed") != (code == 0) || (j.Verdict == "allowed") != (j.Reason == "") {
		d.t.Errorf("%s %s: exit %d with %+v", method, raw, code, j)
	}
	if j.Verdict == "allowed" {
		return "allowed"
	}
	return j.Class + " " + j.Reason
}

// The command's verdict is the proxy's, in a tunnel and in absolute form.
func TestSpecMatchIsTheProxysDecision(t *testing.T) {
	d := newDecisions(t)
	type row struct{ method, raw, want string }
	const (
		malformed = "invalid_request malformed_request"
		host      = "capability_denied host_not_allowed"
		operation = "capability_denied operation_not_matched"
	)
	rows := []row{
		{"GET", "https://api.good.test/repos/a/b/issues", "allowed"},
		{"GET", "https://api.good.test/repos/%41/b/issues", malformed},
		{"GET", "https://api.good.test/repos/a%0Ab/b/issues", malformed},
		{"GET", "https://api.good.test/repos/%C3/b/issues", malformed},
		{"GET", "https://api.good.test/repos/%F0%9F%98%80/b/issues", "allowed"},
		{"GET", "https://api.good.test/repos/%c0%ae/b/issues", malformed},
		{"GET", "https://api.good.test/repos/../b/issues", malformed},
		{"GET", "https://api.good.test/repos/%2e%2e/b/issues", malformed},
		{"GET", "https://api.good.test/repos/a;x/b/issues", malformed},
		{"GET", "https://api.good.test/repos/a%3Bx/b/issues", operation},
		{"GET", "https://api.good.test/repos/a%2Fb/b/issues", malformed},
		{"GET", "https://api.good.test/repos/a%5Cb/b/issues", malformed},
		{"GET", "https://api.good.test/repos/a\\b/b/issues", malformed},
		{"GET", "https://api.good.test//repos/a/b/issues", malformed},
		{"GET", "https://api.good.test/repos/a/b/issues/", operation},
		{"GET", "https://api.good.test/repos/a%/b/issues", malformed},
		{"GET", "https://api.good.test/repos/a%4/b/issues", malformed},
		{"GET", "https://api.good.test/repos/a\xff/b/issues", malformed},
		{"GET", "https://api.good.test/repos/ä/b/issues", malformed},
		{"GET", "https://api.good.test/repos/a/b/issues?state=open&x;y", malformed},
		{"GET", "https://api.good.test/repos/a/b/issues?state=%zz&%zz=1", malformed},
		{"GET", "https://api.good.test/search?q=x", "allowed"},
		{"GET", "https://api.good.test/search?x=q", "capability_denied query_not_declared"},
		{"GET", "https://api.good.test/search?%zz=q", "capability_denied query_not_declared"},
		{"POST", "https://api.good.test/merge", "approval_required approval_required"},
		{"POST", "https://api.good.test/repos/a/b/issues", operation},
		{"FOO", "https://api.good.test/repos/a/b/issues", operation},
		{"OPTIONS", "https://api.good.test/search", operation}, // an answer to HEAD has no body to read a reason from
		{"CONNECT", "https://api.good.test/search", malformed},
		{"GET", "https://API.Good.Test/search", "allowed"},
		{"GET", "https://api.good.test:443/search", "allowed"},
		{"GET", "https://api.good.test:8443/search", host},
		{"GET", "https://api.good.test:0443/search", malformed},
		{"GET", "https://api.good.test:65979/search", malformed},
		{"GET", "https://api.good.test./search", "allowed"},
		{"GET", "https://u@api.good.test/search", malformed},
		{"GET", "https://u:p@api.good.test/search", malformed},
		{"GET", "https://evil.test/", host},
		{"GET", "https://127.0.0.1/", host},
		{"GET", "https://[::1]/", host},
		{"GET", "https://2130706433/", malformed},
		{"GET", "https://x.wild.test/v1/a/b", "allowed"},
		{"GET", "https://x.y.wild.test/v1/a/b", host},
		{"GET", "https://any.good.test/a%2Fb/%41//..;x", "allowed"},
		{"PUT", "https://any.good.test/a?x;y", "allowed"},
		{"GET", "https://any.good.test/a\"b", "allowed"}, // nothing depends on its path
		{"GET", "https://any.good.test/a%zz", malformed},
		{"GET", "https://any.good.test", "allowed"},
		{"GET", "https://any.good.test?x=1", "allowed"},
		{"GET", "http://plain.good.test/a", "allowed"},
		{"GET", "http://api.good.test/search", host},
	}
	for _, target := range fuzzedTargets(t) {
		rows = append(rows, row{"GET", "https://api.good.test" + target, ""}, row{"GET", "https://any.good.test" + target,
			""})
	}
	if len(rows) < 70 {
		t.Fatalf("the table has %d rows: the corpus was not read", len(rows))
	}
	for _, r := range rows {
		asked, tunnelled := d.asked(r.method, r.raw), ""
		if r.method == "CONNECT" {
			tunnelled = malformed // there is no such thing outside a tunnel
		} else if f := d.forwarded(r.method, r.raw); f != asked {
			t.Errorf("%s %q: spec match says %s, the proxy %s", r.method, r.raw, asked, f)
		}
		if tunnelled == "" {
			tunnelled = d.tunnelled(r.method, r.raw)
		}
		if asked != tunnelled || r.want != "" && asked != r.want {
			t.Errorf("%s %q: spec match says %s, a tunnel %s, want %s", r.method, r.raw, asked, tunnelled, r.want)
		}
	}
}

// fuzzedTargets are the paths among the seeds of proxy's FuzzTarget.
func fuzzedTargets(t *testing.T) []string {
	files := must.Get(filepath.Glob("../../proxy/testdata/fuzz/FuzzTarget/*"))(t)
	var targets []string
	for _, f := range files {
		data := must.Get(os.ReadFile(f))(t)
		line := strings.Split(string(data), "\n")[1]
		s := must.Get(strconv.Unquote(strings.TrimSuffix(strings.TrimPrefix(line, "string("), ")")))(t)
		if strings.HasPrefix(s, "/") && !strings.ContainsAny(s, "#") {
			targets = append(targets, s)
		}
	}
	return targets
}
