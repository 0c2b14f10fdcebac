// Package matrix runs real clients in a sealed box, each with the proxy
// variables and without them, against stand-ins under real names. It prints
// the table of docs/trust.md: just matrix.
package matrix

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/e2e/recipes"
	"github.com/ALRubinger/aileron/sandbox"
)

var binary string // the built aileron: harness.Build

func TestMain(m *testing.M) {
	os.Exit(harness.Run(m, "matrix", map[string]string{"aileron": "../../cmd/aileron"},
		func(dir string) {
			binary = filepath.Join(dir, "aileron")
			if err := os.Chmod(dir, 0o711); err != nil { // another user runs it
				panic(err)
			}
		}))
}

// Canaries that open nothing: they exist to be searched for.
const (
	token      = "ghp-matrix/TOKEN+0123456789abcdefXYZ" // of api.github.com
	password   = "ghp-matrix/GIT+9876543210fedcbaZYX"   // of github.com, for git
	gitUser    = "x-access-token"
	passphrase = "correct horse battery"
)

// cell is what one client did, as the driver reports it.
type cell struct {
	At                     int // the client's place among those of its image
	Client, Mode, Transfer string
	Code                   int
	Bytes                  int64
	SHA256                 string
	Seconds                float64
	Way                    string // proxy, redirected: what the client connected to
	Words                  string // what it said, when it failed, or a JVM printed options

	trouble string // what is wrong with it; "" for nothing
}

func (c cell) name() string { return c.Client + "/" + c.Transfer + "/" + c.Mode }

// Every client, on Podman; AILERON_MATRIX_ENGINE=docker runs them all there,
// and AILERON_MATRIX_CLIENTS names those to run.
func TestEveryClientGoesThroughThePlane(t *testing.T) {
	t.Parallel()
	engine := cmp.Or(os.Getenv("AILERON_MATRIX_ENGINE"), "podman")
	cells := runMatrix(t, engine, "image", "browsers")
	manual(t, cells)
	if path := os.Getenv("AILERON_MATRIX_TABLE"); path != "" {
		must.Do(t, os.WriteFile(path, []byte(table(cells)), 0o600))
	}
}

func TestAClientOfEachKindGoesThroughThePlaneOnDocker(t *testing.T) {
	t.Parallel()
	if os.Getenv("AILERON_MATRIX_ENGINE") == "docker" {
		t.Skip("all of them run on Docker")
	}
	harness.PodmanIsEnough(t, "docker")
	runMatrix(t, "docker", "few")
}

// Every client as a program of the host, in a sandbox without an engine, as an ordinary user. apt has no sources there:
// the settings of a host's package manager are not in a sandbox.
func TestEveryClientGoesThroughThePlaneNatively(t *testing.T) {
	t.Parallel()
	runMatrix(t, sandbox.Native, "image")
}

// shares is among how many boxes the clients of an image are divided. Most wait
// for something most of the time, and all boxes run side by side.
var shares = map[string]int{"image": 3, "browsers": 2, "few": 1}

// drive runs the clients of images, and returns what the driver of each share
// printed, by image. A box that does not end ends its goroutine, not the test,
// and has no result.
func (p *person) drive(images map[string]string, flags, only []string) map[string][]result {
	p.t.Helper()
	results := map[string][]result{}
	turn, turns := harness.TurnOf()
	var running sync.WaitGroup
	for name, image := range images {
		of := make([]result, shares[name])
		results[name] = of
		for i := range of {
			running.Go(func() {
				of[i] = p.box(image, flags, append([]string{"python3", "driver.py", name,
					fmt.Sprintf("%d/%d", i*turns+turn, len(of)*turns)}, only...)...)
			})
		}
	}
	running.Wait()
	return results
}

