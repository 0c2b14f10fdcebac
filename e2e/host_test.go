package e2e

import (
	"debug/elf"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/e2e/stub"
)

func TestProxyServesTheHolderOfTheToken(t *testing.T) {
	t.Parallel()
	u := newUser(t, stub.Script{}, "github")
	ready := u.serve()
	curl := func(args ...string) result {
		return finish(t, exec.Command("curl", append([]string{"-sS", "--max-time", "300"}, args...)...))
	}
	contains(t, "the answer", curl("-x", ready.ProxyURL, "--cacert", ready.CAFile, "https://api.github.com/user").out,
		"octo-stand-in")
	contains(t, "without a token",
		curl("-x", strings.Replace(ready.ProxyURL, "aileron:", "aileron:wrong", 1), "--cacert", ready.CAFile,
			"https://api.github.com/user").err, "407")
	contains(t, "healthz", curl(strings.TrimSuffix(ready.APIURL, "/v1")+"/healthz").out, "ok")
	contains(t, "session list", u.must("session", "list").out, ready.SessionID, "running")

	// A revocation takes effect on the next request, within a second.
	name := strings.TrimSpace(strings.Fields(u.must("binding", "list").out)[0])
	u.must("binding", "revoke", name)
	waitFor(t, func() bool {
		return strings.Contains(curl("-x", ready.ProxyURL, "--cacert", ready.CAFile, "https://api.github.com/user").out,
			"credential_not_bound")
	})
	u.must("session", "stop", ready.SessionID)
	if err := ready.cmd.Wait(); err != nil {
		t.Errorf("proxy: %v", err)
	}
	contains(t, "session list", u.must("session", "list").out, "ended")
}

func TestALockedVaultInjectsNothingUntilItIsUnlocked(t *testing.T) {
	t.Parallel()
	u := newUser(t, stub.Script{}, "github")
	script := `get() { curl -sS https://api.github.com/user; }
		until_says() { for i in $(seq 1000); do get | grep -q "$1" && return; sleep 0.1; done; echo "never said $1"; exit 1; }
		until_says octo-stand-in; touch one; until_says vault_locked; touch two; until_says octo-stand-in`
	cmd := u.command(append(append([]string{"run"}, u.reach()...), "--", "sh", "-c", "cd "+u.project+"; "+script)...)
	done := make(chan result, 1)
	go func() { done <- finish(t, cmd) }()
	waitFor(t, u.made("one"))
	u.must("vault", "lock")
	waitFor(t, u.made("two"))
	u.must("vault", "unlock")
	if r := <-done; r.code != 0 {
		t.Errorf("exit %d\n%s%s", r.code, r.out, r.err)
	}
}

func TestBadInputIsOneErrorWithItsHint(t *testing.T) {
	t.Parallel()
	u := newUser(t, stub.Script{}, "github")
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	broken := filepath.Join(t.TempDir(), "broken")
	_ = os.Mkdir(broken, 0o700)
	_ = os.WriteFile(filepath.Join(broken, "manifest.toml"), []byte("[connector\n"), 0o600)
	_ = os.WriteFile(filepath.Join(broken, "aileron.connector.v1.json"), []byte("{"), 0o600)
	none := filepath.Join(t.TempDir(), "none")
	for _, c := range []struct {
		name string
		args []string
		env  string
		code int
		want string
	}{
		{"unknown agent", []string{"launch", "no-such-agent"}, "", 2, "sandbox run -- CMD"},
		{"no engine", []string{"sandbox", "run", "--sandbox=docker", "--", "true"}, "DOCKER_HOST=unix://" + none, 1,
			"unset DOCKER_HOST"},
		{"unreadable spec", []string{"connector", "install", broken, "--yes"}, "", 1, "manifest.toml"},
		{"wrong passphrase", []string{"run", "--", "true"}, "AILERON_VAULT_PASSPHRASE=wrong-but-long", 1,
			"passphrase is wrong"},
		{"port in use", []string{"proxy", "--listen", busy.Addr().String()}, "", 1, "--listen"},
		{"no such command", []string{"run", "--", "no-such-command"}, "", 127, "no such command"},
		{"unknown flag", []string{"run", "--nonsense"}, "", 2, "nonsense"},
		{"unknown command", []string{"nonsense"}, "", 2, "nonsense"},
		{"bad resolve", []string{"run", "--resolve", "x", "--", "true"}, "", 2, "HOST:PORT:ADDR"},
		{"missing roots", []string{"run", "--upstream-ca", none, "--", "true"}, "", 1, "--upstream-ca"},
		{"no project", []string{"sandbox", "run", "--dir", none, "--", "true"}, "", 1, "--dir"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd := u.command(c.args...)
			if c.env != "" {
				cmd.Env = append(cmd.Env, c.env)
			}
			r := finish(t, cmd)
			said := strings.TrimSpace(r.err)
			if r.code != c.code || !strings.Contains(said, c.want) {
				t.Errorf("exit %d, want %d; said %q, want %q", r.code, c.code, said, c.want)
			}
			problem, hint, hinted := strings.Cut(said, "\n")
			switch {
			case c.name == "unreadable spec": // its faults come first, each on a line of its own
			case !strings.HasPrefix(problem, "aileron: "),
				hinted && (!strings.HasPrefix(hint, "hint: ") || strings.Contains(hint, "\n")):
				t.Errorf("want one line with the error, and at most one with its hint: %q", said)
			}
			if entries, _ := os.ReadDir(filepath.Join(u.home, "sessions")); len(entries) != 0 {
				t.Errorf("a session's directory is left: %v", entries)
			}
		})
	}
}

