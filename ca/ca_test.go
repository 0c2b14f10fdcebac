package ca

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/must"
)

func newTest(t testing.TB, o Options) *Session {
	t.Helper()
	return must.Get(NewSession(o))(t)
}

// serve serves HTTPS for name with a leaf of s on loopback, and returns the port.
func serve(t *testing.T, s *Session, name string) string {
	t.Helper()
	l := must.Get(tls.Listen("tcp", "127.0.0.1:0", &tls.Config{MinVersion: tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return s.Leaf(name) }}))(t)
	handler := func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "trusted") }
	server := &http.Server{Handler: http.HandlerFunc(handler), ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

func TestRealClientsTrustALeaf(t *testing.T) {
	s := newTest(t, Options{Session: "01TEST"})
	dir := t.TempDir()
	pemFile, p12 := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "trust.p12")
	must.Do(t, os.WriteFile(pemFile, s.RootPEM(), 0o600))
	store := must.Get(JavaTrustStore(s.RootPEM()))(t)
	must.Do(t, os.WriteFile(p12, store, 0o600))
	port := serve(t, s, "localhost")
	url := "https://localhost:" + port + "/"
	for name, argv := range map[string][]string{
		"curl": {"curl", "-sS", "--cacert", pemFile, url},
		"openssl": {"sh", "-c", "openssl s_client -x509_strict -verify_return_error -CAfile " + pemFile +
			" -servername localhost -connect localhost:" + port + " </dev/null >/dev/null 2>&1 && printf trusted"},
		"node": {"node", "-e", "require('https').get('" + url + "',r=>r.pipe(process.stdout))"},
		"python3": {"python3", "-c", "import ssl,urllib.request as u; c=ssl.create_default_context(cafile='" + pemFile +
			"'); print(u.urlopen('" + url + "',context=c).read().decode(),end='')"},
		"java": javaGets(javaClasses(t), p12, url),
	} {
		t.Run(name, func(t *testing.T) {
			need(t, name)
			cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
			cmd.Env = append(os.Environ(), "NODE_EXTRA_CA_CERTS="+pemFile)
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.HasSuffix(string(out), "trusted") {
				t.Errorf("%v: %q, %v", argv, out, err)
			}
		})
	}
}

// need skips a test without a program, or fails it in CI. Java is too large to be installed for one test.
func need(t *testing.T, program string) {
	t.Helper()
	_, err := exec.LookPath(program)
	switch {
	case err == nil:
	case program == "java":
		t.Skip("java is not installed; e2e/matrix runs its clients in a box")
	case os.Getenv("CI") != "":
		t.Fatalf("%s is not installed, and in CI this test must run", program)
	default:
		t.Skipf("%s is not installed", program)
	}
}

func TestTheHashLinkIsOpenSSLs(t *testing.T) {
	need(t, "openssl")
	s := newTest(t, Options{Session: "  01  Mixed CASE "})
	cmd := exec.CommandContext(t.Context(), "openssl", "x509", "-noout", "-subject_hash")
	cmd.Stdin = strings.NewReader(string(s.RootPEM()))
	out := must.Get(cmd.Output())(t)
	if got, err := HashLink(s.RootPEM()); err != nil || got != strings.TrimSpace(string(out))+".0" {
		t.Errorf("HashLink = %q, %v; want %s.0", got, err, strings.TrimSpace(string(out)))
	}
}

func TestAConstrainedCAVouchesForItsNamesOnly(t *testing.T) {
	s := newTest(t, Options{PermittedNames: []string{"api.example.com"}})
	roots := x509.NewCertPool()
	roots.AddCert(s.Root())
	for host, ok := range map[string]bool{"api.example.com": true, "evil.test": false} {
		leaf, err := s.Leaf(host)
		if err != nil {
			t.Fatal(err)
		}
		between := x509.NewCertPool()
		between.AddCert(s.intermediate)
		_, err = leaf.Leaf.Verify(x509.VerifyOptions{DNSName: host, Roots: roots, Intermediates: between})
		if (err == nil) != ok {
			t.Errorf("Verify(%s) = %v, want ok=%v", host, err, ok)
		}
	}
}

// setClock returns a clock that a test sets.
func setClock() (now func() time.Time, move func(time.Duration)) {
	var ahead atomic.Int64
	start := time.Now()
	now = func() time.Time { return start.Add(time.Duration(ahead.Load())) }
	return now, func(d time.Duration) { ahead.Add(int64(d)) }
}

// leafOf returns a leaf, which clients that trust the CA accept now.
func leafOf(t *testing.T, s *Session, host string) *x509.Certificate {
	t.Helper()
	made := must.Get(s.Leaf(host))(t)
	roots, between := x509.NewCertPool(), x509.NewCertPool()
	roots.AddCert(s.Root())
	between.AddCert(s.intermediate)
	options := x509.VerifyOptions{DNSName: host, Roots: roots, Intermediates: between, CurrentTime: s.now()}
	if _, err := made.Leaf.Verify(options); err != nil {
		t.Errorf("a client with the same clock does not accept the leaf: %v", err)
	}
	return made.Leaf
}