// runMatrix runs the clients of those images.
func runMatrix(t *testing.T, engine string, names ...string) []cell {
	t.Helper()
	images := map[string]string{}
	for _, name := range names {
		images[name] = needImage(t, engineOf(engine), name)
	}
	p := newPerson(t)
	p.engine = engine
	p.origin = startOrigin(t, filepath.Join(p.project, "acks"), registriesOf(t, engineOf(engine), images[names[0]]))
	p.bindConnectors()
	if engine == sandbox.Native {
		p.beOrdinary(recipes.Clients(names[0]))
	}
	flags := []string{"--upstream-ca", p.origin.roots}
	for authority, addr := range p.origin.authorities() {
		flags = append(flags, "--resolve", authority+":"+addr)
	}
	only := strings.Fields(os.Getenv("AILERON_MATRIX_CLIENTS"))
	var cells []cell
	var said strings.Builder
	results := p.drive(images, flags, only)
	for _, name := range names {
		var of []cell
		for _, r := range results[name] {
			of = append(of, parse(t, r.out)...)
			said.WriteString(r.out + r.err)
			if r.code != 0 {
				t.Errorf("the driver ended with %d\n%s", r.code, r.err)
			}
		}
		slices.SortStableFunc(of, func(a, b cell) int { return a.At - b.At })
		cells = append(cells, of...)
	}
	if len(cells) == 0 {
		t.Fatal("the driver ran nothing")
	}
	rows := p.proxied()
	_, turns := harness.TurnOf()
	partial := turns > 1
	for i := range cells {
		cells[i].trouble = p.judge(cells[i], rows)
		if engine == sandbox.Native && cells[i].Client == "apt" {
			continue
		}
		known, reason := knownTo(cells[i])
		t.Logf("%s: %.1f s %s", cells[i].name(), cells[i].Seconds, cells[i].Way)
		switch {
		case cells[i].trouble == "" && known:
			t.Errorf("%s works: take it off the list of what fails", cells[i].name())
		case cells[i].trouble != "" && !known:
			t.Errorf("%s: %s", cells[i].name(), cells[i].trouble)
		case known:
			t.Logf("%s fails as is known: %s", cells[i].name(), reason)
		}
	}
	for at := range p.origin.authorities() {
		host, _, _ := strings.Cut(at, ":")
		if !slices.ContainsFunc(slices.Collect(maps.Keys(rows)),
			func(path string) bool { return strings.HasPrefix(path, host+"/") }) &&
			only == nil && !partial && names[0] == "image" {
			t.Errorf("the audit log has no row of %s", host)
		}
	}
	for _, s := range []string{token, password} {
		if strings.Contains(said.String(), s[:16]) {
			t.Error("a secret is in a box's output")
		}
		if out, _ := exec.Command("grep", "-rlF", s, p.project, p.home).CombinedOutput(); len(out) > 0 {
			t.Errorf("a secret is in %s", out)
		}
	}
	p.must("audit", "verify")
	return cells
}

// manual looks for every client, and every reason, in docs/trust.md.
func manual(t *testing.T, cells []cell) {
	t.Helper()
	data := must.Get(os.ReadFile("../../docs/trust.md"))(t)
	text := strings.Join(strings.Fields(string(data)), " ")
	for _, c := range cells {
		if c.Transfer == "small" && !strings.Contains(text, "| "+c.Client+" |") {
			t.Errorf("docs/trust.md does not name %s: just matrix prints its row", c.Client)
		}
	}
	for name, reason := range fails {
		if !strings.Contains(text, reason) {
			t.Errorf("docs/trust.md does not say why %s fails: %s", name, reason)
		}
	}
}

// judge describes what is wrong with a cell: with what came through, with the
// way it took, or with its events in the audit log.
func (p *person) judge(c cell, rows map[string]int) string {
	want := p.origin.want(p.t, c)
	switch {
	case c.Code != 0:
		return fmt.Sprintf("exit %d: %s", c.Code, c.Words)
	case c.Words != "":
		return fmt.Sprintf("it gets options, which scripts do not expect: %s", c.Words)
	case c.Bytes != want.bytes || c.SHA256 != want.sha:
		return fmt.Sprintf("%d bytes came, with the SHA-256 %s; want %d, %s", c.Bytes, c.SHA256, want.bytes, want.sha)
	case c.Mode == "without" && strings.Contains(c.Way, "proxy"):
		return "it found the proxy without the variables"
	case c.Transfer == "events" && c.Way == "": // an open stream is looked at while it is open
		return "it was not seen to connect"
	case want.path != "" && rows[want.path] != 1:
		return fmt.Sprintf("%d rows of the audit log are of %s", rows[want.path], want.path)
	case c.Transfer == "events" && p.origin.hasty(c):
		return "the events came all at once"
	}
	return ""
}

