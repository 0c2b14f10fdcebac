package matrix

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/ALRubinger/aileron/e2e/must"
)

// bindConnectors installs what the clients may do, and binds the credentials.
func (p *person) bindConnectors() {
	p.t.Helper()
	p.install("api", "bearer", []string{"x-github-api-version", "time-zone"}, []string{"api.github.com:443"},
		[]map[string]any{
			operation("repos.get", "GET", "/repos/{owner}/{repo}", "api.github.com", "bearer"),
			operation("repos.tarball", "GET", "/repos/{owner}/{repo}/tarball", "api.github.com", "bearer"),
			operation("repos.events", "GET", "/repos/{owner}/{repo}/events", "api.github.com", "bearer"),
		}, "GH_TOKEN")
	p.bind("api", token)
	p.install("git", "basic", []string{"git-protocol"}, []string{"github.com:443"}, []map[string]any{
		operation("info.refs", "GET", "/{owner}/{repo}/info/refs", "github.com", "basic"),
		operation("upload.pack", "POST", "/{owner}/{repo}/git-upload-pack", "github.com", "basic"),
		operation("receive.pack", "POST", "/{owner}/{repo}/git-receive-pack", "github.com", "basic"),
	})
	p.bind("git", password, "--username", gitUser)
	var open []string
	for authority := range p.origin.authorities() {
		if host, _, _ := strings.Cut(authority, ":"); host != "api.github.com" && host != "github.com" &&
			!strings.HasSuffix(host, ".invalid") {
			open = append(open, authority)
		}
	}
	p.installOpen(open...)
}

func operation(name, method, path, host, credential string) map[string]any {
	return map[string]any{"query": "any", "name": name, "summary": name, "method": method, "path": path,
		"hosts": []string{host}, "credential": credential}
}

func fqn(name string) string { return "github://aileron-tests/matrix-" + name }

func (p *person) install(name, kind string, fields, hosts []string, operations []map[string]any,
	placeholders ...string) {
	p.t.Helper()
	stand := []map[string]string{}
	for _, env := range placeholders {
		stand = append(stand, map[string]string{"env": env, "value": "placeholder-the-real-one-stays-outside"})
	}
	spec, err := json.Marshal(map[string]any{
		"schema_version": "aileron.connector.v1",
		"connector":      map[string]string{"fqn": fqn(name), "version": "0.1.0"},
		"placeholders":   stand,
		"headers":        fields,
		"tools": []map[string]any{{"name": "matrix-" + name, "description": "What the matrix's clients call",
			"operations": operations}},
	})
	if err != nil {
		p.t.Fatal(err)
	}
	quoted, err := json.Marshal(hosts) // an array of plain strings is the same in TOML
	if err != nil {
		p.t.Fatal(err)
	}
	manifest := fmt.Sprintf("[connector]\nname = %q\nversion = \"0.1.0\"\n\n[capabilities.network]\nhosts = %s\n\n",
		fqn(name), quoted)
	if kind != "" {
		manifest += fmt.Sprintf("[capabilities.credential]\nkind = %q\nscope = \"What the matrix's clients call\"\n\n", kind)
	}
	manifest += "[provides]\nintents = [\"matrix\"]\n"
	dir := filepath.Join(p.t.TempDir(), name)
	must.Do(p.t, os.Mkdir(dir, 0o700))
	for file, data := range map[string][]byte{"manifest.toml": []byte(manifest), "aileron.connector.v1.json": spec} {
		must.Do(p.t, os.WriteFile(filepath.Join(dir, file), data, 0o600))
	}
	p.must("connector", "install", dir, "--yes")
}

// installOpen allows registries as they are: nothing of anybody's goes there.
func (p *person) installOpen(authorities ...string) {
	p.t.Helper()
	p.install("registries", "", []string{}, authorities,
		[]map[string]any{{"name": "fetch", "summary": "Fetch packages", "hosts": authorities}})
}

func (p *person) bind(name, secret string, more ...string) {
	p.t.Helper()
	file := filepath.Join(p.t.TempDir(), "secret")
	must.Do(p.t, os.WriteFile(file, []byte(secret+"\n"), 0o600))
	p.must(append([]string{"binding", "setup", fqn(name), "--identity", "matrix", "--secret-file", file}, more...)...)
}
