package attacks

import (
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/audit"
)

// refusal is the denial that a case expects: one status, one class and one
// reason, in the response and in the audit row. Defences stand one behind the
// other, so a case that accepts any of several refusals passes without the
// defence that it is about. Where one reason covers several defences, says is
// a part of the message that only the one meant has.
type refusal struct {
	status              int
	class, reason, says string
}

// at returns the refusal with another status of the same reason.
func (r refusal) at(status int) refusal { r.status = status; return r }

// as returns the refusal with a part of its message.
func (r refusal) as(says string) refusal { r.says = says; return r }

// taken stands in a table of refusals for a request that is served.
var taken = refusal{status: http.StatusOK}

// The refusals of docs/errors.md that cases expect.
var (
	hostNotAllowed    = refusal{403, "capability_denied", "host_not_allowed", ""}
	operationNone     = refusal{403, "capability_denied", "operation_not_matched", ""}
	queryNotDeclared  = refusal{403, "capability_denied", "query_not_declared", ""}
	addressNotAllowed = refusal{403, "capability_denied", "address_not_allowed", ""}
	notBound          = refusal{403, "binding_required", "credential_not_bound", ""}
	bodyTooLarge      = refusal{413, "resource_limit_exceeded", "body_too_large", ""}
	rateExceeded      = refusal{429, "resource_limit_exceeded", "rate_exceeded", ""}
	tooManyConns      = refusal{429, "resource_limit_exceeded", "too_many_connections", ""}
	malformed         = refusal{400, "invalid_request", "malformed_request", ""}
	argumentsInvalid  = refusal{400, "invalid_request", "arguments_invalid", ""}
	handshakeFailed   = refusal{400, "invalid_request", "client_handshake_failed", ""}
	otherAuthority    = refusal{421, "invalid_request", "authority_mismatch", ""}
	noToken           = refusal{407, "unauthenticated", "token_missing_or_wrong", ""} // 401 at the API
	auditUnavailable  = refusal{503, "unavailable", "audit_unavailable", ""}
	vaultLocked       = refusal{503, "unavailable", "vault_locked", ""}
	tooManyRequests   = refusal{503, "unavailable", "too_many_requests", ""}
	nameNotResolved   = refusal{502, "network_error", "name_not_resolved", ""}
	unreachable       = refusal{502, "network_error", "upstream_unreachable", ""}
	notVerified       = refusal{403, "network_error", "upstream_not_verified", ""}
	upstreamBroken    = refusal{502, "network_error", "upstream_broken", ""}
	upstreamNotHTTP   = refusal{502, "network_error", "upstream_not_http", ""}
	upstreamHead      = refusal{502, "network_error", "upstream_head_too_large", ""}
	upstreamClosed    = refusal{502, "network_error", "upstream_closed", ""}
	upstreamReset     = refusal{502, "network_error", "upstream_reset", ""}
	upstreamTimeout   = refusal{504, "timeout", "upstream_timeout", ""}
	requestTooSlow    = refusal{408, "timeout", "request_too_slow", ""}
	unsafeEncoding    = refusal{406, "response_unsafe", "content_encoding", ""}
	packedBody        = refusal{406, "response_unsafe", "packed_body", ""}
	unsafeCharset     = refusal{406, "response_unsafe", "charset", ""}
	internalError     = refusal{502, "connector_runtime_error", "internal_error", ""}
)

// whole ends the test when r leaves something open: the table is at fault.
func (c *testCase) whole(what string, r refusal) {
	c.t.Helper()
	if r.status < 400 || r.class == "" || r.reason == "" {
		c.t.Fatalf("%s: %s: a refusal is expected with its status, class and reason, not %+v", c.name, what, r)
	}
}

// is fails the case unless the answer has this status. A refusal is asked
// for with refused, ended or judged, which ask for its reason too.
func (c *testCase) is(what string, a answer, status int) {
	c.t.Helper()
	switch {
	case status < 200 || status >= 400:
		c.t.Fatalf("%s: %s: is expects no %d: a refusal needs its reason", c.name, what, status)
	case a.status != status:
		c.failf("%s: got %s (%v), want %d", what, a, a.err, status)
	case status == http.StatusOK && a.err != nil:
		c.failf("%s: the answer broke off: %v", what, a.err)
	}
}

// relayed fails the case unless the answer is the origin's own, with this
// status.
func (c *testCase) relayed(what string, a answer, status int) {
	if a.status != status || a.class != "" || a.header.Get("X-Aileron-Audit-Id") != "" {
		c.failf("%s: got %s (%v), want the origin's own %d", what, a, a.err, status)
	}
}

// judged fails the case unless the answer is served, where want is taken, or
// this refusal.
func (c *testCase) judged(what string, a answer, want refusal) {
	c.t.Helper()
	if want == taken {
		c.is(what, a, http.StatusOK)
		return
	}
	c.refused(what, a, want)
}

