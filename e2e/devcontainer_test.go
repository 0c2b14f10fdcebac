package e2e

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/e2e/recipes"
	"github.com/ALRubinger/aileron/e2e/stub"
)

// composing returns a person whose project has a devcontainer, on an engine.
func composing(t *testing.T, engine string) *user {
	t.Helper()
	return composingFor(t, engine, recipes.Base(), stub.Script{}, "github")
}

// composingFor is composing on an image, with a model that says what a script has, and connectors.
func composingFor(t *testing.T, engine string, on recipes.Image, script stub.Script, connectors ...string) *user {
	t.Helper()
	harness.NeedEngine(t, engine)
	recipes.Need(t, engine, on)
	u := newUser(t, script, connectors...)
	u.engine = engine
	must.Do(t, os.Mkdir(filepath.Join(u.project, ".devcontainer"), 0o755))
	before := u.composedImages()
	t.Cleanup(func() {
		u.must("sandbox", "prune", "--sandbox="+engine, "--state", "--yes")
		for _, name := range u.composedImages() {
			if !slices.Contains(before, name) {
				u.ask("image", "rm", name)
			}
		}
	})
	return u
}

// composedImages returns the names of images that devcontainers have built.
func (u *user) composedImages() []string {
	u.t.Helper()
	var all []string
	for _, name := range []string{"devcontainer-features", "devcontainer"} {
		all = append(all, strings.Fields(u.list("image", "ls", "--format", "{{.Repository}}:{{.Tag}}",
			"localhost/aileron/"+name))...)
	}
	return all
}

// inDevcontainer runs a command of sh in the project.
func (u *user) inDevcontainer(script string, flags ...string) result {
	args := append([]string{"sandbox", "run", "--sandbox=" + u.engine, "--dir", u.project}, u.reach()...)
	return u.run(append(append(args, flags...), "--", "sh", "-c", script)...)
}

// image returns text with the name of the base image in place of BASE.
func image(text string) string { return strings.ReplaceAll(text, "BASE", recipes.Base().Ref) }

// A devcontainer's image, build, variables, places and commands are those of the sandbox, which is as sealed as any.
func TestADevcontainerIsWhatTheSandboxHas(t *testing.T) {
	for _, engine := range []string{"podman", "docker"} {
		t.Run(engine, func(t *testing.T) {
			u := composing(t, engine)
			u.write(".devcontainer/devcontainer.json", `{ // with an image
	"build": {"dockerfile": "Dockerfile", "context": "..", "args": {"WORD": "built"}},
	"remoteEnv": {"PATH": "${containerEnv:PATH}:/opt/web", "A": "${localWorkspaceFolderBasename}"},
	"mounts": ["source=kept,target=/kept,type=volume", "type=tmpfs,target=/scratch"],
	"onCreateCommand": "echo one >>order; curl -sS https://api.github.com/user >user",
	"postCreateCommand": {"a": ["sh", "-c", "echo two >>order"]}, "postStartCommand": "echo three >>order",
}`)
			u.write(".devcontainer/Dockerfile", image("FROM BASE\nARG WORD\nUSER root\nCOPY tool /opt/web/tool\n"+
				"RUN echo $WORD >/opt/word && chmod 0755 /opt/web/tool\nUSER agent\n"))
			u.write("tool", "#!/bin/sh\necho \"$AILERON_SANDBOX_TIER $A $(cat /opt/word) $PWD $(cat order | tr '\\n' ' ')\"\n")
			refused := u.inDevcontainer("true")
			if refused.code != 1 {
				t.Errorf("without consent: exit %d\n%s", refused.code, refused.err)
			}
			contains(t, "the refusal", refused.err, `a person must agree to it first: build the image of ".devcontainer/`)
			name := filepath.Base(u.project)
			r := u.inDevcontainer("tool; echo x >>/kept/x; wc -l </kept/x; grep -c CapEff:.0000000000000000 /proc/self/status",
				"--trust-project")
			want := "devcontainer " + name + " built /workspaces/" + name + " one two three \n1\n1\n"
			if r.code != 0 || r.out != want {
				t.Fatalf("exit %d, %q, want %q\n%s", r.code, r.out, want, r.err)
			}
			if data := must.Get(os.ReadFile(filepath.Join(u.project, "user")))(t); !strings.Contains(string(data), "login") {
				t.Errorf("a command of the devcontainer got %q through the proxy", data)
			}
			// It is known now; the volume is there again, and nothing is built.
			r = u.inDevcontainer("wc -l </kept/x", "--sandbox-build=never")
			if r.code != 0 || strings.TrimSpace(r.out) != "1" {
				t.Errorf("again: exit %d, %q\n%s", r.code, r.out, r.err)
			}
			if left := u.leftovers(); left != "" {
				t.Errorf("left: %s", left)
			}
		})
	}
}

