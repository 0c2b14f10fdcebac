package seal

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/e2e/recipes"
	"github.com/ALRubinger/aileron/sandbox"
)

// withoutEngines returns the words before a command that run it where no engine is installed, and none listens.
const withoutEngines = `mount -t tmpfs none /run; mount -t tmpfs none /mnt; mkdir /mnt/bin; for p in sh id env cat; do
	ln -s "$(command -v $p)" /mnt/bin/$p; done; export PATH=/mnt/bin DOCKER_HOST= CONTAINER_HOST= XDG_RUNTIME_DIR=; `

// onHost makes the person one of a host that a script changes, as root, before aileron begins.
func (p *person) onHost(script string, as ...string) {
	p.as = append([]string{"unshare", "--mount", "--propagation", "private", "sh", "-euc", script + `exec "$@"`, "-"},
		as...)
}

// expects runs a command, and requires its exit code, its output, and texts that it prints.
func (p *person) expects(code int, out string, texts []string, args ...string) {
	p.t.Helper()
	r := p.run(args...)
	if r.code != code || r.out != out {
		p.t.Errorf("%q: exit %d, %q; want %d, %q\n%s", args, r.code, r.out, code, out, r.err)
	}
	for _, text := range texts {
		if !strings.Contains(r.err, text) {
			p.t.Errorf("%q: %q is not printed:\n%s", args, text, r.err)
		}
	}
}

// Where no engine is installed, auto is native, and says so: not for what an image would have, and never unsealed. One
// that is installed and does not respond is an error that offers it.
func TestAutoIsNativeWhereNoEngineIsInstalled(t *testing.T) {
	p := newPerson(t, sandbox.Native, 0, must.OpenDir(t))
	run := func(more ...string) []string {
		return append(append([]string{"sandbox", "run", "--dir", p.project}, more...), "--", "sh", "-c",
			"echo $AILERON_SANDBOX_RUNTIME")
	}
	const line = "aileron: neither Podman nor Docker is installed: the sandbox is native (--sandbox=native)"
	p.onHost(withoutEngines)
	p.expects(0, "native\n", []string{line, "weaker than a container"}, run()...)
	p.expects(1, "", []string{"podman: it is not installed", "docker: no daemon runs"}, run("--packages", "jq")...)
	p.expects(1, "", []string{"add packages: a native sandbox has this host's programs", "hint: install jq on this host"},
		run("--sandbox=native", "--packages", "jq")...)
	p.expects(127, "", []string{line, "run claude in the sandbox", "hint: ", "install Podman: apt-get install podman"},
		"launch", "--dir", p.project, "claude")
	must.Do(t, os.WriteFile(filepath.Join(p.project, "aileron.Dockerfile"), []byte("ARG BASE\nFROM ${BASE}\n"), 0o644))
	p.expects(1, "", []string{"a native sandbox has this host's programs", "--dockerfile=off"}, run("--sandbox=native")...)
	p.expects(0, "native\n", nil, run("--sandbox=native", "--dockerfile=off")...)
	must.Do(t, os.Remove(filepath.Join(p.project, "aileron.Dockerfile")))

	p.onHost(withoutEngines + "export DOCKER_HOST=unix:///run/none; ")
	p.expects(1, "", []string{"find an engine", "hint: this host can do without an engine", "--sandbox=native"}, run()...)

	const off = "unshare --user --map-root-user sh -c 'echo 0 >/proc/sys/user/max_user_namespaces && exec \"$@\"' - "
	p.onHost(strings.ReplaceAll(withoutEngines, "sh id env", "sh unshare id env"), "sh", "-c", "exec "+off+`"$@"`, "-")
	p.expects(1, "", []string{line, "user.max_user_namespaces is 0",
		"hint: sudo sysctl user.max_user_namespaces=15000; or install Podman: apt-get install podman"}, run()...)
	r := p.run("doctor")
	for _, want := range []string{"neither Podman nor Docker responds", "user.max_user_namespaces is 0",
		"sudo sysctl user.max_user_namespaces=15000"} {
		if !strings.Contains(r.out+r.err, want) {
			t.Errorf("doctor prints no %q:\n%s%s", want, r.out, r.err)
		}
	}
	p.onHost(withoutEngines)
	r = p.run("doctor")
	for _, want := range []string{"warn  engine      neither Podman nor Docker is installed",
		"works without an engine, for agents that are installed on"} {
		if !strings.Contains(r.out+r.err, want) {
			t.Errorf("doctor prints no %q:\n%s%s", want, r.out, r.err)
		}
	}
	key := filepath.Join(filepath.Dir(p.project), "key")
	must.Do(t, os.WriteFile(key, []byte("sk-ant-"+strings.Repeat("x", 40)+"\n"), 0o600))
	p.expects(0, "aileron launch claude\n", []string{"neither Podman nor Docker is installed: sandboxes are native",
		"aileron: claude is set up; start it in the directory of your project:"},
		"setup", "claude", "--yes", "--key-file", key)
}

