package ca

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/must"
)

// serveLeaf serves HTTPS on loopback with one certificate, and returns the port.
func serveLeaf(t *testing.T, cert *tls.Certificate) string {
	t.Helper()
	l := must.Get(tls.Listen("tcp", "127.0.0.1:0", &tls.Config{MinVersion: tls.VersionTLS12,
		Certificates: []tls.Certificate{*cert}}))(t)
	handler := func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "sesame") }
	server := &http.Server{Handler: http.HandlerFunc(handler), ReadHeaderTimeout: time.Minute,
		ErrorLog: log.New(io.Discard, "", 0)}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// stolen returns a leaf that the holder of the host CA's key signs for any name.
func stolen(t *testing.T, s *Session, host string) *tls.Certificate {
	t.Helper()
	h := s.host
	template := &x509.Certificate{NotBefore: h.intermediate.NotBefore, NotAfter: h.intermediate.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{host}
	}
	leaf := must.Get(issue(template, h.intermediate, s.leafKey, h.signer))(t)
	return &tls.Certificate{Certificate: [][]byte{leaf.Raw, h.intermediate.Raw, h.cross.Raw}, PrivateKey: s.leafKey}
}

// javaClasses returns a directory with the class Get, a client in Java; "" without a compiler. Java's own ones take
// longer than what it does, so that it is compiled once, and run with the lesser one.
func javaClasses(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("javac"); err != nil {
		return ""
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "Get.java")
	must.Do(t, os.WriteFile(file, []byte(`public class Get { public static void main(String[] a) throws Exception {
		System.out.write(new java.net.URL(a[0]).openStream().readAllBytes()); System.out.flush(); } }`), 0o600))
	run(t, "javac", "-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC", "-d", dir, file)
	return dir
}

// javaGets returns the command with which Java gets a page, trusting what a store has.
func javaGets(classes, store, url string) []string {
	return []string{"java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Djavax.net.ssl.trustStore=" + store,
		"-Djavax.net.ssl.trustStoreType=PKCS12", "-Djavax.net.ssl.trustStorePassword=changeit", "-cp", classes, "Get", url}
}

// clients returns the commands with which real clients get a page of a host, trusting one root.
func clients(t *testing.T, classes string, root []byte, host, port string) map[string][]string {
	t.Helper()
	dir := t.TempDir()
	file, p12 := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "trust.p12")
	store := must.Get(JavaTrustStore(root))(t)
	for name, data := range map[string][]byte{file: root, p12: store} {
		must.Do(t, os.WriteFile(name, data, 0o600))
	}
	judged := " -verify_hostname " + host
	if net.ParseIP(host) != nil {
		judged = " -verify_ip " + host
	}
	url := "https://" + host + ":" + port + "/"
	browser := nssHome(t, root)
	get := `printf 'GET / HTTP/1.0\r\n\r\n' | `
	return map[string][]string{
		"curl": {"curl", "-sS", "--noproxy", "*", "--capath", dir, "--cacert", file, url},
		"openssl": {"sh", "-c", get + "openssl s_client -quiet -x509_strict -verify_return_error -CAfile " + file +
			" -no-CApath" + judged + " -connect " + host + ":" + port + " 2>&1"},
		"gnutls-cli": {"sh", "-c",
			get + "gnutls-cli --logfile=/dev/stderr --x509cafile=" + file + " -p " + port + " " + host},
		"node": {"node", "-e", "require('https').get('" + url + "',{ca:require('fs').readFileSync('" + file +
			"')},r=>r.pipe(process.stdout))"},
		"python3": {"python3", "-c", "import ssl,urllib.request as u; c=ssl.create_default_context(cafile='" + file +
			"'); o=u.build_opener(u.ProxyHandler({}),u.HTTPSHandler(context=c)); print(o.open('" + url +
			"').read().decode(),end='')"},
		// A browser with the root in its database.
		"chromium": {"env", "HOME=" + browser, "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom",
			"--no-first-run", "--disable-breakpad", "--disable-background-networking", "--no-proxy-server", "--timeout=60000",
			url},
		"java": javaGets(classes, p12, url),
	}
}

// nssHome returns a home whose database of NSS trusts a root.
func nssHome(t *testing.T, root []byte) string {
	t.Helper()
	home := must.ShortDir(t)
	if _, err := findTool("certutil"); err == nil {
		must.Get(nssStore(t, home).certutil(t.Context(), root, "-A", "-a", "-t", "C,,", "-n", "root"))(t)
	}
	return home
}

