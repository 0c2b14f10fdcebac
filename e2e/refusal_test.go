package e2e

import (
	"encoding/json"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/e2e/stub"
)

// What no operation names is refused inside the tunnel, with an answer that an
// agent can read and a row with the reason, and no packet of it leaves.
func TestARefusalIsSaidInTheTunnelAndNothingLeaves(t *testing.T) {
	t.Parallel()
	u := newUser(t, stub.Script{}, "github")
	elsewhere := stub.Start(t, stub.Script{Token: secret})
	p := u.serve("--resolve", "evil.example:443:"+elsewhere.Addr, "--resolve", "api.github.com:8443:"+u.origin.Addr)
	for _, tt := range []struct {
		name, reason string
		status       int
		curl         []string
	}{
		{"an unknown host", "host_not_allowed", 403, []string{"https://evil.example/user"}},
		{"another port", "host_not_allowed", 403, []string{"https://api.github.com:8443/user"}},
		{"a private address", "host_not_allowed", 403, []string{"https://127.0.0.1/user"}},
		{"an unknown path", "operation_not_matched", 403, []string{"https://api.github.com/orgs/acme"}},
		{"another method", "operation_not_matched", 403, []string{"-X", "DELETE", "https://api.github.com/repos/o/r"}},
		{"an undeclared query name", "query_not_declared", 403, []string{"https://api.github.com/user?access_token=x"}},
		{"dot segments", "malformed_request", 400, []string{"--path-as-is", "https://api.github.com/repos/../user"}},
		{"an encoded slash", "malformed_request", 400, []string{"https://api.github.com/repos%2fo/r/user"}},
		{"another Host", "authority_mismatch", 421, []string{"-H", "Host: evil.example", "https://api.github.com/user"}},
		{"in clear", "host_not_allowed", 403, []string{"http://api.github.com/user"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			args := append([]string{"-sS", "--max-time", "300", "-w", "\n%{http_code} %header{x-aileron-audit-id}", "-x",
				p.ProxyURL, "--cacert", p.CAFile, "-H", "Authorization: Bearer placeholder"}, tt.curl...)
			r := finish(t, exec.Command("curl", args...))
			at := strings.LastIndexByte(r.out, '\n')
			body, tail := r.out[:max(at, 0)], r.out[at+1:]
			var said struct {
				Error struct {
					Class, Message, Requested string
					Granted                   []string
					AuditID                   string `json:"audit_id"`
					Details                   struct{ Reason string }
				}
			}
			if err := json.Unmarshal([]byte(body), &said); err != nil {
				t.Fatalf("curl: exit %d, %q, %s", r.code, r.out, r.err)
			}
			e := said.Error
			if e.Details.Reason != tt.reason || !strings.HasPrefix(tail, strconv.Itoa(tt.status)) {
				t.Errorf("answered %s %s, want %d %s", tail, body, tt.status, tt.reason)
			}
			if e.Class == "" || e.Message == "" || e.AuditID == "" || !strings.HasSuffix(tail, " "+e.AuditID) {
				t.Errorf("the answer lacks something: %s, then %q", body, tail)
			}
			var row row
			must.Do(t, json.Unmarshal([]byte(u.must("audit", "show", e.AuditID, "--json").out), &row))
			if row["decision"] != "rejected" || row["reason"] != tt.reason {
				t.Errorf("the row says %v %v, want rejected %s", row["decision"], row["reason"], tt.reason)
			}
		})
	}
	if n := elsewhere.Connections() + u.origin.Connections(); n != 0 {
		t.Errorf("%d connections reached the stubs, want none: %+v %+v", n, u.origin.Seen(), elsewhere.Seen())
	}
	// The stub can be reached: what is counted is not nothing.
	finish(t, exec.Command("curl", "-sS", "-x", p.ProxyURL, "--cacert", p.CAFile, "https://api.github.com/user"))
	if n := u.origin.Connections(); n != 1 {
		t.Errorf("%d connections for an allowed request, want 1", n)
	}
}
