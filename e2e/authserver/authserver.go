// Package authserver starts e2e/oauthserver, a real authorization server with an API that takes its tokens, for a test.
// [Start] starts it under the names [Accounts], those of [API] and Google's, to which [Server.Reach] leads aileron.
package authserver

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/must"
)

// Accounts is the host of the authorization server.
const Accounts = "accounts.example.com"

// Google is a service: the server responds to what the connector google of the catalogue asks too.
const Google = "gmail.googleapis.com"

// googles are the hosts at which that connector's logins are made and renewed.
var googles = []string{"accounts.google.com", "oauth2.googleapis.com"}

// API returns the host of a service; all services are one, and take each other's tokens.
func API(service string) string {
	if service == Google {
		return Google
	}
	return service + ".example.com"
}

// The clients that the server knows. The secret of a native one is distributed with it, as Google's are.
const (
	Public       = "native-public"
	Native       = "native-with-secret"
	NativeSecret = "GOCSPX-native/SECRET+0123456789abcdef"
	Machine      = "machine"
	MachSecret   = "machine-SECRET/0123456789+abcdefXYZ"
)

// Options are those of a server.
type Options struct {
	Build string        // the program; see [Program]
	Life  time.Duration // of access tokens, in whole seconds; 0: an hour
	Pause time.Duration // of a device between two questions, in whole seconds; 0: a second
	Slow  time.Duration // how long a client waits for its tokens when they are issued
	Iss   string        // the issuer that redirects name (RFC 9207); "": they name none
}

// Program is the package that Build must have been built from, relative to a directory of e2e.
const Program = "../oauthserver"

// Server is a server that runs until its test ends.
type Server struct {
	Addr  string // where it listens, host:port
	Roots string // the file with the root of its certificate

	admin string
	pool  *x509.CertPool
}

// Start starts a server.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	dir := must.ShortDir(t)
	s := &Server{Roots: filepath.Join(dir, "root.pem")}
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	s.makeCertificate(t, cert, key)
	clients := filepath.Join(dir, "clients.json")
	text := must.Get(json.Marshal([]map[string]string{{"id": Public}, {"id": Native, "secret": NativeSecret},
		{"id": Machine, "secret": MachSecret}}))(t)
	must.Do(t, os.WriteFile(clients, text, 0o600))

	args := []string{"--cert", cert, "--key", key, "--clients", clients, "--issuer", "https://" + Accounts,
		"--slow", o.Slow.String()}
	if o.Life != 0 {
		args = append(args, "--ttl", o.Life.String())
	}
	if o.Pause != 0 {
		args = append(args, "--interval", o.Pause.String())
	}
	if o.Iss != "" {
		args = append(args, "--iss", o.Iss)
	}
	cmd := exec.Command(o.Build, args...)
	cmd.Stderr = os.Stderr
	in := must.Get(cmd.StdinPipe())(t)
	out := must.Get(cmd.StdoutPipe())(t)
	must.Do(t, cmd.Start())
	t.Cleanup(func() {
		_ = in.Close() // ends it
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadBytes('\n')
	var ready struct{ Address, Admin string }
	if err == nil {
		err = json.Unmarshal(line, &ready)
	}
	if err != nil {
		t.Fatalf("the authorization server printed %q: %v", line, err)
	}
	s.Addr, s.admin = ready.Address, ready.Admin
	return s
}

// makeCertificate writes a certificate for all names of a server, its key, and the root that it is of.
func (s *Server) makeCertificate(t testing.TB, cert, key string) {
	t.Helper()
	rootKey := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	leafKey := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	root := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authserver root"},
		NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(48 * time.Hour), IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	leaf := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: Accounts},
		NotBefore: root.NotBefore, NotAfter: root.NotAfter,
		DNSNames:    append([]string{Accounts, "*.example.com", Google}, googles...),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, KeyUsage: x509.KeyUsageDigitalSignature}
	rootDER := must.Get(x509.CreateCertificate(rand.Reader, root, root, rootKey.Public(), rootKey))(t)
	leafDER := must.Get(x509.CreateCertificate(rand.Reader, leaf, root, leafKey.Public(), rootKey))(t)
	keyDER := must.Get(x509.MarshalPKCS8PrivateKey(leafKey))(t)
	for file, block := range map[string]*pem.Block{s.Roots: {Type: "CERTIFICATE", Bytes: rootDER},
		cert: {Type: "CERTIFICATE", Bytes: leafDER}, key: {Type: "PRIVATE KEY", Bytes: keyDER}} {
		must.Do(t, os.WriteFile(file, pem.EncodeToMemory(block), 0o600))
	}
	s.pool = x509.NewCertPool()
	s.pool.AddCert(must.Get(x509.ParseCertificate(rootDER))(t))
}