// A volume is the user's from the first start on, at a place that the image lacks too, for any user; one that is
// asked for as read-only is that.
func TestAVolumeOfADevcontainerIsTheUsers(t *testing.T) {
	for _, engine := range []string{"podman", "docker"} {
		t.Run(engine, func(t *testing.T) {
			u := composing(t, engine)
			u.write(".devcontainer/devcontainer.json", image(`{"image": "BASE", "mounts": [
				"source=kept,target=/kept,type=volume", "target=/once/more,type=volume", "target=/var/tmp,type=volume",
				"source=still,target=/still,type=volume,readonly",
				"source=modules,target=${containerWorkspaceFolder}/part/modules,type=volume"]}`))
			must.Do(t, os.Mkdir(filepath.Join(u.project, "part"), 0o755))
			for _, owner := range []int{4321, 0, 4322} {
				must.Do(t, filepath.WalkDir(u.project, func(name string, _ fs.DirEntry, err error) error {
					return errors.Join(err, os.Lchown(name, owner, owner))
				}))
				for _, flags := range [][]string{{"--trust-project"}, {"--read-only"}} {
					r := u.inDevcontainer("set -e; id -u; for d in /kept /once/more part/modules; do rm -f $d/x; "+
						"echo x >$d/x; stat -c %u $d; done; echo x >/var/tmp/x; if touch /still/x 2>&1; then echo WRITTEN; fi", flags...)
					want := strings.Repeat(fmt.Sprintln(owner), 4) + "touch: cannot touch '/still/x': Read-only file system\n"
					if r.code != 0 || r.out != want {
						t.Errorf("as %d, %q: exit %d, %q, want %q\n%s", owner, flags, r.code, r.out, want, r.err)
					}
				}
			}
			if left := u.leftovers(); left != "" {
				t.Errorf("left: %s", left)
			}
		})
	}
}

// What a build gets may stay in the image, and leave with its commands: a secret is refused before it begins, whichever
// command builds.
func TestNoBuildOfADevcontainerGetsASecret(t *testing.T) {
	for _, engine := range []string{"podman", "docker"} {
		t.Run(engine, func(t *testing.T) {
			harness.PodmanIsEnough(t, engine)
			u := composing(t, engine)
			u.write(".devcontainer/devcontainer.json", `{"build": {"dockerfile": "D", "args": {"T": "x${localEnv:STOLEN}"}}}`)
			u.write(".devcontainer/D", image("FROM BASE\nARG T\nRUN echo \"the build has $T\"\n"))
			before := u.composedImages()
			for _, args := range [][]string{{"run"}, {"build"}, {"check", "--agent=sh"}} {
				args = append([]string{"sandbox", args[0], "--sandbox=" + engine, "--dir", u.project, "--trust-project"},
					args[1:]...)
				if args[1] == "run" {
					args = append(args, "--", "true")
				}
				cmd := u.command(args...)
				cmd.Env = append(cmd.Env, "STOLEN="+secret)
				r := finish(t, cmd)
				if r.code != 1 || strings.Contains(r.err, "the build has") || strings.Contains(r.err+r.out, secret) {
					t.Errorf("%s: exit %d\n%s", args, r.code, r.err)
				}
				contains(t, args[1], r.err+r.out, "holds the secret of the binding")
			}
			if after := u.composedImages(); !slices.Equal(after, before) {
				t.Errorf("there are the images %q, and were %q", after, before)
			}
			// What holds no secret is built without the vault.
			u.must("sandbox", "build", "--sandbox="+engine, "--dir", u.project, "--trust-project")
		})
	}
}