func parse(t *testing.T, out string) []cell {
	t.Helper()
	var cells []cell
	lines := bufio.NewScanner(strings.NewReader(out))
	for lines.Scan() {
		var c cell
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatalf("the driver said %q", lines.Text())
		}
		cells = append(cells, c)
	}
	return cells
}

// person is someone with a home, a project and connectors.
type person struct {
	t             *testing.T
	home, project string
	engine        string
	before        []string // words before aileron
	origin        *origin
}

func newPerson(t *testing.T) *person {
	t.Helper()
	dir := must.ShortDir(t)
	p := &person{t: t, engine: "podman", home: filepath.Join(dir, "h"), project: filepath.Join(dir, "p")}
	for _, name := range []string{"driver.py", "clients"} {
		if out, err := exec.Command("sh", "-c", `mkdir -p "$2" && cp -r "$1" "$2"`, "-", filepath.Join("testdata", name),
			p.project).CombinedOutput(); err != nil {
			t.Fatalf("copy %s: %v\n%s", name, err, out)
		}
	}
	return p
}

type result struct {
	out, err string
	code     int
}

func (p *person) run(args ...string) result {
	p.t.Helper()
	words := slices.Concat(p.before, []string{binary}, args)
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Env = harness.Env(p.home, passphrase)
	out, errs, code := harness.Finish(p.t, cmd, 35*time.Minute)
	return result{out, errs, code}
}

func (p *person) must(args ...string) result {
	p.t.Helper()
	r := p.run(args...)
	if r.code != 0 {
		p.t.Fatalf("aileron %s: exit %d\n%s%s", strings.Join(args, " "), r.code, r.out, r.err)
	}
	return r
}

// engineOf is the engine that has the images of an engine's boxes.
func engineOf(engine string) string {
	if engine == sandbox.Native {
		return "podman"
	}
	return engine
}

// beOrdinary makes the person, until now root, one without rights, on a host with all of an image.
func (p *person) beOrdinary(image recipes.Image) {
	p.t.Helper()
	dir := filepath.Dir(p.home)
	roots := filepath.Join(dir, "roots.pem")
	harness.Copy(p.t, p.origin.roots, roots)
	p.origin.roots = roots
	p.before = recipes.HostOf(p.t, image, dir)
	id := strconv.Itoa(harness.RootlessUser)
	if out, err := exec.Command("chown", "-R", id+":"+id, dir).CombinedOutput(); err != nil {
		p.t.Fatalf("%v\n%s", err, out)
	}
}

// box runs a command in a sealed box.
func (p *person) box(image string, flags []string, command ...string) result {
	p.t.Helper()
	args := append([]string{"sandbox", "run", "--sandbox=" + p.engine, "--dir", p.project}, flags...)
	if p.engine == sandbox.Native { // what the image has there is no part of the system
		for _, dir := range []string{"get", "js", "node20", "node24", "roots.pem"} {
			args = append(args, "--mount", "/opt/"+dir+":ro")
		}
	} else {
		args = append(args, "--image", image)
	}
	return p.run(append(append(args, "--"), command...)...)
}

// proxied counts the rows of answered requests by host and path.
func (p *person) proxied() map[string]int {
	p.t.Helper()
	type row struct {
		Host, Path string
		Status     int
	}
	found := map[string]int{}
	for _, r := range harness.Rows[row](p.t,
		p.must("audit", "list", "--json", "--limit", "0", "--event", "connector.proxy.proxied").out) {
		if r.Status == 200 {
			found[r.Host+r.Path]++
		}
	}
	return found
}