func TestALeafIsMadeOnceAndAnewNearItsEnd(t *testing.T) {
	now, move := setClock()
	s := newTest(t, Options{Now: now, Lifetime: 100 * time.Hour})
	first := leafOf(t, s, "a.example")
	if again := leafOf(t, s, "a.example"); again != first {
		t.Error("a second leaf was made")
	}
	move(24*time.Hour - time.Minute)
	if later := leafOf(t, s, "a.example"); later == first || later.NotAfter.Sub(now()) < time.Hour {
		t.Error("it was not made anew near its end")
	}
	move(100 * time.Hour)
	if _, err := s.Leaf("b.example"); err != ErrExpired { // the sentinel itself
		t.Errorf("past the CA's life: %v, want ErrExpired", err)
	}
}

// The clock may be set while a session runs: what was minted at the old time is
// of no use when it has not begun at the new one.
func TestALeafIsMadeAnewWhenTheClockIsSetBack(t *testing.T) {
	now, move := setClock()
	s := newTest(t, Options{Now: now})
	move(10 * time.Hour)
	first := leafOf(t, s, "a.example")
	move(-5 * time.Hour)
	if again := leafOf(t, s, "a.example"); again == first || again.NotBefore.After(now()) {
		t.Errorf("the clock was set back, and the leaf is valid from %v at %v", again.NotBefore, now())
	}
	move(-24 * time.Hour)
	for _, host := range []string{"a.example", "b.example"} {
		if _, err := s.Leaf(host); err != ErrClockBack { // the sentinel itself
			t.Errorf("before the CA's life: %v, want ErrClockBack", err)
		}
	}
	move(24 * time.Hour)
	leafOf(t, s, "a.example")
	move(14 * time.Hour)
	leafOf(t, s, "a.example") // in the last hour, with a leaf that ends with its CA
	move(24 * time.Hour)
	if _, err := s.Leaf("a.example"); err != ErrExpired { // the sentinel itself
		t.Errorf("a day ahead: %v, want ErrExpired", err)
	}
}

func TestCertificatesBeginBeforeNowAndEndWithTheirCA(t *testing.T) {
	now, move := setClock()
	s := newTest(t, Options{Now: now})
	for what, c := range map[string]*x509.Certificate{
		"root": s.Root(), "intermediate": s.intermediate, "leaf": leafOf(t, s, "a.example"),
	} {
		if early := now().Sub(c.NotBefore); early < 15*time.Minute || early > time.Hour+time.Second {
			t.Errorf("the %s begins %v before now, want 15 to 60 minutes", what, early)
		}
		if left := c.NotAfter.Sub(now()); left > maxLifetime {
			t.Errorf("the %s has %v left, want %v at most", what, left, maxLifetime)
		}
	}
	move(23 * time.Hour)
	if leaf := leafOf(t, s, "late.example"); !leaf.NotAfter.Equal(s.intermediate.NotAfter) {
		t.Errorf("a leaf ends at %v, its CA at %v", leaf.NotAfter, s.intermediate.NotAfter)
	}
}

func TestAnAddressHasALeafOfItsOwn(t *testing.T) {
	s := newTest(t, Options{})
	for _, host := range []string{"192.0.2.7", "2001:db8::7"} {
		leaf := leafOf(t, s, host)
		if len(leaf.DNSNames) != 0 || len(leaf.IPAddresses) != 1 || leaf.IPAddresses[0].String() != host {
			t.Errorf("the leaf of %s is for %v and %v", host, leaf.DNSNames, leaf.IPAddresses)
		}
	}
}

// A sandbox may ask for any number of names.
func TestOnlyTheLeavesUsedLastAreKept(t *testing.T) {
	s := newTest(t, Options{})
	often := leafOf(t, s, "often.example")
	never := leafOf(t, s, "once.example")
	for i := range maxLeaves {
		must.Get(s.Leaf(fmt.Sprintf("n%d.example", i)))(t)
		if leafOf(t, s, "often.example") != often {
			t.Fatalf("a leaf in use was dropped after %d others", i+1)
		}
	}
	if n := len(s.leaves); n != maxLeaves {
		t.Errorf("%d leaves are kept, want %d", n, maxLeaves)
	}
	if leafOf(t, s, "once.example") == never {
		t.Error("the leaf that was longest unused is still there")
	}
}

func TestABundleHoldsTheRootOnce(t *testing.T) {
	s := newTest(t, Options{})
	once := Bundle([]byte("# roots, no newline at the end"), s.RootPEM())
	if !strings.Contains(string(once), "end\n-----BEGIN") {
		t.Errorf("the bundle with the root is %q, want the root on a line of its own", once)
	}
	if twice := Bundle(once, s.RootPEM()); string(twice) != string(once) {
		t.Errorf("the bundle with the root twice is %q, want %q", twice, once)
	}
}

func BenchmarkMint(b *testing.B) {
	s := newTest(b, Options{})
	for i := 0; b.Loop(); i++ {
		must.Get(s.mint("host.example"))(b)
	}
}

func BenchmarkKnownLeaf(b *testing.B) {
	s := newTest(b, Options{})
	for b.Loop() {
		must.Get(s.Leaf("host.example"))(b)
	}
}
