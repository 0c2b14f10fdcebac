package hostile

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
)

// A session that may have few descriptors answers a swarm, keeps what it stands
// on, and serves honest clients when the swarm has gone.
func TestASwarmTakesNoMoreThanItsDescriptors(t *testing.T) {
	for _, limit := range []int{64, 128} {
		t.Run(strconv.Itoa(limit), func(t *testing.T) {
			s := newSessionBy(t, "sh", "-c", fmt.Sprintf(`ulimit -n %d && exec "$0" "$@"`, limit), program)
			good := newHonest(t, s)
			good.round()
			swarm := newClient(t, s)
			for range limit {
				_ = swarm.request(hostH1, "GET", "/v1/events", "") // with an upstream connection each, as long as there are any
				_, _ = swarm.door()                                // and silent
			}
			for range 10 {
				if status, reason := swarm.refused(t); status != http.StatusServiceUnavailable ||
					reason != "descriptors_exhausted" {
					t.Errorf("a client of a full session gets %d %q", status, reason)
				}
			}
			swarm.close()
			recovered(t, good)
			said := reasons(t, s)
			for _, reason := range said {
				if !slices.Contains([]string{"", "descriptors_exhausted", "response_not_delivered", "no_request"}, reason) {
					t.Errorf("a row has the reason %q", reason)
				}
			}
			if !slices.Contains(said, "no_request") {
				t.Error("no row counts the silent connections")
			}
		})
	}
}

// refused returns the status and the reason with which a CONNECT is refused.
func (c *client) refused(t *testing.T) (status int, reason string) {
	t.Helper()
	conn := must.Get(c.door())(t)
	defer conn.Close()
	fmt.Fprintf(conn, "CONNECT %s:443 HTTP/1.1\r\nHost: %s:443\r\n%s\r\n", hostH1, hostH1, c.token())
	res := must.Get(http.ReadResponse(bufio.NewReader(conn), nil))(t) //nolint:bodyclose // closed below
	defer res.Body.Close()
	body := must.Get(io.ReadAll(res.Body))(t)
	var said struct {
		Error struct {
			Details struct {
				Reason string `json:"reason"`
			} `json:"details"`
		} `json:"error"`
	}
	if res.StatusCode != http.StatusOK {
		must.Do(t, json.Unmarshal(body, &said))
	}
	return res.StatusCode, said.Error.Details.Reason
}

// recovered waits until an honest client is served again, and has it make all
// its requests.
func recovered(t *testing.T, good *honest) {
	t.Helper()
	served := func() bool {
		body, err := good.try(good.one, http.MethodGet, "https://"+hostH1+"/v1/hello", "")
		return err == nil && body == "hello"
	}
	if !harness.Poll(harness.Patience, 50*time.Millisecond, served) {
		t.Errorf("an honest client is not served again within %v", harness.Patience)
		return
	}
	good.round()
}

// reasons are those of the session's rows so far.
func reasons(t *testing.T, s *session) []string {
	t.Helper()
	cmd := exec.Command(program, "audit", "list", "--json", "--session", s.SessionID, "--limit", "0")
	cmd.Env = harness.Env(home, passphrase)
	out := must.Get(cmd.Output())(t)
	var all []string
	for line := range strings.Lines(string(out)) {
		var row struct {
			Reason string `json:"reason"`
		}
		must.Do(t, json.Unmarshal([]byte(line), &row))
		all = append(all, row.Reason)
	}
	return all
}
