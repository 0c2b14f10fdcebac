package protocol

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
)

// slowhttptest's clients send a head or a body byte by byte, or read an answer
// like that. The plane closes all of them, writes each down, and serves
// others meanwhile.
func TestSlowClientsAreClosedAndHinderNoOthers(t *testing.T) {
	t.Parallel()
	program := packaged(t, "slowhttptest")
	l, port := listen(t)
	s := newSession(t, "[limits]\nhead_timeout = \"10s\"\nbody_timeout = \"10s\"\nwrite_timeout = \"10s\"\n"+
		"idle_timeout = \"30s\"\n", // which another client, on a busy machine, does not need

		"--egress", "passthrough", "--resolve", "127.0.0.1:"+port+":"+origin.resolve[hostH1+":443"])
	s.forwarder(t, l, "127.0.0.1:"+port)
	door, _ := s.addr()
	inside := "https://127.0.0.1:" + port
	const clients = 25
	for name, c := range map[string]struct {
		args   []string
		path   string // in the rows; a head that never came whole has none
		reason string
	}{
		"heads at the door": {[]string{"-H", "-u", "http://" + door + "/healthz"}, "", "request_too_slow"},
		"heads in a tunnel": {[]string{"-H", "-u", inside + "/v1/hello/slow"}, "", "request_too_slow"},
		"bodies in a tunnel": {[]string{"-B", "-u", inside + "/v1/put/slow", "-s", "100000"}, "/v1/put/slow",
			"request_too_slow"},
		"reads in a tunnel": {[]string{"-X", "-u", inside + "/v1/get/slow?n=100000000", "-z", "10"}, "/v1/get/slow",
			"response_not_delivered"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), harness.Patience)
			defer cancel()
			began := time.Now()
			said := map[any]int{} // by the rows
			seen := map[string]int{}
			closed := func() int {
				clear(said)
				clear(seen)
				for _, r := range s.rows(t, c.path, began) {
					said[r["reason"]]++
					seen[fmt.Sprint(r["event"], " ", r["status"], " ", r["reason"])]++
				}
				return said[c.reason]
			}
			defer func() {
				if t.Failed() {
					t.Logf("the rows of %q: %v", c.path, seen)
				}
			}()
			n := strconv.Itoa(clients)
			cmd := exec.CommandContext(ctx, program,
				append([]string{"-c", n, "-r", n, "-i", "1", "-x", "8", "-p", "10", "-l", "240", "-v", "1"}, c.args...)...)
			var out bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &out
			must.Do(t, cmd.Start())
			others := 0
			harness.WaitFor(t, "all slow clients are written down", func() bool {
				if g := s.curl(t, "https://"+hostH1+"/v1/hello"); g.Status != 200 {
					t.Fatalf("another client got %d", g.Status)
				}
				others++
				return closed() >= clients
			})
			t.Logf("%d other requests were answered meanwhile", others)
			if c.reason == "response_not_delivered" {
				// Those that read slowly do not see the end before all that
				// the forwarder had for them.
				_ = cmd.Process.Kill()
				_ = cmd.Wait()
				return
			}
			must.Do(t, cmd.Wait())
			if !strings.Contains(out.String(), "No open connections left") || !strings.Contains(out.String(), "YES") {
				t.Errorf("slowhttptest says:\n%s", out.String())
			}
		})
	}
}
