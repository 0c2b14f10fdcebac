package proxy_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/url"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/ca"
	"github.com/ALRubinger/aileron/internal/hostport"
	"github.com/ALRubinger/aileron/proxy"
	"github.com/ALRubinger/aileron/proxy/front"
	"github.com/ALRubinger/aileron/spec"
)

// tracker allows one operation on one host.
const tracker = `{"schema_version": "aileron.connector.v1",
 "connector": {"fqn": "github://acme/tracker", "version": "1.2.0"},
 "tools": [{"name": "tracker", "description": "Issue tracker", "operations": [
  {"name": "issues.list", "summary": "List issues", "method": "GET", "path": "/v1/issues",
   "hosts": ["api.tracker.example"], "credential": "bearer", "idempotency": "idempotent"}]}]}`

func trackerIndex() *spec.Index {
	connector, err := spec.Parse([]byte(tracker))
	if err != nil {
		log.Fatal(err)
	}
	index, err := spec.NewIndex([]*spec.Connector{connector})
	if err != nil {
		log.Fatal(err)
	}
	return index
}

// printer is an audit log that prints what was decided.
type printer struct{}

func (printer) Append(_ context.Context, r audit.Row) (audit.Row, error) {
	fmt.Println("row:", r.Decision, r.Method, r.Host, r.Path, r.Reason)
	return r, nil
}

func (p printer) AppendSoon(ctx context.Context, r audit.Row) error {
	_, err := p.Append(ctx, r)
	return err
}

// A plane serves a listener. Its client asks for what no connector allows, and
// reads why inside the tunnel.
func Example() {
	mitm, err := ca.NewSession(ca.Options{Session: "example"})
	if err != nil {
		log.Fatal(err)
	}
	plane, err := proxy.New(proxy.Config{Session: "example", Token: "t0ken", CA: mitm, Audit: printer{}})
	if err != nil {
		log.Fatal(err)
	}
	plane.SetGrants(&proxy.Grants{Index: trackerIndex()})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error)
	go func() { served <- front.New(plane).Serve(ctx, listener, front.Listener{}) }()

	roots := x509.NewCertPool()
	roots.AddCert(mitm.Root())
	through := &url.URL{Scheme: "http", Host: listener.Addr().String(), User: url.UserPassword("any", "t0ken")}
	client := &http.Client{Transport: &http.Transport{
		Proxy:           http.ProxyURL(through),
		TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
	}}
	res, err := client.Get("https://api.tracker.example/admin")
	if err != nil {
		log.Fatal(err)
	}
	var denial struct {
		Error struct {
			Class   string
			Granted []string
			Details struct{ Reason string }
		}
	}
	err = json.NewDecoder(res.Body).Decode(&denial)
	_ = res.Body.Close()
	fmt.Println("client:", res.StatusCode, denial.Error.Class, denial.Error.Details.Reason, err)

	client.CloseIdleConnections()
	cancel()
	<-served
	plane.Drain(context.Background())
	// Output:
	// row: rejected GET api.tracker.example /admin operation_not_matched
	// client: 403 capability_denied operation_not_matched <nil>
}

// Decide depends on nothing but the request and the connectors.
func ExampleDecide() {
	for _, target := range []string{"/v1/issues", "/v1/../v1/issues", "/v1/users"} {
		d := proxy.Decide(proxy.Question{
			Index:     trackerIndex(),
			Authority: hostport.Authority{Host: "api.tracker.example", Port: 443},
			Scheme:    "https",
			Method:    http.MethodGet,
			Target:    target,
			Host:      "api.tracker.example",
		})
		fmt.Printf("%s %t %q\n", target, d.Verdict == proxy.Allow, d.Reason)
	}
	// Output:
	// /v1/issues true ""
	// /v1/../v1/issues false "malformed_request"
	// /v1/users false "operation_not_matched"
}
