package clock

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
)

// certificate is an origin's, valid at every time of this suite.
func certificate(t *testing.T) (tls.Certificate, string) {
	t.Helper()
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	about := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: host}, DNSNames: []string{host},
		NotBefore: time.Now().AddDate(-1, 0, 0), NotAfter: time.Now().AddDate(1, 0, 0), IsCA: true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	der := must.Get(x509.CreateCertificate(rand.Reader, about, about, &key.PublicKey, key))(t)
	file := filepath.Join(t.TempDir(), "origin.pem")
	must.Do(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, file
}

// rows returns the session's rows.
func (s *session) rows(flags ...string) []audit.Row {
	s.t.Helper()
	out, code := s.aileron(append([]string{"audit", "list", "--json", "--limit", "0", "--session", s.ready.SessionID},
		flags...)...)
	if code != 0 {
		s.t.Fatalf("audit list: exit %d", code)
	}
	return harness.Rows[audit.Row](s.t, out)
}

func TestASessionStandsAClockThatIsSet(t *testing.T) {
	s := open(t, "[limits]\nidle_timeout = \"30s\"\nupstream_idle_timeout = \"30s\"\nbody_timeout = \"30s\"\n")
	event := s.stream()
	steps := []struct {
		name string
		by   time.Duration
		new  bool // a client that comes now is served
	}{
		{"at first", 0, true}, {"ten hours ahead", 10 * time.Hour, true}, {"five hours ahead", 5 * time.Hour, true},
		{"a day ahead", 24*time.Hour + time.Minute, false}, {"a day back", -24 * time.Hour, false}, {"right again", 0, true},
	}
	for _, step := range steps {
		s.set(step.by)
		event(step.name)
		s.ok(step.name+", in the tunnel that is there", s.client)
		if step.new {
			s.ok(step.name+", in a tunnel of its own", s.newClient())
			continue
		}
		if status, err := s.ask(s.newClient()); err == nil {
			t.Errorf("%s: a client gets %d with certificates that are not valid", step.name, status)
		}
		reason := s.rows("--decision", "rejected")
		if last := reason[len(reason)-1]; last.Reason != "session_ca_not_valid" || last.Status != 503 {
			t.Errorf("%s: the row says %s, %d", step.name, last.Reason, last.Status)
		}
	}
	if n := strings.Count(s.stderr.String(), "no client can be served"); n != 1 {
		t.Errorf("stderr has %d lines about it, want one:\n%s", n, s.stderr)
	}
	s.judgeLog(steps[1].by)
}

// judgeLog checks the rows of a session whose clock was set ahead by so much
// for a while, and is right now.
func (s *session) judgeLog(ahead time.Duration) {
	s.t.Helper()
	var seq, late int64
	for _, row := range s.rows() {
		if row.Seq <= seq {
			s.t.Errorf("row %d comes after row %d", row.Seq, seq)
		}
		if seq = row.Seq; row.DurationUS < 0 || row.DurationUS > time.Hour.Microseconds() {
			s.t.Errorf("row %d lasted %d µs", row.Seq, row.DurationUS)
		}
		if time.Until(row.TS) > ahead-time.Hour {
			late++
		}
	}
	// Time is what the clock showed: a filter by time finds rows of then.
	soon := time.Now().Add(ahead - time.Hour).UTC().Format(time.RFC3339)
	if got := s.rows("--since", soon); late == 0 || int64(len(got)) != late {
		s.t.Errorf("--since %s finds %d rows, want %d", soon, len(got), late)
	}
	if got := s.rows("--until", soon); len(got) == 0 {
		s.t.Error("--until finds none")
	}
	if _, code := s.aileron("audit", "verify"); code != 0 {
		s.t.Errorf("audit verify: exit %d", code)
	}
	var sessions []struct{ ID, State string }
	out, _ := s.aileron("session", "list", "--json")
	if err := json.Unmarshal([]byte(out), &sessions); err != nil || len(sessions) != 1 || sessions[0].State != "running" {
		s.t.Errorf("session list: %s, %v", out, err)
	}
}

// An idle connection ends although the clock was set back.
func TestAnIdleConnectionEndsThoughTheClockIsSetBack(t *testing.T) {
	s := open(t, "[limits]\nidle_timeout = \"1s\"\nbody_timeout = \"1s\"\n")
	conn := must.Get(net.Dial("tcp", s.proxy.Host))(t)
	defer conn.Close()
	token, _ := s.proxy.User.Password()
	fmt.Fprintf(conn, "CONNECT %[1]s:443 HTTP/1.1\r\nHost: %[1]s:443\r\nProxy-Authorization: Basic %[2]s\r\n\r\n",
		host, base64.StdEncoding.EncodeToString([]byte("x:"+token)))
	res, err := http.ReadResponse(bufio.NewReaderSize(conn, 1), &http.Request{Method: http.MethodConnect})
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("CONNECT: %v, %v", res, err)
	}
	_ = res.Body.Close() // the tunnel goes on
	secure := tls.Client(conn, &tls.Config{ServerName: host, RootCAs: s.roots, MinVersion: tls.VersionTLS12})
	if err := secure.Handshake(); err != nil {
		t.Fatalf("%v\n%s", err, s.stderr)
	}
	s.set(-24 * time.Hour)
	_ = conn.SetReadDeadline(time.Now().Add(harness.Patience))
	if _, err := io.Copy(io.Discard, secure); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("it is still there")
	}
}

// SIGSTOP is a sleep in which clocks go on: when the process wakes, the time of
// each wait is over, and what came meanwhile lies unread.
func TestASleepEndsNoHonestStream(t *testing.T) {
	s := open(t, "[limits]\nidle_timeout = \"1s\"\nupstream_idle_timeout = \"1s\"\nbody_timeout = "+
		"\"1s\"\nwrite_timeout = \"1s\"\nhead_timeout = \"1s\"\n")
	event := s.stream()
	event("before")
	s.ok("before", s.client)
	for range 3 {
		must.Do(t, s.cmd.Process.Signal(syscall.SIGSTOP))
		<-time.After(2 * time.Second) // the session is asleep for longer than its limits: that is the subject
		must.Do(t, s.cmd.Process.Signal(syscall.SIGCONT))
		event("after")
		s.ok("after", s.newClient())
	}
}
