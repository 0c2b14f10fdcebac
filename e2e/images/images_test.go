// Package images runs boxes of images of every kind: each either works, which
// is a real request through the plane by a client that only knows its own
// image, or is refused before it starts.
//
// Distributions other than Debian are stand-ins: their layout of files, with
// Debian's programs in it.
package images

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/e2e/recipes"
	"github.com/ALRubinger/aileron/e2e/stub"
)

var (
	binary string     // the built aileron: harness.Build
	home   string     // a home in which the connector is bound
	conf   string     // containers.conf for Podman's command line
	once   sync.Mutex // held while the home is made
)

const (
	secret     = "ghp-images/TOKEN+0123456789abcdefXYZ"
	passphrase = "correct horse battery"
)

func TestMain(m *testing.M) {
	programs := map[string]string{"aileron": "../../cmd/aileron"}
	os.Exit(harness.Run(m, "images", programs, func(dir string) {
		binary, home, conf = filepath.Join(dir, "aileron"), filepath.Join(dir, "h"), filepath.Join(dir, "containers.conf")
		if err := os.WriteFile(conf, []byte(harness.PodmanConf()), 0o600); err != nil {
			panic(err)
		}
	}))
}

// tool runs an engine's own command line.
func tool(engine string, args ...string) ([]byte, error) {
	cmd := exec.Command(engine, args...)
	if engine == "podman" {
		cmd.Env = append(os.Environ(), "CONTAINERS_CONF="+conf)
	}
	return cmd.CombinedOutput()
}

// engines runs test with each engine, with all the images in its store.
func engines(t *testing.T, test func(t *testing.T, engine string)) {
	for _, engine := range []string{"podman", "docker"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			harness.PodmanIsEnough(t, engine)
			needEngine(t, engine)
			test(t, engine)
		})
	}
}

// needEngine is [harness.NeedEngine] with all the images in its store.
func needEngine(t *testing.T, engine string) {
	t.Helper()
	harness.NeedEngine(t, engine)
	recipes.Need(t, engine, append(recipes.Kinds(), recipes.Base(), recipes.Toolbox())...)
}

// ref is the name of a kind of image.
func ref(kind string) string { return recipes.Kind(kind).Ref }

// person is someone for whom a service of GitHub's name is bound.
type person struct {
	t             *testing.T
	engine        string
	home, project string
	origin        *stub.Server
}

func newPerson(t *testing.T, engine string) *person {
	t.Helper()
	harness.Turn(t)
	dir := must.ShortDir(t)
	p := &person{t: t, engine: engine, home: filepath.Join(dir, "h"), project: filepath.Join(dir, "p"),
		origin: stub.Start(t, stub.Script{Token: secret})}
	must.Do(t, os.Mkdir(p.project, 0o755))
	once.Lock()
	defer once.Unlock()
	if _, err := os.Stat(home); err != nil {
		first := &person{t: t, home: home}
		const dir, fqn = "../../examples/connectors/github", "github://alrubinger/aileron-connector-github"
		first.must("connector", "install", dir, "--yes")
		file := filepath.Join(t.TempDir(), "secret")
		must.Do(t, os.WriteFile(file, []byte(secret+"\n"), 0o600))
		first.must("binding", "setup", fqn, "--identity", "images", "--secret-file", file)
	}
	if out, err := exec.Command("cp", "-a", home, p.home).CombinedOutput(); err != nil {
		t.Fatalf("copy a home: %v\n%s", err, out)
	}
	return p
}

type result struct {
	out, err string
	code     int
}

