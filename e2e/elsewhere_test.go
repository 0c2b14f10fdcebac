package e2e

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/e2e/recipes"
	"github.com/ALRubinger/aileron/e2e/stub"
	"github.com/ALRubinger/aileron/sandbox"
)

// elsewhere is a person whose engine runs elsewhere, and sees the project and temporary files of this machine.
type elsewhere struct {
	*user
	harness.Elsewhere
}

func newElsewhere(t *testing.T, engine string, script stub.Script, image recipes.Image, bound ...string) elsewhere {
	t.Helper()
	u := newUser(t, script, bound...)
	u.engine = engine
	temporary := must.ShortDir(t)
	recipes.Need(t, "podman", image)
	e := harness.StartElsewhere(t, engine, u.project, temporary)
	t.Setenv("TMPDIR", temporary)
	e.HandOver(t, image.Ref)
	return elsewhere{u, e}
}

// Docker Desktop and podman machine cannot run here. What they are to aileron can: an engine with files, networks and
// processes of its own, of which the API alone is reached. Its sandboxes are sealed like those of one of this machine.
func TestABoxOnAnEngineElsewhereIsSealed(t *testing.T) {
	for _, engine := range []string{"docker", "podman"} {
		t.Run(engine, func(t *testing.T) {
			harness.Turn(t)
			newElsewhere(t, engine, stub.Script{}, recipes.Base(), "echo").isSealed(t)
		})
	}
}

