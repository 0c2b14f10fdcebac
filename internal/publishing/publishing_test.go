package publishing

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/scaffold"
	"github.com/ALRubinger/aileron/spec/signature"
	"github.com/ALRubinger/aileron/spec/store"
)

const fqn = "github://acme/tracker"

// begun writes the files of a starter into a directory.
func begun(t *testing.T, dir string, name spec.FQN, version string) {
	t.Helper()
	c := scaffold.Starter(name, "api.tracker.example", spec.KindAPIKey)
	c.Version = version
	files := must.Get(c.Files())(t)
	must.Get(scaffold.Write(dir, files))(t)
}

// repo is a publisher's repository with a connector.
type repo struct {
	t        *testing.T
	top, dir string
}

func newRepo(t *testing.T, name spec.FQN, below string) *repo {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git")
	}
	top := t.TempDir()
	r := &repo{t, top, filepath.Join(top, below)}
	r.git("init", "--quiet")
	r.git("remote", "add", "origin", "https://github.com/acme/tracker.git")
	begun(t, r.dir, name, "0.1.0")
	return r
}

func (r *repo) git(args ...string) string {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), "git", append([]string{"-C", r.top, "-c", "user.name=x",
		"-c", "user.email=x@example.com", "-c", "core.hooksPath=/dev/null"}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (r *repo) commit() {
	r.t.Helper()
	r.git("add", "--all")
	r.git("commit", "--quiet", "--allow-empty", "--message", "x")
}

// edit replaces text in a file of the connector.
func (r *repo) edit(name string, pairs ...string) {
	r.t.Helper()
	file := filepath.Join(r.dir, name)
	text := string(must.Get(os.ReadFile(file))(r.t))
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			r.t.Fatalf("%s has no %q", name, pairs[i])
		}
	}
	must.Do(r.t, os.WriteFile(file, []byte(strings.NewReplacer(pairs...).Replace(text)), 0o644))
}

func (r *repo) read(name string) string {
	r.t.Helper()
	return string(must.Get(os.ReadFile(filepath.Join(r.dir, name)))(r.t))
}

// release releases what the repository has.
func (r *repo) release(change func(*ReleaseOptions)) (Released, error) {
	o := ReleaseOptions{Dir: r.dir, Output: filepath.Join(r.t.TempDir(), "aileron.tar.gz")}
	if change != nil {
		change(&o)
	}
	return Release(r.t.Context(), o)
}

func TestAVersionIsRaisedInOnePlace(t *testing.T) {
	r := newRepo(t, fqn, "")
	r.edit("README.md", "# tracker", "# tracker\n\nOf the API 0.1.0, tags v0.1.0 and v0.1.0.\n")
	r.commit()
	must.Get(r.release(nil))(t)
	r.edit("aileron.connector.v1.json", `"path": "/v1/items"`, `"path": "/v0.1.0/items"`) // no version of the connector
	b := must.Get(Bump(t.Context(), BumpOptions{Dir: r.dir, Level: Minor}))(t)
	if b.From != "0.1.0" || b.To != "0.2.0" || b.Due != Major || b.Last.From != "v0.1.0" ||
		strings.Join(b.Files, " ") != "manifest.toml aileron.connector.v1.json README.md" {
		t.Errorf("Bump = %+v", b)
	}
	c := must.Get(store.Read(r.dir))(t)
	if c.Version != "0.2.0" || !strings.Contains(r.read("manifest.toml"), "The tag of the release is v0.2.0.") {
		t.Errorf("the files are of %s:\n%s", c.Version, r.read("manifest.toml"))
	}
	readme := r.read("README.md")
	for _, want := range []string{"install github://acme/tracker@0.2.0\n", "API 0.1.0, tags v0.2.0 and v0.2.0.\n"} {
		if !strings.Contains(readme, want) {
			t.Errorf("README.md has no %q:\n%s", want, readme)
		}
	}
	if !strings.Contains(r.read("aileron.connector.v1.json"), `"/v0.1.0/items"`) {
		t.Error("the path of an operation was changed")
	}
	// Counted from the release: once more changes nothing, and what was too little is raised further.
	if b := must.Get(Bump(t.Context(), BumpOptions{Dir: r.dir, Level: Minor}))(t); b.To != "0.2.0" || len(b.Files) > 0 {
		t.Errorf("the second time: %+v", b)
	}
	if b := must.Get(Bump(t.Context(), BumpOptions{Dir: r.dir, Level: Major}))(t); b.To != "1.0.0" {
		t.Errorf("major: %+v", b)
	}
	if _, err := Bump(t.Context(), BumpOptions{Dir: r.dir, Level: Minor}); err == nil ||
		!strings.Contains(err.Error(), "it is 1.0.0 already") {
		t.Errorf("back again: %v", err)
	}
}

