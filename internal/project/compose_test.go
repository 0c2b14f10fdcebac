package project

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/launch"
	"github.com/ALRubinger/aileron/sandbox"
	"github.com/ALRubinger/aileron/sandbox/devcontainer"
)

const devcontainerFile = ".devcontainer/devcontainer.json"

// withFiles writes files of a project.
func withFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		at := filepath.Join(dir, name)
		must.Do(t, os.MkdirAll(filepath.Dir(at), 0o755))
		must.Do(t, os.WriteFile(at, []byte(text), 0o644))
	}
}

// wantedIn is what a command asks for in a project.
func wantedIn(dir string, change ...func(*wanted)) *wanted {
	w := &wanted{Sandbox: Sandbox{Dir: dir}}
	w.Egress = "deny"
	w.Given = func(string) bool { return false }
	for _, c := range change {
		c(w)
	}
	return w
}

// using puts what a project has in force, at the home of a.
func using(a *Asker, dir string, change ...func(*wanted)) (*wanted, error) {
	w := wantedIn(dir, change...)
	return w, a.UseProject(context.Background(), &w.Session, &w.Sandbox)
}

func trusting(w *wanted) { w.Project.Trust = true }

func TestADevcontainerNeedsConsentToAllThatItReads(t *testing.T) {
	dir, a := t.TempDir(), asker(t, t.Output())
	t.Setenv("AILERON_TEST_VALUE", "value-one")
	withFiles(t, dir, map[string]string{
		devcontainerFile: `{"build": {"dockerfile": "Dockerfile", "args": {"CMD": "id"}, "target": "last"},
			"remoteUser": "root", "updateRemoteUserUID": false, "containerEnv": {"A": "${localEnv:AILERON_TEST_VALUE}"},
			"remoteEnv": {"GONE": null}, "workspaceFolder": "/w/sub",
			"workspaceMount": "type=bind,source=${localWorkspaceFolder},target=/w",
			"postCreateCommand": "make", "mounts": ["source=cache,target=/cache,type=volume,readonly",
			"type=tmpfs,target=/scratch", "type=volume,target=/once"], "forwardPorts": [3000]}`,
		".devcontainer/Dockerfile": "FROM x AS last\nCOPY setup.sh /\n", ".devcontainer/setup.sh": "id\n", "other": "",
	})
	_, err := using(a, dir)
	for _, want := range []string{"a person must agree to it first",
		`build the image of ".devcontainer/Dockerfile", with 1 file`, `give the build the argument "CMD"`,
		`build its stage "last" alone`, `run as the user "root" of the image, and not as the owner of the project`,
		`read the variable "AILERON_TEST_VALUE" of this host`, "set the variable A", "run postCreateCommand in the sandbox",
		`keep the volume "cache", at "/cache", read-only, from`, "publish port 3000", "take the variable GONE away",
		`have the project at "/w", too`,
		`begin in "/w/sub"`, `have an empty directory in memory at "/scratch"`,
		`have a volume at "/once", which is removed with the sandbox`} {
		if err == nil || !strings.Contains(err.Error(), want) || hint.Of(err) == "" {
			t.Errorf("without consent: %v, want %q", err, want)
		}
	}
	if err != nil && strings.Contains(err.Error(), "value-one") {
		t.Errorf("the error has a value: %v", err)
	}
	w, err := using(a, dir, trusting)
	must.Do(t, err)
	if f := w.ProjectFile(); len(f.Widens) != 14 || f.Hash != w.Devcontainer.Plan.Digest {
		t.Errorf("recorded is %+v", f)
	}
	if _, err := using(a, dir); err != nil {
		t.Errorf("the same is asked about again: %v", err)
	}
	for what, change := range map[string]func(){
		"the file": func() {
			withFiles(t, dir, map[string]string{devcontainerFile: `{"build": {"dockerfile": "Dockerfile"},
				"containerEnv": {"A": "${localEnv:AILERON_TEST_VALUE}"}}`})
		},
		"a variable": func() { t.Setenv("AILERON_TEST_VALUE", "two") },
		"the Dockerfile": func() {
			withFiles(t, dir, map[string]string{".devcontainer/Dockerfile": "FROM x\nCOPY setup.sh /\nRUN id\n"})
		},
		"a file that it copies": func() { withFiles(t, dir, map[string]string{".devcontainer/setup.sh": "reboot\n"}) },
	} {
		change()
		if _, err := using(a, dir); err == nil || !strings.Contains(err.Error(), "a person must agree") {
			t.Errorf("%s changes, and the old consent holds: %v", what, err)
		}
		_, err := using(a, dir, trusting)
		must.Do(t, err)
	}
	withFiles(t, dir, map[string]string{"other": "changed"})
	if _, err := using(a, dir); err != nil {
		t.Errorf("a file that is not read is asked about: %v", err)
	}
	if w, err := using(a, dir, func(w *wanted) { w.Devcontainer.Name = WithoutDevcontainer }); err != nil ||
		w.Devcontainer.Plan != nil {
		t.Errorf("--devcontainer=off: %v, %v", w.Devcontainer.Plan, err)
	}
}

