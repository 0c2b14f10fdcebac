package forge

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

// hashIn returns the content hash in what install --json prints.
func hashIn(t *testing.T, out string) string {
	t.Helper()
	var c struct{ Hash string }
	must.Do(t, json.Unmarshal([]byte(out), &c))
	return c.Hash
}

// A name of GitLab is a project in a group below the owner's, or a directory of a project: which of them, the forge
// says.
func TestAProjectInASubgroupIsASource(t *testing.T) {
	t.Parallel()
	f := Start(t)
	f.Groups = []string{"acme/tools", "acme/tools/agents"}
	u := newUser(t, f)
	for _, fqn := range []string{"gitlab://acme/tools/tracker", "gitlab://acme/tools/agents/wiki",
		"gitlab://acme/tools/mono/connectors/jira", "gitlab://acme/mono/jira"} {
		f.Publish(t, fqn, "1.2.0", asset, packed(t, fqn, "1.2.0", "x"))
		f.Publish(t, fqn, "1.3.0", asset, packed(t, fqn, "1.3.0", "x"))
		u.ok("connector", "install", fqn+"@1.2.0", "--yes")
		message := u.fails("invalid_request", "not_found", "connector", "install", fqn+"@9.0.0", "--yes")
		if !strings.Contains(message, "the versions that exist: 1.3.0, 1.2.0") {
			t.Errorf("%s: %s", fqn, message)
		}
	}
	if out := u.ok("connector", "outdated"); strings.Count(out, "1.3.0 is newer") != 4 {
		t.Errorf("outdated prints %s", out)
	}
	message := u.fails("invalid_request", "not_found", "connector", "install", "gitlab://acme/tools/other@1.0.0", "--yes")
	if !strings.Contains(message, "there is no public repository acme/tools or acme/tools/other") {
		t.Errorf("none: %s", message)
	}
}

const (
	hubToken    = "token-of-the-person-for-github"
	labToken    = "token-of-the-person-for-gitlab"
	privateHub  = "github://acme/secret"
	privateLab  = "gitlab://acme/tools/secret"
	privateMono = "github://acme/secret/connectors/jira"
)

// withBindings returns a user who has bound both forges, and what is published there for those who have the tokens.
func withBindings(t *testing.T) (*Forge, *user) {
	t.Helper()
	f := Start(t)
	f.Groups = []string{"acme/tools"}
	f.Hide(GitHub, "acme/secret", hubToken)
	f.Hide(GitLab, "acme/tools/secret", labToken)
	for _, fqn := range []string{privateHub, privateLab, privateMono} {
		for _, v := range []string{"1.2.0", "1.3.0"} {
			f.Publish(t, fqn, v, asset, packed(t, fqn, v, "x"))
		}
	}
	u := newUser(t, f)
	u.ok("connector", "install", "github", "gitlab", "--yes")
	u.startOK("vault", "init")
	for name, token := range map[string]string{"github": hubToken, "gitlab": labToken} {
		file := filepath.Join(u.home, "token")
		must.Do(t, os.WriteFile(file, []byte(token), 0o600))
		u.startOK("binding", "setup", name, "--secret-file", file)
	}
	return f, u
}

func (u *user) startOK(args ...string) string {
	u.t.Helper()
	out, errs, code := u.start(args...)
	if code != 0 {
		u.t.Fatalf("aileron %q ends with %d: %s%s", args, code, out, errs)
	}
	return out
}

// credentialsAt returns the hosts that got a credential.
func (f *Forge) credentialsAt() (hosts []string) {
	for _, r := range f.Server.Seen() {
		if strings.Contains(strings.Join(r.Header.Values("Authorization"), " ")+r.Query+r.Path, "token-of-the-person") &&
			!slices.Contains(hosts, r.Host) {
			hosts = append(hosts, r.Host)
		}
	}
	slices.Sort(hosts)
	return hosts
}

// What is not public is fetched with the person's own binding, if they say so; the credential goes to the API of that
// forge and nowhere else.
func TestWhatIsNotPublicIsFetchedWithTheOwnBinding(t *testing.T) {
	t.Parallel()
	f, u := withBindings(t)
	for _, fqn := range []string{privateHub, privateLab} {
		u.fails("invalid_request", "not_found", "connector", "install", fqn+"@1.2.0", "--yes")
	}
	if hosts := f.credentialsAt(); len(hosts) > 0 {
		t.Fatalf("without --private, a credential went to %v", hosts)
	}
	for fqn, host := range map[string]string{privateHub: GitHubAPI, privateMono: GitHubAPI, privateLab: GitLab} {
		out, errs, code := u.run("connector", "install", fqn+"@1.2.0", "--yes", "--private")
		if code != 0 || !strings.Contains(errs, "asking "+host+" with the credential bearer/") ||
			strings.Contains(out+errs, "token-of") {
			t.Errorf("%s: it ends with %d: %s%s", fqn, code, out, errs)
		}
	}
	out, errs, code := u.run("connector", "outdated", "--private")
	if code != 0 || strings.Count(out, "1.3.0 is newer") != 3 {
		t.Errorf("outdated ends with %d: %s%s", code, out, errs)
	}
	if hosts := f.credentialsAt(); !slices.Equal(hosts, []string{GitHubAPI, GitLab}) {
		t.Errorf("credentials went to %v", hosts)
	}
	for _, r := range f.Server.Seen() {
		if r.Host == GitLab && r.Auth() != "" && !strings.HasPrefix(r.Path, "/api/v4/") {
			t.Errorf("a credential went to %s%s", r.Host, r.Path)
		}
	}
	if log := u.startOK("audit", "list", "--rows", "--json", "--event", "binding.used"); strings.Count(log, "\n") != 5 ||
		!strings.Contains(log, `"host":"api.github.com"`) || strings.Contains(log, "token-of") {
		t.Errorf("the audit log has %s", log)
	}
	// Nothing there either.
	message := u.fails("invalid_request", "not_found", "connector", "install", "github://acme/other@1.0.0", "--yes",
		"--private")
	if !strings.Contains(message, "there is no release of it in acme/other, or your credential may not read it") {
		t.Errorf("none: %s", message)
	}
}