// A program that trusts the host CA alone, and one that trusts the session's root alone, accept the leaf of a declared
// host. The first refuses every other certificate of the session, and one for another name that the holder of the host
// CA's own key has signed: the constraints are enforced by each client's verifier.
func TestWhatAHostTrustsVouchesForTheSessionsHostsOnly(t *testing.T) {
	declared := newTest(t, Options{Session: "01TEST", HostNames: []string{"localhost"}})
	other := newTest(t, Options{Session: "01TEST", HostNames: []string{"api.example.com"}})
	leaf := func(s *Session, host string) *tls.Certificate {
		return must.Get(s.Leaf(host))(t)
	}
	const (
		outside  = `(?i)subtree violation|constraint|ERR_CERT_INVALID` // Java: "name constraints"
		stranger = `(?i)issuer|PKIX path building failed|signature|ERR_CERT_AUTHORITY_INVALID`
	)
	classes := javaClasses(t)
	for _, c := range []struct {
		name, host string
		leaf       *tls.Certificate
		root       []byte
		trusted    bool
		reason     string
	}{
		{"a declared host, by the host's root", "localhost", leaf(declared, "localhost"), declared.Host().PEM(), true, ""},
		{"a declared host, by the session's root", "localhost", leaf(declared, "localhost"), declared.RootPEM(), true, ""},
		{"a host that is not declared", "localhost", leaf(other, "localhost"), other.Host().PEM(), false, stranger},
		{"a name signed with a stolen key", "localhost", stolen(t, other, "localhost"), other.Host().PEM(), false, outside},
		{"an address signed with it", "127.0.0.1", stolen(t, other, "127.0.0.1"), other.Host().PEM(), false, outside},
		{"another session's", "localhost", stolen(t, declared, "localhost"), other.Host().PEM(), false, stranger},
	} {
		port := serveLeaf(t, c.leaf)
		for name, argv := range clients(t, classes, c.root, c.host, port) {
			t.Run(c.name+"/"+name, func(t *testing.T) {
				if name == "chromium" {
					needTool(t, "chromium")
					needTool(t, "certutil")
				} else {
					need(t, name)
				}
				out, err := exec.CommandContext(t.Context(), argv[0], argv[1:]...).CombinedOutput()
				if got := strings.Contains(string(out), "sesame"); got != c.trusted {
					t.Errorf("%v: %q, %v; want trusted: %v", argv, out, err, c.trusted)
				}
				if !c.trusted && !regexp.MustCompile(c.reason).Match(out) {
					t.Errorf("it was refused for something else than %s: %q", c.reason, out)
				}
			})
		}
	}
}

// After twelve hours a session goes on, with leaves that only its own root vouches for.
func TestTheHostCAEndsBeforeTheSession(t *testing.T) {
	now, move := setClock()
	s := newTest(t, Options{Now: now, HostNames: []string{"a.example"}})
	if left := s.Host().Root.NotAfter.Sub(now()); left > 12*time.Hour || left < 11*time.Hour {
		t.Errorf("the host CA has %v left, want twelve hours", left)
	}
	accepts := func(root *x509.Certificate) bool {
		c, err := s.Leaf("a.example")
		if err != nil {
			t.Fatal(err)
		}
		roots, between := x509.NewCertPool(), x509.NewCertPool()
		roots.AddCert(root)
		for _, der := range c.Certificate[1:] {
			cert := must.Get(x509.ParseCertificate(der))(t)
			between.AddCert(cert)
		}
		_, err = c.Leaf.Verify(x509.VerifyOptions{DNSName: "a.example", Roots: roots, Intermediates: between,
			CurrentTime: now()})
		return err == nil
	}
	for _, c := range []struct {
		after time.Duration
		host  bool
	}{{0, true}, {11*time.Hour + 30*time.Minute, true}, {25 * time.Minute, false}, {time.Hour, false}} {
		move(c.after)
		if !accepts(s.Root()) || accepts(s.Host().Root) != c.host {
			t.Errorf("after %v more: the session's root %v, the host's %v, want true, %v", c.after, accepts(s.Root()),
				accepts(s.Host().Root), c.host)
		}
	}
}

func TestASessionHasNoHostCAUnlessItIsAskedFor(t *testing.T) {
	s := newTest(t, Options{})
	if s.Host() != nil || s.Root().MaxPathLen != 1 {
		t.Errorf("the host CA is %v, and the root's path length %d", s.Host(), s.Root().MaxPathLen)
	}
	for _, name := range []string{"", "*.example", "a:443", "http://a", "192.0.2.7"} {
		if _, err := NewSession(Options{HostNames: []string{name}}); err == nil {
			t.Errorf("%q is taken as a name", name)
		}
	}
	s = newTest(t, Options{HostNames: []string{"a.example"}})
	block, _ := pem.Decode(s.Host().PEM())
	if block == nil || string(block.Bytes) != string(s.Host().Root.Raw) {
		t.Error("the PEM is not that of the root")
	}
	if c := s.host.intermediate; !c.PermittedDNSDomainsCritical || len(c.ExcludedIPRanges) != 2 || !c.MaxPathLenZero {
		t.Errorf("the intermediate is %+v", c)
	}
}
