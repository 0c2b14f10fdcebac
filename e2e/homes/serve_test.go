package homes

import (
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/e2e/stub"
	"github.com/ALRubinger/aileron/spec/store"
)

// served is an aileron serve that runs, and a way through it.
type served struct {
	*session
	health string // its socket
}

// start starts an aileron serve of u that grants the echo connector.
func (u *user) start() *served {
	u.t.Helper()
	dir := must.ShortDir(u.t)
	in := func(name string) string { return filepath.Join(dir, name) }
	must.Do(u.t, os.Mkdir(in("grants"), 0o700))
	harness.Copy(u.t, echoDir, in("grants/echo"))
	must.Do(u.t, os.WriteFile(in("grants/token"), []byte(secret), 0o600))
	document := fmt.Sprintf("[[connector]]\ndir = \"echo\"\nhash = %q\nsecret.file = \"token\"\n",
		must.Get(store.Read(echoDir))(u.t).Hash)
	must.Do(u.t, os.WriteFile(in("grants/grants.toml"), []byte(document), 0o600))
	origin := stub.Start(u.t, stub.Script{Token: secret})
	s := &served{&session{user: u, origin: origin, errs: &must.Output{}}, in("health")}
	s.cmd = u.command("", "serve", "--dir", in("run"), "--grants", in("grants"), "--health", "unix:"+s.health,
		"--resolve", stub.Echo+":443:"+s.origin.Addr, "--upstream-ca", s.origin.Roots)
	s.cmd.Stdout, s.cmd.Stderr = s.errs, s.errs
	must.Do(u.t, s.cmd.Start())
	u.t.Cleanup(func() { _ = s.cmd.Process.Kill() })
	harness.WaitFor(u.t, "it is ready", func() bool { return strings.Contains(s.errs.String(), `"msg":"ready"`) })
	s.roots = x509.NewCertPool()
	s.roots.AppendCertsFromPEM(must.Get(os.ReadFile(in("run/public/ca.pem")))(u.t))
	s.proxy = must.Get(url.Parse("http://127.0.0.1:3128"))(u.t)
	s.dial = dialer(in("run/proxy.sock"))
	return s
}

func dialer(path string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}
}

// readyz returns the status and the body of the probe.
func (s *served) readyz() (int, string) {
	s.t.Helper()
	transport := &http.Transport{DisableKeepAlives: true, DialContext: dialer(s.health)}
	res, err := (&http.Client{Transport: transport}).Get("http://health/readyz")
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	return res.StatusCode, string(must.Get(io.ReadAll(res.Body))(s.t))
}

// A served session whose disk is full says so before a request is refused, sends none that it cannot record, and
// serves again when there is room.
func TestAServedSessionOnAFullDiskIsNotReady(t *testing.T) {
	u := newUser(t)
	u.mounted("size=24m")
	s := u.start()
	s.until("")
	if status, body := s.readyz(); status != http.StatusOK {
		t.Fatalf("/readyz = %d %s", status, body)
	}
	fill := filepath.Join(u.home, "fill")
	f := must.Get(os.Create(fill))(t)
	var err error
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	must.Do(t, f.Close())
	if status, body := s.readyz(); status != http.StatusServiceUnavailable ||
		!strings.Contains(body, "audit_unavailable") {
		t.Errorf("/readyz on a full disk = %d %s", status, body)
	}
	s.until("audit_unavailable", "") // its journal has room for a while
	sent := len(s.origin.Seen())
	if got := s.reason(); got != "audit_unavailable" || len(s.origin.Seen()) != sent {
		t.Errorf("the reason is %q, and %d requests were sent", got, len(s.origin.Seen())-sent)
	}
	must.Do(t, os.Remove(fill))
	s.until("", "audit_unavailable")
	harness.WaitFor(t, "it is ready again", func() bool { status, _ := s.readyz(); return status == http.StatusOK })
	if code := s.stop(); code != 0 {
		t.Errorf("it ends with %d\n%s", code, s.errs)
	}
	u.must("audit", "verify")
}

// A served session that is killed leaves sockets and a session without an end. The next one replaces the first, and
// records the second.
func TestAServedSessionThatIsKilledIsFollowedByAnother(t *testing.T) {
	u := newUser(t)
	s := u.start()
	s.until("")
	must.Do(t, s.cmd.Process.Kill())
	_ = s.cmd.Wait()
	dir := filepath.Dir(s.health)
	again := u.command("", s.cmd.Args[1:]...)
	s.errs = &must.Output{}
	again.Stdout, again.Stderr = s.errs, s.errs
	must.Do(t, again.Start())
	s.cmd = again
	t.Cleanup(func() { _ = again.Process.Kill() })
	harness.WaitFor(t, "it is ready", func() bool { return strings.Contains(s.errs.String(), `"msg":"ready"`) })
	s.roots = x509.NewCertPool()
	s.roots.AppendCertsFromPEM(must.Get(os.ReadFile(filepath.Join(dir, "run", "public", "ca.pem")))(t))
	s.until("")
	if code := s.stop(); code != 0 {
		t.Errorf("it ends with %d\n%s", code, s.errs)
	}
	ends := ""
	for _, r := range u.rows() {
		if r.Event == "session.ended" {
			ends += r.Reason + " "
		}
	}
	if ends != "unclean  " {
		t.Errorf("the ends are %q, want an unclean and a clean one", ends)
	}
}
