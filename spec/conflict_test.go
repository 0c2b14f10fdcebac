package spec

import (
	"fmt"
	"strings"
	"testing"
)

func TestConflictsAreRefused(t *testing.T) {
	one := func(line string) string { return line + " bearer" }
	for _, c := range []struct {
		a, b    string
		clashes bool
	}{
		{"GET a.example/x", "GET a.example/x", true},
		{"GET a.example/x", "POST a.example/x", false},
		{"* a.example/x", "POST a.example/x", true},
		{"GET a.example/x", "GET b.example/x", false},
		{"GET a.example/x", "GET a.example:8443/x", false},
		{"GET a.example/{v}", "GET a.example/x", true},
		{"GET a.example/{v}/b", "GET a.example/a/{w}", true},
		{"GET a.example/{v}/b", "GET a.example/a/c", false},
		{"GET a.example/v1/{path...}", "GET a.example/v1/admin", true},
		{"GET a.example/v1/{path...}", "GET a.example/v1", false},
		{"GET a.example/v1/{path...}", "GET a.example/v1/", true},
		{"GET a.example/v1/{path...}", "GET a.example/v1/a/b/{c}/d", true},
		{"GET a.example/{path...}", "GET a.example/v2/{rest...}", true},
		{"GET a.example/v1/{v}", "GET a.example/v1/", false},
		{"GET a.example/v1/{v}/", "GET a.example/v1/{w}", false},
		{"GET a.w.example/x", "GET *.w.example/x wild", true},
		{"GET a.b.w.example/x", "GET *.w.example/x wild", false},
		{"GET *.w.example/x wild", "GET *.w.example/{v} wild", true},
	} {
		for _, order := range [][2]string{{c.a, c.b}, {c.b, c.a}} {
			first, second := connector(t, "hub://a/one", one(order[0])), connector(t, "hub://a/two", one(order[1]))
			_, err := NewIndex([]*Connector{first, second})
			if (err != nil) != c.clashes {
				t.Errorf("%q beside %q: %v, want a conflict: %v", order[0], order[1], err, c.clashes)
			}
			for _, named := range []string{"hub://a/one tool op0", "hub://a/two tool op0"} {
				if err != nil && !strings.Contains(err.Error(), named) {
					t.Errorf("the conflict %q does not name %s", err, named)
				}
			}
		}
		// One of them without a credential: decided by precedence, no conflict.
		if strings.Contains(c.b, "wild") {
			continue
		}
		both := []*Connector{connector(t, "hub://a/one", one(c.a)), connector(t, "hub://a/two", c.b)}
		if _, err := NewIndex(both); err != nil {
			t.Errorf("%q beside %q without a credential: %v", c.a, c.b, err)
		}
	}
	own := connector(t, "hub://a/one", "GET a.example/x bearer", "GET a.example/{v} bearer")
	if _, err := NewIndex([]*Connector{own}); err != nil {
		t.Errorf("one connector's own operations are refused: %v", err)
	}
}

// Connectors that are built to make the search for conflicts expensive are
// refused, not searched without end.
func TestEntangledConnectorsAreRefused(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: builds 30 000 operations")
	}
	var a, b []string
	for i := range 4000 {
		a = append(a, fmt.Sprintf("GET a.example/l%d/{v}/p bearer", i))
		b = append(b, fmt.Sprintf("GET a.example/{u}/m%d/q bearer", i))
	}
	_, err := NewIndex([]*Connector{connector(t, "hub://a/one", a...), connector(t, "hub://a/two", b...)})
	if err == nil || !strings.Contains(err.Error(), "too entangled") ||
		!strings.Contains(err.Error(), "hub://a/one, hub://a/two") {
		t.Errorf("the error is %v, want one that says that they are too entangled", err)
	}
}
