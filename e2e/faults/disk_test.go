package faults

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/e2e/stub"
)

// smallHome is a person without an engine, whose home is a file system that a
// test can fill.
func smallHome(t *testing.T) *user {
	t.Helper()
	if os.Geteuid() != 0 {
		harness.Need(t, "root, to mount a small file system")
	}
	u := newHome(t, "")
	template := u.home + ".was"
	must.Do(t, os.Rename(u.home, template))
	must.Do(t, os.Mkdir(u.home, 0o700))
	if err := syscall.Mount("tmpfs", u.home, "tmpfs", 0, "size=4m,mode=700"); err != nil {
		harness.Need(t, "a small file system: "+err.Error())
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(u.home, 0); err != nil {
			t.Errorf("something still uses the home: %v", err)
		}
	})
	harness.Copy(t, template+"/.", u.home)
	return u
}

// fill takes all space of the home, and free gives it back.
func (u *user) fill() {
	u.t.Helper()
	f, err := os.OpenFile(filepath.Join(u.home, "fill"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		u.t.Fatal(err)
	}
	defer f.Close()
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	if !errors.Is(err, syscall.ENOSPC) {
		u.t.Fatal(err)
	}
}

func (u *user) free() {
	u.t.Helper()
	must.Do(u.t, os.Remove(filepath.Join(u.home, "fill")))
}

// served is an aileron proxy that is ready.
type served struct {
	*running
	client *http.Client
}

// serve starts aileron proxy with a way to the stub.
func (u *user) serve() *served {
	u.t.Helper()
	ready := filepath.Join(u.project, "ready")
	out, err := os.Create(ready)
	if err != nil {
		u.t.Fatal(err)
	}
	defer out.Close()
	r := u.beginTo(out, "proxy", "--json", "--upstream-ca", u.origin.Roots, "--resolve",
		stub.Echo+":443:"+u.origin.Addr)
	var about struct {
		SessionID string `json:"session_id"`
		ProxyURL  string `json:"proxy_url"`
		CAFile    string `json:"ca_file"`
	}
	harness.WaitFor(u.t, "the proxy is ready", func() bool {
		if res, ended := r.over(); ended {
			u.t.Fatalf("it ended with %d: %s", res.code, res.err)
		}
		raw, _ := os.ReadFile(ready)
		return json.Unmarshal(raw, &about) == nil
	})
	r.session = about.SessionID
	proxy := must.Get(url.Parse(about.ProxyURL))(u.t)
	pem := must.Get(os.ReadFile(about.CAFile))(u.t)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	transport := &http.Transport{Proxy: http.ProxyURL(proxy),
		TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	u.t.Cleanup(transport.CloseIdleConnections)
	return &served{r, &http.Client{Transport: transport}}
}

// get returns the status and the reason of a refusal.
func (s *served) get(path string) (int, string, error) {
	res, err := s.client.Get("https://" + stub.Echo + path)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	var refusal struct {
		Error struct {
			Details struct{ Reason string } `json:"details"`
		} `json:"error"`
	}
	_ = json.Unmarshal(raw, &refusal) // a response of the stub has none
	return res.StatusCode, refusal.Error.Details.Reason, err
}

// refused makes n requests that have to be refused for want of the log. Until
// the session has noticed that the log cannot be written, its journal takes the
// rows of a request, which is served.
func (s *served) refused(n int) {
	s.u.t.Helper()
	harness.WaitFor(s.u.t, "a request is refused", func() bool {
		code, reason, err := s.get("/echo")
		if code == 200 && err == nil {
			return false
		}
		if code != 503 || reason != "audit_unavailable" {
			s.u.t.Fatalf("on a full disk: %d %s, %v; want 503 audit_unavailable", code, reason, err)
		}
		return true
	})
	for range n - 1 {
		if code, reason, err := s.get("/echo"); code != 503 || reason != "audit_unavailable" {
			s.u.t.Fatalf("on a full disk: %d %s, %v; want 503 audit_unavailable", code, reason, err)
		}
	}
}

// journals are the journals of the home.
func (u *user) journals() []string {
	names, _ := filepath.Glob(filepath.Join(u.home, "audit.journal-*"))
	return names
}

// sessionOf returns the entry of a session in session list.
func (u *user) sessionOf(id string) (found row) {
	u.t.Helper()
	var all []row
	must.Do(u.t, json.Unmarshal([]byte(u.must("session", "list", "--json").out), &all))
	for _, s := range all {
		if s["id"] == id {
			return s
		}
	}
	u.t.Fatalf("session list has no %s", id)
	return nil
}

// A stream is under way, the disk fills, the stream ends, and the session is
// terminated: none of it is lost, and none of it in silence.
func TestTheLastRowsOfASessionOutliveAFullDisk(t *testing.T) {
	u := smallHome(t)
	p := u.serve()
	if left := u.journals(); len(left) != 1 {
		t.Fatalf("the journals: %v", left)
	}
	streamed := make(chan string, 1)
	go func() {
		code, _, err := p.get("/stall")
		streamed <- fmt.Sprint(code, err)
	}()
	harness.WaitFor(t, "the request arrives", func() bool { return len(u.origin.Seen()) == 1 })
	if intents := u.rows("--session", p.session, "--event", "connector.proxy.started"); len(intents) != 1 {
		t.Errorf("the intents %v", intents)
	}
	u.fill()
	const requests = 40
	p.refused(requests)
	close(u.origin.Release)
	if got := <-streamed; got != "200 <nil>" {
		t.Errorf("the stream: %s", got)
	}
	p.signal(syscall.SIGTERM)
	res := p.end()
	lines := strings.Split(strings.TrimSuffix(res.err, "\n"), "\n")
	if res.code != 1 || len(lines) != 2 ||
		!strings.Contains(lines[0], "the audit log cannot be written: requests are refused") ||
		!regexp.MustCompile(`close the session: the audit log cannot be written: \d+ rows are kept in `).
			MatchString(lines[1]) ||
		!strings.Contains(lines[1], "free space") {
		t.Errorf("exit %d with\n%s", res.code, res.err)
	}
	for _, name := range u.journals() {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	// The session's write-ahead log is gone, so that there may be space for the rows.
	s := u.sessionOf(p.session)
	if s["state"] != "ended" || s["cause"] != "terminated" {
		t.Errorf("while the rows wait, session list tells %v", s)
	}
	kept, _ := s["spilled_rows"].(float64)
	want := fmt.Sprintf(`"spilled_rows":%v`, kept)
	if verify := u.must("audit", "verify", "--json").out; !strings.Contains(verify, want) {
		t.Errorf("audit verify: %s, want %s", verify, want)
	}
	u.free()
	u.must("run", "--", "true")
	if left := u.journals(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	rows := u.rows("--session", p.session)
	var events []string
	for _, r := range rows {
		fields, _ := r["fields"].(map[string]any)
		if r["path"] == "/echo" && r["reason"] == "" {
			continue // served before the session noticed
		}
		events = append(events, fmt.Sprintf("%v %v %v %v", r["event"], r["reason"], fields["requests"], fields["spilled"]))
	}
	wants := []string{
		"session.started  <nil> <nil>", "connector.proxy.started  <nil> <nil>", "connector.proxy.proxied  <nil> true",
		fmt.Sprintf("sandbox.proxy.rejected audit_unavailable %d true", requests), "session.ended  <nil> true",
	}
	if fmt.Sprint(events) != fmt.Sprint(wants) {
		t.Errorf("rows\n%s\nwant\n%s", strings.Join(events, "\n"), strings.Join(wants, "\n"))
	}
	p.closed(0, "terminated")
	if s := u.sessionOf(p.session); s["state"] != "ended" || s["spilled_rows"] != nil {
		t.Errorf("afterwards session list tells %v", s)
	}
}

// What a session that is killed on a full disk has kept is its outcome, and no
// unknown one.
func TestAKilledSessionsSpilledRowsAreItsOutcomes(t *testing.T) {
	u := smallHome(t)
	p := u.serve()
	streamed := make(chan struct{})
	go func() { _, _, _ = p.get("/stall"); close(streamed) }()
	harness.WaitFor(t, "the request arrives", func() bool { return len(u.origin.Seen()) == 1 })
	if intents := u.rows("--session", p.session, "--event", "connector.proxy.started"); len(intents) != 1 {
		t.Errorf("the intents %v", intents)
	}
	u.fill()
	close(u.origin.Release)
	<-streamed
	harness.WaitFor(t, "the outcome is kept", func() bool {
		s := u.sessionOf(p.session)
		return s["spilled_rows"] == 1.0
	})
	p.signal(syscall.SIGKILL)
	<-p.ended
	u.free()
	u.must("run", "--", "true")
	var events []string
	for _, r := range u.rows("--session", p.session) {
		fields, _ := r["fields"].(map[string]any)
		events = append(events, fmt.Sprintf("%v %v %v", r["event"], r["reason"], fields["spilled"]))
	}
	want := "session.started  <nil>\nconnector.proxy.started  <nil>\nconnector.proxy.proxied  true\nsession.ended " +
		"unclean <nil>"
	if got := strings.Join(events, "\n"); got != want {
		t.Errorf("rows\n%s\nwant\n%s", got, want)
	}
	if left := u.journals(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	u.must("audit", "verify")
}

// A full disk has two lines, however many requests are refused, and one row
// with their number when there is space again.
func TestAFullDiskHasOneLineAtItsStartAndOneAtItsEnd(t *testing.T) {
	u := smallHome(t)
	p := u.serve()
	u.fill()
	const requests = 60
	p.refused(requests)
	u.free()
	counted, own := 0.0, 0.0
	harness.WaitFor(t, "the row that counts them", func() bool {
		counted, own = 0, 0
		for _, r := range u.rows("--session", p.session, "--decision", "rejected") {
			fields, _ := r["fields"].(map[string]any)
			if n, ok := fields["requests"].(float64); ok {
				counted += n
			} else {
				own++ // its denial still found space
			}
		}
		return counted > 0
	})
	if counted+own != requests || own > 1 {
		t.Errorf("%v requests are counted, and %v have rows; want %d", counted, own, requests)
	}
	if code, reason, err := p.get("/echo"); code != 200 {
		t.Errorf("afterwards: %d %s, %v", code, reason, err)
	}
	p.signal(syscall.SIGTERM)
	res := p.end()
	lines := strings.Split(strings.TrimSuffix(res.err, "\n"), "\n")
	if res.code != 0 || len(lines) != 2 || !strings.Contains(lines[0], "the audit log cannot be written") ||
		!strings.Contains(lines[1], "the audit log can be written again") ||
		!strings.Contains(lines[1], fmt.Sprintf("refused_requests=%v", counted)) {
		t.Errorf("exit %d with\n%s", res.code, res.err)
	}
	p.closed(0, "terminated")
}

// Rows that are not in the log make a success a failure; a failure of the
// command stays what it is.
func TestRowsThatAreNotInTheLogAreAFailure(t *testing.T) {
	for code, want := range map[int]int{0: 1, 7: 7} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			u := smallHome(t)
			r := u.run("run", "--", "sh", "-c", fmt.Sprintf("cat /dev/zero > %s/fill 2>/dev/null; exit %d", u.home, code))
			if r.code != want || !strings.Contains(r.err,
				"aileron: close the session: the audit log cannot be written: 1 row is kept in ") {
				t.Errorf("exit %d: %s", r.code, r.err)
			}
			u.free()
			u.must("run", "--", "true")
			rows := u.rows("--event", "session.ended")
			fields, _ := rows[0]["fields"].(map[string]any)
			if len(rows) != 2 || fields["exit_code"] != float64(code) || fields["spilled"] != true {
				t.Errorf("session.ended: %v", rows)
			}
		})
	}
}
