package forge

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

type update struct {
	FQN, Installed, Source, Update string
	Newer, Prereleases             []string
	Error                          *struct{ Class, Reason, Message string }
}

// A user sees what is newer; one source that does not respond spoils only its own line.
func TestNewerVersionsAreListed(t *testing.T) {
	t.Parallel()
	f := Start(t)
	u := newUser(t, f)
	for fqn, versions := range map[string][]string{
		"github://acme/tracker":       {"1.2.0", "1.10.0", "1.9.0", "1.11.0-rc.1", "1.10.0-rc.1", "0.9.0"},
		"gitlab://acme/mono/tracker":  {"1.2.0", "2.0.0-beta.1"},
		"gitlab://acme/mono/tracker2": {"9.0.0"}, // its tags have another path
		"hub://acme/tracker":          {"1.2.0", "1.2.1"},
	} {
		for _, v := range versions {
			f.Publish(t, fqn, v, asset, packed(t, fqn, v, "x"))
		}
		if slices.Contains(versions, "1.2.0") {
			u.ok("connector", "install", fqn+"@1.2.0", "--yes")
		}
	}
	f.Tag(t, "github://acme/tracker", "2.0") // no version
	u.ok("connector", "install", "npm", "--yes")

	check := func(wantCode int) map[string]update {
		t.Helper()
		out, errs, code := u.run("connector", "check", "--json")
		var all []update
		if err := json.Unmarshal([]byte(out), &all); err != nil || code != wantCode {
			t.Fatalf("it ends with %d and prints %q: %v\n%s", code, out, err, errs)
		}
		byName := map[string]update{}
		for _, one := range all {
			byName[one.FQN] = one
		}
		return byName
	}
	all := check(0)
	for fqn, want := range map[string]update{
		tracker: {
			Update: "1.10.0", Newer: []string{"1.10.0", "1.9.0"}, Prereleases: []string{"1.11.0-rc.1"},
		},
		"gitlab://acme/mono/tracker":                {Newer: []string{}, Prereleases: []string{"2.0.0-beta.1"}},
		"hub://acme/tracker":                        {Update: "1.2.1", Newer: []string{"1.2.1"}, Prereleases: []string{}},
		"github://alrubinger/aileron-connector-npm": {Newer: []string{}, Prereleases: []string{}},
	} {
		got := all[fqn]
		if got.Update != want.Update || !slices.Equal(got.Newer, want.Newer) ||
			!slices.Equal(got.Prereleases, want.Prereleases) || got.Error != nil {
			t.Errorf("%s: %+v, want %+v", fqn, got, want)
		}
	}
	out, errs, code := u.run("connector", "check")
	if code != 0 || !strings.Contains(out, "1.10.0 is newer (pre-release: 1.11.0-rc.1)") ||
		!strings.Contains(errs, "next: aileron connector install github://acme/tracker@1.10.0") {
		t.Errorf("it prints %s%s", out, errs)
	}

	f.Faults = at(GitLab, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadRequest) })
	all = check(1)
	if e := all["gitlab://acme/mono/tracker"].Error; e == nil || e.Reason != "source_refused" {
		t.Errorf("the source that fails: %+v", all["gitlab://acme/mono/tracker"])
	}
	if got := all["github://acme/tracker"]; got.Update != "1.10.0" || got.Error != nil {
		t.Errorf("another source: %+v", got)
	}
}