// denied fails the case unless the answer is this refusal, and reports whether
// it is. Its audit row is not looked for.
func (c *testCase) denied(what string, a answer, want refusal) bool {
	c.t.Helper()
	c.whole(what, want)
	id := a.header.Get("X-Aileron-Audit-Id")
	if a.status != want.status || a.body != "" && (a.class != want.class || a.reason != want.reason || a.auditID != id) {
		c.failf("%s: got %s (%v), want %d %s %s", what, a, a.err, want.status, want.class, want.reason)
		return false
	}
	if a.body != "" && !strings.Contains(a.message, want.says) {
		c.failf("%s: the message is %q, want one that says %q", what, a.message, want.says)
	}
	return true
}

// refused fails the case unless the answer and its audit row are this
// refusal.
func (c *testCase) refused(what string, a answer, want refusal) {
	c.t.Helper()
	if !c.denied(what, a, want) {
		return
	}
	id := a.header.Get("X-Aileron-Audit-Id")
	row, found := c.s.row(id)
	switch {
	case c.s.forgets: // then it is judged by the rows that are missing
	case !found:
		c.failf("O3: %s: the refusal names the audit row %q, which is not there", what, id)
	case row.Decision != audit.DecisionRejected || row.Reason != want.reason || row.Status != want.status:
		c.failf("O3: %s: the row says %s %s %d, want %s %d", what, row.Decision, row.Reason, row.Status, want.reason,
			want.status)
	}
}

// ended fails the case unless the request was refused for this reason and a
// row records that. The answer may have been lost with its connection or stream,
// which ends with such a refusal; when it arrived, it is this refusal.
func (c *testCase) ended(what string, a answer, want refusal) {
	c.t.Helper()
	c.whole(what, want)
	if a.status != 0 {
		c.refused(what, a, want)
		return
	}
	c.rowSays(what, want)
}

// rowSays fails the case unless a row since its beginning is this refusal.
func (c *testCase) rowSays(what string, want refusal) {
	c.t.Helper()
	c.whole(what, want)
	if said := c.outcomes(); !slices.Contains(said, string(audit.DecisionRejected)+" "+want.reason) {
		c.failf("O3: %s: the rows say %q, want one with %s", what, said, want.reason)
	}
}

// undelivered fails the case unless a row records that the client had left:
// before its request, or after that. Which of the two is a race that the
// client has made, and each has one decision and one reason.
func (c *testCase) undelivered(what string) {
	before, after := string(audit.DecisionRejected)+" client_gone", string(audit.DecisionProxied)+" response_not_delivered"
	if said := c.outcomes(); !slices.Contains(said, before) && !slices.Contains(said, after) {
		c.failf("O3: %s: the rows say %q, want one with %s or %s", what, said, before, after)
	}
}

// outcomes are the decisions and reasons of the rows since the beginning.
func (c *testCase) outcomes() []string {
	var said []string
	for _, r := range c.settledRows() {
		said = append(said, string(r.Decision)+" "+r.Reason)
	}
	return said
}

// recorder is a test that keeps that it was ended.
type recorder struct {
	testing.TB
	fatal string
}

func (*recorder) Helper() {}

func (r *recorder) Fatalf(format string, args ...any) {
	r.fatal = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// TestARefusalNeedsItsReason tries the harness: a case that expects a refusal
// without saying which, or by its status alone, is at fault.
func TestARefusalNeedsItsReason(t *testing.T) {
	for name, expect := range map[string]func(*testCase){
		"a status":  func(c *testCase) { c.is("x", answer{status: 403}, 403) },
		"no answer": func(c *testCase) { c.is("x", answer{}, 0) },
		"no reason": func(c *testCase) {
			c.refused("x", answer{status: 403},
				refusal{status: 403, class: "capability_denied"})
		},
		"no class": func(c *testCase) {
			c.judged("x", answer{status: 403},
				refusal{status: 403, reason: "host_not_allowed"})
		},
		"an end, no reason": func(c *testCase) { c.ended("x", answer{}, refusal{status: 400}) },
	} {
		r := &recorder{}
		done := make(chan struct{})
		go func() { defer close(done); expect(&testCase{t: r, s: &subject{forgets: true}}) }()
		<-done
		if r.fatal == "" {
			t.Errorf("%s: the harness takes it for an expectation", name)
		}
	}
	for name, a := range map[string]answer{
		"another reason": {status: 403, class: "capability_denied", reason: "operation_not_matched", body: "{}"},
		"another class":  {status: 403, class: "invalid_request", reason: "host_not_allowed", body: "{}"},
		"another status": {status: 421, class: "capability_denied", reason: "host_not_allowed", body: "{}"},
		"a page":         {status: 403, body: "Forbidden"},
	} {
		c := &testCase{t: t, s: &subject{forgets: true}}
		if c.refused("x", a, hostNotAllowed); len(c.fails) == 0 {
			t.Errorf("%s is taken for %s", name, hostNotAllowed.reason)
		}
	}
}
