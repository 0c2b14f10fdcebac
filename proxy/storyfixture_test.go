package proxy_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/ca"
	"github.com/ALRubinger/aileron/proxy"
	"github.com/ALRubinger/aileron/proxy/approval"
	"github.com/ALRubinger/aileron/proxy/front"
	"github.com/ALRubinger/aileron/proxy/meter"
	"github.com/ALRubinger/aileron/proxy/scrub"
	"github.com/ALRubinger/aileron/proxy/upstream"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/vault"
)

const (
	storySecret = "tr4ck3r/Pa+t_9f8e7d6c5b4a39281706"
	storyToken  = "the-session-token"
	storyFQN    = "github://acme/tracker"
)

// fixture is a plane between a client that writes bytes and an origin that does.
type fixture struct {
	t      *testing.T
	origin *storyOrigin
	plane  *proxy.Plane
	path   string // of the audit log
	log    *audit.Log
	addr   string // of the plane's listener
	roots  *x509.CertPool
	queue  *approval.Queue // nil: there is no person to ask
	kept   net.Conn        // the tunnel of the last exchange
	reader *bufio.Reader
	stop   func()
}

// storyListener returns the listener of a story's session, which may have a model endpoint.
func storyListener(session string) front.Listener {
	if !strings.Contains(session, "model: tracker") {
		return front.Listener{}
	}
	return front.Listener{Models: []front.Model{{Name: "tracker", Host: "api.tracker.example", Base: "/v1",
		Keys: []string{modelKey}}}}
}

// newFixtureAt returns a fixture of a session's settings, with a listener that has more than these say, and operations
// of another connector.
func newFixtureAt(t *testing.T, session, operation string, at front.Listener, others ...string) *fixture {
	t.Helper()
	set := settings(t, session, "egress", "vault", "binding", "listener", "approval", "budget", "model")
	mitm, err := ca.NewSession(ca.Options{Session: "story"})
	check(t, err)
	f := &fixture{t: t, origin: newStoryOrigin(t), path: filepath.Join(t.TempDir(), "audit.db"), roots: x509.NewCertPool()}
	f.roots.AddCert(mitm.Root())
	f.log, err = audit.Open(f.path, audit.Options{})
	check(t, err)
	cfg := proxy.Config{Session: "01STORY", Token: storyToken, CA: mitm, Audit: f.log,
		Passthrough: set["egress"] == "passthrough",
		Ledger:      ledgerOf(t, set["budget"]),
		Upstream:    upstream.Options{Dial: time.Hour, Roots: f.origin.roots, Resolve: f.origin.pins()}}
	if set["approval"] != "" {
		f.queue = f.decides(set["approval"])
		if cfg.Approvals = f.queue; set["approval"] == "undecided" {
			cfg.Hold = time.Millisecond
		}
	}
	f.plane, err = proxy.New(cfg)
	check(t, err)
	f.grant(set, operation, others...)
	at.Sealed = set["listener"] == "sealed"
	f.serve(at)
	return f
}

// grant installs the story's connector and binds its credential, and installs another one, which has none.
func (f *fixture) grant(set map[string]string, operation string, others ...string) {
	f.t.Helper()
	var connectors []*spec.Connector
	bound := map[spec.FQN]proxy.Bound{}
	if operation != "" {
		text, manifest := operations(f.t, "tracker", operation)
		c, err := spec.Load([]byte(manifest), []byte(text))
		check(f.t, err)
		connectors = append(connectors, c)
		secret, err := vault.NewSecret([]byte(storySecret))
		check(f.t, err)
		if kind := kindOf(operation); kind != "" && set["binding"] != "none" && set["vault"] != "locked" {
			credential := vault.Credential{Kind: kind, Secret: secret}
			if kind == "basic" {
				credential.Username = "ann"
			}
			bound[storyFQN] = proxy.Bound{Binding: kind + "/tracker/work", Credential: credential}
		}
	}
	for _, other := range others {
		if other != "" {
			text, manifest := operations(f.t, "other", other)
			c, err := spec.Load([]byte(manifest), []byte(text))
			check(f.t, err)
			connectors = append(connectors, c)
		}
	}
	index, err := spec.NewIndex(connectors)
	check(f.t, err)
	f.plane.SetGrants(&proxy.Grants{Index: index, Bound: bound, Locked: set["vault"] == "locked",
		Scrub: scrub.NewSet([]scrub.Credential{{Secret: []byte(storySecret), Username: "ann"}})})
}