func TestAFullDiskSendsNothing(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		harness.Need(t, "root, who may mount a small file system to fill")
	}
	u := newUser(t, stub.Script{})
	must.Do(t, os.Mkdir(u.home, 0o700))
	if err := syscall.Mount("tmpfs", u.home, "tmpfs", 0, "size=2m"); err != nil {
		harness.Need(t, "a small file system, which cannot be mounted here: "+err.Error())
	}
	defer func() { _ = syscall.Unmount(u.home, 0) }()
	must.Do(t, harness.Bind(binary, u.home, passphrase, connectors["github"]))
	// A session notices that its disk is full, and that it is not any more, with the next rows that it cannot, and can,
	// move to the log: until then it serves requests, and refuses them.
	const script = `until_says() { for i in $(seq 1000); do curl -sS https://api.github.com/user >out; cat out
			grep -q "$1" out && return; sleep 0.1; done; echo "never said $1"; exit 1; }
		until_says octo-stand-in; dd if=/dev/zero of="$0" bs=1k 2>/dev/null; until_says audit_unavailable
		rm "$0"; until_says octo-stand-in`
	cmd := u.command(append(append([]string{"run"}, u.reach()...), "--", "sh", "-c", script,
		filepath.Join(u.home, "fill"))...)
	cmd.Dir = u.project
	r := finish(t, cmd)
	contains(t, "the output", r.out, "audit_unavailable")
	if n := strings.Count(r.out, "octo-stand-in"); r.code != 0 || n < 2 || n != len(u.origin.Seen()) {
		t.Errorf("exit %d, %d answers, %d requests left:\n%s", r.code, n, len(u.origin.Seen()), r.out)
	}
}

func TestTheBinaryIsStatic(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("ldd", binary).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "not a dynamic executable") {
		t.Errorf("ldd: %v, %s", err, out)
	}
}

func TestTheDemoTellsItsStory(t *testing.T) {
	t.Parallel()
	u := newUser(t, stub.Script{})
	r := u.run("demo", "--sandbox=off")
	if r.code != 0 {
		t.Fatalf("exit %d\n%s%s", r.code, r.out, r.err)
	}
	contains(t, "the demo", r.out+r.err, "the_secret_was_right", "Bearer ****", "operation_not_matched", "NOT sealed",
		"audit events verified")
	needPodman(t)
	r = u.run("demo", "--sandbox=podman")
	if r.code != 0 {
		t.Fatalf("exit %d\n%s%s", r.code, r.out, r.err)
	}
	contains(t, "the demo", r.out+r.err, "sealed sandbox on podman", "ignores the proxy", "3 calls proxied, 2 denied")
}

// What the suites build has cheap vaults, and cannot pass for a release.
func TestTheProgramOfTheTestsIsNoRelease(t *testing.T) {
	t.Parallel()
	u := newUser(t, stub.Script{})
	contains(t, "aileron --version", u.must("--version").out, "for tests only")
	u.must("vault", "init")
	u.must("vault", "unlock")

	released := filepath.Join(t.TempDir(), "aileron")
	must.Do(t, harness.BuildReleased(released, "../cmd/aileron"))
	run := func(args ...string) result {
		cmd := exec.Command(released, args...)
		// Whatever the environment holds, the linker's word is not in it.
		cmd.Env = append(harness.Env(u.home, passphrase), "testOnlyWorkFactor=10", "AILERON_TEST_ONLY_WORK_FACTOR=10")
		return finish(t, cmd)
	}
	if r := run("--version"); strings.Contains(r.out, "test") {
		t.Errorf("a release calls itself %q", r.out)
	}
	if r := run("vault", "unlock"); r.code != 1 ||
		!strings.Contains(r.err, `the work factor "10", and only 16 to 20 are accepted`) {
		t.Errorf("a release opens a vault that the tests made: exit %d, %q", r.code, r.err)
	}
}

// The gateway's container holds nothing but this file: it must need no loader
// and no library.
func TestTheReleaseBuildIsStatic(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "aileron")
	must.Do(t, harness.BuildReleased(path, "../cmd/aileron"))
	f := must.Get(elf.Open(path))(t)
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			t.Errorf("the file has a %v segment", p.Type)
		}
	}
	libraries, err := f.ImportedLibraries()
	if err != nil || len(libraries) != 0 {
		t.Errorf("it needs the libraries %q, %v", libraries, err)
	}
}
