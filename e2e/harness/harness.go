// Package harness is what the end-to-end suites share: the built program, a
// home in which a secret is bound, the engines' command lines. Each suite has
// its own person, who uses it as that suite's users do.
package harness

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/e2e/rowschema"
)

// cheapVaults makes aileron's vaults cheap to open: each session opens one,
// and a release takes half a second of a core for it. Programs that have no
// such variable are not changed by it. The attacks have the program as it is
// released.
const cheapVaults = "-X main.testOnlyWorkFactor=10"

// Build builds static programs into dir: packages by the names that they get.
// Of aileron it takes the one that was built for all suites, where there is
// one; see [ProgramsEnv].
func Build(dir string, packages map[string]string) error {
	for name, pkg := range packages {
		at := filepath.Join(dir, name)
		if all := os.Getenv(ProgramsEnv); all != "" && isAileron(pkg) {
			if err := takeProgram(filepath.Join(all, forTests), at); err != nil {
				return err
			}
			continue
		}
		if err := compile(at, pkg, cheapVaults); err != nil {
			return err
		}
	}
	return nil
}

// BuildReleased builds aileron, whose directory is pkg, as it is released, or
// takes the one that was built for all suites.
func BuildReleased(path, pkg string) error {
	if all := os.Getenv(ProgramsEnv); all != "" {
		return takeProgram(filepath.Join(all, released), path)
	}
	return compile(path, pkg, "")
}

// isAileron reports whether a package, by its directory, is the command.
func isAileron(pkg string) bool {
	dir, err := filepath.Abs(pkg)
	return err == nil && strings.HasSuffix(dir, filepath.Join("cmd", "aileron"))
}

// compile builds one static program, whose package may be the root of a module of its own.
func compile(path, pkg, ldflags string) error {
	module := "."
	if _, err := os.Stat(filepath.Join(pkg, "go.mod")); err == nil {
		module, pkg = pkg, "."
	}
	build := exec.Command("go", "build", "-C", module, "-trimpath", "-ldflags", ldflags, "-o", path, pkg)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", filepath.Base(path), err, out)
	}
	return nil
}

// Run runs a suite with the programs of packages built into a directory that
// goes with it. Its name begins with the suite's; it is given to ready before
// the tests, and clean is called after them, while it is still there.
func Run(m *testing.M, suite string, packages map[string]string, ready func(dir string), clean ...func()) int {
	dir, err := os.MkdirTemp("", suite+"-")
	if err == nil {
		defer os.RemoveAll(dir)
		err = Build(dir, packages)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", suite, err)
		return 1
	}
	ready(dir)
	Widen(boxesAtOnce)
	code := m.Run()
	for _, f := range clean {
		f()
	}
	return code
}

// boxesAtOnce is how many parallel tests a suite of boxes runs at once. A box
// waits for its engine far more than it computes, so that they may be more than
// the cores.
const boxesAtOnce = 6

// Widen makes n parallel tests run at once, unless -parallel is given or it was
// called before. It must be called before the tests are run.
func Widen(n int) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if given {
		return
	}
	if err := flag.Set("test.parallel", strconv.Itoa(n)); err != nil {
		panic(err) // no test program has no such flag
	}
}

// Connector is one that a person installs, with the secret that is bound to
// it.
type Connector struct {
	Dir, FQN, Secret string
	User             string // of basic credentials
}

// Bind installs connectors into a home and binds their secrets, with the built
// program. Opening a vault is slow on purpose: make one home and copy it.
func Bind(program, home, passphrase string, connectors ...Connector) error {
	for _, c := range connectors {
		setup := []string{"binding", "setup", c.FQN, "--identity", "work", "--secret-stdin"}
		if c.User != "" {
			setup = append(setup, "--username", c.User)
		}
		for _, args := range [][]string{{"connector", "install", c.Dir, "--yes"}, setup} {
			cmd := exec.Command(program, args...)
			cmd.Env = Env(home, passphrase)
			cmd.Stdin = strings.NewReader(c.Secret + "\n")
			if out, err := cmd.CombinedOutput(); err != nil {
				return fmt.Errorf("aileron %s: %w\n%s", strings.Join(args, " "), err, out)
			}
		}
	}
	return nil
}

// Env is the environment of a person with that home.
func Env(home, passphrase string) []string {
	return append(os.Environ(), "AILERON_HOME="+home, "AILERON_VAULT_PASSPHRASE="+passphrase)
}

// ShareImages shares what tests find in images, by their digests, with the aileron of a home: to look into an image,
// Podman makes a container and starts itself again for each name.
func ShareImages(t testing.TB, home string) {
	t.Helper()
	cache := must.Get(os.UserCacheDir())(t)
	images := filepath.Join(cache, "aileron", "test-images")
	must.Do(t, os.MkdirAll(images, 0o700))
	must.Do(t, os.MkdirAll(filepath.Join(home, "cache"), 0o700))
	must.Do(t, os.Symlink(images, filepath.Join(home, "cache", "images")))
}

