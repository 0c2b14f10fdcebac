package e2e

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/e2e/stub"
)

func TestCurlInABoxGetsTheCredentialAndNeverSeesIt(t *testing.T) {
	t.Parallel()
	u := newUser(t, stub.Script{}, "github", "echo")
	r := u.box(`
		set -e
		curl -sSi https://api.github.com/user
		curl -sSi https://api.echo.example/echo
		curl -sS https://api.echo.example/echo-chunks
		env -u HTTPS_PROXY -u https_proxy curl -sS --noproxy '*' https://api.github.com/user
		curl -sS https://api.github.com/orgs/none; curl -sS https://evil.example/x
		curl -sS -H "Authorization: Bearer $AILERON_TOKEN" $AILERON_API_URL/session
		curl -sS $AILERON_API_URL/audit -H "Authorization: Bearer $AILERON_TOKEN"
		cat /etc/aileron/tools.txt; echo "GH_TOKEN=$GH_TOKEN"; env
		cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\0' '\n'
		grep -c . /etc/ssl/certs/ca-certificates.crt; echo done > made-in-the-box; exit 7`)
	if r.code != 7 {
		t.Fatalf("exit %d\n%s%s", r.code, r.out, r.err)
	}
	contains(t, "the output", r.out, "octo-stand-in", "x-echo-authorization: Bearer "+strings.Repeat("*", len(secret)),
		`"Authorization":"Bearer `+strings.Repeat("*", len(secret)),
		"cut at 20: Bearer "+strings.Repeat("*", len(secret))+" end",
		`"reason":"operation_not_matched"`, `"reason":"host_not_allowed"`, `"reason":"owner_only"`,
		`"operation":"user.get"`, "GH_TOKEN=placeholder")
	if strings.Contains(r.out+r.err, secret[:16]) {
		t.Error("the secret is in the output")
	}
	if data, err := os.ReadFile(filepath.Join(u.project, "made-in-the-box")); err != nil || string(data) != "done\n" {
		t.Errorf("the project's file: %q, %v", data, err)
	}
	for _, s := range u.origin.Seen() {
		if s.Host != stub.GitHub && s.Host != stub.Echo || s.Auth() != "Bearer "+secret || s.Path == "/orgs/none" {
			t.Errorf("the stub saw %+v", s)
		}
	}
	if n := len(u.origin.Seen()); n != 4 {
		t.Errorf("the stub saw %d requests, want 4", n)
	}
	if n := len(u.rows("--decision", "proxied")); n != 4 {
		t.Errorf("%d proxied rows, want 4", n)
	}
	if n := len(u.rows("--decision", "rejected")); n != 3 {
		t.Errorf("%d rejected rows, want 3: %v", n, u.rows("--decision", "rejected"))
	}
	u.must("audit", "verify")
	if left := u.leftovers(); left != "" {
		t.Errorf("containers are left: %s", left)
	}
	// The secret is sealed at rest, and nowhere else on this disk.
	if out, _ := exec.Command("grep", "-rlF", secret, u.home).CombinedOutput(); len(out) > 0 {
		t.Errorf("the secret is in %s", out)
	}
}

func TestTheExitCodeIsTheCommands(t *testing.T) {
	t.Parallel()
	u := newUser(t, stub.Script{}) // the exit codes of boxes: see the tests around this one
	if r := u.run("run", "--", "sh", "-c", "exit 9"); r.code != 9 {
		t.Errorf("on the host: exit %d, want 9", r.code)
	}
	if r := u.run("run", "--", "sh", "-c", "kill -KILL $$"); r.code != 137 {
		t.Errorf("on the host, killed: exit %d, want 137", r.code)
	}
}