func (p *person) run(env []string, args ...string) result {
	p.t.Helper()
	cmd := exec.Command(binary, args...)
	cmd.Env = append(append(os.Environ(), "AILERON_HOME="+p.home, "AILERON_VAULT_PASSPHRASE="+passphrase), env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	must.Do(p.t, cmd.Start())
	timer := time.AfterFunc(harness.Patience, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	_ = cmd.Wait()
	return result{out.String(), harness.WithoutNotices(errs.String()), cmd.ProcessState.ExitCode()}
}

func (p *person) must(args ...string) result {
	p.t.Helper()
	r := p.run(nil, args...)
	if r.code != 0 {
		p.t.Fatalf("aileron %s: exit %d\n%s%s", strings.Join(args, " "), r.code, r.out, r.err)
	}
	return r
}

// box runs a command in a box of an image. Clients in images are written in Go, whose ten seconds for a handshake no
// setting raises: where they are too few for a busy machine, the command is run again.
func (p *person) box(image string, flags, command []string, env ...string) (r result) {
	p.t.Helper()
	args := append([]string{"sandbox", "run", "--sandbox=" + p.engine, "--image", image, "--dir", p.project,
		"--upstream-ca", p.origin.Roots, "--resolve", stub.GitHub + ":443:" + p.origin.Addr}, flags...)
	defer p.keepImages()
	for range 5 {
		r = p.run(env, append(append(args, "--"), command...)...)
		if !strings.Contains(r.out, "net/http: TLS handshake timeout") {
			break
		}
		p.t.Logf("a client in the box gave up:\n%s", r.out)
	}
	return r
}

// keepImages copies what aileron has read of this home's images to the home that later ones are copies of: a first
// start reads some 16 files, and Podman starts a process for each.
func (p *person) keepImages() {
	once.Lock()
	defer once.Unlock()
	_ = exec.Command("cp", "-a", "-n", filepath.Join(p.home, "cache"), home).Run() // an image that was refused has none
}

const url = "https://" + stub.GitHub + "/user"

// ways are those of the client, e2e/recipes/testdata/get.
var ways = []string{"proxy,variables", "past,variables", "proxy,store", "past,store"}

// works demands that each way brought the credential's answer, and that each
// is in the audit log.
func (p *person) works(r result) {
	p.t.Helper()
	if r.code != 0 {
		p.t.Fatalf("exit %d\n%s%s", r.code, r.out, r.err)
	}
	for _, way := range ways {
		at := strings.Index(r.out, way+": ")
		if at < 0 {
			p.t.Fatalf("%s was not tried:\n%s%s", way, r.out, r.err)
		}
		if line, _, _ := strings.Cut(r.out[at:], "\n"); !strings.Contains(line, ": 200 ") ||
			!strings.Contains(line, "octo-stand-in") {
			p.t.Errorf("%s", line)
		}
	}
	if n := len(p.rows("--decision", "proxied", "--host", stub.GitHub)); n < len(ways) {
		p.t.Errorf("%d proxied rows, want one for each way", n)
	}
	if strings.Contains(r.out+r.err, secret[:16]) {
		p.t.Error("the secret is in the output")
	}
}

// refused demands that nothing of the image ran, and that the error contains
// each of these.
func (p *person) refused(r result, says ...string) {
	p.t.Helper()
	if r.code == 0 || r.out != "" {
		p.t.Fatalf("exit %d, output %q; want a refusal\n%s", r.code, r.out, r.err)
	}
	for _, want := range says {
		if !strings.Contains(r.err, want) {
			p.t.Errorf("the error does not say %q:\n%s", want, r.err)
		}
	}
	disabled := p.rows("--event", "sandbox.proxy.disabled")
	if len(disabled) != 1 || disabled[0].Reason != "preflight_failed" {
		p.t.Errorf("rows of the refusal: %+v, want one with preflight_failed", disabled)
	}
	if n := len(p.origin.Seen()); n != 0 {
		p.t.Errorf("the service saw %d requests", n)
	}
}

type row struct{ Event, Host, Reason string }

func (p *person) rows(flags ...string) []row {
	p.t.Helper()
	return harness.Rows[row](p.t, p.must(append([]string{"audit", "list", "--json", "--limit", "0"}, flags...)...).out)
}
