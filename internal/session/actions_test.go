package session

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/proxy/api"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/action"
	"github.com/ALRubinger/aileron/spec/store"
)

const toolFQN = spec.FQN("github://acme/tool")

// installVersion installs a version of a connector that needs no credential, and returns its hash.
func installVersion(t *testing.T, home, version string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		spec.ManifestFile: `[connector]
name = "github://acme/tool"
version = "` + version + `"
[capabilities.network]
hosts = ["api.tool.example:443"]
`,
		spec.SpecFile: `{"schema_version":"aileron.connector.v1",
"connector":{"fqn":"github://acme/tool","version":"` + version + `"},
"tools":[{"name":"tool","operations":[{"name":"get","method":"GET","path":"/` + version + `/{id}",
"hosts":["api.tool.example"]}]}]}`,
	} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	s := must.Get(store.Open(filepath.Join(home, "store")))(t)
	in := must.Get(s.Install(t.Context(), dir, store.InstallOptions{}))(t)
	return in.Connector.Hash
}

// addAction adds an action that pins a version.
func addAction(t *testing.T, home, name, version, hash string) {
	t.Helper()
	a, err := action.Parse([]byte(`+++
[action]
name = "` + name + `"
version = "1.0.0"
description = "Get a thing"
[[inputs]]
name = "id"
required = true
[[requires.connectors]]
name = "github://acme/tool"
version = "` + version + `"
hash = "` + hash + `"
capabilities = ["get"]
[[execute]]
tool = "tool"
operation = "get"
args = { id = "${args.id}" }
+++
`))
	must.Do(t, err)
	must.Get(action.In(home).Add(a, false))(t)
}

// inForce returns the version that the wire door uses.
func inForce(s *Session) string {
	for _, c := range s.Connectors() {
		if c.FQN == toolFQN {
			return c.Version
		}
	}
	return ""
}

func names(s *Session) (list []string) {
	for _, a := range s.Actions() {
		list = append(list, a.Name)
	}
	return list
}

// The wire uses the highest version, and a pre-release only if there is no other. The start reports which of several.
func TestOneVersionIsInForce(t *testing.T) {
	o := newOptions(t)
	var said []string
	o.Infof = func(format string, args ...any) { said = append(said, strings.TrimSpace(fmt.Sprintf(format, args...))) }
	installVersion(t, o.Home, "2.0.0-rc.1")
	if s := open(t, o); inForce(s) != "2.0.0-rc.1" || len(said) > 0 {
		t.Errorf("of one pre-release: %s, %q", inForce(s), said)
	}
	installVersion(t, o.Home, "1.2.0")
	installVersion(t, o.Home, "1.10.0")
	s := open(t, o)
	if inForce(s) != "1.10.0" || len(said) != 1 || !strings.Contains(said[0],
		"in force: github://acme/tool 1.10.0 (of 1.2.0, 1.10.0, 2.0.0-rc.1); another with --connector FQN@VERSION") {
		t.Errorf("of three: %s, %q", inForce(s), said)
	}
	o.Connectors, o.Versions = []spec.FQN{toolFQN}, map[spec.FQN]string{toolFQN: "1.2.0"}
	named := open(t, o)
	if inForce(named) != "1.2.0" {
		t.Errorf("named: %s", inForce(named))
	}
	remove(t, o.Home, "1.10.0")
	remove(t, o.Home, "1.2.0")
	s.loader.refresh(t.Context())
	named.loader.refresh(t.Context())
	if inForce(s) != "2.0.0-rc.1" || inForce(named) != "" {
		t.Errorf("after the removal: %q, and where it was named %q", inForce(s), inForce(named))
	}
	if _, err := Open(t.Context(), o); err == nil || !strings.Contains(err.Error(), "that version is not installed") {
		t.Errorf("a version that is not installed: %v", err)
	}
}

func remove(t *testing.T, home, version string) {
	t.Helper()
	s := must.Get(store.Open(filepath.Join(home, "store")))(t)
	must.Get(s.Remove(string(toolFQN), version, nil))(t)
}

// An action uses the bytes that it pins, and is denied when they go; both are recorded.
func TestActionsFollowTheHome(t *testing.T) {
	o := newOptions(t)
	var log bytes.Buffer
	o.logTo(&log)
	old := installVersion(t, o.Home, "1.2.0")
	installVersion(t, o.Home, "1.3.0")
	addAction(t, o.Home, "first", "1.2.0", old)
	s := open(t, o)
	must.Do(t, s.Serve(t.Context(), false))
	pinned := api.Describe(s.loader.s.plane)
	if inForce(s) != "1.3.0" || !slices.Equal(names(s), []string{"first"}) {
		t.Fatalf("%s %v %+v", inForce(s), names(s), pinned)
	}
	addAction(t, o.Home, "second", "1.2.0", old)
	addAction(t, o.Home, "wrong", "1.2.0", "sha256:"+strings.Repeat("a", 64))
	must.Do(t, os.Symlink("/etc/passwd", filepath.Join(o.Home, "actions", "link.md")))
	s.loader.refresh(t.Context())
	if !slices.Equal(names(s), []string{"first", "second"}) {
		t.Errorf("after two were added: %v", names(s))
	}
	remove(t, o.Home, "1.2.0")
	s.loader.refresh(t.Context())
	if len(names(s)) != 0 || inForce(s) != "1.3.0" {
		t.Errorf("after the pinned version was removed: %v, %s", names(s), inForce(s))
	}
	must.Do(t, s.Close(t.Context(), 0, "done"))
	var changes []string
	for _, r := range rows(t, o.Home) {
		if r.Event == audit.EventSessionStarted {
			changes = append(changes, fmt.Sprintf("started with %v", r.Fields["actions_total"]))
		}
		if r.Event == audit.EventSessionGrantsChanged {
			changes = append(changes, fmt.Sprintf("%v", r.Fields["changes"]))
		}
	}
	if want := []string{"started with 1", "[action_added]", "[action_removed]"}; !slices.Equal(changes, want) {
		t.Errorf("the log has %q, want %q", changes, want)
	}
	for _, want := range []string{"it is a symbolic link", "the installed one has other bytes", "it is not installed"} {
		if strings.Count(log.String(), want) == 0 {
			t.Errorf("the log does not have %q: %s", want, log.String())
		}
	}
}

// A session that is narrowed to other connectors is narrowed for actions too.
func TestANarrowedSessionNarrowsActions(t *testing.T) {
	o := newOptions(t)
	install(t, o.Home)
	addAction(t, o.Home, "first", "1.2.0", installVersion(t, o.Home, "1.2.0"))
	o.Connectors = []spec.FQN{githubFQN}
	if s := open(t, o); len(names(s)) != 0 {
		t.Errorf("the session has %v", names(s))
	}
}
