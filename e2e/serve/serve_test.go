// Package serve starts aileron serve as an operator does: its image beside a gateway and an agent, in containers that
// aileron does not start; and on a disk that becomes full.
package serve

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/e2e/recipes"
	"github.com/ALRubinger/aileron/e2e/stub"
	"github.com/ALRubinger/aileron/spec/store"
)

var binary string // the built aileron: harness.Build

func TestMain(m *testing.M) {
	os.Exit(harness.Run(m, "serve", map[string]string{"aileron": "../../cmd/aileron"},
		func(dir string) { binary = filepath.Join(dir, "aileron") }))
}

const echoDir = "../testdata/connectors/echo"

// pod is the containers of one test, whose names begin with name.
type pod struct {
	t    *testing.T
	name string
	env  []string
}

// podman runs a command of Podman, and returns what it printed.
func (p *pod) podman(args ...string) (string, error) {
	p.t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(p.t.Context()), "podman", args...)
	cmd.Env = p.env
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// must is podman for what only a defect makes fail.
func (p *pod) must(args ...string) string {
	p.t.Helper()
	out, err := p.podman(args...)
	if err != nil {
		logs, _ := p.podman("logs", p.name+"-plane")
		p.t.Fatalf("podman %q: %v\n%s\nplane: %s", args, err, out, logs)
	}
	return out
}

// newPod builds the image, and removes everything when the test ends.
func newPod(t *testing.T) *pod {
	t.Helper()
	harness.NeedEngine(t, "podman")
	p := &pod{t: t, name: fmt.Sprintf("aileron-serve-test-%d", os.Getpid()), env: harness.EngineEnv(t)}
	build := exec.CommandContext(t.Context(), "../../scripts/serve-image", "--binary", binary, "--tag", p.image())
	build.Env = p.env
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the image: %v\n%s", err, out)
	}
	t.Cleanup(func() {
		for _, args := range [][]string{
			{"rm", "-f", "--ignore", "-t", "0", p.name + "-agent"}, // before the gateway, whose network it has
			{"rm", "-f", "--ignore", "-t", "0", p.name + "-gateway", p.name + "-plane"},
			{"volume", "rm", "-f", p.name + "-sockets", p.name + "-public", p.name + "-audit"},
			{"rmi", "-f", p.image()},
		} {
			if out, err := p.podman(args...); err != nil {
				t.Errorf("podman %q: %v\n%s", args, err, out)
			}
		}
	})
	return p
}

func (p *pod) image() string { return "localhost/" + p.name + ":1" }

// granted writes a directory of grants and the file of its secret.
func granted(t *testing.T, secret string) (grants, file string) {
	t.Helper()
	dir := must.OpenDir(t)
	grants, file = filepath.Join(dir, "grants"), filepath.Join(dir, "token")
	must.Do(t, os.Mkdir(grants, 0o755))
	harness.Copy(t, echoDir, filepath.Join(grants, "echo"))
	document := fmt.Sprintf("[[connector]]\ndir = \"echo\"\nhash = %q\nsecret.file = \"/run/secrets/token\"\n",
		must.Get(store.Read(echoDir))(t).Hash)
	must.Do(t, os.WriteFile(filepath.Join(grants, "grants.toml"), []byte(document), 0o644))
	must.Do(t, os.WriteFile(file, []byte(secret), 0o644))
	must.Do(t, exec.CommandContext(t.Context(), "chmod", "-R", "a+rX", dir).Run())
	return grants, file
}

