package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/stub"
)

// An author whose client misses a field finds its name in the audit log and
// declares it.
func TestADroppedFieldIsFoundInTheAuditLog(t *testing.T) {
	t.Parallel()
	u := newUser(t, stub.Script{}, "github")
	p := u.serve()
	args := []string{"-sS", "--max-time", "300", "-x", p.ProxyURL, "--cacert", p.CAFile, "https://api.github.com/user"}
	for _, name := range []string{"Sudo", "X-HTTP-Method-Override", "X-GitHub-Api-Version", "If-None-Match",
		"X-Acme-Trace"} {
		args = append(args, "-H", name+": CANARY")
	}
	contains(t, "the answer", finish(t, exec.Command("curl", args...)).out, "octo-stand-in")
	h := u.origin.Seen()[0].Header
	if h.Get("X-Github-Api-Version") != "CANARY" || h.Get("If-None-Match") != "CANARY" || h.Get("Sudo") != "" ||
		h.Get("X-Http-Method-Override") != "" || h.Get("X-Acme-Trace") != "" {
		t.Errorf("the stub got %v", h)
	}
	rows := u.rows("--event", "connector.proxy.started")
	if len(rows) != 1 {
		t.Fatalf("there are %d rows", len(rows))
	}
	shown := u.must("audit", "show", fmt.Sprint(rows[0]["id"])).out
	contains(t, "audit show", shown, "stripped", "sudo", "x-acme-trace", "x-http-method-override")
	if strings.Contains(shown, "CANARY") || strings.Contains(shown, "x-github-api-version") {
		t.Errorf("audit show prints a value, or a field that was not dropped:\n%s", shown)
	}
}

func TestSpecValidateNamesTheFieldsThatCannotBeDeclared(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "examples", "connectors", "github", "aileron.connector.v1.json"))
	if err != nil {
		t.Fatal(err)
	}
	u := newUser(t, stub.Script{})
	for declared, wants := range map[string][]string{
		`"x-acme-*", "X-Acme"`: nil,
		`"x-acme-trace", "Sudo", "x-*"`: {"headers[1]", "makes the server act for someone else", "headers[2]",
			"too wide a prefix"},
	} {
		file := filepath.Join(t.TempDir(), "aileron.connector.v1.json")
		changed := strings.Replace(string(text), `"x-github-api-version", "time-zone"`, declared, 1)
		if err := os.WriteFile(file, []byte(changed), 0o600); err != nil || changed == string(text) {
			t.Fatalf("the example declares other fields, or %v", err)
		}
		r := u.run("spec", "validate", file)
		contains(t, "spec validate", r.out+r.err, wants...)
		if (r.code == 0) != (wants == nil) {
			t.Errorf("spec validate of %s ends with %d: %s", declared, r.code, r.err)
		}
	}
}