// What fails in a devcontainer fails with its reason, before the agent starts.
func TestADevcontainerThatFailsKeepsTheAgentFromStarting(t *testing.T) {
	for _, engine := range []string{"podman", "docker"} {
		t.Run(engine, func(t *testing.T) {
			harness.PodmanIsEnough(t, engine)
			u := composing(t, engine)
			for name, c := range map[string]struct {
				text, file string
				code       int
				want       []string
			}{
				"a command": {text: `{"image": "BASE", "postCreateCommand": "echo out; exit 7"}`, code: 7,
					want: []string{"out\n", "postCreateCommand failed, so the command does not start: exit code 7"}},
				"a user": {text: `{"image": "BASE", "remoteUser": "vscode"}`, code: 1,
					want: []string{"it lacks the user vscode that devcontainer.json names",
						"hint: name another user there, or add this one in a Dockerfile", "--devcontainer=off"}},
				"an image": {text: `{"image": "localhost/none:1"}`, code: 1, want: []string{
					"find the image localhost/none:1: it is not on this host", engine + " pull localhost/none:1"}},
				"a build": {text: `{"dockerFile": "Dockerfile"}`, file: "FROM BASE\nRUN echo this is why; exit 5\n",
					code: 1, want: []string{"this is why", "--devcontainer=off"}},
			} {
				u.write(".devcontainer/devcontainer.json", image(c.text))
				u.write(".devcontainer/Dockerfile", image(c.file))
				r := u.inDevcontainer("echo started", "--trust-project")
				if r.code != c.code || strings.Contains(r.out, "started") {
					t.Errorf("%s: exit %d, want %d, %q\n%s", name, r.code, c.code, r.out, r.err)
				}
				contains(t, name, r.err, c.want...)
			}
		})
	}
}

