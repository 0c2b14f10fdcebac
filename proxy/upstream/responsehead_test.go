package upstream

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/ALRubinger/aileron/e2e/must"
)

func TestAResponseHeadHasOneReading(t *testing.T) {
	bad := readHeads(t, "testdata/malformed.txt")
	maps.Copy(bad, readHeads(t, "testdata/nothttp.txt"))
	valid := readHeads(t, "testdata/valid.txt")
	valid["over one buffer"] = "HTTP/1.1 200 OK\r\nX-Long: " + strings.Repeat("abcdefghijkl", 3000) +
		"\r\nContent-Length: 5\r\n\r\nhello"
	read := func(raw io.Reader) (*http.Response, error) {
		in, out := net.Pipe()
		defer in.Close()
		go func() { _, _ = io.Copy(out, raw); _ = out.Close() }()
		c := (&h1Pool{}).newConn("", in, nil)
		c.headLeft = maxResponseHead
		res, err := c.readResponse(http.MethodGet, &attempt{})
		if err != nil {
			return nil, err
		}
		c.headLeft = 1 << 20
		watch(res.Body, false)
		body, err := io.ReadAll(res.Body)
		if err == nil && string(body) != "hello" {
			err = fmt.Errorf("the body is %q", body)
		}
		return res, err
	}
	for _, drips := range []bool{false, true} {
		from := func(raw string) io.Reader {
			if drips {
				return iotest.OneByteReader(strings.NewReader(raw))
			}
			return strings.NewReader(raw)
		}
		for name, raw := range bad {
			var head *headError
			if _, err := read(from(raw + "hello")); !errors.As(err, &head) {
				t.Errorf("%s: %v, want a headError", name, err)
			}
		}
		for name, raw := range valid {
			if _, err := read(from(raw)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	for name, raw := range map[string]string{
		"endless line":   "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 1<<20),
		"endless fields": "HTTP/1.1 200 OK\r\n" + strings.Repeat("X: y\r\n", 1<<18),
	} {
		var head *headError
		if _, err := read(strings.NewReader(raw)); !errors.As(err, &head) || head.rule != tooLarge {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// readHeads returns the heads of a file, by name.
func readHeads(t *testing.T, path string) map[string]string {
	t.Helper()
	heads, err := readHeadsFile(path)
	must.Do(t, err)
	return heads
}

func readHeadsFile(path string) (map[string]string, error) {
	text, err := os.ReadFile(path)
	heads := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, quoted, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if !ok || err != nil || strings.HasPrefix(line, "#") {
			continue
		}
		heads[name], err = strconv.Unquote(quoted)
	}
	return heads, err
}
