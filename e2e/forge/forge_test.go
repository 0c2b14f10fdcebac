package forge

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
)

// program is the built aileron.
var program string

func TestMain(m *testing.M) {
	if os.Getenv(measureEnv) != "" {
		os.Exit(measure(os.Args[1:]))
	}
	os.Exit(harness.Run(m, "forge", map[string]string{"aileron": "../../cmd/aileron"}, func(dir string) {
		program = filepath.Join(dir, "aileron")
	}))
}

// user is a person with a home of their own, who reaches the stand-in.
type user struct {
	t     *testing.T
	home  string
	forge *Forge
}

func newUser(t *testing.T, f *Forge) *user {
	t.Helper()
	u := &user{t: t, home: t.TempDir(), forge: f}
	u.configure(Config())
	return u
}

func (u *user) configure(text string) {
	u.t.Helper()
	must.Do(u.t, os.WriteFile(filepath.Join(u.home, "config.toml"), []byte(text), 0o600))
}

// run runs aileron with the flags that reach the stand-in.
func (u *user) run(args ...string) (stdout, stderr string, code int) {
	u.t.Helper()
	return u.start(append(args, u.forge.Flags()...)...)
}

// start runs aileron.
func (u *user) start(args ...string) (stdout, stderr string, code int) {
	u.t.Helper()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(u.t.Context(), program, args...)
	cmd.Env = harness.Env(u.home, "the passphrase of a person")
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		u.t.Fatalf("aileron %q: %v", args, err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// ok runs aileron, which must succeed.
func (u *user) ok(args ...string) string {
	u.t.Helper()
	out, errs, code := u.run(args...)
	if code != 0 {
		u.t.Fatalf("aileron %q ends with %d:\n%s%s", args, code, out, errs)
	}
	return out
}

// fails runs aileron, which must fail for a reason that its error object has.
func (u *user) fails(class, reason string, args ...string) (message string) {
	u.t.Helper()
	out, errs, code := u.run(append(args, "--json")...)
	var object struct {
		Error struct {
			Class, Message string
			Details        struct{ Reason string }
		}
	}
	lines := strings.Split(strings.TrimSpace(errs), "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &object); err != nil {
		u.t.Fatalf("aileron %q ends with %d and no error object: %s%s", args, code, out, errs)
	}
	e := object.Error
	if code == 0 || e.Class != class || e.Details.Reason != reason {
		u.t.Fatalf("aileron %q ends with %d, %s/%s, not %s/%s: %s", args, code, e.Class, e.Details.Reason, class, reason,
			errs)
	}
	return e.Message
}

// damage changes a file of an installed connector.
func (u *user) damage(hash string) {
	u.t.Helper()
	file := filepath.Join(u.home, "store/connectors/sha256", strings.TrimPrefix(hash, "sha256:"), "manifest.toml")
	must.Do(u.t, os.WriteFile(file, []byte("# changed"), 0o600))
}

// isClean fails the test if something was installed, or is left of it.
func (u *user) isClean() {
	u.t.Helper()
	for _, dir := range []string{"store/connectors/sha256", "store/tmp"} {
		entries := must.Get(os.ReadDir(filepath.Join(u.home, dir)))(u.t)
		entries = slices.DeleteFunc(entries, func(e os.DirEntry) bool { return e.Name() == ".lock" })
		if len(entries) > 0 {
			u.t.Errorf("%s has %v", dir, entries)
		}
	}
}

// packed returns the archive of a connector without a credential, made by aileron. Each
// note makes other bytes of the same version.
func packed(t testing.TB, fqn, version, note string) []byte {
	t.Helper()
	return packedWith(t, fqn, version, note, strings.NewReplacer())
}

// packedWith is packed with changes to both files.
func packedWith(t testing.TB, fqn, version, note string, changes *strings.Replacer) []byte {
	t.Helper()
	return pack(t, connectorDir(t, fqn, version, note, changes))
}

// connectorDir makes the directory of a connector.
func connectorDir(t testing.TB, fqn, version, note string, changes *strings.Replacer) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"manifest.toml": "[connector]\nname = \"" + fqn + "\"\nversion = \"" + version + "\"\n\n" +
			"[capabilities.network]\nhosts = [\"api.tracker.example:443\"]\n",
		"aileron.connector.v1.json": `{"schema_version": "aileron.connector.v1", "connector": {"fqn": "` + fqn +
			`", "version": "` + version + `"}, "tools": [{"name": "tracker", "description": "` + note + `", "operations": [
			{"name": "issues.get", "method": "GET", "path": "/v1/issues/{id}", "hosts": ["api.tracker.example"]}]}]}`,
	} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(changes.Replace(text)), 0o600))
	}
	return dir
}

