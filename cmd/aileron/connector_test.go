package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/internal/connectors"
	"github.com/ALRubinger/aileron/internal/console"
)

func TestConnectorLife(t *testing.T) {
	c := newRunner(t)
	if got := c.ok("connector", "list", "--json"); got != "[]\n" {
		t.Errorf("an empty list is %q", got)
	}
	in := decode[connectors.ConnectorJSON](t, c.ok("connector", "install", exampleGitHub, "--yes", "--json"))
	if in.FQN != githubFQN || in.Already || in.Credential.Kind != "bearer" || !slices.Equal(in.Hosts,
		[]string{"api.github.com:443"}) || len(in.Operations) < 20 {
		t.Errorf("install prints %+v", in)
	}
	if again := decode[connectors.ConnectorJSON](t, c.ok("connector", "install", exampleGitHub,
		"--json")); !again.Already {
		t.Error("installing it again, without --yes, is not a quiet success")
	}
	c.ok("connector", "install", githubFQN+"@0.1.0")
	list := decode[[]connectors.EntryJSON](t, c.ok("connector", "list", "--json"))
	if len(list) != 1 || list[0].Hash != in.Hash || !list[0].OK {
		t.Errorf("the list is %+v", list)
	}
	if got := c.ok("connector", "show", githubFQN); !strings.Contains(got, "GH_TOKEN") || !strings.Contains(got,
		"unsigned") || !strings.Contains(got, "bearer in header Authorization") || !strings.Contains(got, "request fields") {
		t.Errorf("show prints %s", got)
	}
	c.ok("connector", "verify")
	c.ok("connector", "verify", githubFQN+"@0.1.0")

	file := filepath.Join(c.Flag, "store/connectors/sha256", strings.TrimPrefix(in.Hash, "sha256:"), "manifest.toml")
	if err := os.WriteFile(file, []byte("# changed"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, errs, code := c.run("connector", "verify", githubFQN, "--json")
	if broken := decode[[]connectors.EntryJSON](t, out); code != 1 || broken[0].OK || !strings.Contains(broken[0].Error,
		"manifest.toml has other bytes") || !strings.Contains(errs, "hash_mismatch") {
		t.Errorf("verify ends with %d and prints %s%s", code, out, errs)
	}
	c.ok("connector", "install", exampleGitHub, "--yes") // repairs it
	c.ok("connector", "verify")
	if gone := decode[[]connectors.EntryJSON](t, c.ok("connector", "remove", githubFQN+"@0.1.0",
		"--json")); len(gone) != 1 {
		t.Errorf("remove prints %+v", gone)
	}
	if _, errs, code := c.run("connector", "remove", githubFQN); code != 1 || !strings.Contains(errs, "not installed") {
		t.Errorf("removing it again ends with %d: %s", code, errs)
	}
}

func TestInstallAsksOrNeedsYes(t *testing.T) {
	c := newRunner(t)
	_, errs, code := c.run("connector", "install", exampleGitHub)
	if code != 2 || !strings.Contains(errs, "--yes") || !strings.Contains(errs, "api.github.com:443") {
		t.Errorf("it ends with %d: %s", code, errs)
	}
	if got := c.ok("connector", "list", "--json"); got != "[]\n" {
		t.Errorf("it was installed all the same: %s", got)
	}
}

func TestAPersonIsAsked(t *testing.T) {
	for answer, installed := range map[string]bool{"y": true, "YES": true, "n": false, "": false, "yep": false} {
		_, errs, code := newOwner(t).converse(slices.Repeat([]string{answer}, console.MaxTries),
			"connector", "install", exampleGitHub)
		if (code == 0) != installed || !strings.Contains(errs, "[y/N]") || !strings.Contains(errs, "api.github.com:443") {
			t.Errorf("the answer %q ends with %d: %s", answer, code, errs)
		}
	}
}

// A long connector is summarised on a terminal, so that the question can be read with what it is about.
func TestALongConnectorIsSummarisedOnATerminal(t *testing.T) {
	for answers, whole := range map[string]bool{"y": false, "? y": true} {
		_, errs, code := newOwner(t).converse(strings.Fields(answers), "connector", "install", "github")
		if code != 0 || !strings.Contains(errs, "  writes      7 operations with POST, PATCH: issues.create") ||
			!strings.Contains(errs, "  unsearched  releases.asset, repos.tarball, repos.zipball\n") ||
			strings.Contains(errs, "api.github.com/repos/{owner}/{repo}/readme") != whole {
			t.Errorf("the answers %q end with %d: %s", answers, code, errs)
		}
		for line := range strings.Lines(errs) {
			if !whole && len(line) > 81 && !strings.HasPrefix(line, "install") {
				t.Errorf("%q is longer than the terminal", line)
			}
		}
	}
	_, errs, _ := newRunner(t).run("connector", "install", "github", "--yes")
	if !strings.Contains(errs, "api.github.com/repos/{owner}/{repo}/readme") {
		t.Errorf("a script's log does not have every operation: %s", errs)
	}
}

func TestInstallHoldsTheHash(t *testing.T) {
	c := newRunner(t)
	checked := decode[connectors.ConnectorJSON](t, c.ok("connector", "check", exampleGitHub, "--json"))
	_, errs, code := c.run("connector", "install", exampleGitHub, "--yes", "--json", "--hash",
		"sha256:"+strings.Repeat("0", 64))
	if code != 1 || !strings.Contains(errs, `"hash_mismatch"`) {
		t.Errorf("another hash ends with %d: %s", code, errs)
	}
	if _, _, code := c.run("connector", "install", exampleGitHub, "--yes", "--hash", "latest"); code != 2 {
		t.Errorf("a hash that is none ends with %d", code)
	}
	c.ok("connector", "install", exampleGitHub, "--yes", "--hash", checked.Hash)
}

func TestPackedConnectorInstalls(t *testing.T) {
	c := newRunner(t)
	file := filepath.Join(t.TempDir(), "aileron.tar.gz")
	packed := decode[map[string]string](t, c.ok("connector", "pack", exampleGitHub, "--output", file, "--json"))
	if in := decode[connectors.ConnectorJSON](t, c.ok("connector", "install", file, "--yes",
		"--json")); in.Hash != packed["hash"] {
		t.Errorf("it is packed as %s and installed as %s", packed["hash"], in.Hash)
	}
}

func TestWrongCallsOfConnector(t *testing.T) {
	c := newRunner(t)
	for _, w := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"connector", "install"}, 2, "connector install takes SRC...; got none"},
		{[]string{"connector", "bogus"}, 2, `"bogus" is not a command of aileron connector`},
		{[]string{"connector", "install", "--bogus", "x"}, 2, "unknown flag"},
		{[]string{"connector", "show", "tracker"}, 1, "hint: see what there is with: aileron connector list --catalog"},
		{[]string{"connector", "show", "hub://a/b"}, 1, "not installed"},
		{[]string{"connector", "install", "/nonexistent", "--yes"}, 1, "no such file"},
		{[]string{"connector", "install", "hub://a/b@1.0.0", "--yes"}, 1, "no hub is configured"},
		{[]string{"connector", "install", "local://a/b@1.0.0", "--yes"}, 1, "are not published anywhere"},
		{[]string{"connector", "install", "svn://a/b@1.0.0", "--yes"}, 2, "does not begin with github://"},
		{[]string{"connector", "install", "github://a/b", "--yes"}, 2, "name its version"},
		{[]string{"connector", "install", "github://a/b@v1.0.0", "--yes"}, 2, "is not MAJOR.MINOR.PATCH"},
		{[]string{"connector", "check", t.TempDir()}, 1, "manifest.toml: it is missing"},
	} {
		_, errs, code := c.run(w.args...)
		if code != w.code || !strings.Contains(errs, w.want) || !isFailure(errs) {
			t.Errorf("aileron %q ends with %d: %s; want %d and a failure with %q", w.args, code, errs, w.code, w.want)
		}
	}
}