func TestASecondInterruptEndsWhatIgnoresTheFirst(t *testing.T) {
	t.Parallel()
	needPodman(t)
	u := newUser(t, stub.Script{})
	cmd := u.command("sandbox", "run", "--sandbox=podman", "--dir", u.project, "--", "sh", "-c",
		`trap 'echo no >> ignored' INT; echo up > up; while :; do sleep 0.1; done`)
	must.Do(t, cmd.Start())
	waitFor(t, u.made("up"))
	_ = cmd.Process.Signal(syscall.SIGINT)
	waitFor(t, u.made("ignored"))
	_ = cmd.Process.Signal(syscall.SIGINT)
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 137 {
		t.Errorf("exit %d, want 137", code)
	}
	if left := u.leftovers(); left != "" {
		t.Errorf("containers are left: %s", left)
	}
}

// A session of another suite, on the same engine, may remove the containers before prune does: then another is tried.
func TestAKilledSessionKeepsItsIntentAndIsSwept(t *testing.T) {
	t.Parallel()
	needPodman(t)
	const tries = 10
	for range tries {
		if killedAndPruned(t) {
			return
		}
		t.Log("a session of another suite cleaned up before prune")
	}
	t.Errorf("in none of %d tries did prune remove the containers", tries)
}

// killedAndPruned kills a session and its reaper, and requires that the log has what it did, and that nothing of it is
// left after prune. It reports whether prune had something to remove.
func killedAndPruned(t *testing.T) (pruned bool) {
	t.Helper()
	u := newUser(t, stub.Script{}, "echo")
	cmd := u.command(append(append([]string{"sandbox", "run", "--sandbox=podman", "--dir", u.project}, u.reach()...), "--",
		"curl", "-sS", "https://api.echo.example/stall")...)
	must.Do(t, cmd.Start())
	waitFor(t, func() bool { return len(u.origin.Seen()) == 1 })
	killReaper(t, cmd.Process.Pid)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	r := u.run("sandbox", "prune")
	pruned = r.code == 0 && !strings.Contains(r.err, "removed 0 containers")
	close(u.origin.Release)
	rows := u.rows("--event", "connector.proxy.started")
	if len(rows) != 1 || rows[0]["operation"] != "stall" {
		t.Errorf("intent rows: %v", rows)
	}
	if n := len(u.rows("--decision", "proxied")); n != 0 {
		t.Errorf("%d outcome rows of a killed process", n)
	}
	u.must("audit", "verify")
	contains(t, "session list", u.must("session", "list").out, "unclean")
	// Prune leaves what another process removes just now.
	waitFor(t, func() bool { return u.run("sandbox", "prune").code == 0 && u.leftovers() == "" })
	return pruned
}

// killReaper kills the process that removes the sandbox of an aileron that was killed.
func killReaper(t *testing.T, aileron int) {
	t.Helper()
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		args, _ := os.ReadFile(file)
		status, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "status"))
		if !strings.Contains(string(args), "\x00warden\x00") ||
			!strings.Contains(string(status), fmt.Sprintf("\nPPid:\t%d\n", aileron)) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err == nil {
			err = syscall.Kill(pid, syscall.SIGKILL)
		}
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Fatalf("the process %d has no reaper", aileron)
}

func TestAuditTailFollowsAsItHappens(t *testing.T) {
	t.Parallel()
	u := newUser(t, stub.Script{}, "github")
	tail := u.command("audit", "tail", "-f", "--json", "--decision", "proxied")
	out, err := tail.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	must.Do(t, tail.Start())
	lines := make(chan string, 4)
	go func() {
		s := bufio.NewScanner(out)
		for s.Scan() {
			lines <- s.Text()
		}
	}()
	u.must(append(append([]string{"run"}, u.reach()...), "--", "curl", "-sS", "https://api.github.com/user")...)
	select {
	case line := <-lines:
		contains(t, "the followed row", line, `"operation":"user.get"`, `"decision":"proxied"`)
	case <-time.After(harness.Patience):
		t.Error("no row came")
	}
	_ = tail.Process.Signal(syscall.SIGINT)
	_ = tail.Wait()
}

func waitFor(t *testing.T, done func() bool) {
	t.Helper()
	harness.WaitFor(t, "what the test waits for", done)
}