// A redirect takes the credential to no other host, and not back to its own either.
func TestACredentialForAForgeIsNotRedirected(t *testing.T) {
	t.Parallel()
	for name, to := range map[string]string{
		"to another host":              "https://" + GitHubAssets + "/x",
		"to a host of the same domain": "https://" + GitHub + "/x",
		"to another port":              "https://" + GitHubAPI + ":8443/x",
		"away and back":                "https://" + GitHubAssets + "/back",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, u := withBindings(t)
			f.Faults = func(w http.ResponseWriter, r *http.Request) bool {
				switch {
				case r.Host == GitHubAPI && strings.Contains(r.URL.Path, "/releases/assets/"):
					http.Redirect(w, r, to, http.StatusFound)
				case r.URL.Path == "/back":
					http.Redirect(w, r, "https://"+GitHubAPI+"/came-back", http.StatusFound)
				default:
					return false
				}
				return true
			}
			u.run("connector", "install", privateHub+"@1.2.0", "--yes", "--private")
			for _, r := range f.Server.Seen() {
				if r.Auth() != "" && (r.Host != GitHubAPI || !strings.HasPrefix(r.Path, "/repos/")) {
					t.Errorf("a credential went to %s%s", r.Host, r.Path)
				}
			}
			if hosts := f.credentialsAt(); !slices.Equal(hosts, []string{GitHubAPI}) {
				t.Errorf("credentials went to %v", hosts)
			}
		})
	}
}

// Without the forge's connector, or its binding, nothing is sent, and the fix is named.
func TestWithoutABindingNothingIsSent(t *testing.T) {
	t.Parallel()
	f := Start(t)
	f.Hide(GitHub, "acme/secret", hubToken)
	f.Publish(t, privateHub, "1.2.0", asset, packed(t, privateHub, "1.2.0", "x"))
	u := newUser(t, f)
	try := func(want string) {
		t.Helper()
		out, errs, code := u.run("connector", "install", privateHub+"@1.2.0", "--yes", "--private")
		if code != 1 || !strings.Contains(errs, want) {
			t.Errorf("it ends with %d: %s%s; want %q", code, out, errs, want)
		}
	}
	try("hint: aileron connector install github; then: aileron binding setup github")
	u.ok("connector", "install", "github", "--yes")
	try("there is none with the identity default; hint: aileron binding setup github")
	for _, r := range f.Server.Seen() {
		if r.Host == GitHubAPI {
			t.Errorf("%s%s was asked", r.Host, r.Path)
		}
	}
}

// An archive at an address of its own is installed if it has the hash that the person names.
func TestAnArchiveAtAnAddress(t *testing.T) {
	t.Parallel()
	f := Start(t)
	f.Publish(t, "hub://acme/files", "1.0.0", asset, packed(t, tracker, version, "x"))
	const address = "https://" + Hub + "/api/v1/acme/files/1.0.0/aileron.tar.gz?sig=secret-of-a-publisher"
	u := newUser(t, f)
	var checked struct{ Hash, FQN string }
	must.Do(t, json.Unmarshal([]byte(u.ok("connector", "check", address, "--json")), &checked))
	if checked.FQN != tracker {
		t.Errorf("check prints %+v", checked)
	}
	out, errs, code := u.run("connector", "install", address, "--yes")
	if code != 2 || !strings.Contains(errs, "pass the content hash") {
		t.Errorf("without a hash it ends with %d: %s%s", code, out, errs)
	}
	message := u.fails("hash_mismatch", "hash_mismatch", "connector", "install", address, "--yes", "--hash",
		"sha256:"+strings.Repeat("0", 64))
	if strings.Contains(message, "secret-of-a-publisher") {
		t.Errorf("the error has the query: %s", message)
	}
	for text, want := range map[string]string{
		"http://" + Hub + "/x":            "it is not https://HOST/PATH",
		"https://user:secret-x@" + Hub:    "it has a user name",
		"https:///x":                      "it is not https://HOST/PATH",
		"https://" + Hub + "/nothing.tar": "404",
	} {
		_, errs, code := u.run("connector", "install", text, "--yes", "--hash", checked.Hash)
		if code == 0 || !strings.Contains(errs, want) || strings.Contains(errs, "secret-x") {
			t.Errorf("%s ends with %d: %s; want %q", text, code, errs, want)
		}
	}
	u.isClean()
	out = u.ok("connector", "install", address, "--yes", "--json", "--hash", checked.Hash)
	if got := hashIn(t, out); got != checked.Hash {
		t.Errorf("installed is %s, not %s", got, checked.Hash)
	}
}