func (u elsewhere) isSealed(t *testing.T) {
	t.Run("a client is served", func(t *testing.T) {
		r := u.box(`set -e
curl -sS https://api.echo.example/echo
env -u HTTPS_PROXY -u https_proxy curl -sS https://api.echo.example/echo
curl -sS "$AILERON_API_URL/session" -H "Authorization: Bearer $AILERON_TOKEN"
head -c 3000000 /dev/zero |
	curl -sS --data-binary @- -o /dev/null -w ' sent %{size_upload}' https://api.echo.example/echo
echo of the sandbox >made
cat /etc/resolv.conf
curl -sS http://host.docker.internal/`)
		if r.code != 0 || strings.Contains(r.out+r.err, secret) || strings.Contains(r.err, "NOT SEALED") {
			t.Errorf("exit %d\n%s%s", r.code, r.out, r.err)
		}
		contains(t, "what is said", r.err, "does not see the session's directory",
			"carried to this host over the engine's API")
		contains(t, "the box's answers", r.out, "Bearer ****", `"hosts":["api.echo.example:443"]`, "nameserver 127.0.0.53",
			"sent 3000000", "the host host.docker.internal:80 is not allowed")
		if made := string(must.Get(os.ReadFile(filepath.Join(u.project, "made")))(t)); made != "of the sandbox\n" {
			t.Errorf("the project's file has %q", made)
		}
		started := u.rows("--event", "session.started")
		if fields, _ := started[len(started)-1]["fields"].(map[string]any); fields["sealed"] == false {
			t.Errorf("session.started has the fields %v", fields)
		}
		if left := u.Left(t); left != "" {
			t.Errorf("left: %s", left)
		}
	})
	t.Run("a port is published", func(t *testing.T) {
		port := harness.FreePort(t)
		ended := make(chan result, 1)
		go func() {
			ended <- u.box(`exec perl -MIO::Socket::INET -e '
$l = IO::Socket::INET->new(LocalAddr => "127.0.0.1:8000", Listen => 5) or die;
open(F, ">listens"); close F;
$c = $l->accept; print $c "HTTP/1.0 200 OK\r\n\r\nof the sandbox"; close $c'`, "--port", fmt.Sprintf("%d:8000", port))
		}()
		harness.WaitFor(t, "the server listens", func() bool {
			_, err := os.Stat(filepath.Join(u.project, "listens"))
			return err == nil
		})
		res, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d", port))
		must.Do(t, err)
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if r := <-ended; err != nil || string(body) != "of the sandbox" || r.code != 0 {
			t.Errorf("the port responds %q, %v; exit %d\n%s", body, err, r.code, r.err)
		}
	})
	t.Run("a project that it does not see is refused", func(t *testing.T) {
		other := filepath.Join(filepath.Dir(u.project), "other")
		must.Do(t, os.Mkdir(other, 0o755))
		r := u.run("sandbox", "run", "--sandbox="+u.engine, "--dir", other, "--json", "--", "true")
		if r.code != 1 || !strings.Contains(r.out+r.err, `"reason":"project_not_shared"`) ||
			!strings.Contains(r.out+r.err, "the project "+other) {
			t.Errorf("exit %d\n%s%s", r.code, r.out, r.err)
		}
	})
	t.Run("a carrier that is killed ends it", func(t *testing.T) {
		u.endsBy(t, "its carrier, and with it the sandbox's only uplink, ended", func(session string) {
			u.Ask(t, "kill", "aileron-"+session+"-carrier")
		})
	})
	t.Run("nothing outlives aileron", func(t *testing.T) {
		u.endsBy(t, "", func(session string) {
			id := u.Ask(t, "inspect", "--format", "{{.Id}}", "aileron-"+session+"-carrier")
			for _, pid := range processesOf(t, session, u.project) { // the second one too, which would remove it
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
			u.Ask(t, "wait", id)
		})
		u.box("true") // the next session removes what is left
		if left := u.Left(t); left != "" {
			t.Errorf("left: %s", left)
		}
	})
	t.Run("a volume that is emptied ends it", func(t *testing.T) {
		u.endsBy(t, "was removed from the volume of the sandbox's sockets", func(session string) {
			u.Ask(t, "run", "--rm", "--network=none", "--user=0", "--entrypoint=rm", "-v",
				"aileron-"+session+"-sockets:/v", sandbox.BaseImage().Ref, "/v/redirect.sock")
		})
	})
}

func TestAnAgentFinishesItsPromptElsewhere(t *testing.T) {
	harness.Turn(t)
	a := prompts["claude"]
	u := newElsewhere(t, "docker", stub.Script{
		Command: "curl -sS https://api.github.com/user | tee out.txt; cat /proc/1/environ >/tmp/found; echo TOOL-RAN",
		Hold:    true,
	}, recipes.Agent(a.agent), a.connector, "github")
	flags := append([]string{"launch", "--sandbox=docker", "--keep=false", "--dir", u.project}, u.reach()...)
	cmd := u.command(append(append(flags, a.agent, "--"), a.args...)...)
	u.finishesItsPrompt(a, cmd, u.searchEngine)
	if left := u.Left(t); left != "" {
		t.Errorf("left: %s", left)
	}
}

// searchEngine searches what the engine knows of a session's containers, and the memory of its carrier, for secrets.
func (u elsewhere) searchEngine() {
	t := u.user.t
	t.Helper()
	boxes, carriers := u.boxes(), 0
	if len(boxes) != 3 {
		t.Errorf("the containers are %q, want a sandbox's, its gateway's and its carrier's", boxes)
	}
	look := func(where, text string) {
		for _, s := range []string{secret[:16], modelKey[:16], passphrase} {
			if strings.Contains(text, s) {
				t.Errorf("%s holds a piece of a secret: %q", where, s)
			}
		}
	}
	for _, box := range boxes {
		look("inspect", u.Ask(t, "inspect", box))
	}
	for _, file := range must.Get(filepath.Glob("/proc/[0-9]*/cmdline"))(t) {
		if args, _ := os.ReadFile(file); string(args) != "/aileron\x00carry-sockets\x00" {
			continue
		}
		carriers++
		dir := filepath.Dir(file)
		mem := must.Get(os.Open(filepath.Join(dir, "mem")))(t)
		defer mem.Close()
		for line := range strings.Lines(string(must.Get(os.ReadFile(filepath.Join(dir, "maps")))(t))) {
			var from, to int64
			if _, err := fmt.Sscanf(line, "%x-%x rw", &from, &to); err == nil && to-from < 1<<30 {
				region := make([]byte, to-from)
				n, _ := mem.ReadAt(region, from)
				look("the carrier's memory", string(region[:n]))
			}
		}
	}
	if carriers == 0 {
		t.Error("no carrier is found")
	}
}

// processesOf returns the processes of aileron whose arguments have the session or the project.
func processesOf(t *testing.T, session, project string) (pids []int) {
	t.Helper()
	for _, file := range must.Get(filepath.Glob("/proc/[0-9]*/cmdline"))(t) {
		args, _ := os.ReadFile(file)
		exe, _ := os.Readlink(filepath.Join(filepath.Dir(file), "exe"))
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		named := strings.Contains(string(args), session) || strings.Contains(string(args), project)
		if err == nil && exe == binary && named {
			pids = append(pids, pid)
		}
	}
	return pids
}

// endsBy runs a box that waits, does something to its session, and expects the box to end for a reason.
func (u elsewhere) endsBy(t *testing.T, why string, do func(session string)) {
	t.Helper()
	ready := filepath.Join(u.project, "ready")
	_ = os.Remove(ready)
	cmd := u.command("sandbox", "run", "--sandbox="+u.engine, "--dir", u.project, "--", "sh", "-c",
		`echo "$AILERON_SESSION_ID" >ready.new; mv ready.new ready; sleep 1000`)
	ended := make(chan result, 1)
	go func() { ended <- finish(t, cmd) }()
	session := ""
	harness.WaitFor(t, "the box runs", func() bool {
		id, _ := os.ReadFile(ready)
		session = strings.TrimSpace(string(id))
		return session != ""
	})
	do(session)
	r := <-ended
	if why == "" {
		return
	}
	if r.code != 1 || !strings.Contains(strings.Join(strings.Fields(r.err), " "), why) {
		t.Errorf("exit %d, and it says %s; want %q", r.code, r.err, why)
	}
	if left := u.Left(t); left != "" {
		t.Errorf("left: %s", left)
	}
}
