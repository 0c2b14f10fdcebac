package spec

import (
	"fmt"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

// A denied request belongs to one connector, always the same one.
func TestADeniedRequestIsAttributedToTheNearestConnector(t *testing.T) {
	load := func(name, hosts, operations string) *Connector {
		c := must.Get(Load(fmt.Appendf(nil, `
			[connector]
			name = "github://acme/%s"
			version = "1.0.0"
			[capabilities.network]
			hosts = [%s]
			[provides]
			intents = ["x"]
			`, name, hosts), fmt.Appendf(nil, `{
			"schema_version": "aileron.connector.v1",
			"connector": {"fqn": "github://acme/%s", "version": "1.0.0"},
			"tools": [{"name": "%s", "operations": [%s]}]}`, name, name, operations)))(t)
		return c
	}
	issues := load("issues", `"api.test:443", "*.wild.test:443"`, `
		{"name": "list", "method": "GET", "path": "/issues/{id}", "hosts": ["api.test"]},
		{"name": "wild", "method": "GET", "path": "/w", "hosts": ["*.wild.test"]}`)
	admin := load("admin", `"api.test:443", "only.test:443"`, `
		{"name": "edit", "method": "POST", "path": "/issues/{id}", "hosts": ["api.test"]},
		{"name": "look", "method": "GET", "path": "/admin/{id}", "hosts": ["api.test"]},
		{"name": "only", "hosts": ["only.test"]}`)
	for _, order := range [][]*Connector{{issues, admin}, {admin, issues}} {
		ix := must.Get(NewIndex(order))(t)
		for _, c := range []struct {
			t    Target
			want string
		}{
			{Target{Host: "api.test", Port: 443, Method: "DELETE", Path: "/admin/7"}, "admin"},
			{Target{Host: "api.test", Port: 443, Method: "POST", Path: "/issues/7"}, "admin"},
			{Target{Host: "api.test", Port: 443, Method: "GET", Path: "/issues/7"}, "issues"},
			{Target{Host: "api.test", Port: 443}, "admin"},
			{Target{Host: "api.test", Port: 80, Method: "GET", Path: "/issues/7"}, "admin"},
			{Target{Host: "x.wild.test", Port: 443, Method: "PUT", Path: "/w"}, "issues"},
			{Target{Host: "x.wild.test", Port: 8443}, "issues"},
			{Target{Host: "only.test", Port: 443, Method: "GET", Path: "/"}, "admin"},
			{Target{Host: "evil.test", Port: 443, Method: "GET", Path: "/"}, ""},
			{Target{Host: "wild.test", Port: 443}, ""},
		} {
			got := ""
			if named := ix.Naming(c.t); named != nil {
				got = string(named.FQN)
			}
			if want := c.want; want != "" && got != "github://acme/"+want || want == "" && got != "" {
				t.Errorf("%s first: Naming(%+v) = %q, want %q", order[0].FQN, c.t, got, want)
			}
		}
	}
}