// packedWithFile is packed with a further file.
func packedWithFile(t testing.TB, fqn, version, name string, content []byte) []byte {
	t.Helper()
	dir := connectorDir(t, fqn, version, "", strings.NewReplacer())
	must.Do(t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
	return pack(t, dir)
}

// pack returns the archive of a directory.
func pack(t testing.TB, dir string) []byte {
	t.Helper()
	file := filepath.Join(dir, "aileron.tar.gz")
	if out, err := exec.CommandContext(t.Context(), program, "--home", t.TempDir(), "connector", "pack", dir, "-o",
		file).CombinedOutput(); err != nil {
		t.Fatalf("pack: %v\n%s", err, out)
	}
	archive := must.Get(os.ReadFile(file))(t)
	return archive
}

const asset = "aileron.tar.gz"

// A user installs a version from each kind of source, at the root of a repository and
// at a path of it.
func TestAVersionIsInstalledFromItsSource(t *testing.T) {
	t.Parallel()
	f := Start(t)
	for _, fqn := range []string{
		"github://acme/tracker", "github://acme/mono/tools/tracker", "gitlab://acme/tracker", "gitlab://acme/mono/tracker",
		"hub://acme/tools/tracker",
	} {
		for _, version := range []string{"1.2.0", "2.0.0-rc.1", "1.2.0+build.7"} {
			f.Publish(t, fqn, version, asset, packed(t, fqn, version, "x"))
			u := newUser(t, f)
			out := u.ok("connector", "install", fqn+"@"+version, "--yes")
			if want := "installed " + fqn + " " + version + " sha256:"; !strings.HasPrefix(out, want) {
				t.Errorf("install prints %q, want %s…", out, want)
			}
			if out, errs, code := u.start("connector", "verify"); code != 0 {
				t.Errorf("verify ends with %d: %s%s", code, out, errs)
			}
			before := len(f.Server.Seen())
			if out := u.ok("connector", "install", fqn+"@"+version, "--yes"); !strings.HasPrefix(out, "already installed") ||
				len(f.Server.Seen()) != before {
				t.Errorf("installing it again prints %q and sends %d requests", out, len(f.Server.Seen())-before)
			}
		}
	}
}

// A version that is not there is an error with those that are.
func TestAVersionThatIsGoneIsAnErrorWithThoseThatExist(t *testing.T) {
	t.Parallel()
	f := Start(t)
	for _, fqn := range []string{"github://acme/tracker", "gitlab://acme/mono/tracker", "hub://acme/tracker"} {
		for _, version := range []string{"1.0.0", "1.10.0", "1.9.0", "2.0.0-rc.1"} {
			f.Publish(t, fqn, version, asset, packed(t, fqn, version, "x"))
		}
		u := newUser(t, f)
		message := u.fails("invalid_request", "not_found", "connector", "install", fqn+"@1.2.0", "--yes")
		if want := "the versions that exist: 2.0.0-rc.1, 1.10.0, 1.9.0, 1.0.0"; !strings.Contains(message, want) {
			t.Errorf("%s: %s; want %s", fqn, message, want)
		}
		u.isClean()
	}
	f.Tag(t, "github://acme/tracker", "3.0.0")
	u := newUser(t, f)
	message := u.fails("invalid_request", "not_found", "connector", "install", "github://acme/tracker@3.0.0", "--yes")
	if want := "the tag v3.0.0 exists, but its release has no aileron.tar.gz"; !strings.Contains(message, want) {
		t.Errorf("a tag without a release: %s; want %s", message, want)
	}
	message = u.fails("invalid_request", "not_found", "connector", "install", "github://acme/other@1.0.0", "--yes")
	if want := "there is no public repository acme/other"; !strings.Contains(message, want) {
		t.Errorf("no repository: %s; want %s", message, want)
	}
}

// A forge does not tell a repository that is not public from none. GitHub has no such page then, and GitLab one to sign
// in; both refuse to list its tags.
func TestARepositoryThatIsNotPublicIsNoSource(t *testing.T) {
	t.Parallel()
	f := Start(t)
	f.Faults = func(w http.ResponseWriter, r *http.Request) bool {
		switch {
		case strings.Contains(r.URL.Path, ".git/"):
			w.Header().Set("WWW-Authenticate", `Basic realm="forge"`)
			w.WriteHeader(http.StatusUnauthorized)
		case r.Host == GitHub:
			http.NotFound(w, r)
		case r.URL.Path == "/users/sign_in":
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = w.Write([]byte("<html>sign in</html>"))
		default:
			http.Redirect(w, r, "/users/sign_in", http.StatusFound)
		}
		return true
	}
	u := newUser(t, f)
	for fqn, want := range map[string][]string{
		"github://acme/secret":       {"there is no public repository acme/secret", "pass --private"},
		"gitlab://acme/secret":       {"there is no public repository acme/secret", "pass --private"},
		"gitlab://acme/tools/secret": {"there is no public repository acme/tools or acme/tools/secret", "pass --private"},
	} {
		for _, verb := range []string{"connector install", "action add"} {
			message := u.fails("invalid_request", "not_found", append(strings.Fields(verb), fqn+"@1.0.0", "--yes")...)
			file := map[string]string{"connector install": asset, "action add": "action.md"}[verb]
			for _, text := range append(want, "get its "+file+" with your own rights, and name that file") {
				if !strings.Contains(message, text) {
					t.Errorf("%s %s: %s; want %s", verb, fqn, message, text)
				}
			}
		}
	}
	u.isClean()
}

// What is fetched must be what was asked for: its name, its version, its hash.
func TestWhatIsFetchedMustBeWhatWasAskedFor(t *testing.T) {
	t.Parallel()
	f := Start(t)
	const fqn = "github://acme/tracker"
	u := newUser(t, f)
	f.Publish(t, fqn, "1.2.0", asset, packed(t, "github://acme/other", "1.2.0", "x"))
	message := u.fails("hash_mismatch", "name_mismatch", "connector", "install", fqn+"@1.2.0", "--yes")
	if want := "calls itself github://acme/other@1.2.0"; !strings.Contains(message, want) {
		t.Errorf("another name: %s; want %s", message, want)
	}
	f.Publish(t, fqn, "1.2.0", asset, packed(t, fqn, "1.3.0", "x"))
	message = u.fails("hash_mismatch", "name_mismatch", "connector", "install", fqn+"@1.2.0", "--yes")
	if want := "calls itself github://acme/tracker@1.3.0"; !strings.Contains(message, want) {
		t.Errorf("another version: %s; want %s", message, want)
	}
	f.Publish(t, fqn, "1.2.0", asset, packed(t, fqn, "1.2.0", "x"))
	u.fails("hash_mismatch", "hash_mismatch", "connector", "install", fqn+"@1.2.0", "--yes", "--hash",
		"sha256:"+strings.Repeat("0", 64))
	u.isClean()

	var installed struct{ Hash string }
	out := u.ok("connector", "install", fqn+"@1.2.0", "--yes", "--json")
	must.Do(t, json.Unmarshal([]byte(out), &installed))
	other := newUser(t, f)
	other.ok("connector", "install", fqn+"@1.2.0", "--yes", "--hash", installed.Hash)

	// The publisher moves the tag to other bytes.
	f.Publish(t, fqn, "1.2.0", asset, packed(t, fqn, "1.2.0", "y"))
	late := newUser(t, f)
	late.fails("hash_mismatch", "hash_mismatch", "connector", "install", fqn+"@1.2.0", "--yes", "--hash", installed.Hash)
	late.isClean()
}
