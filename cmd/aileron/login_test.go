package main

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/spec"
)

const (
	machineSecret  = "machine-SECRET/0123456789"
	machineBinding = "oauth2/machine/default"
)

// machines is a service whose clients have an id and a secret, without a person: it issues tokens, and takes them.
// e2e/oauth has a real authorization server, and the other ways to log in.
type machines struct {
	owner
	refuses    atomic.Bool  // the client is not known any more
	authorised atomic.Int64 // requests with the token
	flags      []string     // that lead to the service
}

func newMachines(t *testing.T) *machines {
	m := &machines{owner: newOwner(t)}
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Path != "/token" && m.refuses.Load():
			w.WriteHeader(http.StatusUnauthorized)
		case r.URL.Path != "/token":
			if r.Header.Get("Authorization") == "Bearer token-of-the-machine" {
				m.authorised.Add(1)
			}
			fmt.Fprint(w, `{"items":[]}`)
		case m.refuses.Load() || r.FormValue("client_id") != "machine" || r.FormValue("client_secret") != machineSecret:
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"error":"invalid_client"}`)
		default:
			fmt.Fprint(w, `{"access_token":"token-of-the-machine","token_type":"Bearer","expires_in":3600}`)
		}
	}))
	t.Cleanup(s.Close)
	ca := m.file("ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})))
	m.flags = []string{"--resolve", "machine.example.com:443:" + s.Listener.Addr().String(), "--upstream-ca", ca}
	dir := t.TempDir()
	for name, text := range map[string]string{
		spec.ManifestFile: `[connector]