// Reach returns the flags with which aileron reaches the server: its root, and its address for where logins are made
// and for services.
func (s *Server) Reach(services ...string) []string {
	flags := []string{"--upstream-ca", s.Roots}
	hosts := append([]string{Accounts}, googles...)
	for _, service := range services {
		hosts = append(hosts, API(service))
	}
	for _, host := range hosts {
		flags = append(flags, "--resolve", host+":443:"+s.Addr)
	}
	return flags
}

// Client returns a client for which every name leads to the server. It follows no redirects.
func (s *Server) Client() *http.Client {
	var dialer net.Dialer
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{RootCAs: s.pool, MinVersion: tls.VersionTLS12},
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, network, s.Addr)
		}}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// LogIn allows what a page of the server asks for, as a person named login, or denies it if login is "". It returns the
// address at which the person's browser ends.
func (s *Server) LogIn(t testing.TB, page, login string, scopes ...string) string {
	t.Helper()
	form := url.Values{"login": {login}, "decision": {"allow"}, "granted": scopes}
	if login == "" {
		form.Set("decision", "deny")
	}
	res := s.Post(t, page, form)
	to := res.Header.Get("Location")
	if to == "" {
		t.Fatalf("the login at %s ends with %d and no redirect: %s", page, res.Status, res.Body)
	}
	return to
}

// Response is a response that was read.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
}

// Post sends a form.
func (s *Server) Post(t testing.TB, address string, form url.Values) Response {
	t.Helper()
	req := must.Get(http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(form.Encode())))(t)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return s.Do(t, req)
}

// Do sends a request.
func (s *Server) Do(t testing.TB, req *http.Request) Response {
	t.Helper()
	return do(t, s.Client(), req)
}

func do(t testing.TB, client *http.Client, req *http.Request) Response {
	t.Helper()
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	return Response{res.StatusCode, res.Header, must.Get(io.ReadAll(res.Body))(t)}
}

// State is what a server has done, and which tokens are live.
type State struct {
	TokenRequests int `json:"token_requests"`
	Refreshes     int // that gave a new token
	Reuses        int // of a refresh token that was rotated
	Revocations   int // requests to revoke a token
	APIRequests   int `json:"api_requests"`
	APIRefusals   int `json:"api_refusals"` // with 401
	Logins        map[string]struct{ Access, Refresh int }
}

// State returns the state of now.
func (s *Server) State(t testing.TB) (state State) {
	t.Helper()
	must.Do(t, json.Unmarshal(s.ask(t, http.MethodGet, "state"), &state))
	return state
}

// Secrets returns every token, code and client's secret that the server has issued or has.
func (s *Server) Secrets(t testing.TB) (secrets []string) {
	t.Helper()
	must.Do(t, json.Unmarshal(s.ask(t, http.MethodGet, "secrets"), &secrets))
	return secrets
}

// Revoke revokes all tokens of a login.
func (s *Server) Revoke(t testing.TB, login string) {
	t.Helper()
	s.ask(t, http.MethodPost, "revoke?login="+url.QueryEscape(login))
}

// Expire expires all access tokens.
func (s *Server) Expire(t testing.TB) {
	t.Helper()
	s.ask(t, http.MethodPost, "expire")
}

// ask asks without the context of the test, which has ended where cleanups ask.
func (s *Server) ask(t testing.TB, method, path string) []byte {
	t.Helper()
	req := must.Get(http.NewRequest(method, s.admin+"/admin/"+path, nil))(t)
	res := do(t, http.DefaultClient, req)
	if res.Status != http.StatusOK {
		t.Fatalf("%s %s: %d", method, path, res.Status)
	}
	return res.Body
}