// Copy copies a file or a directory as it is.
func Copy(t testing.TB, from, to string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "cp", "-a", from, to).CombinedOutput(); err != nil {
		t.Fatalf("copy %s: %v\n%s", from, err, out)
	}
}

// Finish runs a command to its end, which must come within patience, and
// returns its output.
func Finish(t testing.TB, cmd *exec.Cmd, patience time.Duration) (out, errs string, code int) {
	t.Helper()
	var o, e bytes.Buffer
	cmd.Stdout, cmd.Stderr = &o, &e
	must.Do(t, cmd.Start())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = cmd.Wait() }()
	select {
	case <-ended:
	case <-time.After(patience):
		_ = cmd.Process.Kill()
		<-ended
		t.Fatalf("%v did not end in %v\n%s", cmd.Args, patience, e.String())
	}
	return o.String(), e.String(), cmd.ProcessState.ExitCode()
}

// Rows reads the lines of `aileron audit list --json`. Rows that have all columns must fit the published schema.
func Rows[Row any](t testing.TB, lines string) []Row {
	t.Helper()
	var rows []Row
	dec := json.NewDecoder(strings.NewReader(lines))
	for {
		var raw json.RawMessage
		if err := dec.Decode(&raw); err == io.EOF {
			return rows
		} else if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(raw, []byte(`"prev_hash"`)) {
			rowschema.Check(t, raw)
		}
		var r Row
		must.Do(t, json.Unmarshal(raw, &r))
		rows = append(rows, r)
	}
}

// Need skips a test that this machine cannot run, or fails it in CI: a run
// that proved nothing must not be green.
func Need(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatal("this needs " + what)
	}
	t.Skip("this needs " + what)
}

// Has reports whether a program is installed that scripts/prepare --tests
// installs. In CI a test fails that would do without it.
func Has(t testing.TB, program string) bool {
	t.Helper()
	_, err := exec.LookPath(program)
	if err != nil && os.Getenv("CI") != "" {
		t.Fatalf("%s is not installed; scripts/prepare --tests does that", program)
	}
	return err == nil
}

// responds are the engines that have responded to this process.
var responds sync.Map

// NeedEngine is Need where an engine, podman or docker, does not respond. One that has is not asked again.
func NeedEngine(t testing.TB, engine string) {
	t.Helper()
	if _, known := responds.Load(engine); known {
		return
	}
	cmd := exec.CommandContext(t.Context(), engine, "version")
	cmd.Env = EngineEnv(t)
	out, err := cmd.CombinedOutput()
	if err != nil {
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		Need(t, fmt.Sprintf("%s: scripts/prepare --tests installs it, and scripts/with-docker runs Docker's daemon (%v: %s)",
			engine, err, lines[len(lines)-1]))
	}
	responds.Store(engine, true)
}

// EngineEnv is the environment for Podman's own command line, which with it
// runs even where its defaults fail; see docs/sandbox.md.
func EngineEnv(t testing.TB) []string {
	t.Helper()
	conf := filepath.Join(t.TempDir(), "containers.conf")
	must.Do(t, os.WriteFile(conf, []byte(PodmanConf()), 0o600))
	return append(os.Environ(), "CONTAINERS_CONF="+conf)
}

// PodmanConf is the containers.conf of EngineEnv.
func PodmanConf() string {
	text := "[containers]\ndefault_ulimits = [\"nofile=4096:4096\", \"nproc=4096:4096\"]\n[engine]\ncgroup_manager = " +
		"\"cgroupfs\"\nevents_logger = \"file\"\n"
	if _, err := exec.LookPath("runc"); err == nil {
		text += "runtime = \"runc\"\n"
	}
	return text
}

// Patience is as long as only a defect takes: what a quiet machine does in a
// second takes half a minute where twenty others want its processors. Nothing
// is judged by it but that it did not end.
var Patience = must.Patience(10 * time.Minute)

// WaitFor waits until done, for as long as only a defect takes.
func WaitFor(t testing.TB, what string, done func() bool) {
	t.Helper()
	if !Poll(Patience, 20*time.Millisecond, done) {
		t.Fatalf("it did not happen in %v: %s", Patience, what)
	}
}

// longestPause is the longest that Poll waits between two calls that take long.
const longestPause = time.Second

// Poll calls done until it reports true or patience has passed, with a pause
// between two calls, which is at least twice as long as a call: one that starts
// programs must not take the processor from what it waits for. It reports whether
// done did.
func Poll(patience, pause time.Duration, done func() bool) bool {
	end, next := time.NewTimer(patience), time.NewTimer(pause)
	defer end.Stop()
	defer next.Stop()
	for {
		began := time.Now()
		if done() {
			return true
		}
		next.Reset(max(pause, min(2*time.Since(began), longestPause)))
		select {
		case <-next.C:
		case <-end.C:
			return done()
		}
	}
}
