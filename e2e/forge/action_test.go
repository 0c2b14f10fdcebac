package forge

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

// triage returns an action file that reads the issue of its argument.
func triage(name, version, connector, hash, text string) []byte {
	return []byte(`+++
[action]
name = "` + name + `"
version = "` + version + `"
description = "Read an issue"

[[inputs]]
name = "issue"
type = "string"
required = true

[[requires.connectors]]
name = "` + connector + `"
version = "1.2.0"
hash = "` + hash + `"
capabilities = ["issues.get"]

[[execute]]
tool = "tracker"
operation = "issues.get"
args = { id = "${args.issue}" }
+++

` + text + "\n")
}

// withTracker returns a user who has installed the connector tracker, and its hash.
func withTracker(t *testing.T, f *Forge) (u *user, hash string) {
	t.Helper()
	f.Publish(t, tracker, version, asset, packed(t, tracker, version, "x"))
	u = newUser(t, f)
	var c struct{ Hash string }
	out := u.ok("connector", "install", tracker+"@"+version, "--yes", "--json")
	must.Do(t, json.Unmarshal([]byte(out), &c))
	return u, c.Hash
}

// actions returns what is in the user's directories of actions, and what is left of a
// transfer.
func (u *user) actions() []string {
	u.t.Helper()
	var all []string
	for _, pattern := range []string{"actions/*", "store/actions/sha256/*", "store/tmp/*"} {
		found := must.Get(filepath.Glob(filepath.Join(u.home, pattern)))(u.t)
		all = append(all, found...)
	}
	return all
}

// A published action is added by its name and version, listed, run, and removed.
func TestAnActionIsAddedFromItsSource(t *testing.T) {
	t.Parallel()
	f := Start(t)
	u, hash := withTracker(t, f)
	for _, fqn := range []string{"github://acme/triage", "github://acme/mono/actions/triage", "gitlab://acme/triage",
		"gitlab://acme/mono/triage", "hub://acme/actions/triage"} {
		f.Publish(t, fqn, "1.0.0", "action.md", triage("triage", "1.0.0", tracker, hash, "From "+fqn))
		out, errs, code := u.run("action", "add", fqn+"@1.0.0", "--yes")
		if code != 0 || !strings.HasPrefix(out, "added triage 1.0.0 sha256:") ||
			!strings.Contains(errs, "tracker issues.get  GET  api.tracker.example/v1/issues/{id}") {
			t.Fatalf("add ends with %d: %s%s", code, out, errs)
		}
		if out, _, _ := u.start("action", "list"); out != "triage  1.0.0  "+tracker+"@1.2.0  ok\n" {
			t.Errorf("list prints %q", out)
		}
		if out := u.ok("action", "run", "triage", "--args", `{"issue": "7"}`); out != "this is GET /v1/issues/7\n" {
			t.Errorf("run prints %q", out)
		}
		if out, errs, code := u.start("action", "remove", "triage"); code != 0 || out != "removed triage\n" {
			t.Errorf("remove ends with %d: %s%s", code, out, errs)
		}
		if out, _, _ := u.start("action", "list"); out != "" {
			t.Errorf("after remove, list prints %q", out)
		}
	}
}