name = "github://acme/machine"
version = "1.0.0"
[capabilities.network]
hosts = ["machine.example.com:443"]
[capabilities.credential]
kind = "oauth2"
[capabilities.credential.oauth2]
grant = "client_credentials"
token_url = "https://machine.example.com/token"
client_id = ""
scopes = ["items"]
`,
		spec.SpecFile: `{"schema_version":"aileron.connector.v1",
"connector":{"fqn":"github://acme/machine","version":"1.0.0"},
"tools":[{"name":"machine","operations":[{"name":"list","method":"GET","path":"/items",
"hosts":["machine.example.com"],"credential":"oauth2"}]}]}`,
	} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	m.ok("connector", "install", dir, "--yes")
	return m
}

// describe returns the binding as inspect --json prints it.
func (m *machines) describe() (b map[string]any) {
	m.t.Helper()
	must.Do(m.t, json.Unmarshal([]byte(m.ok("binding", "inspect", machineBinding, "--json")), &b))
	return b
}

// A person who sets an agent up is asked for the logins that are missing, and makes them last; a script gets the
// command.
func TestSetupOffersLogins(t *testing.T) {
	m := newMachines(t)
	setup := append([]string{"setup", "claude", "--sandbox=off"}, m.flags...)
	_, errs, code := m.run(append(setup, "--yes", "--key-file", m.file("key", anthropicKey), "--github-token-file",
		m.file("token", githubToken))...)
	const later = "aileron binding setup github://acme/machine"
	if code != 0 || !strings.Contains(errs, "github://acme/machine has no login; log in with: "+later) {
		t.Fatalf("a script gets %d: %s", code, errs)
	}
	if _, errs, code = m.converse([]string{"n", ""}, setup...); code != 0 ||
		!strings.Contains(errs, "log in later with: "+later) {
		t.Errorf("declined, it ends with %d: %s", code, errs)
	}
	// What fails is no reason to take the rest back.
	_, errs, code = m.converse([]string{"y", "machine", "another-secret-of-a-client"}, setup...)
	if code != 0 || !strings.Contains(errs, "it refused with invalid_client") ||
		!strings.Contains(errs, "later with: "+later) || !strings.Contains(errs, "claude is set up") {
		t.Errorf("with a wrong secret it ends with %d: %s", code, errs)
	}
	if list := m.ok("binding", "list"); strings.Contains(list, "machine") {
		t.Errorf("something was bound: %s", list)
	}
	_, errs, code = m.converse([]string{"y", "machine", machineSecret}, setup...)
	if code != 0 || !strings.Contains(errs, "bound "+machineBinding) || strings.Contains(errs, machineSecret) ||
		!strings.Contains(errs, "publisher  unsigned: its publisher is not verified") {
		t.Errorf("it ends with %d: %s", code, errs)
	}
	if b := m.describe(); b["client_id"] != "machine" || b["renewal"] != "automatic" || b["expires_at"] == nil {
		t.Errorf("bound is %v", b)
	}
	if _, errs, _ = m.run(append(setup, "--yes")...); strings.Contains(errs, "has no login") {
		t.Errorf("it is offered again: %s", errs)
	}
}

// A person who launches an agent logs in where the question stands, and the agent's requests have the token at once.
func TestALaunchOffersLogins(t *testing.T) {
	m := newMachines(t)
	m.ok("setup", "claude", "--sandbox=off", "--yes", "--key-file", m.file("key", anthropicKey))
	launch := append(append([]string{"launch", "--sandbox=off"}, m.flags...), m.agent())
	// What fails is no reason not to launch, and what was pasted besides the answer does not reach the agent.
	shown, code := m.dialogue([]string{"y\n", "machine\n", "another-secret-of-a-client\nsurplus\n"}, launch...)
	if code != 0 || !strings.Contains(shown, "refused with invalid_client") ||
		!strings.Contains(shown, "the launch goes on") || !strings.Contains(shown, "typed: .") {
		t.Errorf("with a wrong secret it ends with %d: %s", code, shown)
	}
	shown, code = m.dialogue([]string{"y\n", "machine\n", machineSecret + "\n"}, launch...)
	if code != 0 || !strings.Contains(shown, "github://acme/machine has no login; log in now? [y/N]") ||
		!strings.Contains(shown, `{"items":[]}`) || strings.Contains(shown, machineSecret) {
		t.Errorf("it ends with %d: %s", code, shown)
	}
	if n := m.authorised.Load(); n != 1 {
		t.Errorf("the service got the token %d times", n)
	}
}

// agent puts a program of the name claude onto the PATH that asks the service, and returns the name.
func (m *machines) agent() string {
	bin := m.t.TempDir()
	text := []byte("#!/bin/sh\nprintf 'typed: %s.\\n' \"$(timeout 0.3 cat)\"\n" +
		"exec curl -sS https://machine.example.com/items\n")
	must.Do(m.t, os.WriteFile(filepath.Join(bin, "claude"), text, 0o700))
	m.t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	return "claude"
}

// A login that has ended is named by everything that a person looks at, with the command that helps.
func TestAnEndedLoginIsNamedEverywhere(t *testing.T) {
	m := newMachines(t)
	m.ok(append([]string{"binding", "setup", "machine", "--client-id", "machine", "--client-secret-file",
		m.file("secret", machineSecret)}, m.flags...)...)
	for _, want := range []string{"client     machine", "scopes     items", "renewal    renewed automatically"} {
		if shown := m.ok("binding", "inspect", machineBinding); !strings.Contains(shown, want) {
			t.Errorf("inspect prints no %q: %s", want, shown)
		}
	}
	m.refuses.Store(true)
	launch := append(append([]string{"launch", "--sandbox=off"}, m.flags...), m.agent())
	const rebind = "aileron binding rebind " + machineBinding
	for _, want := range []string{"its token could not be renewed; log in again: " + rebind,
		"the login of github://acme/machine has ended, so its operations will be refused; log in again with: " + rebind} {
		if _, errs, _ := m.run(launch...); !strings.Contains(errs, want) {
			t.Errorf("a session says no %q: %s", want, errs)
		}
	}
	for _, args := range [][]string{{"binding", "list"}, {"binding", "inspect", machineBinding}} {
		if shown := m.ok(args...); !strings.Contains(shown, "ended: log in again with "+rebind) {
			t.Errorf("%q prints %s", args, shown)
		}
	}
	if b := m.describe(); b["renewal"] != "login_needed" || b["last_used_at"] == nil {
		t.Errorf("inspect has %v", b)
	}
	if out, errs, _ := m.run("doctor"); !strings.Contains(out+errs, rebind) {
		t.Errorf("doctor says %s%s", out, errs)
	}
}