// A name of the project's is no part of the question, whatever it says.
func TestWhatAProjectNamesIsQuotedInTheQuestion(t *testing.T) {
	const says = "x, read-only, as aileron has checked"
	for name, text := range map[string]string{
		"the Dockerfile": `"build": {"dockerfile": "NAME", "context": "."}`,
		"a bind":         `"image": "x", "mounts": [{"type": "bind", "source": "NAME", "target": "/NAME"}]`,
		"a volume":       `"image": "x", "mounts": [{"type": "volume", "source": "v", "target": "/NAME"}]`,
		"one of a start": `"image": "x", "mounts": [{"type": "volume", "target": "/NAME"}]`,
		"memory":         `"image": "x", "mounts": [{"type": "tmpfs", "target": "/NAME"}]`,
		"the directory":  `"image": "x", "workspaceFolder": "/NAME"`,
		"a user":         `"image": "x", "remoteUser": "NAME"`,
		"a variable":     `"image": "x", "containerEnv": {"A": "NAME"}`,
		"the file":       `"image": "x"`,
	} {
		dir, a := t.TempDir(), asker(t, t.Output())
		withFiles(t, dir, map[string]string{".devcontainer/" + says + "/devcontainer.json": "{" +
			strings.ReplaceAll(text, "NAME", says) + "}", says: "", ".devcontainer/" + says + "/" + says: "FROM x\n"})
		_, err := using(a, dir)
		if err == nil || !strings.Contains(err.Error(), "must agree to it first") {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for i, part := range strings.Split(err.Error(), `"`) {
			if i%2 == 0 && strings.Contains(part, says) {
				t.Errorf("%s: it is not quoted in %v", name, err)
			}
		}
	}
}

// The line above the question has what matters most, however long the list is.
func TestAQuestionEndsWithWhatItIsAbout(t *testing.T) {
	dir, a := t.TempDir(), asker(t, t.Output())
	withFiles(t, dir, map[string]string{
		devcontainerFile: `{"build": {"dockerfile": "D"}, "containerEnv": {"A": "1", "B": "2"}, "forwardPorts": [80, 90],
			"customizations": {"aileron": {"egress": "passthrough"}}, "mounts": ["type=bind,source=.devcontainer,target=/d"]}`,
		".devcontainer/D": "FROM x\n"})
	w, err := using(a, dir, trusting)
	must.Do(t, err)
	if got := inAll(w.Project.devcontainer.Widens); got != "build an image outside of the sandbox; let requests to all "+
		"public hosts through; mount a part of the project; publish a port (2); 2 more" {
		t.Errorf("the line is %q", got)
	}
}

func TestADevcontainerDoesNotWidenASession(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"the host":       {`"initializeCommand": "id"`, "initializeCommand: it would run on this host"},
		"the proxy":      {`"containerEnv": {"HTTPS_PROXY": "http://x"}`, `"HTTPS_PROXY": the session sets it`},
		"trust":          {`"remoteEnv": {"SSL_CERT_FILE": "/x"}`, `"SSL_CERT_FILE": the session sets it`},
		"trust, late":    {`"remoteEnv": {"SSL_CERT_FILE": "${containerEnv:X}"}`, `"SSL_CERT_FILE": the session sets it`},
		"taking away":    {`"remoteEnv": {"HTTPS_PROXY": null}`, `"HTTPS_PROXY": the session sets it`},
		"a name":         {`"remoteEnv": {"A; id": null}`, "it is not K=V"},
		"our variables":  {`"containerEnv": {"AILERON_TOKEN": "x"}`, "the session sets it"},
		"hooks":          {`"mounts": ["type=bind,source=.git,target=/git"]`, "past the protection of git's hooks"},
		"the project":    {`"mounts": ["type=bind,source=.,target=/p"]`, "past the protection of git's hooks"},
		"the workspace":  {`"mounts": ["type=volume,source=v,target=/workspaces"]`, "it would lie over the project"},
		"its repository": {`"mounts": ["type=tmpfs,target=${containerWorkspaceFolder}/.git/hooks"]`, "or its repository"},
		"where it is":    {`"mounts": ["type=tmpfs,target=${localWorkspaceFolder}/.git"]`, "or its repository"},
		"a volume in it": {`"mounts": ["type=volume,source=v,target=${localWorkspaceFolder}/.git/objects"]`,
			"or its repository"},
		"a suffix":       {`"mounts": ["type=bind,source=d,target=${containerWorkspaceFolder}/.git:ro"]`, "has a colon"},
		"our commands":   {`"mounts": ["type=volume,source=v,target=/usr/local/bin"]`, "/usr/local/bin is not yours"},
		"our notes":      {`"mounts": ["type=tmpfs,target=/opt/aileron"]`, "/opt/aileron is not yours"},
		"a link of ours": {`"mounts": ["type=tmpfs,target=/var/run"]`, "/var/run is not yours"},
		"a part": {`"workspaceMount": "type=bind,source=${localWorkspaceFolder}/.git,target=/w", "workspaceFolder": "/w"`,
			"past the protection of git's hooks"},
		"trust files": {`"mounts": ["type=tmpfs,target=/etc/aileron"]`, "/etc is not yours to replace"},
		"names":       {`"mounts": ["type=volume,source=v,target=/etc/ssl"]`, "/etc is not yours to replace"},
		"a system": {`"workspaceMount": "type=bind,source=${localWorkspaceFolder},target=/etc", "workspaceFolder": "/etc"`,
			"/etc in the sandbox is not the project's"},
		"our ports": {`"forwardPorts": [3128]`, "is its gateway's"},
		"a package": {`"customizations": {"aileron": {"packages": ["jq"]}}`, ""},
	} {
		dir, a := t.TempDir(), asker(t, t.Output())
		withFiles(t, dir, map[string]string{devcontainerFile: `{"image": "x", ` + c.text + `}`, ".git/config": ""})
		w, err := using(a, dir, trusting)
		if c.want == "" {
			if err == nil {
				_, err = a.ImageOf(&w.Sandbox, sandbox.BaseImage(), nil)
			}
			c.want = "it is not aileron's own"
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || hint.Of(err) == "" {
			t.Errorf("%s: %v, want %q and a hint", name, err, c.want)
		}
		if name == "the host" { // which a flag agrees to
			c.want = "warning: initializeCommand: it runs on this host, and a start refuses it without --host-commands"
		}
		// What is only planned says the same.
		text := ""
		plan, err := a.PlanOf(t.Context(), &Use{}, &Sandbox{Dir: dir}, sandbox.BaseImage())
		if err != nil {
			text = err.Error()
		} else if text = plan.Text(); name != "the host" && len(plan.Refusals) != 1 {
			t.Errorf("the plan of %s: %+v, want one refusal", name, plan.Refusals)
		}
		if !strings.Contains(text, c.want) {
			t.Errorf("the plan of %s is\n%s\nwant %q", name, text, c.want)
		}
	}
}

func TestADevcontainerNarrowsASessionWithoutAQuestionOfItsOwn(t *testing.T) {
	dir, a := t.TempDir(), asker(t, t.Output())
	withFiles(t, dir, map[string]string{devcontainerFile: `{"image": "x",
		"customizations": {"aileron": {"egress": "passthrough", "connectors": []}}}`})
	_, err := using(a, dir)
	if err == nil || !strings.Contains(err.Error(), "let requests to all public hosts through") {
		t.Errorf("passthrough without consent: %v", err)
	}
	w, err := using(a, dir, trusting)
	must.Do(t, err)
	if w.Egress != "passthrough" || w.Project.Connectors == nil || len(w.Project.Connectors) > 0 {
		t.Errorf("egress %s, connectors %v", w.Egress, w.Project.Connectors)
	}
	withFiles(t, dir, map[string]string{".aileron.toml": "egress = \"deny\"\n"})
	if w, err = using(a, dir, trusting); err != nil || w.Egress != "deny" {
		t.Errorf("beside .aileron.toml: egress %s, %v", w.Egress, err)
	}
}

func TestWhatIsForAileronAlonePrecedesADevcontainer(t *testing.T) {
	for name, c := range map[string]struct {
		files  map[string]string
		change func(*wanted)
	}{
		"--image":            {nil, func(w *wanted) { w.Image = "mine" }},
		"--packages":         {nil, func(w *wanted) { w.Custom.Packages = []string{"jq"} }},
		"--ignore-project":   {nil, func(w *wanted) { w.Project.Ignore = true }},
		"aileron.Dockerfile": {map[string]string{Dockerfile: "ARG BASE\nFROM ${BASE}\n"}, func(*wanted) {}},
		"packages":           {map[string]string{".aileron.toml": "packages = [\"jq\"]\n"}, trusting},
	} {
		dir, a := t.TempDir(), asker(t, t.Output())
		withFiles(t, dir, map[string]string{devcontainerFile: `{"image": "x"}`})
		withFiles(t, dir, c.files)
		if w, err := using(a, dir, c.change); err != nil || w.Devcontainer.Plan != nil {
			t.Errorf("%s: %v, %v", name, w.Devcontainer.Plan, err)
		}
		w, err := using(a, dir, c.change, trusting, func(w *wanted) { w.Devcontainer.Name = "default" })
		if (err != nil) != (name == "--image") || err == nil && w.Devcontainer.Plan == nil {
			t.Errorf("%s, with --devcontainer: %v, %v", name, w.Devcontainer.Plan, err)
		}
	}
}

func TestALaunchHasWhatTheDevcontainerAsksFor(t *testing.T) {
	dir, a := t.TempDir(), asker(t, t.Output())
	withFiles(t, dir, map[string]string{devcontainerFile: `{"image": "x", "remoteUser": "node",
		"updateRemoteUserUID": false,
		"remoteEnv": {"PATH": "${containerEnv:PATH}:/x", "B": "2"}, "workspaceFolder": "/w/sub",
		"workspaceMount": "type=bind,source=${localWorkspaceFolder},target=/w", "postStartCommand": "true",
		"mounts": ["source=v,target=/v,type=volume,readonly", "type=tmpfs,target=/t", "type=bind,source=d,target=/d,ro"]}`,
		"d/file": ""})
	w, err := using(a, dir, trusting)
	must.Do(t, err)
	var l launch.Sandbox
	a.Into(&w.Sandbox, &l)
	c := l.Composed
	if c.User != "node" || !c.KeepUser || c.Workspace != "/w" || c.Dir != "/w/sub" ||
		!slices.Equal(c.Volumes, []sandbox.Volume{{Name: "v", Target: "/v", ReadOnly: true}}) ||
		!slices.Equal(c.Tmpfs, []string{"/t"}) {
		t.Errorf("composed is %+v", c)
	}
	if got := must.Get(c.Env([]string{"PATH=/a", "PATH=/b"}))(t); !slices.Equal(got, []string{"PATH=/b:/x"}) {
		t.Errorf("late variables are %v", got)
	}
	if !slices.Equal(l.Variables, []string{"B=2"}) || len(l.Mounts) != 1 || l.Mounts[0].Target != "/d" ||
		!l.Mounts[0].ReadOnly || !slices.Contains(l.Needs, "sh") || !strings.Contains(l.Setup, "postStartCommand") {
		t.Errorf("the launch is %+v", l)
	}
	image := must.Get(a.ImageOf(&w.Sandbox, sandbox.BaseImage(), []string{"tree"}))(t)
	if image.Ref != "x" || image.Tier() != "devcontainer" {
		t.Errorf("the image is %+v", image)
	}
}

// What is printed of a plan has the names of variables of this host, and no value.
func TestAPrintedPlanHasNoValueOfThisHost(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("AILERON_TEST_VALUE", "value-of-the-host")
	withFiles(t, dir, map[string]string{
		devcontainerFile: `{"image": "x", "mounts": ["${localEnv:AILERON_TEST_VALUE}"]}`})
	p, err := composeDevcontainer(t.Context(), dir, t.TempDir(), devcontainer.Input{File: devcontainerFile})
	must.Do(t, err)
	if len(p.Refusals) == 0 || !strings.Contains(p.Refusals[0].Text, "value-of-the-host") {
		t.Fatalf("it is refused with %v", p.Refusals)
	}
	for _, n := range unnamed(p, p.Refusals) {
		if text := n.String() + n.Hint; strings.Contains(text, "value-of-the-host") ||
			!strings.Contains(text, "${localEnv:AILERON_TEST_VALUE}") {
			t.Errorf("printed is %s", text)
		}
	}
	p.Local = []devcontainer.Variable{{Name: "SHORT", Value: "se\"cret"}, {Name: "LONG", Value: "se\"cret-of-another"}}
	if text := withoutLocal(p, `"se\"cret-of-another" is no place, se"cret`); text !=
		`"${localEnv:LONG}" is no place, ${localEnv:SHORT}` {
		t.Errorf("printed is %s", text)
	}
	p.Local = []devcontainer.Variable{{Name: "AILERON_TEST_VALUE", Value: "value-of-the-host"}}
	if image := withoutLocal(p, "registry/value-of-the-host"); image != "registry/${localEnv:AILERON_TEST_VALUE}" {
		t.Errorf("the image is %s", image)
	}
}

// What a person passes is not taken away by a project, nor is it replaced.
func TestAPersonsVariablePrecedesThoseOfADevcontainer(t *testing.T) {
	dir, a := t.TempDir(), asker(t, t.Output())
	withFiles(t, dir, map[string]string{devcontainerFile: `{"image": "x", "containerEnv": {"OWN": "file", "C": "c"},
		"remoteEnv": {"MINE": null, "OTHER": null, "OWN": "${containerEnv:OWN}!",
		"X": "${containerEnv:C}-${containerEnv:MINE}",
		"LONG": "${containerEnv:IMAGE}"}}`})
	w, err := using(a, dir, trusting, func(w *wanted) { w.Env = []string{"MINE=person", "OWN=person"} })
	must.Do(t, err)
	var l launch.Sandbox
	a.Into(&w.Sandbox, &l)
	if !strings.HasPrefix(l.Setup, "unset OTHER\n") ||
		!slices.Equal(l.Variables, []string{"MINE=person", "OWN=person", "C=c"}) {
		t.Errorf("the script is %q, the variables %q", l.Setup, l.Variables)
	}
	if got := must.Get(l.Composed.Env([]string{"C=image", "IMAGE=i"}))(t); !slices.Equal(got,
		[]string{"LONG=i", "X=c-person"}) {
		t.Errorf("late variables are %v", got)
	}
	if got, err := l.Composed.Env([]string{"IMAGE=" + strings.Repeat("x", 70_000)}); err == nil ||
		!strings.Contains(err.Error(), "the variable LONG has more than 64 KiB") {
		t.Errorf("a variable of %d bytes: %v", len(got), err)
	}
}

// A part of the project is where workspaceMount says, in place of the whole.
func TestAWorkspaceCanBeAPartOfTheProject(t *testing.T) {
	dir, a := filepath.Join(must.Get(filepath.EvalSymlinks(t.TempDir()))(t), "a:ro"), asker(t, t.Output())
	withFiles(t, dir, map[string]string{devcontainerFile: `{"image": "x", "workspaceFolder": "/w",
		"workspaceMount": "type=bind,source=${localWorkspaceFolder}/part,target=/w"}`, "part/file": ""})
	_, err := using(a, dir)
	if want := "mount " + strconv.Quote(filepath.Join(dir, "part")) + ` at "/w", writable`; err == nil ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("without consent: %v, want %q", err, want)
	}
	w, err := using(a, dir, trusting)
	must.Do(t, err)
	var l launch.Sandbox
	a.Into(&w.Sandbox, &l)
	if l.Composed.Workspace != "" || l.Composed.Dir != "/w" || len(l.Mounts) != 1 || l.Mounts[0].Target != "/w" ||
		l.Mounts[0].Source != filepath.Join(dir, "part") {
		t.Errorf("composed is %+v, mounts %+v", l.Composed, l.Mounts)
	}
}

