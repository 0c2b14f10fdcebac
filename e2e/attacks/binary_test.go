package attacks

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/harness"
)

// TestTheBinaryHolds runs cases of each kind against the program as people
// run it, with its own store, vault, log and standard error.
func TestTheBinaryHolds(t *testing.T) {
	s, stop := startBinary(t)
	want := []string{"LEK-01", "LEK-02", "LEK-13", "LEK-17", "LEK-18", "LEK-20", "LEK-38", "SMG-01", "SMG-11", "SMG-14",
		"SMG-22", "SMG-23", "SMG-25",
		"PTH-01", "PTH-02", "PTH-20", "PTH-22", "AUT-01", "AUT-05", "AUT-23", "HST-01", "HST-02", "HST-07", "CRD-01",
		"CRD-05", "CRD-06", "CRD-22", "UPG-04",
		"RED-01", "CON-01", "AUD-01"}
	for _, cat := range suite() {
		for _, a := range cat.cases {
			if slices.Contains(want, a.id) && a.f == nil {
				t.Run(a.id, func(t *testing.T) { report(t, a, runCase(t, s, a)) })
			}
		}
	}
	stop()
	t.Run("hygiene", func(t *testing.T) {
		searchFiles(t, s)
	})
}

// builtBinary builds the program once.
var builtBinary = sync.OnceValues(func() (string, error) {
	at := filepath.Join(on.dir, "aileron")
	return at, harness.BuildReleased(at, "../../cmd/aileron")
})

// startBinary starts `aileron proxy` in a furnished home.
func startBinary(t *testing.T, env ...string) (*subject, func()) {
	t.Helper()
	s, cmd, said := launchBinary(t, env)
	stop := sync.OnceFunc(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		killed := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
		if err := cmd.Wait(); err != nil {
			t.Errorf("aileron proxy ended: %v\n%s", err, said.bytes())
		}
		killed.Stop()
	})
	t.Cleanup(stop)
	return s, stop
}

// startKillable is startBinary, to be killed without a warning.
func startKillable(t *testing.T) (*subject, func()) {
	t.Helper()
	s, cmd, _ := launchBinary(t, nil)
	kill := sync.OnceFunc(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	t.Cleanup(kill)
	return s, kill
}

// furnished is a home with four of the fixture's connectors, and what they
// are bound to; it is made once and copied, for each passphrase takes a while.
var furnished = sync.OnceValues(func() (string, error) {
	binary, err := builtBinary()
	if err != nil {
		return "", fmt.Errorf("build aileron: %w", err)
	}
	home, err := os.MkdirTemp(on.dir, "furnished-")
	if err != nil {
		return "", err
	}
	run := func(stdin string, args ...string) error {
		cmd := exec.Command(binary, append([]string{"--home", home}, args...)...)
		cmd.Env = append(os.Environ(), "AILERON_VAULT_PASSPHRASE="+passphrase)
		cmd.Stdin = strings.NewReader(stdin)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("aileron %v: %w: %s", args, err, out)
		}
		return nil
	}
	for _, c := range connectors {
		if !slices.Contains([]string{"api", "key", "q", "plain"}, c.name) {
			continue
		}
		if err := run("", "connector", "install", filepath.Join("testdata", "connectors", c.name), "--yes"); err != nil {
			return "", err
		}
		if c.secret == "" {
			continue
		}
		if err := run(on.secrets[c.secret]+"\n", "binding", "setup", "github://attacks/"+c.name, "--identity", "test",
			"--secret-stdin"); err != nil {
			return "", err
		}
	}
	return home, nil
})

func launchBinary(t *testing.T, env []string) (*subject, *exec.Cmd, *safeBuffer) {
	t.Helper()
	from, err := furnished()
	if err != nil {
		t.Fatal(err)
	}
	home, err := os.MkdirTemp(on.dir, "h-")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("cp", "-a", from+"/.", home).CombinedOutput(); err != nil {
		t.Fatalf("copy the home: %v: %s", err, out)
	}
	binary, err := builtBinary()
	if err != nil {
		t.Fatal(err)
	}
	said := &safeBuffer{}
	cmd := exec.Command(binary, "--home", home, "--log-level", "debug", "proxy", "--json", "--upstream-ca", on.rootsFile)
	cmd.Env = append(append(os.Environ(), "AILERON_VAULT_PASSPHRASE="+passphrase), env...)
	cmd.Stderr = said
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	ready, err := harness.StartProxy(cmd)
	if err != nil {
		t.Fatal(err)
	}
	at, err := ready.Proxy()
	if err != nil {
		t.Fatal(err)
	}
	token, _ := at.User.Password()
	trusted, err := ready.Roots()
	if err != nil {
		t.Fatal(err)
	}
	list := func(f audit.Filter) []audit.Row { return harness.AuditRows(t, home, f) }
	return &subject{patience: patience, addr: at.Host, token: token, roots: trusted, logs: said.bytes,
		files: func() []string { return []string{home} },
		rows:  func(after int64) []audit.Row { return list(audit.Filter{AfterSeq: after}) },
		last: func() int64 {
			rows := list(audit.Filter{Limit: 1, Newest: true})
			if len(rows) == 0 {
				return 0
			}
			return rows[0].Seq
		}}, cmd, said
}
