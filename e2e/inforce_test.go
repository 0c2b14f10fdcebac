package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/stub"
)

// A reviewer finds in the log which image, connectors and flags a session had, and which client ignored the proxy: by
// the source both are requests in a decrypted tunnel.
func TestTheLogHasWhatWasInForceAndWhoIgnoredTheProxy(t *testing.T) {
	t.Parallel()
	u := newUser(t, stub.Script{}, "github")
	r := u.box(`set -e
		curl -sS https://api.github.com/user; curl -sS https://evil.example/by-proxy
		unset HTTPS_PROXY https_proxy HTTP_PROXY http_proxy
		curl -sS https://api.github.com/user; curl -sS https://evil.example/past-it`,
		"--env", "CANARY=canary-value", "--read-only")
	if r.code != 0 {
		t.Fatalf("exit %d\n%s%s", r.code, r.out, r.err)
	}
	ways := map[string]int{}
	for _, row := range append(u.rows("--host", "api.github.com"), u.rows("--host", "evil.example")...) {
		fields, _ := row["fields"].(map[string]any)
		ways[fmt.Sprint(row["event"], " ", row["path"], " ", row["source"], " ", fields["redirected"])]++
	}
	const tls = " transparent_connect_tls "
	for _, want := range []string{
		"connector.proxy.started /user" + tls + "<nil>", "connector.proxy.proxied /user" + tls + "<nil>",
		"connector.proxy.started /user" + tls + "true", "connector.proxy.proxied /user" + tls + "true",
		"sandbox.proxy.rejected /by-proxy" + tls + "<nil>", "sandbox.proxy.rejected /past-it" + tls + "true",
	} {
		if ways[want] != 1 || len(ways) != 6 {
			t.Errorf("%d rows are %q, want 1 of each of 6: %v", ways[want], want, ways)
		}
	}
	fields, _ := u.rows("--event", "session.started")[0]["fields"].(map[string]any)
	image, _ := fields["image"].(string)
	id := strings.TrimSpace(u.list("image", "inspect", "--format", "{{.Id}}", image))
	if recorded, _ := fields["image_id"].(string); strings.TrimPrefix(recorded, "sha256:") != strings.TrimPrefix(id,
		"sha256:") ||
		id == "" {
		t.Errorf("the image is %q with the id %v, and the engine has %q", image, fields["image_id"], id)
	}
	text := fmt.Sprint(fields)
	contains(t, "session.started", text, "read_only:true", "env:[CANARY]", "sandbox_proxy:auto", "aileron:",
		"engine_version:",
		"grants_total:1", "version:", "hash:sha256:", "binding:bearer/")
	if strings.Contains(text, "canary-value") || strings.Contains(text, secret) {
		t.Errorf("session.started has a value: %s", text)
	}
}

// What another process changes under a running session has a row before the first request that uses it.
func TestAChangeUnderARunningSessionPrecedesItsUse(t *testing.T) {
	t.Parallel()
	u := newUser(t, stub.Script{}, "github")
	p := u.serve()
	u.must("connector", "install", filepath.Join("testdata", "connectors", "echo"), "--yes")
	args := []string{"-sS", "--max-time", "300", "-o", "/dev/null", "-w", "%{http_code}", "-x", p.ProxyURL, "--cacert",
		p.CAFile,
		"https://api.echo.example/echo"}
	denied := "host_not_allowed"
	harness.WaitFor(t, "the session uses the connector", func() bool {
		finish(t, exec.Command("curl", args...))
		rows := u.rows("--host", "api.echo.example")
		reason, _ := rows[len(rows)-1]["reason"].(string)
		return reason != denied
	})
	var seen []string
	for _, row := range u.rows() {
		switch row["event"] {
		case "session.grants_changed":
			fields, _ := row["fields"].(map[string]any)
			seen = append(seen, fmt.Sprint("changed ", fields["changes"], " ", row["connector_fqn"], " ", fields["added_total"]))
		case "connector.proxy.rejected", "connector.proxy.started":
			seen = append(seen, "used")
		}
	}
	if len(seen) < 2 || !strings.HasPrefix(seen[0], "changed [installed] github://") ||
		!strings.HasSuffix(seen[0], " 1") ||
		seen[1] != "used" {
		t.Errorf("the rows are %q, want the change before its use", seen)
	}
}