// What is due is what the change takes from those who use the connector.
func TestWhatIsDue(t *testing.T) {
	old := must.Get(scaffold.Starter(fqn, "api.tracker.example", spec.KindAPIKey).Files())(t)
	load := func(files map[string][]byte) *spec.Connector {
		t.Helper()
		return must.Get(spec.Load(files[spec.ManifestFile], files[spec.SpecFile]))(t)
	}
	const get, create = `"name": "items.get"`, `"name": "items.create"`
	for name, c := range map[string]struct {
		manifest, spec []string // pairs
		due            Level
		says           string
	}{
		"nothing":   {nil, nil, None, ""},
		"a summary": {nil, []string{"Read one item", "Read an item"}, Patch, "for people"},
		"a renamed operation": {
			nil, []string{get, `"name": "items.read"`}, Major, "no longer has the operation tracker items.get",
		},
		"another path": {
			nil, []string{`"/v1/items/{id}"`, `"/v2/items/{id}"`}, Major, "is GET /v2/items/{id}, not GET /v1/",
		},
		"another host": {[]string{"api.tracker.example:443", "api2.tracker.example:443"},
			[]string{"api.tracker.example", "api2.tracker.example"}, Major, "no longer reaches the host api.tracker.example"},
		"a host more": {[]string{`["api.tracker.example:443"]`, `["api.tracker.example:443", "b.example:443"]`},
			[]string{`["api.tracker.example"]`, `["api.tracker.example", "b.example"]`}, Minor, "reaches the host b.example"},
		"an input that became required": {nil, []string{`{"name": "labels", "type": "array",`,
			`{"name": "labels", "type": "array", "required": true,`}, Major, "tracker items.create requires the input labels"},
		"a new input that is required": {nil, []string{`{"name": "title",`,
			`{"name": "kind", "type": "string", "required": true}, {"name": "title",`}, Major,
			"the input kind, which is required"},
		"a new input": {nil, []string{`{"name": "title",`, `{"name": "kind", "type": "string"}, {"name": "title",`}, Minor,
			"has the input kind"},
		"an input less": {
			nil, []string{`"name": "fields"`, `"name": "columns"`}, Major, "no longer has the input fields",
		},
		"another type": {
			nil, []string{`{"name": "labels", "type": "array"`, `{"name": "labels", "type": "string"`},
			Major, "in another form",
		},
		"fewer values": {
			nil, []string{`{"name": "fields", "type": "string",`, `{"name": "fields", "type": "string", "values": ["a"],`},
			Major, "limits the input fields to a",
		},
		"an approval that was not needed": {
			nil, []string{get, get + `, "approval": "required"`}, Major, "waits for an approval",
		},
		"an approval less": {
			nil, []string{`"approval": "required"`, `"approval": "none"`}, Minor, "needs fewer approvals",
		},
		"another kind of body": {
			nil, []string{create, create + `, "body": "form"`}, Major, "another kind of body",
		},
		"another scope": {
			[]string{"Read and create items", "Read, create and delete items"}, nil, Minor, "delete items",
		},
	} {
		edited := func(name string, pairs []string) []byte {
			return []byte(strings.NewReplacer(pairs...).Replace(string(old[name])))
		}
		files := map[string][]byte{spec.ManifestFile: edited(spec.ManifestFile, c.manifest),
			spec.SpecFile: edited(spec.SpecFile, c.spec)}
		changes := Compare(load(old), load(files))
		has := c.says == "" || slices.ContainsFunc(changes, func(one Change) bool {
			return one.Level == c.due && strings.Contains(one.Text, c.says)
		})
		if Due(changes) != c.due || !has {
			t.Errorf("%s: Compare = %v, want %s and %q", name, changes, c.due, c.says)
		}
	}
	more := scaffold.Starter(fqn, "api.tracker.example", spec.KindAPIKey)
	extra := more.Operations[0]
	extra.Name, extra.Path = "items.list", "/v1/items"
	extra.Inputs, extra.Audit = extra.Inputs[1:], nil
	more.Operations = append(more.Operations, extra)
	if changes := Compare(load(old), load(must.Get(more.Files())(t))); Due(changes) != Minor {
		t.Errorf("a new operation: %v", changes)
	}
}