func (f *fixture) serve(listener front.Listener) {
	f.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(f.t, err)
	f.addr = l.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan struct{})
	go func() { defer close(served); _ = front.New(f.plane).Serve(ctx, l, listener) }()
	f.stop = func() { f.plane.Drain(context.Background()); cancel(); <-served }
}

// decides returns a queue whose questions a person decides as soon as they are asked, as the story says.
func (f *fixture) decides(how string) (q *approval.Queue) {
	q = approval.New(approval.Options{
		Record: func(ctx context.Context, event audit.Event, q *approval.Question, fields map[string]any) error {
			row := audit.Row{Event: event, Source: audit.SourceCLI, Operation: q.Operation, Binding: q.Binding,
				Method: q.Method, Scheme: q.Scheme, Host: q.Host, Port: q.Port, Path: q.Path, Fields: fields}
			_, err := f.log.Append(ctx, row)
			return err
		},
		Opened: func(asked approval.Question) {
			if how == "undecided" {
				return
			}
			go func() {
				d := approval.Decision{Approve: how == "approved", For: approval.Once, Surface: "cli"}
				if _, err := q.Decide(context.Background(), asked.ID, d); err != nil {
					f.t.Errorf("decide: %v", err)
				}
			}()
		},
	})
	return q
}

// close ends the session, and returns its rows.
func (f *fixture) close() string {
	f.t.Helper()
	if f.kept != nil {
		_ = f.kept.Close()
	}
	f.stop()
	if f.queue != nil {
		f.queue.Close()
	}
	check(f.t, f.log.Close())
	log, err := audit.Open(f.path, audit.Options{})
	check(f.t, err)
	defer log.Close()
	rows, err := log.List(context.Background(), audit.Filter{})
	check(f.t, err)
	var text strings.Builder
	for _, r := range rows {
		text.WriteString(rowText(f.t, r))
	}
	return text.String()
}

// rowText returns a row in one line: what a reviewer asks for first, and its fields.
func rowText(t *testing.T, r audit.Row) string {
	t.Helper()
	parts := []string{fmt.Sprint(r.Event)}
	if r.Status != 0 {
		parts = append(parts, fmt.Sprint(r.Status))
	}
	if r.Method != "" {
		parts = append(parts, r.Method)
	}
	if r.Host != "" {
		parts = append(parts, fmt.Sprintf("%s://%s:%d%s", r.Scheme, r.Host, r.Port, r.Path))
	}
	if r.Operation != "" {
		parts = append(parts, "["+r.Operation+"]")
	}
	for _, named := range []struct{ name, value string }{{"binding", r.Binding}, {"reason", fmt.Sprint(r.Reason)}} {
		if named.value != "" {
			parts = append(parts, named.name+"="+named.value)
		}
	}
	if r.Redactions > 0 {
		parts = append(parts, fmt.Sprintf("redactions=%d", r.Redactions))
	}
	for _, varies := range []string{"request_id", "ttfb_us", "approval_id", "waited_ms"} {
		delete(r.Fields, varies)
	}
	if len(r.Fields) > 0 {
		fields, err := json.Marshal(r.Fields)
		check(t, err)
		parts = append(parts, string(fields))
	}
	return strings.Join(parts, " ") + "\n"
}

