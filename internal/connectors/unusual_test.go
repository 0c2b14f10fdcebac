package connectors_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/connectors"
	"github.com/ALRubinger/aileron/spec"
)

// hostile returns a connector with many harmless groups, and one dangerous operation in the middle of them.
func hostile(t testing.TB, groups int, version string) *spec.Connector {
	var operations, hosts []string
	for i := range groups {
		host := fmt.Sprintf("h%d.example", i)
		hosts = append(hosts, `"`+host+`"`)
		operations = append(operations, fmt.Sprintf(`{"name":"%s%d.get","method":"GET","path":"/v%d","hosts":["%s"],
			"credential":"bearer"}`, strings.Repeat("harmless", 9), i, i, host))
		if i == groups/2 {
			operations = append(operations, `{"name":"all.drop","method":"DELETE","path":"/all","hosts":["h1.example"],
				"credential":"bearer"}`, `{"name":"pods.exec","method":"GET","path":"/exec","hosts":["h1.example"],
				"credential":"bearer"}`)
		}
	}
	manifest := `[connector]
name = "github://acme/x"
version = "` + version + `"
[capabilities.network]
hosts = [` + strings.Join(hosts, ",\n") + `]
[capabilities.credential]
kind = "bearer"
scope = "` + strings.Repeat("everything ", 20) + `"
[provides]
intents = ["x"]
`
	return must.Get(spec.Load([]byte(manifest), []byte(`{"schema_version":"aileron.connector.v1","connector":{
		"fqn":"github://acme/x","version":"`+version+`"},"tools":[{"name":"x","operations":[`+
		strings.Join(operations, ",")+`]}]}`)))(t)
}

// A thousand harmless groups, hosts and names push nothing off the screen: what is unusual is first, and counted.
func TestWhatIsUnusualCannotBeHidden(t *testing.T) {
	old, c := hostile(t, 2, "1.0.0"), hostile(t, 200, "1.1.0")
	var out strings.Builder
	connectors.SummariseConnector(&out, c, old, connectors.Publisher{}, 80)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) > 40 {
		t.Errorf("it has %d lines", len(lines))
	}
	for _, line := range lines {
		if len(line) > 200 {
			t.Errorf("a line has %d bytes: %s", len(line), line)
		}
	}
	deletes := slices.Index(lines, "  unusual     deletes without asking you (1): all.drop")
	reaches := slices.Index(lines, "              exec, attach, proxy or forwarding without asking you (1):")
	if deletes != 1 || reaches != 2 {
		t.Errorf("what is unusual is in the lines %d and %d", deletes, reaches)
	}
	for _, want := range []string{"\n              the credential for several hosts (200): h0.example",
		"\n  hosts       h0.example, ",
		"\n  reads       201 operations with GET\n", "\n  deletes     1 operation with DELETE: all.drop\n",
		"\n  grants more, hosts (198): h2.example, ",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("there is no %q", want)
		}
	}
	if t.Failed() {
		t.Logf("%s", out.String())
	}
}

func TestEachKindOfTheUnusualIsFound(t *testing.T) {
	for _, o := range []struct{ fields, want string }{
		{`"method":"DELETE","path":"/a","hosts":["a.example"]`, "deletes without asking you"},
		{`"method":"DELETE","path":"/a","hosts":["a.example"],"approval":"required"`, ""},
		{`"method":"DELETE","path":"/a/{b}","hosts":["a.example"],"approval":{"when":{"path.b":["none"]}}`,
			"deletes without asking you"},
		{`"method":"GET","path":"/a/{b}/exec","hosts":["a.example"],"approval":{"when":{"path.b":["none"]}}`,
			"exec, attach, proxy or forwarding without asking you"},
		{`"method":"GET","path":"/{all...}","hosts":["a.example"],"credential":"bearer"`,
			"exec, attach, proxy or forwarding without asking you; paths that begin with anything"},
		{`"method":"POST","path":"/{a}/{b}/{c}","hosts":["a.example"]`, "paths that begin with anything"},
		{`"method":"POST","path":"/{a}/b/c/{d...}","hosts":["a.example"]`, "paths that begin with anything"},
		{`"method":"POST","path":"/{a}/b","hosts":["a.example"]`, ""},
		{`"method":"GET","path":"/{a}/{all...}","hosts":["a.example"]`, ""},
		{`"method":"GET","path":"/{$}","hosts":["a.example"],"credential":"bearer"`, ""},
		{`"method":"GET","path":"/api/v1/pods/{all...}","hosts":["a.example"],"credential":"bearer"`,
			"exec, attach, proxy or forwarding without asking you"},
		{`"method":"POST","path":"/v1/containers/{id}/{action}","hosts":["a.example"]`,
			"exec, attach, proxy or forwarding without asking you"},
		{`"method":"POST","path":"/v1/containers/{id}","hosts":["a.example"],"inputs":[{"name":"id","escaped_slash":true}]`,
			"exec, attach, proxy or forwarding without asking you"},
		{`"method":"POST","path":"/v1/containers/{id}","hosts":["a.example"]`, ""},
		{`"method":"POST","path":"/a","hosts":["a.example"],"credential":"bearer"`, ""},
		{`"method":"GET","path":"/proxy","hosts":["a.example"]`, "exec, attach, proxy or forwarding without asking you"},
		{`"method":"GET","path":"/a","hosts":["a.example"],"upgrade":"websocket"`,
			"exec, attach, proxy or forwarding without asking you; upgrades of connections"},
		{`"method":"GET","path":"/a","hosts":["a.example"],"upgrade":"websocket","approval":"required"`,
			"upgrades of connections"},
		{`"method":"*","path":"/a","hosts":["a.example"]`, "any method"},
		{`"method":"GET","hosts":["a.example"]`, "any path of hosts"},
		{`"method":"GET","path":"/a","hosts":["*.a.example"]`, "any host of a pattern"},
		{`"method":"GET","path":"/a","hosts":["a.example:80"]`, "without TLS"},
		{`"method":"GET","path":"/a","hosts":["a.example:8443"]`, "ports other than 443"},
		{`"method":"GET","path":"/a","hosts":["a.example"],"ranges":true,"credential":"bearer"`, "parts of responses"},
		{`"method":"GET","path":"/a","hosts":["a.example"],"packed":true,"credential":"bearer"`,
			"responses that are not searched for secrets"},
		{`"method":"GET","path":"/a","hosts":["a.example","b.example"],"credential":"bearer"`,
			"the credential for several hosts"},
		{`"method":"GET","path":"/a","hosts":["a.example"],"headers":["x-a"],"credential":"bearer"`,
			"further request fields"},
		{`"method":"GET","path":"/a","hosts":["*.a.example"],"wildcard_credential":true,"credential":"bearer"`,
			"the credential for any host of a pattern"},
		{`"method":"POST","path":"/access_tokens","hosts":["a.example"],"credential":"bearer"`,
			"credentials that these issue reach the agent, as no session can redact what it does not know"},
	} {
		c := must.Get(spec.Parse([]byte(`{"schema_version":"aileron.connector.v1","connector":{"fqn":"github://acme/x",
			"version":"1.0.0"},"tools":[{"name":"x","operations":[{"name":"a",` + o.fields + `}]}]}`)))(t)
		var got []string
		for _, odd := range connectors.Unusual(c) {
			got = append(got, odd.What)
		}
		if strings.Join(got, "; ") != o.want {
			t.Errorf("%s: %q, want %q", o.fields, got, o.want)
		}
	}
}