// A repository that brings a devcontainer gets no further than one without: what is refused is refused before
// anything of it runs, although the person has agreed to all of it.
func TestAHostileDevcontainerFails(t *testing.T) {
	for _, engine := range []string{"podman", "docker"} {
		t.Run(engine, func(t *testing.T) {
			u := composing(t, engine)
			made := filepath.Join(t.TempDir(), "made")
			for text, want := range map[string]string{
				`"initializeCommand": "touch ` + made + `"`: "initializeCommand: it would run on this host",
				`"privileged": true`:                        "privileged (line 1): it breaks the seal",
				`"capAdd": ["SYS_ADMIN"]`:                   "capAdd (line 1): a sandbox has no capabilities",
				`"securityOpt": ["seccomp=unconfined"]`:     "securityOpt (line 1)",
				`"runArgs": ["--network=host"]`:             "--network: it breaks the seal",
				`"runArgs": ["--device=/dev/kvm"]`:          "--device: it breaks the seal",
				`"runArgs": ["--pid=host"]`:                 "--pid: it breaks the seal",
				`"runArgs": ["-v", "/:/host"]`:              "-v: mounts have a property of their own",
				`"mounts": ["type=bind,source=/var/run/docker.sock,target=/d"]`: "/var/run/docker.sock is not in the " +
					"project",
				`"mounts": ["type=bind,source=${localWorkspaceFolder}/../..,target=/d"]`:  "is not in the project",
				`"mounts": ["type=bind,source=${localWorkspaceFolder}/out,target=/d"]`:    "is not in the project",
				`"workspaceMount": "type=bind,source=/,target=/w","workspaceFolder":"/w"`: "/ is not in the project",
				`"containerEnv": {"AILERON_API_URL": "http://x"}`:                         "the session sets it",
				`"containerEnv": {"STOLEN": "` + secret + `"}`:                            "holds the secret of the binding",
				`"postCreateCommand": "echo ${localEnv:STOLEN}"`:                          "holds the secret of the binding",
				`"customizations": {"aileron": {"mediation": "off"}}`:                     "a project cannot set it",
				`"build": {"dockerfile": "../../Dockerfile"}`:                             "is not in the project",
				`"build": {"dockerfile": "Mount"}`:                                        "RUN with --mount",
			} {
				u.write(".devcontainer/devcontainer.json", image(`{"image": "BASE", `+text+`}`))
				u.write(".devcontainer/Mount", "FROM x\nRUN --mount=type=bind,rw,source=/,target=/host id\n")
				if err := os.Symlink("/etc", filepath.Join(u.project, "out")); err != nil && !os.IsExist(err) {
					t.Fatal(err)
				}
				cmd := u.command("sandbox", "run", "--sandbox="+engine, "--dir", u.project, "--trust-project", "--", "echo",
					"started")
				cmd.Env = append(cmd.Env, "STOLEN="+secret)
				r := finish(t, cmd)
				if r.code == 0 || strings.Contains(r.out, "started") {
					t.Errorf("%s: exit %d, %q\n%s", text, r.code, r.out, r.err)
				}
				contains(t, text, r.err, want)
				if strings.Contains(r.err+r.out, secret) {
					t.Errorf("%s: the secret is printed", text)
				}
			}
			if _, err := os.Stat(made); err == nil {
				t.Error("initializeCommand ran on the host")
			}
			// What it may ask for does not open the sandbox.
			u.write(".devcontainer/devcontainer.json", image(`{"image": "BASE", "remoteUser": "root", "init": true,
				"remoteEnv": {"PATH": "/nowhere:${containerEnv:PATH}"},
				"postCreateCommand": "curl -sS -m 20 --noproxy '*' https://evil.example/ -o /dev/null -w '%{http_code}\\n'; `+
				`curl -sS -m 20 http://1.1.1.1/ -o /dev/null -w '%{http_code}\\n'; true"}`))
			r := u.inDevcontainer("grep CapEff /proc/self/status; ls /sys/class/net", "--trust-project")
			if r.code != 0 || !strings.Contains(r.out, "CapEff:\t0000000000000000") || strings.Contains(r.out, "eth0") {
				t.Errorf("exit %d, %q\n%s", r.code, r.out, r.err)
			}
			if strings.Count(r.err, "\n403\n") < 1 || len(u.rows("--host", "evil.example", "--decision", "rejected")) != 1 {
				t.Errorf("a command of the devcontainer: %s\n%v", r.err, u.rows("--decision", "rejected"))
			}
		})
	}
}

// What an image asks for in its label is not in force, and is named.
func TestTheLabelOfADevcontainersImageIsNamed(t *testing.T) {
	u := composing(t, "podman")
	u.write(".devcontainer/devcontainer.json", `{"build": {"dockerfile": "Dockerfile"}}`)
	u.write(".devcontainer/Dockerfile", image("FROM BASE\nLABEL devcontainer.metadata='"+
		`[{"id":"x","privileged":true},{"remoteUser":"root","capAdd":["SYS_ADMIN"]}]`+"'\n"))
	r := u.inDevcontainer("id -un; grep -c CapBnd:.0000000000000000 /proc/self/status", "--trust-project")
	if r.code != 0 || strings.HasPrefix(r.out, "root\n") && os.Getuid() != 0 || !strings.HasSuffix(r.out, "\n1\n") {
		t.Errorf("exit %d, %q\n%s", r.code, r.out, r.err)
	}
	contains(t, "the lines", r.err, "the image asks for capAdd privileged remoteUser in its label devcontainer.metadata, "+
		"of which nothing is in force", "hint: what you want of it, write into devcontainer.json")
}