// send sends what a client section holds, in a tunnel of its own unless how names another, and returns what came.
func (f *fixture) send(how, tunnel, text string) string {
	f.t.Helper()
	set := settings(f.t, tunnel, "CONNECT", "SNI", "TLS", "Host", "Proxy-Authorization")
	ctx, cancel := context.WithTimeout(f.t.Context(), 5*time.Minute)
	defer cancel()
	if how == "client over HTTP/2" {
		return f.sendH2(ctx, text)
	}
	if how != "client, on the same connection" {
		if f.kept != nil {
			_ = f.kept.Close()
		}
		if refused := f.dial(ctx, set, hostOf(text)); refused != "" {
			return refused
		}
	}
	method := write(f.t, f.kept, strings.ReplaceAll(text, "{self}", f.addr))
	return readResponse(f.reader, method)
}

// dial opens the tunnel that the settings say; the default leads to the host of the request. It returns what the
// plane answered instead of opening it.
func (f *fixture) dial(ctx context.Context, set map[string]string, host string) (refused string) {
	f.t.Helper()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", f.addr)
	check(f.t, err)
	deadline, _ := ctx.Deadline()
	check(f.t, conn.SetDeadline(deadline))
	f.kept, f.reader = conn, bufio.NewReader(conn)
	target := set["CONNECT"]
	if target == "none" {
		return ""
	}
	if target == "" {
		target = host + ":443"
	}
	head := "CONNECT " + target + " HTTP/1.1\r\n"
	if value := cmp.Or(set["Host"], target); value != "none" {
		head += "Host: " + value + "\r\n"
	}
	if value := cmp.Or(set["Proxy-Authorization"], "Bearer "+storyToken); value != "none" {
		head += "Proxy-Authorization: " + value + "\r\n"
	}
	_, err = io.WriteString(conn, head+"\r\n")
	check(f.t, err)
	var answer bytes.Buffer
	res, err := http.ReadResponse(bufio.NewReader(io.TeeReader(f.reader, &answer)),
		&http.Request{Method: http.MethodConnect})
	check(f.t, err)
	if res.StatusCode != http.StatusOK {
		return "[in response to CONNECT]\n" + readResponse(bufio.NewReader(io.MultiReader(&answer, f.reader)), "GET")
	}
	if set["TLS"] == "no" {
		return ""
	}
	name, _, err := net.SplitHostPort(target)
	check(f.t, err)
	client := tls.Client(conn, &tls.Config{RootCAs: f.roots, ServerName: cmp.Or(set["SNI"], name),
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"http/1.1"}, InsecureSkipVerify: set["SNI"] != ""})
	if err := client.HandshakeContext(ctx); err != nil {
		return "[the TLS handshake failed]\n"
	}
	f.kept, f.reader = client, bufio.NewReader(client)
	return ""
}

// sendH2 sends a request over HTTP/2 by Go's client.
func (f *fixture) sendH2(ctx context.Context, text string) string {
	f.t.Helper()
	head, body, _ := strings.Cut(text, "\n\n")
	req, err := http.ReadRequest(bufio.NewReader(strings.NewReader(strings.ReplaceAll(head, "\n", "\r\n") + "\r\n\r\n")))
	check(f.t, err)
	req = req.WithContext(ctx)
	req.RequestURI, req.URL.Scheme, req.URL.Host = "", "https", req.Host
	req.Body, req.ContentLength = http.NoBody, 0
	if body = strings.TrimSuffix(body, "\n"); body != "" {
		req.Body, req.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
	}
	door := &url.URL{Scheme: "http", Host: f.addr, User: url.UserPassword("x", storyToken)}
	transport := &http.Transport{Proxy: http.ProxyURL(door), ForceAttemptHTTP2: true, DisableCompression: true,
		TLSClientConfig: &tls.Config{RootCAs: f.roots, MinVersion: tls.VersionTLS12}}
	defer transport.CloseIdleConnections()
	res, err := transport.RoundTrip(req)
	check(f.t, err)
	defer res.Body.Close()
	return responseText(res)
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// ledgerOf returns the ledger of a session with a limit, as NAME=N.
func ledgerOf(t *testing.T, limit string) *meter.Ledger {
	t.Helper()
	if limit == "" {
		return nil
	}
	name, n, _ := strings.Cut(limit, "=")
	most, err := strconv.ParseInt(n, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return meter.New(meter.Options{Limits: meter.Limits{name: most}})
}
