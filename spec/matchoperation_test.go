package spec

import "testing"

// Match has found an operation by host, port, method and path before it calls
// MatchOperation. A caller that names an operation calls MatchOperation alone, so
// it must check all of them itself.
func TestANamedOperationTakesOnlyItsOwnRequests(t *testing.T) {
	c := connector(t, "github://acme/named",
		"GET api.good.test/v1/items/{id} bearer", "GET *.wild.test:8443/v1/items bearer wild", "* any.good.test/v1/items")
	ix := index(t, c)
	ops := c.Tools[0].Operations
	for _, q := range []struct {
		op     int
		target string
		reason string // "": it is taken
	}{
		{0, "GET api.good.test/v1/items/7", ""},
		{0, "POST api.good.test/v1/items/7", "operation_not_matched"},
		{0, "get api.good.test/v1/items/7", "operation_not_matched"},
		{0, "GET api.good.test/v1/items", "operation_not_matched"},
		{0, "GET api.good.test/v1/items/..", "operation_not_matched"},
		{0, "GET api.good.test:8443/v1/items/7", "host_not_allowed"},
		{0, "GET other.good.test/v1/items/7", "host_not_allowed"},
		{1, "GET a.wild.test:8443/v1/items", ""},
		{1, "GET wild.test:8443/v1/items", "host_not_allowed"},
		{1, "GET a.b.wild.test:8443/v1/items", "host_not_allowed"},
		{1, "GET a.notwild.test:8443/v1/items", "host_not_allowed"},
		{1, "GET a.wild.test/v1/items", "host_not_allowed"},
		{2, "PATCH any.good.test/v1/items", ""},
		{2, "TRACE any.good.test/v1/items", "operation_not_matched"},
		{2, "patch any.good.test/v1/items", "operation_not_matched"},
	} {
		m, no := ix.MatchOperation(ops[q.op], target(q.target))
		switch {
		case q.reason == "" && (no != nil || m.Operation != ops[q.op]):
			t.Errorf("%s: %v, want a match", q.target, no)
		case q.reason != "" && (no == nil || no.Reason != q.reason):
			t.Errorf("%s: %v, want %s", q.target, no, q.reason)
		}
	}
}