// A build gets its arguments, so a secret among them is refused with the variables of this host.
func TestWhatABuildGetsIsSearchedForSecrets(t *testing.T) {
	dir, a := t.TempDir(), asker(t, t.Output())
	withFiles(t, dir, map[string]string{devcontainerFile: `{"build": {"dockerfile": "D", "args": {"TOKEN": "abc"}},
		"containerEnv": {"A": "1"}, "remoteEnv": {"A": "2"}}`, ".devcontainer/D": "FROM x\n"})
	w, err := using(a, dir, trusting)
	must.Do(t, err)
	var l launch.Sandbox
	a.Into(&w.Sandbox, &l)
	if !slices.Contains(l.Searched, "TOKEN=abc") || !slices.Contains(l.Searched, "A=1") {
		t.Errorf("searched are %q", l.Searched)
	}
}

// Whether an agent asks before it uses its tools is its user's decision.
func TestADevcontainerDoesNotStopAnAgentFromAsking(t *testing.T) {
	for _, text := range []string{`"containerEnv": {"GOOSE_MODE": "auto"}`, `"remoteEnv": {"IS_SANDBOX": "1"}`,
		`"remoteEnv": {"OPENCODE_PERMISSION": "${containerEnv:X}"}`, `"containerEnv": {"CODEX_HOME": null}`,
		`"runArgs": ["--env", "CLAUDE_CONFIG_DIR=/x"]`} {
		dir, a := t.TempDir(), asker(t, t.Output())
		withFiles(t, dir, map[string]string{devcontainerFile: `{"image": "x", ` + text + `}`})
		if _, err := using(a, dir, trusting); err == nil || !strings.Contains(err.Error(), "which only its user decides") ||
			hint.Of(err) == "" {
			t.Errorf("%s: %v", text, err)
		}
	}
}
