package trust_test

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

func TestChromiumTrustsTheRootByPolicy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	put := w.install(t, w.image("etc/ssl/cert.pem", "etc/chromium/policies/managed/own.json = {}"))
	var policy struct{ CACertificates []string }
	must.Do(t, json.Unmarshal([]byte(put["/etc/chromium/policies/managed/aileron.json"]), &policy))
	block, _ := pem.Decode(w.session)
	if len(policy.CACertificates) != 1 || policy.CACertificates[0] != base64.StdEncoding.EncodeToString(block.Bytes) {
		t.Errorf("policy: %v", policy)
	}
}

func TestFirefoxPoliciesAreMerged(t *testing.T) {
	t.Parallel()
	const alone = `{"policies":{"Certificates":{"Install":["/etc/aileron/proxy/ca.pem"]}}}`
	for _, c := range []struct {
		name, own string
		want      string // "" is the image's own, left alone
	}{
		{"null", "null", alone},
		{"no policies", "{}", alone},
		{"policies of another kind", `{"policies":[1]}`, alone},
		{"others", `{"policies": {"DisableTelemetry": true, "Certificates": {"Install": ["/own.pem"]}}}`,
			`{"policies":{"Certificates":{"Install":["/own.pem","/etc/aileron/proxy/ca.pem"]},"DisableTelemetry":true}}`},
		{"no JSON", "{", ""},
		{"a list", "[]", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			put := w.install(t, w.image("etc/ssl/cert.pem", "etc/firefox/policies/policies.json = "+c.own))
			if got := put["/etc/firefox/policies/policies.json"]; got != c.want {
				t.Errorf("policies: %s, want %s", got, c.want)
			}
			warned := strings.Contains(w.log.String(), "Firefox in the sandbox will not trust the session")
			if warned != (c.want == "") {
				t.Errorf("warnings: %q", w.log.String())
			}
		})
	}
}