// What another version grants more and less is shown before it is granted.
func TestAnotherVersionIsCompared(t *testing.T) {
	t.Parallel()
	f := Start(t)
	u := newUser(t, f)
	f.Publish(t, tracker, "1.2.0", asset, packed(t, tracker, "1.2.0", "x"))
	u.ok("connector", "install", tracker+"@1.2.0", "--yes")
	next := strings.NewReplacer("issues.get", "issues.list", "api.tracker.example", "api2.tracker.example")
	f.Publish(t, tracker, "1.3.0", asset, packedWith(t, tracker, "1.3.0", "x", next))
	_, errs, code := u.run("connector", "install", tracker+"@1.3.0", "--yes")
	if code != 0 {
		t.Fatalf("it ends with %d: %s", code, errs)
	}
	for _, want := range []string{"compared with the installed version 1.2.0:", "grants more, hosts: api2.tracker.example",
		"grants more, operations: issues.list", "no longer grants, hosts: api.tracker.example",
		"no longer grants, operations: issues.get"} {
		if !strings.Contains(errs, want) {
			t.Errorf("there is no %q in:\n%s", want, errs)
		}
	}
	if out, errs, code := u.start("connector", "list"); code != 0 || strings.Count(out, tracker) != 2 {
		t.Errorf("both versions are not installed: %s%s", out, errs)
	}
}

// Other bytes under the tag of an installed version are found when they are fetched again.
func TestRetaggedBytesAreFound(t *testing.T) {
	t.Parallel()
	f := Start(t)
	u := newUser(t, f)
	f.Publish(t, tracker, "1.2.0", asset, packed(t, tracker, "1.2.0", "x"))
	var old struct{ Hash string }
	must.Do(t, json.Unmarshal([]byte(u.ok("connector", "install", tracker+"@1.2.0", "--yes", "--json")), &old))
	f.Publish(t, tracker, "1.2.0", asset, packed(t, tracker, "1.2.0", "other"))
	u.damage(old.Hash) // so that it has to be fetched
	message := u.fails("hash_mismatch", "hash_mismatch", "connector", "install", tracker+"@1.2.0", "--yes")
	if want := "is installed with other bytes"; !strings.Contains(message, want) {
		t.Errorf("%s; want %q", message, want)
	}
	f.Publish(t, tracker, "1.2.0", asset, packed(t, tracker, "1.2.0", "x"))
	u.ok("connector", "install", tracker+"@1.2.0", "--yes")
	if out, errs, code := u.start("connector", "verify"); code != 0 {
		t.Errorf("verify ends with %d: %s%s", code, out, errs)
	}
}

// What actions pin is listed too, and outdated lists only what has a newer version.
func TestNewerVersionsOfWhatActionsPin(t *testing.T) {
	t.Parallel()
	f := Start(t)
	u, hash := withTracker(t, f)
	const fqn = "github://acme/triage"
	f.Publish(t, fqn, "1.0.0", "action.md", triage("triage", "1.0.0", tracker, hash, "x"))
	u.ok("action", "add", fqn+"@1.0.0", "--yes")
	u.ok("connector", "install", "npm", "--yes")
	out, errs, code := u.run("connector", "outdated")
	if code != 0 || out != "" || !strings.Contains(errs, "no newer version") {
		t.Errorf("with nothing newer it ends with %d: %s%s", code, out, errs)
	}
	f.Publish(t, tracker, "1.3.0", asset, packed(t, tracker, "1.3.0", "x"))
	u.ok("connector", "install", tracker+"@1.3.0", "--yes")
	out, errs, code = u.run("connector", "outdated")
	if want := tracker + "  1.2.0  1.3.0 is newer; pinned by triage\n"; code != 0 || out != want {
		t.Errorf("outdated ends with %d: %s%s; want %s", code, out, errs, want)
	}
	if out, _, _ := u.run("connector", "check"); !strings.Contains(out, "1.3.0 is newer; pinned by triage\n") ||
		!strings.Contains(out, "1.3.0  up to date\n") {
		t.Errorf("check prints %s", out)
	}
	var all []struct {
		Installed, Pinned, Update string
		Actions                   []string
	}
	out, _, _ = u.run("connector", "outdated", "--json")
	must.Do(t, json.Unmarshal([]byte(out), &all))
	if len(all) != 1 || all[0].Pinned != "1.2.0" || all[0].Update != "1.3.0" ||
		!slices.Equal(all[0].Actions, []string{"triage"}) {
		t.Errorf("outdated --json prints %s", out)
	}
}
