package protocol

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/must"
)

// got is what curl has seen.
type got struct {
	Code     int     // curl's own
	Status   int     `json:"http_code"`
	Version  string  `json:"http_version"`
	Connects int     `json:"num_connects"`
	Sent     float64 `json:"size_upload"`
	Received float64 `json:"size_download"`

	Body    string
	Heads   string // all heads of the origin's answers, 1xx ones too, and the trailers
	Verbose string
}

// curl runs Debian's curl behind the session, bounded in time.
func (s *session) curl(t *testing.T, args ...string) got {
	t.Helper()
	g, err := s.tryCurl(t, args...)
	if err != nil {
		t.Fatalf("curl %q: %v\n%s", args, err, g.Verbose)
	}
	return g
}

func (s *session) curlCommand(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	return exec.CommandContext(t.Context(), need(t, "curl"),
		append([]string{"-sSv", "--max-time", "300", "--noproxy", "", "-x", s.ProxyURL, "--suppress-connect-headers",
			"--cacert", s.CAFile}, args...)...)
}

func (s *session) tryCurl(t *testing.T, args ...string) (got, error) {
	t.Helper()
	heads := filepath.Join(t.TempDir(), "heads")
	cmd := s.curlCommand(t, append([]string{"-D", heads, "-w", "\n%{json}"}, args...)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	g := got{Code: cmd.ProcessState.ExitCode(), Verbose: errs.String()}
	i := bytes.LastIndexByte(out.Bytes(), '\n')
	if i < 0 {
		return g, fmt.Errorf("no result: %w", err)
	}
	if jerr := json.Unmarshal(out.Bytes()[i+1:], &g); jerr != nil {
		return g, jerr
	}
	g.Body = out.String()[:i]
	raw, _ := os.ReadFile(heads)
	g.Heads = string(raw)
	return g, err
}

func TestEachLegNegotiatesItsOwnVersion(t *testing.T) {
	for _, c := range []struct{ flag, host, client, upstream string }{
		{"--http1.1", hostH1, "1.1", "HTTP/1.1"},
		{"--http1.1", hostH2, "1.1", "HTTP/1.1"}, // bodies move faster; the origin speaks both
		{"--http1.1", hostOnly2, "1.1", "HTTP/2.0"},
		{"--http2", hostH1, "2", "HTTP/1.1"},
		{"--http2", hostH2, "2", "HTTP/2.0"},
		{"--http2", hostOnly2, "2", "HTTP/2.0"},
	} {
		t.Run(c.flag[2:]+" to "+c.host, func(t *testing.T) {
			g := shared.curl(t, c.flag, "https://"+c.host+"/v1/hello/versions")
			if g.Status != 200 || g.Body != "hello" || g.Version != c.client {
				t.Errorf("curl got HTTP/%s %d %q, want HTTP/%s", g.Version, g.Status, g.Body, c.client)
			}
			if saw := origin.take("/v1/hello/versions"); len(saw) != 1 || saw[0].Proto != c.upstream ||
				saw[0].Auth != "Bearer "+secret {
				t.Errorf("the origin saw %+v, want %s and the credential", saw, c.upstream)
			}
		})
	}
}

// versions runs f for each version that curl and the origin may speak.
func versions(t *testing.T, f func(t *testing.T, flag, base string)) {
	t.Helper()
	for _, flag := range []string{"--http1.1", "--http2"} {
		for _, host := range []string{hostH1, hostH2} {
			t.Run(flag[2:]+" to "+host, func(t *testing.T) { f(t, flag, "https://"+host) })
		}
	}
}

func TestInterimAnswersStayBehind(t *testing.T) {
	versions(t, func(t *testing.T, flag, base string) {
		g := shared.curl(t, flag, base+"/v1/early")
		if g.Status != 200 || g.Body != "late" || strings.Contains(g.Heads, " 103") {
			t.Errorf("got %d %q\n%s", g.Status, g.Body, g.Heads)
		}
	})
}

func TestTrailersAreDeliveredScrubbed(t *testing.T) {
	versions(t, func(t *testing.T, flag, base string) {
		g := shared.curl(t, flag, base+"/v1/trailers")
		lower := strings.ToLower(g.Heads)
		if g.Body != "body" || !strings.Contains(lower, "x-checksum: abc") ||
			!strings.Contains(lower, "x-echo: bearer "+strings.Repeat("*", len(secret))) {
			t.Errorf("got %q\n%s", g.Body, g.Heads)
		}
	})
}

func TestAnswersWithoutABodyHaveNone(t *testing.T) {
	versions(t, func(t *testing.T, flag, base string) {
		lines := func(g got) string { return strings.ToLower(g.Heads) }
		if g := shared.curl(t, flag, "-I", base+"/v1/length"); g.Status != 200 || g.Body != g.Heads ||
			!strings.Contains(lines(g), "content-length: 12345\r\n") || g.Received != 0 {
			t.Errorf("HEAD: %d, %q", g.Status, g.Body)
		}
		if g := shared.curl(t, flag, "-I", base+"/v1/length", base+"/v1/length"); g.Status != 200 || g.Connects != 0 {
			t.Errorf("the second HEAD: %d on %d new connections", g.Status, g.Connects)
		}
		if g := shared.curl(t, flag, base+"/v1/204"); g.Status != 204 || g.Body != "" ||
			strings.Contains(lines(g), "content-length") || strings.Contains(lines(g), "transfer-encoding") {
			t.Errorf("204: %d %q\n%s", g.Status, g.Body, g.Heads)
		}
		g := shared.curl(t, flag, "-H", `If-None-Match: "v1"`, base+"/v1/304")
		if g.Status != 304 || g.Body != "" || !strings.Contains(lines(g), `etag: "v1"`) ||
			strings.Contains(lines(g), "transfer-encoding") {
			t.Errorf("304: %d %q\n%s", g.Status, g.Body, g.Heads)
		}
		// What follows on the same connection is not read as their body.
		g = shared.curl(t, flag, base+"/v1/304", base+"/v1/204", "-o", os.DevNull, "-o", os.DevNull, base+"/v1/hello")
		if g.Status != 200 || !strings.HasSuffix(g.Body, "hello") || g.Connects != 0 {
			t.Errorf("after them: %d %q on %d new connections", g.Status, g.Body, g.Connects)
		}
	})
}

func TestAConnectionIsKept(t *testing.T) {
	versions(t, func(t *testing.T, flag, base string) {
		shared.curl(t, flag, base+"/v1/hello") // the plane's own connection is in its pool
		before := origin.conns.Load()
		args := []string{flag}
		for range 20 {
			args = append(args, base+"/v1/hello")
		}
		g := shared.curl(t, args...)
		if strings.Count(g.Body+"\n", "hello\n") != 20 || g.Connects != 0 {
			t.Errorf("%d answers, and %d new connections for the last", strings.Count(g.Body+"\n", "hello\n"), g.Connects)
		}
		if n := origin.conns.Load() - before; n > 1 {
			t.Errorf("%d new connections to the origin", n)
		}
	})
}

func TestHTTP10ClientsAreAnsweredInTheirOwnWords(t *testing.T) {
	addr, token := shared.addr()
	for _, path := range []string{"/v1/get?n=70000", "/v1/get?n=70000&chunked=1"} {
		for _, more := range [][]string{nil, {"--proxy1.0", addr, "--proxy-user", "x:" + token}} {
			g := shared.curl(t, append([]string{"-0", "-o", os.DevNull, "https://" + hostH1 + path}, more...)...)
			if g.Status != 200 || g.Received != 70000 || strings.Contains(strings.ToLower(g.Heads), "chunked") {
				t.Errorf("%s: %d, %.0f bytes\n%s", path, g.Status, g.Received, g.Heads)
			}
		}
	}
	g := shared.curl(t, "-0", "-d", "some=form", "https://"+hostH1+"/v1/put")
	if !strings.HasPrefix(g.Body, "9 ") {
		t.Errorf("the origin read %q", g.Body)
	}
}

func TestUploadsArriveWhole(t *testing.T) {
	file := filepath.Join(t.TempDir(), "upload")
	data := bytes.Repeat([]byte("0123456789abcdef"), 64<<10) // 1 MiB
	must.Do(t, os.WriteFile(file, data, 0o600))
	want := fmt.Sprintf("%d %s", len(data), sum(data))
	versions(t, func(t *testing.T, flag, base string) {
		for name, c := range map[string]struct {
			args   []string
			length int64
		}{
			"with a length": {[]string{"-H", "Expect:", "-T", file}, int64(len(data))},
			"in chunks": {[]string{"-H", "Expect:", "-H", "Content-Length:", "-H", "Transfer-Encoding: chunked", "-X", "PUT",
				"--data-binary", "@" + file}, -1},
		} {
			if flag == "--http2" && c.length < 0 {
				c.args = []string{"-H", "Expect:", "-X", "PUT", "-H", "Content-Length:", "--data-binary", "@" + file}
			}
			g := shared.curl(t, append([]string{flag, base + "/v1/put/whole"}, c.args...)...)
			if g.Status != 200 || g.Body != want {
				t.Errorf("%s: %d %q, want %q", name, g.Status, g.Body, want)
			}
			if saw := origin.take("/v1/put/whole"); len(saw) != 1 || saw[0].Length != c.length && flag != "--http2" {
				t.Errorf("%s: the origin saw %+v, want a length of %d", name, saw, c.length)
			}
		}
	})
}

func TestAClientThatAsksIsToldToContinue(t *testing.T) {
	file := filepath.Join(t.TempDir(), "upload")
	must.Do(t, os.WriteFile(file, make([]byte, 8<<20), 0o600))
	versions(t, func(t *testing.T, flag, base string) {
		g := shared.curl(t, flag, "-H", "Expect: 100-continue", "--expect100-timeout", "60", "-T", file, base+"/v1/put")
		if g.Status != 200 || g.Sent != 8<<20 || strings.Count(g.Heads, " 100") != 1 {
			t.Errorf("got %d, %.0f bytes sent\n%s", g.Status, g.Sent, g.Heads)
		}
		// What is not allowed is said before a byte of the body is sent.
		g = shared.curl(t, flag, "-H", "Expect: 100-continue", "--expect100-timeout", "60", "-T", file, base+"/elsewhere")
		// curl's HTTP/2 sends what the first window holds without waiting.
		if g.Status != 403 || flag == "--http1.1" && g.Sent != 0 || g.Sent > 64<<10 ||
			!strings.Contains(g.Body, "operation_not_matched") {
			t.Errorf("refused: %d %q, %.0f bytes sent", g.Status, g.Body, g.Sent)
		}
	})
	g := shared.curl(t, "--http1.1", "-H", "Expect: a-miracle", "https://"+hostH1+"/v1/hello")
	if g.Status != 417 {
		t.Errorf("another expectation: %d, want 417", g.Status)
	}
}

// An origin may answer before it has the whole request, and not want the rest.
func TestAnEarlyAnswerArrives(t *testing.T) {
	file := filepath.Join(t.TempDir(), "upload")
	must.Do(t, os.WriteFile(file, make([]byte, 100*mib), 0o600))
	versions(t, func(t *testing.T, flag, base string) {
		began := time.Now()
		for range 5 {
			g, err := shared.tryCurl(t, flag, "-H", "Expect:", "-T", file, base+"/v1/refuse/early")
			if g.Status != 413 || g.Body != "not this\n" {
				t.Errorf("got %d %q, curl %d, %v", g.Status, g.Body, g.Code, err)
			}
			// So may the plane.
			g, err = shared.tryCurl(t, flag, "-H", "Expect:", "-T", file, base+"/elsewhere")
			if g.Status != 403 || !strings.Contains(g.Body, "operation_not_matched") {
				t.Errorf("refused: %d %q, curl %d, %v", g.Status, g.Body, g.Code, err)
			}
		}
		for _, r := range shared.rows(t, "/v1/refuse/early", began) {
			if r["status"] != float64(413) || r["decision"] != "proxied" {
				t.Errorf("the row is %v", r)
			}
		}
	})
}

func TestPartsComeWhereTheOperationAllowsThem(t *testing.T) {
	versions(t, func(t *testing.T, flag, base string) {
		g := shared.curl(t, flag, "-r", "5-14", base+"/parts/blob")
		if g.Status != 206 || g.Body != "5678901234" ||
			!strings.Contains(strings.ToLower(g.Heads), "content-range: bytes 5-14/10000") {
			t.Errorf("got %d %q\n%s", g.Status, g.Body, g.Heads)
		}
		// Elsewhere the range is not asked for, and the whole comes.
		if g := shared.curl(t, flag, "-r", "0-1", base+"/v1/hello"); g.Status != 200 || g.Body != "hello" {
			t.Errorf("where it is not declared: %d %q", g.Status, g.Body)
		}
	})
	// An interrupted download goes on where it stopped.
	out := filepath.Join(t.TempDir(), "blob")
	must.Do(t, os.WriteFile(out, []byte(strings.Repeat("0123456789", 500)), 0o600))
	shared.curl(t, "-C", "-", "-o", out, "https://"+hostH1+"/parts/blob")
	if data, err := os.ReadFile(out); err != nil || string(data) != strings.Repeat("0123456789", 1000) {
		t.Errorf("the resumed file has %d bytes, %v", len(data), err)
	}
}

func TestPlainHTTPIsForwardedAndTunnelled(t *testing.T) {
	for name, more := range map[string][]string{"forward": nil, "CONNECT": {"--proxytunnel"}, "HTTP/1.0": {"-0"}} {
		g := shared.curl(t, append(more, "http://"+hostOpen+"/v1/hello/clear?x="+url.QueryEscape(name))...)
		if g.Status != 200 || g.Body != "hello" {
			t.Errorf("%s: %d %q", name, g.Status, g.Body)
		}
		if saw := origin.take("/v1/hello/clear"); len(saw) != 1 || saw[0].Auth != "" {
			t.Errorf("%s: the origin saw %+v", name, saw)
		}
	}
	g := shared.curl(t, "http://"+hostOpen+"/v1/put", "-H", "Transfer-Encoding: chunked", "-d", "in chunks")
	if !strings.HasPrefix(g.Body, "9 ") {
		t.Errorf("the origin read %q", g.Body)
	}
	// A host with a credential is never spoken to in clear.
	if g := shared.curl(t, "http://"+hostH1+"/v1/hello/clear"); g.Status != 403 ||
		len(origin.take("/v1/hello/clear")) != 0 {
		t.Errorf("in clear: %d %q", g.Status, g.Body)
	}
}

func TestADeclaredPortIsReachedAndNoOther(t *testing.T) {
	for _, flag := range []string{"--http1.1", "--http2"} {
		g := shared.curl(t, flag, "https://"+hostPort+":8443/v1/hello/port")
		if saw := origin.take("/v1/hello/port"); g.Status != 200 || len(saw) != 1 || saw[0].Auth != "Bearer "+secret {
			t.Errorf("%s: %d, the origin saw %+v", flag, g.Status, saw)
		}
		if g := shared.curl(t, flag, "https://"+hostPort+"/v1/hello"); g.Status != 403 ||
			!strings.Contains(g.Body, "host_not_allowed") {
			t.Errorf("%s, port 443: %d %s", flag, g.Status, g.Body)
		}
	}
}
