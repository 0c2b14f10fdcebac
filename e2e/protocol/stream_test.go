package protocol

import (
	"bufio"
	"io"
	"net/url"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
)

// running is a curl that shows what comes as it comes.
type running struct {
	cmd *exec.Cmd
	out *bufio.Reader
}

func (s *session) stream(t *testing.T, args ...string) *running {
	t.Helper()
	r := &running{cmd: s.curlCommand(t, append([]string{"-N"}, args...)...)}
	out := must.Get(r.cmd.StdoutPipe())(t)
	r.out = bufio.NewReader(out)
	must.Do(t, r.cmd.Start())
	return r
}

// kill ends curl as the kernel would, and its connection with it.
func (r *running) kill() {
	_ = r.cmd.Process.Kill()
	_ = r.cmd.Wait()
}

// An event is only sent when the one before has arrived.
func TestEventsArriveOneByOne(t *testing.T) {
	types := []string{"text/event-stream", "text/event-stream; charset=utf-8", "application/x-ndjson",
		"application/json-seq", "application/json", "text/plain", "application/octet-stream", ""}
	versions(t, func(t *testing.T, flag, base string) {
		for _, kind := range types {
			c := shared.stream(t, flag, base+"/v1/stream/events?type="+url.QueryEscape(kind))
			for _, event := range []string{"event: message_start\ndata: {\"n\":1}\n\n", "data: x\n",
				"data: " + strings.Repeat("long ", 5000) + "\n\n", ": ping\n\n", "{\"n\": 2}\n"} {
				say <- event
				got := make([]byte, len(event))
				if _, err := io.ReadFull(c.out, got); err != nil || string(got) != event {
					t.Fatalf("%q: %.40q came as %.40q, %v", kind, event, got, err)
				}
			}
			say <- "data: " + "Bearer " + secret + " ends\n"
			if line, err := c.out.ReadString('\n'); err != nil ||
				line != "data: Bearer "+strings.Repeat("*", len(secret))+" ends\n" {
				t.Errorf("%q: the secret came as %q, %v", kind, line, err)
			}
			say <- ""
			if rest, err := io.ReadAll(c.out); err != nil || len(rest) > 0 {
				t.Errorf("%q: after the end %q, %v", kind, rest, err)
			}
			if err := c.cmd.Wait(); err != nil {
				t.Errorf("%q: curl: %v", kind, err)
			}
		}
	})
}

func TestAClientThatGoesAwayEndsTheOrigin(t *testing.T) {
	for name, c := range map[string]struct {
		args  []string
		begun func(t *testing.T, r *running)
	}{
		"before the head": {[]string{"/v1/hold/before"}, func(*testing.T, *running) {}},
		"in the answer": {[]string{"/v1/stream/answer?type=text/event-stream"}, func(t *testing.T, r *running) {
			say <- "data: 1\n\n"
			must.Get(r.out.ReadString('\n'))(t)
		}},
		"in its body": {[]string{"/v1/put/body", "-T", "-", "-H", "Expect:"}, func(t *testing.T, _ *running) {
			harness.WaitFor(t, "the origin reads", func() bool { return origin.moved.Load() > 0 })
		}},
	} {
		t.Run(name, func(t *testing.T) {
			versions(t, func(t *testing.T, flag, base string) {
				path, _, _ := strings.Cut(c.args[0], "?")
				release := origin.hold("/v1/hold/before")
				defer close(release)
				began := time.Now()
				origin.take(path)
				origin.moved.Store(0)
				gone := origin.gone.Load()
				r := &running{cmd: shared.curlCommand(t, append([]string{"-N", flag, base + c.args[0]}, c.args[1:]...)...)}
				out := must.Get(r.cmd.StdoutPipe())(t)
				r.out = bufio.NewReader(out)
				in := must.Get(r.cmd.StdinPipe())(t)
				must.Do(t, r.cmd.Start())
				must.Get(in.Write(make([]byte, 1000)))(t) // and no end
				defer in.Close()
				harness.WaitFor(t, "the origin is asked", func() bool { return len(origin.take(path)) > 0 })
				c.begun(t, r)
				r.kill()
				at := time.Now()
				harness.WaitFor(t, "the origin is told", func() bool { return origin.gone.Load() > gone })
				t.Logf("the origin was told after %v", time.Since(at).Round(time.Millisecond))
				want := "response_not_delivered"
				if name == "in its body" && flag == "--http1.1" {
					want = "body_broken" // the end of the connection is all that HTTP/1.1 has
				}
				if r := shared.row(t, path, began); r["reason"] != want {
					t.Errorf("the row has reason %v, want %s: %v", r["reason"], want, r)
				}
			})
		})
	}
}

func TestAnOriginThatBreaksOffIsNotTakenForWhole(t *testing.T) {
	versions(t, func(t *testing.T, flag, base string) {
		for _, path := range []string{"/v1/abort/length", "/v1/abort/open?chunked=1"} {
			began := time.Now()
			g, err := shared.tryCurl(t, flag, base+path)
			// 18: a part of the file; 92: the stream was reset.
			if want := map[string]int{"--http1.1": 18, "--http2": 92}[flag]; err == nil || g.Code != want ||
				!strings.HasPrefix(g.Body, "half") {
				t.Errorf("%s: curl ended with %d and %q, want %d", path, g.Code, g.Body, want)
			}
			plain, _, _ := strings.Cut(path, "?")
			if r := shared.row(t, plain, began); r["reason"] != "upstream_truncated" {
				t.Errorf("%s: the row is %v", path, r)
			}
		}
	})
}
