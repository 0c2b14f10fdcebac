package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/spec"
)

func TestSpecValidateTellsEveryFault(t *testing.T) {
	c := newRunner(t)
	good := filepath.Join(exampleGitHub, "aileron.connector.v1.json")
	if out := c.ok("spec", "validate", good, filepath.Join(exampleGitHub, "manifest.toml"), exampleGitHub); out != "" {
		t.Errorf("a good spec prints %q", out)
	}
	if out := c.ok("spec", "validate", good, "--json"); out != "[]\n" {
		t.Errorf("a good spec prints %q", out)
	}
	data, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	bad := filepath.Join(t.TempDir(), "bad.json")
	text := strings.Replace(string(data), `"hosts": ["api.github.com"]`, `"hosts": ["https://api.github.com"]`, 1)
	text = strings.Replace(text, `"schema_version"`, `"extra": 1, "schema_version"`, 1)
	if err := os.WriteFile(bad, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, errs, code := c.run("spec", "validate", good, bad)
	if code != 1 || !strings.Contains(out, bad+": extra: unknown key\n") || !strings.Contains(out,
		bad+": tools[0].operations[0].hosts[0]: ") || !strings.Contains(errs, "found 2 faults") {
		t.Errorf("it ends with %d: %s%s", code, out, errs)
	}
	out, _, code = c.run("spec", "validate", bad, "--json")
	faults := decode[[]spec.FaultJSON](t, out)
	if code != 1 || len(faults) != 2 || faults[0].File != bad || faults[0].Path != "extra" {
		t.Errorf("it ends with %d: %+v", code, faults)
	}
	if out, _, code := c.run("spec", "validate", "/nonexistent"); code != 1 ||
		out != "/nonexistent: no such file or directory\n" {
		t.Errorf("a missing file ends with %d: %q", code, out)
	}
	if _, _, code := c.run("spec", "validate"); code != 2 {
		t.Errorf("no file ends with %d", code)
	}
}

func TestSpecMatchHasTheReason(t *testing.T) {
	c := newRunner(t)
	ask := func(method, url string) (spec.MatchJSON, int) {
		out, _, code := c.run("spec", "match", method, url, "--json")
		return decode[spec.MatchJSON](t, out), code
	}
	if m, code := ask("GET", "https://api.github.com/user"); code != 1 || m.Verdict != "refused" ||
		m.Reason != "host_not_allowed" {
		t.Errorf("with nothing installed: %d, %+v", code, m)
	}
	c.ok("connector", "install", exampleGitHub, "--yes")
	for _, w := range []struct{ method, url, verdict, reason, operation string }{
		{"GET", "https://api.github.com/user", "allowed", "", "user.get"},
		{"GET", "https://API.github.com:443/repos/cli/cli/issues?state=open", "allowed", "", "issues.list"},
		{"POST", "https://api.github.com/graphql", "refused", "operation_not_matched",
			""}, // a mutation may do whatever the token may
		{"GET", "https://api.github.com/", "allowed", "", "meta.root"},
		{"DELETE", "https://api.github.com/repos/cli/cli", "refused", "operation_not_matched", ""},
		{"GET", "https://api.github.com/user?access_token=x", "refused", "operation_not_matched", ""},
		{"GET", "https://api.github.com/repos/cli/..", "refused", "malformed_request", ""},
		{"GET", "https://u:p@api.github.com/", "refused", "malformed_request", ""},
		{"GET", "https://evil.example/", "refused", "host_not_allowed", ""},
		{"GET", "http://api.github.com/user", "refused", "host_not_allowed", ""},
	} {
		m, code := ask(w.method, w.url)
		if w.operation == "" && strings.Contains(w.url, "access_token") {
			w.reason = "query_not_declared"
		}
		if m.Verdict != w.verdict || m.Reason != w.reason || m.Operation != w.operation ||
			(code == 0) != (w.verdict == "allowed") {
			t.Errorf("%s %s: %d, %+v; want %+v", w.method, w.url, code, m, w)
		}
		if m.Verdict == "allowed" && (m.Credential == nil || m.Credential.In != "header" ||
			m.Credential.Name != "Authorization" || m.Connector != githubFQN) {
			t.Errorf("%s %s: the credential is %+v of %s", w.method, w.url, m.Credential, m.Connector)
		}
	}
	out, _, code := c.run("spec", "match", "PUT", "https://api.github.com/repos/cli/cli/issues/1")
	if code != 1 || !strings.Contains(out, "verdict:    refused") || !strings.Contains(out,
		"granted:    operation:GET api.github.com/repos/{owner}/{repo}/issues/{issue_number}") {
		t.Errorf("it ends with %d: %s", code, out)
	}
	for _, args := range [][]string{{"get", "https://api.github.com/"}, {"GET", "api.github.com/user"},
		{"GET", "https://api.github.com/#top"}, {"GET"}} {
		if _, _, code := c.run(append([]string{"spec", "match"}, args...)...); code != 2 {
			t.Errorf("spec match %q ends with %d, want 2", args, code)
		}
	}
}
