package forge

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

// act writes an action file that pins a version of a connector.
func (u *user) act(name, fqn, version, hash string) {
	u.t.Helper()
	text := "+++\n[action]\nname = \"" + name + "\"\nversion = \"1.0.0\"\ndescription = \"Read an issue\"\n\n" +
		"[[requires.connectors]]\nname = \"" + fqn + "\"\nversion = \"" + version + "\"\nhash = \"" + hash + "\"\n" +
		"capabilities = [\"issues.get\"]\n\n" +
		"[[execute]]\ntool = \"tracker\"\noperation = \"issues.get\"\nargs = { id = \"7\" }\n+++\n\n# " + name + "\n"
	dir := filepath.Join(u.home, "actions")
	must.Do(u.t, os.MkdirAll(dir, 0o700))
	must.Do(u.t, os.WriteFile(filepath.Join(dir, name+".md"), []byte(text), 0o600))
}

// sync installs what actions pin with exactly the bytes that they pin, names what is not
// bound, and goes on after a part that fails.
func TestSyncInstallsWhatActionsPin(t *testing.T) {
	t.Parallel()
	f := Start(t)
	key := strings.NewReplacer("hosts = [\"api.tracker.example:443\"]\n",
		"hosts = [\"api.tracker.example:443\"]\n\n[capabilities.credential]\nkind = \"bearer\"\nscope = \"Read\"\n",
		`"hosts": ["api.tracker.example"]`, `"hosts": ["api.tracker.example"], "credential": "bearer"`)
	publisher := newUser(t, f)
	hashes := map[string]string{}
	for _, fqn := range []string{tracker, "gitlab://acme/tracker", "github://acme/moved"} {
		f.Publish(t, fqn, version, asset, packedWith(t, fqn, version, "x", key))
		var c struct{ Hash string }
		must.Do(t, json.Unmarshal([]byte(publisher.ok("connector", "check", fqn+"@"+version, "--json")), &c))
		hashes[fqn] = c.Hash
	}
	publisher.isClean()
	f.Publish(t, "github://acme/moved", version, asset, packedWith(t, "github://acme/moved", version, "other", key))

	u := newUser(t, f)
	u.act("one", tracker, version, hashes[tracker])
	u.act("two", "gitlab://acme/tracker", version, hashes["gitlab://acme/tracker"])
	u.act("moved", "github://acme/moved", version, hashes["github://acme/moved"])
	must.Do(t, os.WriteFile(filepath.Join(u.home, "actions", "broken.md"), []byte("+++\n"), 0o600))
	out, errs, code := u.run("sync", "--yes", "--json")
	var result struct {
		Connectors []struct {
			FQN, Version, Hash string
			Actions            []string
			Already            bool
		}
		Unbound []string
		Failed  []struct{ Action, Connector, Class, Reason, Message string }
	}
	if err := json.Unmarshal([]byte(out), &result); err != nil || code != 1 {
		t.Fatalf("it ends with %d and prints %q: %v\n%s", code, out, err, errs)
	}
	if len(result.Connectors) != 2 || len(result.Unbound) != 2 || result.Unbound[0] != tracker {
		t.Errorf("it installed %+v; unbound: %v", result.Connectors, result.Unbound)
	}
	reasons := map[string]string{}
	for _, failure := range result.Failed {
		reasons[failure.Action+failure.Connector] = failure.Reason
	}
	if len(reasons) != 2 || reasons["github://acme/moved@1.2.0"] != "hash_mismatch" || reasons["broken"] == "" {
		t.Errorf("it failed for %v", result.Failed)
	}
	before := len(f.Server.Seen())
	for _, gone := range []string{"moved", "broken"} {
		must.Do(t, os.Remove(filepath.Join(u.home, "actions", gone+".md")))
	}
	_, errs, code = u.run("sync", "--yes")
	if code != 0 || !strings.Contains(errs, "next: aileron binding setup "+tracker) {
		t.Errorf("once more, it ends with %d: %s", code, errs)
	}
	if n := len(f.Server.Seen()) - before; n > 0 {
		t.Errorf("what is installed is fetched again, with %d requests", n)
	}
}