func TestNextVersions(t *testing.T) {
	for _, c := range []struct {
		from  string
		level Level
		want  string
	}{
		{"0.1.0", Patch, "0.1.1"}, {"0.1.9", Minor, "0.2.0"}, {"0.9.9", Major, "1.0.0"}, {"1.2.3", Major, "2.0.0"},
		{"1.2.3+build.7", Patch, "1.2.4"}, {"2.0.0-rc.1", Major, "2.0.0"}, {"2.1.0-rc.1", Major, "3.0.0"},
		{"2.1.0-rc.1", Minor, "2.1.0"}, {"2.1.1-rc.1", Minor, "2.2.0"}, {"2.1.1-rc.1", Patch, "2.1.1"},
	} {
		if got := next(c.from, c.level); got != c.want {
			t.Errorf("next(%s, %s) = %s, want %s", c.from, c.level, got, c.want)
		}
		if got := raised(c.from, c.want); got < c.level {
			t.Errorf("raised(%s, %s) = %s, want %s", c.from, c.want, got, c.level)
		}
	}
	if !enough("0.1.0", Minor, Major) || enough("0.1.0", Patch, Minor) || enough("1.0.0", Minor, Major) {
		t.Error("what is enough")
	}
}

// Less than is due is refused when the version is raised, and when it is released.
func TestLessThanIsDueIsRefused(t *testing.T) {
	r := newRepo(t, fqn, "")
	for _, name := range []string{"manifest.toml", "aileron.connector.v1.json"} {
		r.edit(name, "0.1.0", "1.0.0")
	}
	r.commit()
	must.Get(r.release(nil))(t)
	r.edit("aileron.connector.v1.json", `"name": "items.get"`, `"name": "items.read"`)
	_, err := Bump(t.Context(), BumpOptions{Dir: r.dir, Level: Minor})
	if err == nil || !strings.Contains(err.Error(), "major is due after v1.0.0, and not minor, as it no longer has the "+
		"operation tracker items.get") {
		t.Errorf("Bump = %v", err)
	}
	must.Get(Bump(t.Context(), BumpOptions{Dir: r.dir, Level: Minor, Force: true}))(t)
	r.commit()
	if _, err := r.release(nil); err == nil || !strings.Contains(err.Error(), "major is due after v1.0.0, and not minor") {
		t.Errorf("Release = %v", err)
	}
	rel := must.Get(r.release(func(o *ReleaseOptions) { o.Force = true }))(t)
	if rel.Tag != "v1.1.0" || r.git("tag", "--points-at", "HEAD") != "v1.1.0" {
		t.Errorf("Release = %+v", rel)
	}
}

