package protocol

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
)

// deviations are the cases of h2spec that the plane may fail, with the reason.
var deviations = map[string]string{}

// forwarder opens a tunnel to at for each connection that it accepts: h2spec
// knows no proxies.
func (s *session) forwarder(t *testing.T, l net.Listener, at string) {
	t.Helper()
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				defer conn.Close()
				tunnel, err := s.connect(t.Context(), at)
				if err != nil {
					t.Errorf("the forwarder: %v", err)
					return
				}
				defer tunnel.Close()
				joined := make(chan struct{})
				go func() { defer close(joined); pipe(tunnel, conn) }()
				pipe(conn, tunnel)
				<-joined
			})
		}
	})
	t.Cleanup(func() { _ = l.Close(); running.Wait() })
}

// pipe copies until from ends, and then ends to.
func pipe(to, from net.Conn) {
	_, err := io.Copy(to, from)
	if half, ok := to.(interface{ CloseWrite() error }); ok && err == nil {
		_ = half.CloseWrite()
		return
	}
	_ = to.Close()
	_ = from.Close()
}

func listen(t *testing.T) (l net.Listener, port string) {
	t.Helper()
	l = must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	return l, strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

// h2spec's :authority is the address that it connects to, so its tunnel is to
// that address: passed through, as nothing else can name one.
func TestH2specPasses(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "h2spec")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "github.com/summerwind/h2spec/cmd/h2spec")
	build.Dir = "testdata/h2spec"
	if out, err := build.CombinedOutput(); err != nil {
		harness.Need(t, fmt.Sprintf("h2spec, which cannot be built: %v\n%s", err, out))
	}
	l, port := listen(t)
	s := newSession(t, "", "--egress", "passthrough", "--resolve", "127.0.0.1:"+port+":"+origin.resolve[hostH2+":443"])
	s.forwarder(t, l, "127.0.0.1:"+port)

	// An origin that reads the whole request before it answers: an answer that
	// comes before the fault is right as well, and h2spec takes it for a failure.
	report := filepath.Join(t.TempDir(), "report.xml")
	out, err := exec.CommandContext(t.Context(), program, "-S", "-t", "-k", "-h", "127.0.0.1", "-p", port, "-P", "/v1/put",
		"-o", "5", "-j", report).CombinedOutput()
	raw, rerr := os.ReadFile(report)
	if rerr != nil {
		t.Fatalf("h2spec: %v\n%s", err, out)
	}
	var suites struct {
		Suite []struct {
			Name string `xml:"name,attr"`
			Case []struct {
				Class   string    `xml:"classname,attr"`
				Package string    `xml:"package,attr"`
				Skipped *struct{} `xml:"skipped"`
				Failure *string   `xml:"failure"`
				Error   *string   `xml:"error"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	// What a failing case got is in the report as it came.
	must.Do(t, xml.Unmarshal(bytes.ReplaceAll(raw, []byte{0}, []byte("?")), &suites))
	cases, failed := 0, 0
	for _, suite := range suites.Suite {
		for _, c := range suite.Case {
			cases++
			name := c.Package + ": " + c.Class
			why, deviates := deviations[name]
			switch bad := c.Failure != nil || c.Error != nil; {
			case bad && deviates:
				t.Logf("deviates: %s: %s", name, why)
			case bad:
				failed++
				t.Errorf("%s: %s", name, strings.TrimSpace(text(c.Failure)+text(c.Error)))
			case deviates:
				t.Errorf("on the list of deviations, and passes: %s", name)
			case c.Skipped != nil:
				t.Errorf("%s was skipped", name)
			}
		}
	}
	t.Logf("%d cases, %d failed", cases, failed)
	if cases < 146 {
		t.Errorf("h2spec has %d cases, want at least 146", cases)
	}
	if _, failures, ok := strings.Cut(string(out), "Failures:"); ok && t.Failed() {
		t.Logf("%s", failures)
	}
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
