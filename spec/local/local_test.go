package local

import (
	"reflect"
	"slices"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/spec"
)

func TestWhatWasAllowedIsReadBack(t *testing.T) {
	for name, c := range map[string]Connector{
		"a host": {Host: "docs.example", Version: "1.0.0", Operations: []Operation{{}}},
		"requests": {Host: "api.example:8443", Version: "1.2.0", Operations: []Operation{
			{Method: "GET", Path: "/v1/items/{id}"}, {Method: "POST", Path: "/v1/items", AnyQuery: true}}},
		"with a credential": {Host: "api.example", Version: "1.0.0", Scope: `Read "everything"`,
			Credential: &spec.Injection{Kind: "api_key", In: "header", Name: "X-Api-Key", Format: "{secret}"},
			Operations: []Operation{{Method: "GET", Path: "/v1/items"}}},
	} {
		t.Run(name, func(t *testing.T) {
			loaded := must.Get(c.Load())(t)
			if !loaded.FQN.IsLocal() || loaded.FQN != FQN(c.Host) {
				t.Errorf("its name is %s", loaded.FQN)
			}
			got := Read(loaded, c.Host)
			if in := got.Credential; in != nil {
				in.Scope = ""
			}
			if !reflect.DeepEqual(got, c) && name != "a host" {
				t.Errorf("read back as %+v, want %+v", got, c)
			}
			if name == "a host" && (len(got.Operations) != 1 || got.Operations[0].Path != "" || got.Operations[0].Method != "") {
				t.Errorf("read back as %+v", got)
			}
		})
	}
}

// The path of a row is what a sandbox asked for: it must not become more than itself.
func TestAPathThatReadsAsAPatternIsRefused(t *testing.T) {
	for _, path := range []string{"/items/{id...}/x", "/items/{", "items", "/a?b", "/a#b", "/a\"b", "/a/../b", "/%2f"} {
		c := Connector{Host: "api.example", Version: "1.0.0", Operations: []Operation{{Method: "GET", Path: path}}}
		if _, err := c.Load(); err == nil {
			t.Errorf("%q is taken", path)
		}
	}
}

// A person who allows the hosts of a company does not mean to overrule what a connector decides about one of them.
func TestAWildcardIsOfNoAccountForAHostThatAConnectorNames(t *testing.T) {
	byHand := must.Get(Host([]string{"*.example.org"}))(t)
	named := must.Get(Connector{Host: "api.example.org", Version: "1.0.0",
		Operations: []Operation{{Method: "GET", Path: "/v1/items"}}}.Load())(t)
	index := must.Get(spec.NewIndex([]*spec.Connector{byHand, named}))(t)
	for _, c := range []struct {
		host, path string
		want       spec.FQN // "": it is refused
	}{
		{"docs.example.org", "/v1/admin", SessionFQN}, {"api.example.org", "/v1/items", named.FQN},
		{"api.example.org", "/v1/admin", ""}, {"a.b.example.org", "/v1/items", ""}, {"example.org", "/v1/items", ""},
	} {
		m, no := index.Match(spec.Target{Scheme: "https", Host: c.host, Port: 443, Method: "GET", Path: c.path})
		if (no == nil) != (c.want != "") || no == nil && m.Operation.Connector.FQN != c.want {
			t.Errorf("%s%s: %+v, %v; want %q", c.host, c.path, m, no, c.want)
		}
	}
	if got := index.Hosts(); !slices.Equal(got, []string{"*.example.org:443", "api.example.org:443"}) {
		t.Errorf("the hosts are %v", got)
	}
}

func TestHostsHaveConnectorsOfTheirOwn(t *testing.T) {
	seen := map[spec.FQN]string{}
	for _, host := range []string{"example.org", "*.example.org", "example.org:8443", "*.example.org:8443",
		"any.example.org"} {
		fqn := FQN(host)
		if _, err := spec.ParseFQN(string(fqn)); err != nil {
			t.Error(err)
		}
		if other, twice := seen[fqn]; twice {
			t.Errorf("%s and %s have one connector, %s", host, other, fqn)
		}
		seen[fqn] = host
	}
}

func TestHostsOfASessionAreAllowedAsTheyAre(t *testing.T) {
	c := must.Get(Host([]string{"docs.example", "docs.example:8443", "*.files.example"}))(t)
	index := must.Get(spec.NewIndex([]*spec.Connector{c}))(t)
	for host, want := range map[string]bool{"docs.example": true, "a.files.example": true, "a.b.files.example": false,
		"files.example": false, "evil.example": false} {
		m, no := index.Match(spec.Target{Scheme: "https", Host: host, Port: 443, Method: "PUT", Path: "/x"})
		if (no == nil) != want || no == nil && m.Operation.Injection != nil {
			t.Errorf("%s: %+v, %v; want allowed without a credential: %t", host, m, no, want)
		}
	}
}

func TestNoTwoHostsHaveOneConnector(t *testing.T) {
	hosts := map[spec.FQN]string{}
	for _, host := range []string{"*.b.example", "any_b.example", "any.b.example", "a.example_80", "a.example:80",
		"a.example__80", "a.example_:80"} {
		if other, taken := hosts[FQN(host)]; taken {
			t.Errorf("%s and %s are both %s", host, other, FQN(host))
		}
		hosts[FQN(host)] = host
		if _, err := (Connector{Host: host, Version: "1.0.0", Operations: []Operation{{}}}).Load(); err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
}