func TestARepositoryThatCannotBeReleased(t *testing.T) {
	bare := t.TempDir()
	begun(t, bare, fqn, "0.1.0")
	if _, err := Release(t.Context(), ReleaseOptions{Dir: bare}); err == nil ||
		!strings.Contains(err.Error(), "it is in no git repository") {
		t.Errorf("without a repository: %v", err)
	}
	for name, c := range map[string]struct {
		prepare func(*repo)
		want    string
	}{
		"nothing committed": {func(r *repo) {}, "nothing is committed"},
		"dirty": {
			func(r *repo) { r.commit(); r.edit("README.md", "# tracker", "# other") },
			"it is not as it was committed: README.md",
		},
		"a file that is not committed": {func(r *repo) {
			r.commit()
			must.Do(r.t, os.WriteFile(filepath.Join(r.dir, "\x1b[31mx"), nil, 0o600))
		}, `"\033[31mx"`},
		"a tag elsewhere": {func(r *repo) { r.commit(); r.git("tag", "v0.1.0"); r.commit() },
			"the tag v0.1.0 exists, at another commit"},
		"no remote": {func(r *repo) { r.commit(); r.git("remote", "remove", "origin") }, "no remote origin"},
		"another remote": {
			func(r *repo) { r.commit(); r.git("remote", "set-url", "origin", "git@github.com:evil/tracker.git") },
			"the remote origin is github://evil/tracker, where no user looks for it",
		},
		"a signature that is not of it": {func(r *repo) {
			key := must.Get(signature.GenerateKey())(r.t)
			claim := signature.Claim{FQN: fqn, Version: "0.0.9", Hash: "sha256:" + strings.Repeat("0", 64)}
			sig := must.Get(key.Sign(claim))(r.t)
			must.Do(r.t, os.WriteFile(filepath.Join(r.dir, "signature.sig"), sig, 0o600))
			r.commit()
		}, "its signature is one of"},
		"a file trust that is none": {func(r *repo) {
			must.Do(r.t, os.WriteFile(filepath.Join(r.dir, "trust"), []byte("x\n"), 0o600))
			r.commit()
		}, "does not begin with"},
	} {
		r := newRepo(t, fqn, "")
		c.prepare(r)
		_, err := r.release(nil)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.ContainsRune(err.Error(), '\x1b') {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if name != "a tag elsewhere" && r.git("tag") != "" {
			t.Errorf("%s: the tags are %q", name, r.git("tag"))
		}
	}
}

func TestADryRunChangesNothing(t *testing.T) {
	r := newRepo(t, fqn, "")
	r.commit()
	rel := must.Get(r.release(func(o *ReleaseOptions) { o.DryRun = true }))(t)
	if _, err := os.Stat(rel.Archive); err == nil || r.git("tag") != "" {
		t.Errorf("it wrote %s, and the tags are %q", rel.Archive, r.git("tag"))
	}
	want := []string{"git tag v0.1.0", "git push origin HEAD v0.1.0"}
	if !slices.Equal(rel.Commands[:2], want) || !strings.HasPrefix(rel.Commands[2], "gh release create v0.1.0 ") {
		t.Errorf("the commands are %q", rel.Commands)
	}
	asked := false
	signed := must.Get(r.release(func(o *ReleaseOptions) {
		o.Keys = func(context.Context) ([]signature.SecretKey, error) {
			asked = true
			return []signature.SecretKey{must.Get(signature.GenerateKey())(t), must.Get(signature.GenerateKey())(t)}, nil
		}
	}))(t)
	if again := must.Get(r.release(nil))(t); !again.Tagged || again.Commands[0] != "git push origin HEAD v0.1.0" {
		t.Errorf("with its tag at the commit: %+v", again)
	}
	c := must.Get(store.Source{Src: signed.Archive}.Read())(t)
	if !asked || len(signed.Keys) != 2 || strings.Count(string(c.Signature), "untrusted comment") != 2 {
		t.Errorf("the signatures are %s", c.Signature)
	}
	if _, err := json.Marshal(signed.JSON()); err != nil {
		t.Error(err)
	}
}

// A connector in a directory of a repository has its path in its tags; its workflow is at the top.
func TestAConnectorInADirectory(t *testing.T) {
	r := newRepo(t, "github://acme/tracker/connectors/jira", "connectors/jira")
	r.commit()
	rel := must.Get(r.release(nil))(t)
	if rel.Tag != "connectors/jira/v0.1.0" {
		t.Errorf("the tag is %s", rel.Tag)
	}
	r.edit("aileron.connector.v1.json", "Read one item", "Read an item")
	b := must.Get(Bump(t.Context(), BumpOptions{Dir: r.dir, Level: Patch}))(t)
	if b.Last.From != "connectors/jira/v0.1.0" || b.To != "0.1.1" || b.Due != Patch {
		t.Errorf("Bump = %+v", b)
	}
	name, text, ok := workflow(t.Context(), r.dir, "github://acme/tracker/connectors/jira")
	if !ok || name != "../../.github/workflows/connector-jira.yml" ||
		!strings.Contains(string(text), `aileron connector check "connectors/jira"`) ||
		!strings.Contains(string(text), `tags: ["connectors/jira/v*"]`) {
		t.Errorf("the workflow is %s, %v:\n%s", name, ok, text)
	}
	if name, _, ok := workflow(t.Context(), t.TempDir(), "github://acme/tracker/connectors/jira"); ok {
		t.Errorf("the workflow of a directory in no repository is %s", name)
	}
	if name, _, ok := workflow(t.Context(), r.top, "gitlab://acme/tracker"); ok {
		t.Errorf("the workflow of GitLab is %s", name)
	}
	sub := &repository{dir: r.dir, prefix: ""}
	if got := sub.tag("gitlab://acme/sub/tracker", "1.0.0"); got != "v1.0.0" {
		t.Errorf("the tag of a project in a subgroup is %s", got)
	}
	sub.prefix = "tracker/"
	if got := sub.tag("gitlab://acme/mono/tracker", "1.0.0"); got != "tracker/v1.0.0" {
		t.Errorf("the tag of a directory of a project is %s", got)
	}
}

// A release that the next key of the file trust does not sign is pointed out: it replaces no key.
func TestTheNextKeyHasToSign(t *testing.T) {
	r := newRepo(t, fqn, "")
	old, next := must.Get(signature.GenerateKey())(t), must.Get(signature.GenerateKey())(t)
	vouch := must.Get(old.Vouch(signature.AuthorityOf(fqn), next.Public()))(t)
	must.Do(t, os.WriteFile(filepath.Join(r.dir, signature.TrustFile), vouch, 0o600))
	r.commit()
	for name, c := range map[string]struct {
		keys []signature.SecretKey
		want string
	}{
		"old":  {[]signature.SecretKey{old}, "names the next key " + next.Public().ID().String()},
		"both": {[]signature.SecretKey{old, next}, ""},
		"next": {[]signature.SecretKey{next}, ""},
	} {
		rel := must.Get(r.release(func(o *ReleaseOptions) {
			o.Keys = func(context.Context) ([]signature.SecretKey, error) { return c.keys, nil }
		}))(t)
		text := strings.Join(rel.Notes, " ")
		if strings.Contains(text, "names the next key") != (c.want != "") || !strings.Contains(text, c.want) {
			t.Errorf("%s: the notes are %q", name, text)
		}
		packed := must.Get(store.Source{Src: rel.Archive}.Read())(t)
		st, err := signature.Check(signature.Trust{Authority: signature.AuthorityOf(fqn),
			Keys: []signature.Known{{Key: old.Public()}}}, signature.ClaimOf(packed.Connector), packed.Signature)
		if err != nil || (len(st.Replaces) > 0) != (c.want == "") {
			t.Errorf("%s: a user sees %+v, %v", name, st, err)
		}
		st, err = signature.Check(signature.Trust{Authority: signature.AuthorityOf(fqn)},
			signature.ClaimOf(packed.Connector), packed.Signature)
		if err != nil || !st.First || st.Key.Equal(next.Public()) != (c.want == "") {
			t.Errorf("%s: a new user sees %+v, %v", name, st, err)
		}
	}
}

// The last release may be an archive, of this connector.
func TestTheLastReleaseIsAnArchive(t *testing.T) {
	dir, other, out := t.TempDir(), t.TempDir(), t.TempDir()
	begun(t, dir, fqn, "0.1.0")
	begun(t, other, "github://acme/wiki", "0.1.0")
	pack := func(from, name string) string {
		f := must.Get(os.Create(filepath.Join(out, name)))(t)
		defer f.Close()
		must.Get(store.Pack(from, f))(t)
		return f.Name()
	}
	if b := must.Get(Bump(t.Context(), BumpOptions{Dir: dir, Since: pack(dir, "a.tar.gz")}))(t); b.Due != None ||
		b.Last.Connector == nil || !strings.Contains(b.found(), "nothing has changed since") {
		t.Errorf("Bump = %+v", b)
	}
	for since, want := range map[string]string{pack(other, "b.tar.gz"): "it is github://acme/wiki",
		filepath.Join(out, "none.tar.gz"): "no such file", "v9.0.0": "no git repository"} {
		_, err := Bump(t.Context(), BumpOptions{Dir: dir, Since: since})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("--since %s: %v, want %q", since, err, want)
		}
	}
}