func TestAStartThatTheImageForbidsIsWrittenDown(t *testing.T) {
	t.Parallel()
	needPodman(t)
	u := newUser(t, stub.Script{})
	for command, code := range map[string]int{"no-such-command": 127, "/etc/passwd": 126} {
		r := u.run("sandbox", "run", "--sandbox=podman", "--dir", u.project, "--", command)
		if r.code != code || r.out != "" || !strings.Contains(r.err, command) {
			t.Errorf("%s: exit %d, %q, %q; want %d and its name", command, r.code, r.out, r.err, code)
		}
	}
	rows := u.rows("--event", "sandbox.proxy.disabled")
	for _, row := range rows {
		if row["reason"] != "preflight_failed" || row["decision"] != "disabled" || row["source"] != "launcher" {
			t.Errorf("the row is %v", row)
		}
	}
	if len(rows) != 2 {
		t.Errorf("%d rows of sandbox.proxy.disabled, want 2", len(rows))
	}
}

func TestAProjectThatIsAileronsHomeIsRefused(t *testing.T) {
	t.Parallel()
	needPodman(t)
	u := newUser(t, stub.Script{}, "echo")
	for _, dir := range []string{u.home, filepath.Join(u.home, "vault"), filepath.Join(u.home, "store")} {
		r := u.run("sandbox", "run", "--sandbox=podman", "--dir", dir, "--", "true")
		if r.code != 1 || !strings.Contains(r.err, "aileron's own home") || !strings.Contains(r.err, "--dir") {
			t.Errorf("--dir %s: exit %d, %q; want a refusal with its hint", dir, r.code, r.err)
		}
	}
	if r := u.run("sandbox", "run", "--sandbox=podman", "--dir", "/", "--", "true"); r.code != 1 ||
		!strings.Contains(r.err, "must not have") {
		t.Errorf("--dir /: exit %d, %q; want a refusal", r.code, r.err)
	}
}

// Where a stranger stands when he types his first launch: in his own home.
func TestAileronsHomeIsEmptyInABoxOfAProjectAroundIt(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{"podman", "docker"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			harness.PodmanIsEnough(t, engine)
			u := newUser(t, stub.Script{}, "echo")
			u.engine, u.project = engine, filepath.Dir(u.home)
			r := u.box(`
				ls; echo "in it:" h/*; find h
				curl -sS --max-time 5 --unix-socket h/sessions/$AILERON_SESSION_ID/control.sock http://x/v1/session
				touch h/x; rmdir h; mv h g; umount h
				curl -sS https://api.echo.example/echo; echo mine > mine`)
			if r.code != 0 || strings.Contains(r.out, "vault") || strings.Contains(r.out, "audit.db") ||
				!strings.Contains(r.out, "in it: h/*\nh\n") {
				t.Errorf("exit %d\n%s%s", r.code, r.out, r.err)
			}
			contains(t, "the answer", r.out, "Bearer ****")
			if _, err := os.Stat(filepath.Join(u.home, "vault")); err != nil {
				t.Error(err)
			}
			if data, err := os.ReadFile(filepath.Join(u.project, "mine")); err != nil || string(data) != "mine\n" {
				t.Errorf("the project has %q, %v", data, err)
			}
		})
	}
}

func TestABoxStartsUnderAnyUmask(t *testing.T) {
	t.Parallel()
	needPodman(t)
	u := newUser(t, stub.Script{}, "echo")
	if err := os.Chmod(u.project, 0o777); err != nil { // so that the box is another user
		t.Fatal(err)
	}
	args := append(append([]string{"sandbox", "run", "--sandbox=podman", "--read-only", "--dir", u.project}, u.reach()...),
		"--", "curl", "-sS", "https://api.echo.example/echo")
	cmd := u.command(args...)
	cmd.Path, cmd.Args = "/bin/sh", append([]string{"sh", "-c", `umask 077; exec "$0" "$@"`, binary}, args...)
	r := finish(t, cmd)
	if r.code != 0 {
		t.Errorf("exit %d\n%s", r.code, r.err)
	}
	contains(t, "the answer", r.out, "Bearer ****")
}
