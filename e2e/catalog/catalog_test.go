// Package catalog runs the real clients of the catalogue's services in a sealed
// box, in which only the connectors of the catalogue are installed, against
// stubs under the services' real names. Of apk, which Debian does not have, it
// makes the requests. [testdata/clients.sh] has all of them.
package catalog

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/e2e/recipes"
	"github.com/ALRubinger/aileron/e2e/services"
	"github.com/ALRubinger/aileron/e2e/stub"
	catalogue "github.com/ALRubinger/aileron/spec/catalog"
)

var binary string // the built aileron

func TestMain(m *testing.M) {
	os.Exit(harness.Run(m, "catalog", map[string]string{"aileron": "../../cmd/aileron"},
		func(dir string) { binary = filepath.Join(dir, "aileron") }))
}

const (
	token      = services.Token
	key        = services.Key
	passphrase = "correct horse battery"
)

// secretOf are the secrets of the entries that need one.
var secretOf = map[string]string{"anthropic": key, "openai": key, "gemini": key, "openrouter": key, "github": token,
	"github-graphql": token, "gitlab": token, "google": token, "linear": token, "slack": token}

// Every client of testdata/clients.sh works with the catalogue as it is.
func TestClientsWorkWithTheCatalogue(t *testing.T) {
	t.Parallel()
	needPodman(t)
	image := recipes.Services()
	recipes.Need(t, "podman", image)
	p := newPerson(t)
	o := services.Start(t, "", image.Ref, stub.Script{})
	must.Do(t, os.WriteFile(filepath.Join(p.project, "sumdb.key"), []byte(o.SumDB), 0o600))
	p.installCatalogue()
	out, errs := p.runClients(image, o)
	for _, secret := range []string{token, key} {
		if strings.Contains(out+errs, secret[:16]) {
			t.Error("a secret is in the output")
		}
		if found, _ := exec.Command("grep", "-rlF", secret, p.project, p.home).CombinedOutput(); len(found) > 0 {
			t.Errorf("a secret is in %s", found)
		}
	}
	p.judgeRows(o)
}

func needPodman(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("podman"); err != nil {
		harness.Need(t, "podman: scripts/prepare installs it")
	}
}

// runClients runs the clients of testdata/clients.sh, or those that are named, in a sandbox.
func (p *person) runClients(image recipes.Image, o *services.Origin, names ...string) (out, errs string) {
	p.t.Helper()
	args := []string{"sandbox", "run", "--sandbox=podman", "--image", image.Ref, "--dir", p.project,
		"--upstream-ca", o.Roots}
	for authority, addr := range o.Addresses() {
		args = append(args, "--resolve", authority+":"+addr)
	}
	out, errs, code := p.run(append(append(args, "--", "bash", "clients.sh"), names...)...)
	if code != 0 {
		p.t.Fatalf("the clients end with %d\n%s%s", code, out, errs)
	}
	worked := 0
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "ok ") {
			worked++
		}
	}
	if !strings.Contains(out, fmt.Sprintf("clients %d\n", worked)) || strings.Contains(out, "failed ") {
		p.t.Errorf("%d clients worked:\n%s%s", worked, out, errs)
	}
	return out, errs
}

// judgeRows checks that every service was asked by an operation of its own
// connector, and that a push is not the operation of a fetch.
func (p *person) judgeRows(o *services.Origin) {
	p.t.Helper()
	type row struct {
		Connector string `json:"connector_fqn"`
		Operation string
		Host      string
		Event     string
		Status    int
	}
	out, errs, code := p.run("audit", "list", "--json", "--limit", "0", "--event", "connector.proxy.proxied")
	if code != 0 {
		p.t.Fatalf("audit list: %s", errs)
	}
	used, asked := map[string]bool{}, map[string]bool{}
	for _, r := range harness.Rows[row](p.t, out) {
		name, _ := strings.CutPrefix(r.Connector, string(catalogue.FQN("")))
		used[name+" "+r.Operation], used[name], asked[r.Host] = true, true, true
	}
	for _, name := range catalogue.Names() {
		if name != "anthropic-oauth" && name != "github-public" && !used[name] {
			p.t.Errorf("no request was one of %s", name)
		}
	}
	for _, name := range []string{"github git.fetch", "github git.push", "gitlab git.push.subgroup2",
		"github-graphql graphql",
		"github git.lfs.batch", "go storage.download", "go sumdb.lookup", "go sumdb.tile", "github releases.asset"} {
		if !used[name] {
			p.t.Errorf("no request was %s", name)
		}
	}
	for authority := range o.Addresses() {
		if host, _, _ := strings.Cut(authority, ":"); !asked[host] {
			p.t.Errorf("no request went to %s", host)
		}
	}
}

// person is someone with a home and a project.
type person struct {
	t             *testing.T
	home, project string
}

func newPerson(t *testing.T) *person {
	t.Helper()
	dir := must.ShortDir(t)
	p := &person{t: t, home: filepath.Join(dir, "h"), project: filepath.Join(dir, "p")}
	must.Do(t, os.Mkdir(p.project, 0o700))
	harness.Copy(t, "testdata/clients.sh", p.project)
	harness.Copy(t, "testdata/models.mjs", p.project)
	return p
}

func (p *person) run(args ...string) (out, errs string, code int) {
	p.t.Helper()
	cmd := exec.Command(binary, args...)
	cmd.Env = harness.Env(p.home, passphrase)
	return harness.Finish(p.t, cmd, 30*time.Minute)
}

// installCatalogue installs all entries, but for one of the two that are ways to
// pay for the same models, and binds secrets to them, all by short names.
func (p *person) installCatalogue() {
	p.t.Helper()
	p.install(slices.DeleteFunc(catalogue.Names(), func(name string) bool { return name == "anthropic-oauth" })...)
}

// install installs entries of the catalogue, and binds secrets to them.
func (p *person) install(names ...string) {
	p.t.Helper()
	var lines strings.Builder
	for _, name := range names {
		if secret := secretOf[name]; secret != "" {
			fmt.Fprintf(&lines, "%s=%s\n", name, secret)
		}
	}
	file := filepath.Join(p.t.TempDir(), "secrets")
	if err := os.WriteFile(file, []byte(lines.String()), 0o600); err != nil {
		p.t.Fatal(err)
	}
	args := append(append([]string{"connector", "install"}, names...), "--yes", "--secrets-file", file)
	if out, errs, code := p.run(args...); code != 0 {
		p.t.Fatalf("aileron %q ends with %d\n%s%s", args, code, out, errs)
	}
}