// The three containers of examples/compose: the plane has a network and the secret, the agent neither. Its requests
// are served with the proxy's variables and without, and nothing else leads out.
func TestTheImageServesAnAgentThatOthersStart(t *testing.T) {
	p := newPod(t)
	recipes.Need(t, "podman", recipes.Base())
	secret := harness.NewSecret()
	origin := stub.Start(t, stub.Script{Token: secret})
	grants, file := granted(t, secret)
	must.Do(t, os.Chmod(origin.Roots, 0o644))
	hardened := []string{"--read-only", "--cap-drop", "all", "--security-opt", "no-new-privileges"}
	run := func(name string, args ...string) {
		t.Helper()
		p.must(append(append([]string{"run", "-d", "--name", p.name + "-" + name}, hardened...), args...)...)
	}
	run("plane", "--network", "host", "-v", p.name+"-sockets:/run/aileron", "-v", p.name+"-public:/run/aileron-public",
		"-v", p.name+"-audit:/var/lib/aileron", "-v", grants+":/etc/aileron/grants:ro", "-v", file+":/run/secrets/token:ro",
		"-v", origin.Roots+":/roots.pem:ro", p.image(), "serve", "--dir", "/run/aileron", "--public", "/run/aileron-public",
		"--grants", "/etc/aileron/grants", "--resolve", stub.Echo+":443:"+origin.Addr, "--upstream-ca", "/roots.pem")
	harness.WaitFor(t, "the plane serves", func() bool {
		_, err := p.podman("exec", p.name+"-plane", "/aileron", "serve", "--check", "--dir", "/run/aileron")
		return err == nil
	})
	run("gateway", "--network", "none", "--user", "0:0", "--cap-add", "NET_ADMIN,SETUID,SETGID,SETPCAP",
		"-v", p.name+"-sockets:/run/aileron:ro", p.image(), "gateway")
	harness.WaitFor(t, "the gateway is ready", func() bool { return p.must("logs", p.name+"-gateway") == "ready\n" })
	resolv := filepath.Join(must.OpenDir(t), "resolv.conf")
	must.Do(t, os.WriteFile(resolv, []byte("nameserver 127.0.0.1\n"), 0o644))
	run("agent", "--network", "container:"+p.name+"-gateway", "-v", p.name+"-public:/etc/aileron/proxy:ro",
		"-v", resolv+":/etc/resolv.conf:ro", recipes.Base().Ref, "sleep", "infinity")
	agent := func(line string) string {
		out, _ := p.podman("exec", p.name+"-agent", "sh", "-c", ". /etc/aileron/proxy/env; "+line)
		return out
	}
	url := "https://" + stub.Echo + "/echo"
	for name, line := range map[string]string{
		"with the proxy's variables": "curl -sS " + url,
		"without":                    `env -u HTTPS_PROXY -u https_proxy curl -sS ` + url,
	} {
		out := agent(line)
		if !strings.Contains(out, `"path":"/echo"`) || strings.Contains(out, secret) {
			t.Errorf("%s: %s", name, out)
		}
		if seen := origin.Seen(); len(seen) == 0 || seen[len(seen)-1].Auth() != "Bearer "+secret {
			t.Errorf("%s: the service saw %+v", name, seen)
		}
	}
	for line, want := range map[string]string{
		"curl -sS https://elsewhere.example/":                                        "host_not_allowed",
		"curl -sS --noproxy '*' -k https://" + origin.Addr + "/echo || echo refused": "refused",
		"ls /run/aileron /var/lib/aileron /run/secrets 2>&1 || echo none":            "none",
	} {
		if out := agent(line); !strings.Contains(out, want) || strings.Contains(out, secret) {
			t.Errorf("%s: %s; want %s", line, out, want)
		}
	}
	p.must("stop", "-t", "60", p.name+"-plane")
	code := strings.TrimSpace(p.must("inspect", "-f", "{{.State.ExitCode}}", p.name+"-plane"))
	logs := p.must("logs", p.name+"-plane")
	if lines := strings.Split(strings.TrimSpace(logs), "\n"); code != "0" ||
		!strings.Contains(lines[len(lines)-1], `"msg":"ended","cause":"terminated"`) || strings.Contains(logs, secret) {
		t.Errorf("the plane ended with %s:\n%s", code, logs)
	}
	if out := agent("curl -sS " + url); strings.Contains(out, `"path"`) {
		t.Errorf("without a plane the agent gets %s", out)
	}
}

// What is granted on paper is what the example says: its compose file names the paths of the image.
func TestTheExampleNamesTheImagesPaths(t *testing.T) {
	compose := must.Get(os.ReadFile("../../examples/compose/compose.yaml"))(t)
	dockerfile := must.Get(os.ReadFile("../../examples/compose/Dockerfile"))(t)
	for _, path := range []string{"/run/aileron", "/run/aileron-public", "/etc/aileron/grants"} {
		if !bytes.Contains(compose, []byte(":"+path)) || !bytes.Contains(dockerfile, []byte(`"`+path+`"`)) {
			t.Errorf("the example does not mount %s, or the image does not use it", path)
		}
	}
}