// A container may not make the sandbox's namespaces, or has no whole /proc: it is refused with the reason, and nothing
// runs.
func TestANativeSandboxInAContainerIsRefused(t *testing.T) {
	for _, c := range []struct{ name, engine string }{{"podman", "podman"}, {"docker", "docker"}, {"rootless", "podman"}} {
		t.Run(c.name, func(t *testing.T) {
			harness.PodmanIsEnough(t, c.engine)
			harness.NeedEngine(t, c.engine)
			if c.name == "rootless" {
				harness.Turn(t)
			}
			image := recipes.Base()
			recipes.Need(t, c.engine, image)
			p := newPerson(t, sandbox.Native, 0, must.OpenDir(t))
			dir := filepath.Dir(p.project)
			var as []string
			if c.name == "rootless" {
				as = harness.Rootless(t, dir)
				for _, pair := range harness.EngineEnv(t) { // settings of this machine, which the user cannot read
					if conf, ok := strings.CutPrefix(pair, "CONTAINERS_CONF="); ok {
						must.Do(t, os.WriteFile(filepath.Join(dir, "conf"), must.Get(os.ReadFile(conf))(t), 0o644))
						as = append(as, "env", "CONTAINERS_CONF="+filepath.Join(dir, "conf"))
					}
				}
				harness.HandOver(t, []string{image.Ref}, c.engine, as...)
				id := strconv.Itoa(harness.RootlessUser)
				must.Get(exec.Command("chown", "-R", id+":"+id, p.home, p.project).Output())(t)
			}
			script := `cp -r /d/vault /tmp/home; export AILERON_HOME=/tmp/home AILERON_VAULT_PASSPHRASE='` + passphrase + `'
				aileron sandbox run --sandbox=native --dir /d/p -- sh -c 'echo it ran; touch ran'; echo "exit $?"
				aileron doctor | grep native`
			words := append(as, c.engine, "run", "--rm", "--network=none", "--user=0", "-v", dir+":/d", "-v",
				program("aileron")+":/usr/local/bin/aileron:ro", "--entrypoint", "sh", image.Ref, "-c", script)
			cmd := exec.Command(words[0], words[1:]...)
			cmd.Env = append(os.Environ(), harness.EngineEnv(t)...)
			r := finish(t, cmd)
			if _, err := os.Stat(filepath.Join(p.project, "ran")); err == nil || !strings.HasPrefix(r.out, "exit 1\n") {
				t.Errorf("it ran: %v; %q\n%s", err == nil, r.out, r.err)
			}
			for _, want := range []string{"seal the sandbox without an engine: this is a container, whose engine does not let",
				"hint: run aileron on the host of this container, or with an engine"} {
				if !strings.Contains(r.err, want) {
					t.Errorf("%q is not printed:\n%s", want, r.err)
				}
			}
			if !strings.Contains(r.out, "this is a container") {
				t.Errorf("doctor prints\n%s", r.out)
			}
		})
	}
}

// A project may be below any directory, also one that the sandbox has nothing else of.
func TestAProjectBelowAnyDirectoryOfTheHost(t *testing.T) {
	for _, c := range []struct{ below, place string }{
		{"/srv/deep", "/srv/deep/p"}, {"/opt/vendor", "/opt/vendor/p"}, {"/var/lib/work", "/var/lib/work/p"},
		{"/mnt/data", "/mnt/data/p"}, {"/newroot/work", "/newroot/work/p"}, {"/home/other", "/home/other/p"},
		{"/usr/src/work", ""}, {"/run/user/1", ""},
	} {
		t.Run(strings.ReplaceAll(c.below[1:], "/", " "), func(t *testing.T) {
			p := nativeUser(t)
			id := strconv.Itoa(harness.RootlessUser)
			top := filepath.Dir(c.below)
			made := ""
			if top == "/newroot" { // is not there
				must.Do(t, os.MkdirAll(top, 0o755))
				t.Cleanup(func() { _ = os.Remove(top) })
			}
			made = "mount -t tmpfs -o mode=755 none " + top + "; mkdir -p " + c.below + "/p; echo text >" + c.below +
				"/p/file; chown -R " + id + ":" + id + " " + c.below + "; "
			as := p.as
			p.onHost(made, as...)
			at := c.below + "/p"
			want := "text\n" + sandbox.Workspace + "\n"
			if c.place != "" {
				want = "text\n" + c.place + "\n"
			}
			texts := []string{"weaker than a container"}
			if c.place == "" {
				texts = append(texts, "the project is at "+sandbox.Workspace+" alone")
			}
			p.expects(0, want, texts, "sandbox", "run", "--sandbox=native", "--dir", at, "--", "sh", "-c",
				"cat file; pwd; touch made; ls "+top+"/* >/dev/null 2>&1 || :")
		})
	}
}

// A user of a service, 65534, has no home and no shell, and may still have a sandbox.
func TestAUserWithoutAHomeHasANativeSandbox(t *testing.T) {
	p := nativeUser(t)
	for _, path := range []string{p.home, p.project, p.roots} {
		must.Get(exec.Command("chown", "-R", "65534:65534", path).Output())(t)
	}
	p.as = []string{"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", "env",
		"HOME=/nonexistent", "DOCKER_HOST=", "XDG_RUNTIME_DIR="}
	p.expects(0, "65534\n", nil, "sandbox", "run", "--sandbox=native", "--dir", p.project, "--",
		"sh", "-c", "touch made; id -u")
}
