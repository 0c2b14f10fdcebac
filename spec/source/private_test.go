package source

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/spec"
)

// A credential stays at the host that it is for. net/http alone would send it to a subdomain and to another port, and a
// field of another name than Authorization to any host.
func TestACredentialStaysAtItsHost(t *testing.T) {
	for way, want := range map[string]bool{
		"https://api.example/a https://api.example/b":                        true,
		"https://api.example/a https://api.example/b https://api.example/c":  true,
		"https://api.example/a https://sub.api.example/b":                    false,
		"https://api.example/a https://api.example:8443/b":                   false,
		"https://api.example/a https://other.example/b":                      false,
		"https://api.example/a https://other.example/b https://api.example/": false,
	} {
		for _, field := range []string{"Authorization", "Private-Token"} {
			var via []*http.Request
			ctx := context.WithValue(t.Context(), secretField{}, field)
			for _, u := range strings.Fields(way) {
				r := httptest.NewRequest(http.MethodGet, u, nil).WithContext(ctx)
				r.Header.Set(field, "secret")
				via = append(via, r)
			}
			last := via[len(via)-1]
			if err := checkRedirect(last, via[:len(via)-1]); err != nil || (last.Header.Get(field) != "") != want {
				t.Errorf("%s: %s is %q, %v", way, field, last.Header.Get(field), err)
			}
		}
	}
}

func TestACredentialDoesNotPrint(t *testing.T) {
	c := NewCredential("Authorization", "Bearer secret")
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		if text := fmt.Sprintf(verb, c); strings.Contains(text, "ecret") && text != "[credential]" {
			t.Errorf("%s prints %s", verb, text)
		}
	}
}

// The part of a name that is the project is at least two parts of it, and asked for in that order.
func TestThePlacesOfAName(t *testing.T) {
	c := client(t, Options{})
	for fqn, want := range map[string]string{
		"github://acme/mono/a/b": "acme/mono a/b/v1",
		"gitlab://acme/tracker":  "acme/tracker v1",
		"gitlab://acme/a/b":      "acme/a b/v1|acme/a/b v1",
		"gitlab://acme/a/b/c":    "acme/a b/c/v1|acme/a/b c/v1|acme/a/b/c v1",
		"gitlab://acme/1/2/3/4/5/6/7/8/9/10/11/12": "acme/1 2/3/4/5/6/7/8/9/10/11/12/v1|acme/1/2 3/4/5/6/7/8/9/10/11/12/v1|" +
			"acme/1/2/3 4/5/6/7/8/9/10/11/12/v1|acme/1/2/3/4 5/6/7/8/9/10/11/12/v1|acme/1/2/3/4/5 6/7/8/9/10/11/12/v1|" +
			"acme/1/2/3/4/5/6 7/8/9/10/11/12/v1|acme/1/2/3/4/5/6/7 8/9/10/11/12/v1|acme/1/2/3/4/5/6/7/8 9/10/11/12/v1|" +
			"acme/1/2/3/4/5/6/7/8/9 10/11/12/v1",
	} {
		var got []string
		all, err := c.places(spec.FQN(fqn))
		for _, at := range all {
			got = append(got, at.repo+" "+at.tag("1"))
		}
		if text := strings.Join(got, "|"); err != nil || text != want {
			t.Errorf("%s: %s, %v, want %s", fqn, text, err, want)
		}
	}
}