// What is published under an action's name and version has to be that, of a size that an
// action may have. Nothing is added otherwise, and each error is one line with its fix.
func TestAnActionThatIsNotWhatWasAskedFor(t *testing.T) {
	t.Parallel()
	const fqn = "github://acme/triage"
	f := Start(t)
	u, hash := withTracker(t, f)
	before := u.actions()
	f.Faults = func(w http.ResponseWriter, r *http.Request) bool {
		isPage := r.Host == GitHubAssets && strings.Contains(r.URL.Path, "/v6.0.0/")
		if isPage {
			w.Header().Set("Content-Type", "text/html")
			_, _ = w.Write([]byte("<html>sign in</html>"))
		}
		return isPage
	}
	cases := map[string]struct {
		file      []byte // nil: the tag has no such asset
		says, fix string
	}{
		"1.0.0": {triage("other", "1.0.0", tracker, hash, ""), fqn + "@1.0.0: it is other 1.0.0",
			"its publisher has to publish it under its own name and version"},
		"2.0.0": {triage("triage", "1.0.0", tracker, hash, ""), fqn + "@2.0.0: it is triage 1.0.0",
			"its publisher has to publish it under its own name and version"},
		"3.0.0": {nil, "the tag v3.0.0 exists, but its release has no action.md", "the versions that exist: 8.0.0, 7.0.0"},
		"4.0.0": {triage("triage", "4.0.0", tracker, hash, strings.Repeat("x", 256<<10)), "it has more than 262144 bytes",
			"tell the publisher"},
		"5.0.0": {triage("triage", "5.0.0", tracker, "sha256:"+strings.Repeat("0", 64), ""),
			"the installed " + tracker + "@1.2.0", "correct the hash if these are the bytes that you mean"},
		"6.0.0": {triage("triage", "6.0.0", tracker, hash, ""), "a web page", "tell the publisher"},
		"7.0.0": {[]byte("# Not an action\n"), fqn + "@7.0.0: line 1: ", "docs/actions.md has its form"},
		"8.0.0": {triage("triage", "8.0.0", tracker, hash, "+++\n\xff"), fqn + "@8.0.0: ", "docs/actions.md has its form"},
	}
	for v, c := range cases {
		if f.Tag(t, fqn, v); c.file != nil {
			f.Publish(t, fqn, v, "action.md", c.file)
		}
	}
	for v, c := range cases {
		out, errs, code := u.run("action", "add", fqn+"@"+v, "--yes")
		message, fix, _ := strings.Cut(errs, "; hint: ")
		if code != 1 || out != "" || !strings.Contains(message, c.says) || !strings.Contains(fix, c.fix) ||
			strings.Contains(message, "\n") {
			t.Errorf("%s: it ends with %d: %s%s; want %q and the hint %q", v, code, out, errs, c.says, c.fix)
		}
	}
	u.fails("hash_mismatch", "name_mismatch", "action", "add", fqn+"@1.0.0", "--yes")
	if after := u.actions(); strings.Join(after, "\n") != strings.Join(before, "\n") {
		t.Errorf("before: %q; after: %q", before, after)
	}
	if out, _, _ := u.start("audit", "list", "--event", "action.added"); strings.Contains(out, "triage") {
		t.Errorf("the audit log has %s", out)
	}
}

// A publisher who moves the tag of a version replaces nothing that was added, and what
// was added is run still.
func TestAnActionWhoseTagWasMovedReplacesNothing(t *testing.T) {
	t.Parallel()
	const fqn = "gitlab://acme/triage"
	f := Start(t)
	u, hash := withTracker(t, f)
	f.Publish(t, fqn, "1.0.0", "action.md", triage("triage", "1.0.0", tracker, hash, "as it was read"))
	u.ok("action", "add", fqn+"@1.0.0", "--yes")
	file := filepath.Join(u.home, "actions", "triage.md")
	added := must.Get(os.ReadFile(file))(t)
	f.Publish(t, fqn, "1.0.0", "action.md", triage("triage", "1.0.0", tracker, hash, "moved"))
	_, errs, code := u.run("action", "add", fqn+"@1.0.0", "--yes")
	if code != 1 || !strings.Contains(errs, "add the action triage: another one of that name is there (1.0.0); "+
		"hint: pass --replace to put this one in its place; see the other with: aileron action show triage\n") {
		t.Errorf("it ends with %d: %s", code, errs)
	}
	if now, err := os.ReadFile(file); err != nil || string(now) != string(added) {
		t.Errorf("the action is %s, %v", now, err)
	}
	if out := u.ok("action", "run", "triage", "--args", `{"issue": "8"}`); out != "this is GET /v1/issues/8\n" {
		t.Errorf("run prints %q", out)
	}
	u.ok("action", "add", fqn+"@1.0.0", "--yes", "--replace")
	if now, err := os.ReadFile(file); err != nil || !strings.Contains(string(now), "moved") {
		t.Errorf("with --replace the action is %s, %v", now, err)
	}
}
