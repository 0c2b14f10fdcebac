package devcontainer_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/sandbox/devcontainer"
)

// project makes a project of files, by their paths. One that ends in a slash is a directory; a text that begins with
// "-> " makes a link.
func project(t *testing.T, files map[string]string) (dir string, root *os.Root) {
	t.Helper()
	dir = filepath.Join(must.Get(filepath.EvalSymlinks(t.TempDir()))(t), "web")
	must.Do(t, os.Mkdir(dir, 0o755))
	for name, text := range files {
		at := filepath.Join(dir, name)
		must.Do(t, os.MkdirAll(filepath.Dir(at), 0o755))
		if to, ok := strings.CutPrefix(text, "-> "); ok {
			must.Do(t, os.Symlink(to, at))
		} else {
			must.Do(t, os.WriteFile(at, []byte(text), 0o644))
		}
	}
	root = must.Get(os.OpenRoot(dir))(t)
	t.Cleanup(func() { root.Close() })
	return dir, root
}

func environment(pairs ...string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for _, pair := range pairs {
			if value, ok := strings.CutPrefix(pair, name+"="); ok {
				return value, true
			}
		}
		return "", false
	}
}

const at = ".devcontainer/devcontainer.json"

// composed returns the plan of a configuration beside other files.
func composed(t *testing.T, text string, files map[string]string, env ...string) (*devcontainer.Plan, error) {
	t.Helper()
	all := map[string]string{at: text}
	for name, data := range files {
		all[name] = data
	}
	dir, root := project(t, all)
	return devcontainer.Compose(t.Context(),
		devcontainer.Input{Root: root, Dir: dir, File: at, Getenv: environment(env...)})
}

func TestAConfigurationIsFoundInThreePlaces(t *testing.T) {
	const text = `{"image": "x"}`
	for _, c := range []struct {
		name, choose, want, fault string
		files                     []string
	}{
		{name: "none"},
		{name: "directory", files: []string{at}, want: at},
		{name: "file", files: []string{".devcontainer.json"}, want: ".devcontainer.json"},
		{name: "the directory precedes the file", files: []string{".devcontainer.json", at}, want: at},
		{name: "one of a name", files: []string{".devcontainer/go/devcontainer.json"},
			want: ".devcontainer/go/devcontainer.json"},
		{name: "the default precedes names", files: []string{at, ".devcontainer/go/devcontainer.json"}, want: at},
		{name: "by name", files: []string{at, ".devcontainer/go/devcontainer.json"}, choose: "go",
			want: ".devcontainer/go/devcontainer.json"},
		{name: "default by name", files: []string{at, ".devcontainer/go/devcontainer.json"},
			choose: "default", want: at},
		{name: "two names", files: []string{".devcontainer/a/devcontainer.json", ".devcontainer/b/devcontainer.json"},
			fault: "choose a devcontainer: the project has a, b"},
		{name: "no such name", files: []string{at}, choose: "go",
			fault: `use the devcontainer "go": the project has none of`},
		{name: "a name without any", choose: "go", fault: "the project has none"},
		{name: "a way out", files: []string{at}, choose: "../../etc", fault: "the project has none of that name"},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := map[string]string{}
			for _, name := range c.files {
				files[name] = text
			}
			_, root := project(t, files)
			got, err := devcontainer.Choose(must.Get(devcontainer.Find(root))(t), c.choose)
			if got != c.want || (err == nil) != (c.fault == "") || err != nil && !strings.Contains(err.Error(), c.fault) {
				t.Errorf("Choose(%v, %q) = %q, %v, want %q, %q", c.files, c.choose, got, err, c.want, c.fault)
			}
			if err != nil && hint.Of(err) == "" {
				t.Errorf("%v has no hint", err)
			}
		})
	}
}

func TestAPipeInThePlaceOfADirectoryIsNotWaitedFor(t *testing.T) {
	dir, root := project(t, nil)
	must.Do(t, syscall.Mkfifo(filepath.Join(dir, ".devcontainer"), 0o600))
	if found, err := devcontainer.Find(root); len(found) > 0 || err != nil {
		t.Errorf("Find = %v, %v", found, err)
	}
}

func TestAFileThatCannotBeReadNamesTheLine(t *testing.T) {
	for text, want := range map[string]string{
		"":                                      "line 1, column 1",
		"{\n  \"image\": \"x\",\n":              "line 3, column 1: parsing value: unexpected EOF",
		"{\n  image: \"x\"\n}":                  "line 2, column 3",
		"{\"image\": }":                         "line 1, column 11",
		"[]":                                    "line 1, column 1: it is no object",
		"{\"image\": \"a\"} x":                  "line 1, column 16",
		"{\n\"name\": \"a\",\n\"name\": \"b\"}": `line 3, column 1: "name" is there twice`,
		`{"a": ` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + "}": "column 38: more than 32 levels",
		strings.Repeat("[", 200_000):                                       "more than 32 levels",
		`{"image": "${localEnv}"}`:                                         "${localEnv} names no variable",
		"{/* " + strings.Repeat("x", 300_000) + "*/}":                      "it is larger than 262144 bytes",
	} {
		_, err := composed(t, text, nil)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "read "+at) ||
			hint.Of(err) == "" {
			t.Errorf("Compose(%.60q) = %v, want %q and a hint", text, err, want)
		}
	}
}

func TestALinkIsNoConfiguration(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "devcontainer.json")
	must.Do(t, os.WriteFile(outside, []byte(`{"image": "x"}`), 0o600))
	dir, root := project(t, map[string]string{at: "-> " + outside})
	_, err := devcontainer.Compose(t.Context(), devcontainer.Input{Root: root, Dir: dir, File: at, Getenv: environment()})
	if err == nil {
		t.Error("a link out of the project is read")
	}
}

func TestAPlanHasWhatIsAskedFor(t *testing.T) {
	p, err := composed(t, `// what a team has
{
	"name": "web", // of the team
	"image": "registry.example/go:${localEnv:GO_VERSION:1.26}",
	"remoteUser": "vscode", "containerUser": "root", "updateRemoteUserUID": false,
	"containerEnv": {"A": "${localEnv:TOKEN}", "GONE": "x", "AT": "${containerWorkspaceFolder}/bin"},
	"remoteEnv": {"PATH": "${containerEnv:PATH}:/extra", "GONE": null},
	"workspaceFolder": "/src/web/sub",
	"workspaceMount": "type=bind,source=${localWorkspaceFolder},target=/src/web",
	"mounts": [
		"source=${localWorkspaceFolder}/data,target=/data,type=bind,readonly",
		{"type": "volume", "source": "cache-${devcontainerId}", "target": "/cache"},
		"type=tmpfs,target=/scratch",
	],
	"init": true, "forwardPorts": [3000, "localhost:8080", "db:5432"],
	"runArgs": ["--init", "-e", "B=2", "--memory=4g", "--cap-drop=ALL"],
	"onCreateCommand": "make", "postCreateCommand": {"b": ["npm", "ci"], "a": "go mod download"},
	"customizations": {"vscode": {}, "aileron": {"egress": "deny", "connectors": ["github"],
		"packages": ["jq"], "new": 1}},
	"privileged": false, "capAdd": [],
}`, map[string]string{"data/x": ""}, "TOKEN=t")
	must.Do(t, err)
	if len(p.Refusals) > 0 {
		t.Fatalf("refused: %v", p.Refusals)
	}
	for what, c := range map[string]struct{ got, want any }{
		"tier": {p.Tier, "devcontainer"}, "image": {p.Image, "registry.example/go:1.26"}, "user": {p.User, "vscode"},
		"uid": {p.UpdateUID, false}, "init": {p.Init, true}, "egress": {p.Egress, "deny"},
	} {
		if c.got != c.want {
			t.Errorf("%s is %v, want %v", what, c.got, c.want)
		}
	}
	env := []devcontainer.Variable{{"A", "t"}, {"AT", "/src/web/sub/bin"}, {"B", "2"},
		{"PATH", "${containerEnv:PATH}:/extra"}}
	if !slices.Equal(p.Env, env) || !slices.Equal(p.Unset, []string{"GONE"}) {
		t.Errorf("the variables are %v without %v", p.Env, p.Unset)
	}
	if got := must.Get(p.Env[3].In(environment("PATH=/bin")))(t); got != "/bin:/extra" {
		t.Errorf("PATH is %q", got)
	}
	if p.Workspace != (devcontainer.Workspace{Folder: "/src/web/sub", Mount: "/src/web"}) {
		t.Errorf("the workspace is %+v", p.Workspace)
	}
	if len(p.Mounts) != 3 || !strings.HasSuffix(p.Mounts[0].Source, "/web/data") || !p.Mounts[0].ReadOnly ||
		len(p.Mounts[1].Source) != len("cache-")+52 ||
		p.Mounts[2] != (devcontainer.Mount{Type: "tmpfs", Target: "/scratch"}) {
		t.Errorf("the mounts are %+v", p.Mounts)
	}
	if !slices.Equal(p.Ports, []int{3000, 8080}) || !slices.Equal(p.Connectors, []string{"github"}) ||
		!slices.Equal(p.Packages, []string{"jq"}) {
		t.Errorf("ports %v, connectors %v, packages %v", p.Ports, p.Connectors, p.Packages)
	}
	if len(p.Commands) != 2 || p.Commands[0].Phase != "onCreateCommand" || p.Commands[1].Parts[0].Name != "a" ||
		!slices.Equal(p.Commands[1].Parts[1].Args, []string{"npm", "ci"}) {
		t.Errorf("the commands are %+v", p.Commands)
	}
	var warned []string
	for _, w := range p.Warnings {
		warned = append(warned, w.String())
	}
	for _, want := range []string{`forwardPorts (line 15): "db:5432" is a port of another container`,
		"runArgs (line 16): --memory has no effect", "customizations.vscode (line 18)",
		"customizations.aileron.new (line 19)"} {
		if !slices.ContainsFunc(warned, func(w string) bool { return strings.HasPrefix(w, want) }) {
			t.Errorf("no warning %q in %q", want, warned)
		}
	}
	if len(warned) != 4 {
		t.Errorf("the warnings are %q", warned)
	}
}

// Features are for other programs where a person has built the image with them.
func TestABuiltImageTakesThePlaceOfFeatures(t *testing.T) {
	p := must.Get(composed(t, `{"image": "x", "features": {"./own": {}, "ghcr.example/y:1": {}},
		"customizations": {"aileron": {"image": "built:1"}}, "postCreateCommand": "make"}`, nil))(t)
	if len(p.Refusals) > 0 || p.Image != "built:1" || p.Tier != devcontainer.TierBYO || len(p.Commands) != 1 ||
		len(p.Warnings) != 1 || p.Warnings[0].Property != "features" {
		t.Errorf("the plan is %+v", p)
	}
}

// Arguments and files of a build are told apart in its digest, by which consent and its image are found.
func TestTheDigestOfABuildTellsArgumentsFromFiles(t *testing.T) {
	link := devcontainer.File{Path: "a", Mode: fs.ModeSymlink | 0o744, Link: "b"}
	files := devcontainer.Build{Files: []devcontainer.File{link}}
	args := devcontainer.Build{Args: []devcontainer.Variable{{"a", link.Mode.String()}, {"b", ""}}}
	if files.Digest() == args.Digest() {
		t.Error("a link and two arguments have one digest")
	}
}

func TestWhatAPersonIsAskedAboutIsBounded(t *testing.T) {
	many := func(n int, form string) string {
		var all []string
		for i := range n {
			all = append(all, strings.ReplaceAll(form, "N", fmt.Sprint(i+1)))
		}
		return strings.Join(all, ", ")
	}
	for name, of := range map[string]func(n int) string{
		"mounts": func(n int) string { return `"mounts": [` + many(n, `"type=tmpfs,target=/m/N"`) + `]` },
		"ports":  func(n int) string { return `"forwardPorts": [` + many(n, "N") + `]` },
		"variables, with those of remoteEnv and runArgs": func(n int) string {
			return `"containerEnv": {"A": "x"}, "remoteEnv": {` + many(n-1, `"vN": null`) + `}`
		},
		"variables of this host": func(n int) string {
			return `"postStartCommand": "` + many(n, "${localEnv:vN}") + `"`
		},
		"packages": func(n int) string { return `"customizations": {"aileron": {"packages": [` + many(n, `"pN"`) + `]}}` },
		"arguments": func(n int) string {
			return `"build": {"dockerfile": "D", "args": {` + many(n, `"aN": "1"`) + `}}`
		},
	} {
		for n, fine := range map[int]bool{64: true, 65: false} {
			p, err := composed(t, `{"image": "x", `+of(n)+`}`, map[string]string{".devcontainer/D": "FROM x\n"})
			must.Do(t, err)
			want := fmt.Sprintf("it has %d %s, and a person is asked about at most 64", n, name)
			if fine != (len(p.Refusals) == 0) || !fine && (p.Refusals[0].Text != want || p.Refusals[0].Hint == "") {
				t.Errorf("%d %s: %v", n, name, p.Refusals)
			}
		}
	}
}

// TestWhatWidensIsRefused has a row for each way in which a file could get more than a sandbox has.
func TestWhatWidensIsRefused(t *testing.T) {
	for property, c := range map[string]struct{ value, want string }{
		"privileged":        {`true`, "it breaks the seal"},
		"capAdd":            {`["SYS_PTRACE"]`, "a sandbox has no capabilities"},
		"securityOpt":       {`["seccomp=unconfined"]`, "the seccomp profile of aileron"},
		"dockerComposeFile": {`"compose.yml"`, "compose files describe several containers"},
		"features":          {`{"../out/x": {}}`, "../out/x is not in .devcontainer"},
		"workspaceMount":    {`"type=bind,source=/etc,target=/w"`, "/etc is not in the project"},
		"workspaceMount ":   {`"type=volume,source=x,target=/w"`, "it is no bind of the project"},
		"mounts":            {`["type=bind,source=/var/run/docker.sock,target=/d"]`, "is not in the project"},
		"mounts ":           {`["type=bind,source=${localWorkspaceFolder}/../x,target=/d"]`, "is not in the project"},
		"mounts  ":          {`["type=bind,source=${localEnv:HOME},target=/d"]`, "is not in the project"},
		"mounts   ":         {`["type=bind,source=${localWorkspaceFolder}/out,target=/d"]`, "is not in the project"},
		"mounts    ":        {`["type=bind,source=.,target=/d,bind-propagation=shared"]`, `"bind-propagation" of a`},
		"mounts     ":       {`["type=npipe,source=.,target=/d"]`, `no type of mount "npipe"`},
		"mounts      ":      {`["type=volume,source=/etc,target=/d"]`, `"/etc" is no name of a volume`},
		"mounts       ":     {`[{"type": "bind", "source": ".", "target": "d"}]`, `"d" is no absolute path`},
		"forwardPorts":      {`[99999]`, `"99999" is no port`},
		"containerEnv":      {`{"A": []}`, "it is not a string"},
		"remoteUser":        {`"a\nb"`, "a character that cannot be seen"},
		"postStartCommand":  {`"a\u0000b"`, "a zero byte"},
		"postStartCommand ": {`[1]`, "it is not a list of strings"},
		"customizations":    {`{"aileron": {"mediation": "off"}}`, `a project cannot set it to "off"`},
		"customizations ":   {`{"aileron": {"egress": "all"}}`, `it is "all"`},
	} {
		p, err := composed(t, `{"image": "x", "`+strings.TrimSpace(property)+`": `+c.value+`, "workspaceFolder": "/w"}`,
			map[string]string{"out": "-> /etc"}, "HOME=/root")
		must.Do(t, err)
		if len(p.Refusals) != 1 || !strings.Contains(p.Refusals[0].String(), c.want) || p.Refusals[0].Hint == "" ||
			!strings.HasPrefix(p.Refusals[0].Property, strings.TrimSpace(property)) {
			t.Errorf("%s %s: refused %v, want %q", property, c.value, p.Refusals, c.want)
		}
	}
}

func TestArgumentsForTheEngineAreRefusedUnlessTheyAreHarmless(t *testing.T) {
	for args, want := range map[string]string{
		`"--privileged"`: "--privileged", `"--network=host"`: "--network", `"--net", "host"`: "--net",
		`"--cap-add=SYS_ADMIN"`: "--cap-add", `"--security-opt", "seccomp=unconfined"`: "--security-opt",
		`"--device=/dev/kvm"`: "--device", `"--gpus", "all"`: "--gpus", `"-v", "/:/host"`: "-v", `"-v/:/host"`: "-v",
		`"--pid=host"`: "--pid", `"--userns=host"`: "--userns", `"--ipc=host"`: "--ipc", `"--mount=type=bind"`: "--mount",
		`"-p", "80:80"`: "-p", `"--add-host=a:1.2.3.4"`: "--add-host", `"--env-file=/etc/x"`: "--env-file",
		`"-e", "SECRET"`: "takes the variable of this host", `"--new-option"`: "--new-option is not known",
		`"--volume-driver=x"`: "is not known", `"-u", "root"`: "-u", `"-e"`: "has no value",
	} {
		p, err := composed(t, `{"image": "x", "runArgs": [`+args+`]}`, nil)
		must.Do(t, err)
		if len(p.Refusals) != 1 || !strings.Contains(p.Refusals[0].Text, want) || p.Refusals[0].Hint == "" {
			t.Errorf("runArgs %s: refused %v, want %q", args, p.Refusals, want)
		}
	}
	// A value is not taken for an argument, nor an argument for a value.
	p, err := composed(t, `{"image": "x", "runArgs": ["--name", "--init", "--hostname=a", "-eA=1", "--rm",
		"--privileged"]}`, nil)
	must.Do(t, err)
	if len(p.Refusals) != 1 || p.Init || !slices.Equal(p.Env, []devcontainer.Variable{{"A", "1"}}) {
		t.Errorf("refused %v, env %v", p.Refusals, p.Env)
	}
}

func TestABuildReadsWhatItsDockerfileCopies(t *testing.T) {
	const config = `{"build": {"dockerfile": "Dockerfile", "context": "..", "args": {"B": "2", "A": "1"},
		"target": "dev"}}`
	files := map[string]string{
		".devcontainer/Dockerfile": "# syntax=docker/dockerfile:1\nFROM debian AS dev\n" +
			"COPY --chown=1:1 go.mod go.* /src/\nADD src /src\n",
		"go.mod": "module x\n", "go.sum": "sum\n", "src/a.go": "a", "src/skip/b": "b", "src/skip/keep": "k", "other": "o",
		"src/link": "-> a.go", ".dockerignore": "# what it does not need\n**/skip\n!src/skip/keep\n",
	}
	p, err := composed(t, config, files)
	must.Do(t, err)
	if len(p.Refusals) > 0 {
		t.Fatalf("refused: %v", p.Refusals)
	}
	b := p.Build
	var names []string
	for _, f := range b.Files {
		names = append(names, f.Path)
	}
	if want := []string{"go.mod", "go.sum", "src", "src/a.go", "src/link", "src/skip/keep"}; !slices.Equal(names, want) {
		t.Errorf("the context is %v, want %v", names, want)
	}
	if b.Target != "dev" || !slices.Equal(b.Args, []devcontainer.Variable{{"A", "1"}, {"B", "2"}}) || b.UsesBase {
		t.Errorf("the build is %+v", b)
	}
	// Each of what goes in changes the digest, and nothing else does.
	digest := func(config string, change ...string) string {
		all := map[string]string{}
		for name, text := range files {
			all[name] = text
		}
		for i := 0; i < len(change); i += 2 {
			all[change[i]] = change[i+1]
		}
		p, err := composed(t, config, all, "X=1")
		must.Do(t, err)
		return p.Build.Digest()
	}
	same := digest(config)
	if other := digest(config, "other", "changed", "src/skip/b", "changed"); other != same {
		t.Error("a file that is not copied changes the digest")
	}
	for what, other := range map[string]string{
		"a file": digest(config, "src/a.go", "b"), "a name": digest(config, "src/c.go", ""),
		"the Dockerfile": digest(config, ".devcontainer/Dockerfile", files[".devcontainer/Dockerfile"]+"RUN id\n"),
		"an argument":    digest(strings.Replace(config, `"2"`, `"${localEnv:X}"`, 1)),
		"the target":     digest(strings.Replace(config, `"dev"`, `""`, 1)),
	} {
		if other == same {
			t.Errorf("%s does not change the digest", what)
		}
	}
}

func TestABuildStaysInTheProject(t *testing.T) {
	const config = `{"dockerFile": "D"}`
	of := func(text string, more ...string) map[string]string {
		files := map[string]string{".devcontainer/D": text}
		for i := 0; i < len(more); i += 2 {
			files[".devcontainer/"+more[i]] = more[i+1]
		}
		return files
	}
	for name, c := range map[string]struct {
		config, want string
		files        map[string]string
	}{
		"outside":  {`{"build": {"dockerfile": "../../Dockerfile"}}`, "../../Dockerfile is not in the project", nil},
		"absolute": {`{"build": {"dockerfile": "/etc/passwd"}}`, "/etc/passwd is not in the project", nil},
		"context": {`{"build": {"dockerfile": "D", "context": "../.."}}`, "../.. is not in the project",
			of("FROM x\n")},
		"missing":     {config, "there is no such file in the project", nil},
		"a link":      {config, "D", of("-> /etc/passwd")},
		"a mount":     {config, "line 2: RUN with --mount", of("FROM x\nRUN --mount=type=bind,target=/x id\n")},
		"a frontend":  {config, "line 1: a directive", of("# syntax=evil/x\nFROM x\n")},
		"a transport": {config, "line 1: FROM dir:/x", of("FROM dir:/x\n")},
		"above":       {config, "outside of the context", of("FROM x\nCOPY ../../x /\n")},
		"a way out":   {config, "out is a link that leads out", of("FROM x\nCOPY . /\n", "out", "-> /etc")},
		"a hidden way": {config, "up is a link that leads out",
			of("FROM x\nCOPY . /\n", "here", "-> .", "a/b", "", "up", "-> here/a/../..")},
		"a file as the base": {`{"build": {"dockerfile": "D", "args": {"BASE": "tarball:/home/me/backup.tar"}}}`,
			"may name a file of the host", of("ARG BASE\nFROM ${BASE}\n")},
		"a variable as the base": {`{"build": {"dockerfile": "D", "args": {"BASE": "$X", "X": "dir:/x"}}}`,
			"may name a file of the host", of("ARG X\nARG BASE\nFROM ${BASE}\n")},
		"an option as the base": {`{"build": {"dockerfile": "D", "options": ["--build-arg=BASE=dir:/x"]}}`,
			"may name a file of the host", of("ARG BASE\nFROM ${BASE}\n")},
		"a repository": {config, "ADD with https://x.example/y.git#main",
			of("FROM x\nADD https://x.example/y.git#main /y\n")},
		"a hidden repository": {config, "may be a repository", of("FROM x\nADD https://x.example/$Y /y\n")},
		"behind a variable":   {config, "outside of the context", of("FROM x\nCOPY $A ../../x /\n")},
		"two backslashes":     {config, "line 2: two backslashes", of("FROM x\nRUN true \\\\\nRUN id\n")},
		"a secret": {`{"build": {"dockerfile": "D", "options": ["--secret=id=x,src=/etc/shadow"]}}`,
			"--secret is not known", of("FROM x\n")},
	} {
		p, err := composed(t, c.config, c.files)
		must.Do(t, err)
		if len(p.Refusals) != 1 || !strings.Contains(p.Refusals[0].Text, c.want) || p.Refusals[0].Hint == "" ||
			name != "a secret" && p.Build != nil {
			t.Errorf("%s: refused %v, want %q", name, p.Refusals, c.want)
		}
	}
}

func TestNothingIsDroppedInSilence(t *testing.T) {
	p, err := composed(t, `{"image": "x", "userEnvProbe": "none", "hostRequirements": {"cpus": 2}, "surprise": 1,
		"shutdownAction": "none", "containerEnv": {"A": "${containerEnv:B}"}, "build": {"cacheFrom": "x"}}`, nil)
	must.Do(t, err)
	var warned []string
	for _, w := range p.Warnings {
		warned = append(warned, w.Property)
	}
	want := []string{"build.cacheFrom", "hostRequirements", "shutdownAction", "surprise", "userEnvProbe", "containerEnv"}
	if !slices.Equal(warned, want) || len(p.Refusals) > 0 {
		t.Errorf("warned about %v, want %v; refused %v", warned, want, p.Refusals)
	}
}

func TestAVerbatimPlanHasNoValueOfThisHost(t *testing.T) {
	dir, root := project(t, map[string]string{at: `{"image": "x", "containerEnv": {"A": "${localEnv:TOKEN}"},
		"postStartCommand": "use ${localEnv:TOKEN}"}`})
	in := devcontainer.Input{Root: root, Dir: dir, File: at, Getenv: environment("TOKEN=secret")}
	p := must.Get(devcontainer.Compose(t.Context(), in))(t)
	if !slices.Equal(p.Local, []devcontainer.Variable{{"TOKEN", "secret"}}) || p.Env[0].Value != "secret" {
		t.Errorf("the variables are %v of %v", p.Env, p.Local)
	}
	in.Verbatim = true
	shown := must.Get(devcontainer.Compose(t.Context(), in))(t)
	if shown.Env[0].Value != "${localEnv:TOKEN}" || shown.Commands[0].Parts[0].Shell != "use ${localEnv:TOKEN}" {
		t.Errorf("shown are %v, %v", shown.Env, shown.Commands)
	}
}

// null takes a variable away, and what precedes it in the reference's order (containerEnv, runArgs, remoteEnv) sets it.
func TestNullTakesAVariableAway(t *testing.T) {
	for text, want := range map[string]string{
		`"containerEnv": {"A": null}`:                                          "unset A",
		`"remoteEnv": {"A": null}`:                                             "unset A",
		`"containerEnv": {"A": null}, "remoteEnv": {"A": "x"}`:                 "A=x",
		`"containerEnv": {"A": null}, "runArgs": ["-e", "A=x"]`:                "A=x",
		`"containerEnv": {"A": "c"}, "runArgs": ["-e", "A=x"]`:                 "A=x",
		`"runArgs": ["-e", "A=x"], "remoteEnv": {"A": null}`:                   "unset A",
		`"containerEnv": {"A": null}, "remoteEnv": {"A": "${containerEnv:A}"}`: "A=${containerEnv:A}",
	} {
		p, err := composed(t, `{"image": "x", `+text+`}`, nil)
		must.Do(t, err)
		got := ""
		for _, v := range p.Env {
			got += v.Name + "=" + v.Value
		}
		for _, name := range p.Unset {
			got += "unset " + name
		}
		if got != want || len(p.Refusals) > 0 {
			t.Errorf("%s: %q, want %q; refused %v", text, got, want, p.Refusals)
		}
	}
}

// The commands are one argument of a process, and quotes make text up to four times as long, twice.
func TestTheScriptOfTheCommandsIsBounded(t *testing.T) {
	quotes := strings.Repeat("'", 30_000)
	p, err := composed(t, `{"image": "x", "onCreateCommand": "true", "postStartCommand": ": `+quotes+`"}`, nil)
	must.Do(t, err)
	if len(p.Refusals) != 1 || p.Refusals[0].Property != "postStartCommand" || p.Refusals[0].Hint == "" ||
		!strings.Contains(p.Refusals[0].Text, "more than 96 KiB, as a shell gets them") {
		t.Errorf("refused %.200v", p.Refusals)
	}
	var gone []string
	for i := range 60 {
		gone = append(gone, fmt.Sprintf(`"LONG_NAME_%02000d": null`, i))
	}
	p, err = composed(t, `{"image": "x", "remoteEnv": {`+strings.Join(gone, ",")+`}}`, nil)
	must.Do(t, err)
	if len(p.Refusals) != 1 || p.Refusals[0].Property != "remoteEnv" {
		t.Errorf("refused %.200v", p.Refusals)
	}
	var parts []string
	for i := range 65 {
		parts = append(parts, fmt.Sprintf(`"%d": "true"`, i))
	}
	p, err = composed(t, `{"image": "x", "initializeCommand": {`+strings.Join(parts, ",")+`}}`, nil)
	must.Do(t, err)
	if len(p.Refusals) != 1 || !strings.Contains(p.Refusals[0].String(), "more than 64 programs at once") {
		t.Errorf("refused %v", p.Refusals)
	}
	p, err = composed(t, `{"image": "x", "postStartCommand": ": `+strings.Repeat("x", 90_000)+`"}`, nil)
	must.Do(t, err)
	if n := len(p.Script(nil)); len(p.Refusals) > 0 || n > 128<<10 {
		t.Errorf("%d bytes, refused %v", n, p.Refusals)
	}
}

// A value that is long can be named thousands of times in a small file.
func TestVariablesAddABoundedText(t *testing.T) {
	text := `{"image": "x", "workspaceFolder": "/` + strings.Repeat("w", 100_000) + `", "name": "` +
		strings.Repeat("${containerWorkspaceFolder}", 1000) + `"}`
	if _, err := composed(t, text, nil); err == nil ||
		!strings.Contains(err.Error(), "its variables add more than 1 MiB; ${containerWorkspaceFolder} is") {
		t.Errorf("the error is %.200v", err)
	}
}

func TestAContextIsBounded(t *testing.T) {
	for name, c := range map[string]struct{ ignore, want string }{
		"lines":  {strings.Repeat("a\n", 1001), "it has more than 1000 patterns"},
		"a line": {strings.Repeat("a", 1025), `the line that begins with "aaaaaaaaaaaaaaaaaaaa" has more than 1024 bytes`},
		"copies": {"", "than are compared with its .dockerignore"},
		// 60 patterns of a kilobyte each are compared with at most 2,000 names.
		"comparisons": {"!keep\n" + strings.Repeat(strings.Repeat("a", 1000)+"\n", 60),
			"than are compared with its .dockerignore"},
	} {
		files := map[string]string{".devcontainer/D": "FROM x\nCOPY . /\n", ".devcontainer/.dockerignore": c.ignore}
		if name == "copies" { // which are compared with names of 200 bytes
			delete(files, ".devcontainer/.dockerignore")
			for i := range 800 {
				files[fmt.Sprintf(".devcontainer/%0200d", i)] = ""
			}
			var all strings.Builder
			all.WriteString("FROM x\n")
			for i := range 60 {
				fmt.Fprintf(&all, "COPY ?%01000d /\n", i)
			}
			files[".devcontainer/D"] = all.String()
		}
		if name == "comparisons" {
			for i := range 2500 {
				files[fmt.Sprintf(".devcontainer/f%d", i)] = ""
			}
		}
		p, err := composed(t, `{"dockerFile": "D"}`, files)
		must.Do(t, err)
		if len(p.Refusals) != 1 || !strings.Contains(p.Refusals[0].Text, c.want) || p.Refusals[0].Hint == "" {
			t.Errorf("%s: refused %.300v, want %q", name, p.Refusals, c.want)
		}
	}
	deep := ".devcontainer/" + strings.Repeat("d/", 520)
	dir, root := project(t, map[string]string{at: `{"dockerFile": "D"}`, ".devcontainer/D": "FROM x\nCOPY . /\n"})
	must.Do(t, root.MkdirAll(deep, 0o755))
	in := devcontainer.Input{Root: root, Dir: dir, File: at, Getenv: environment()}
	p := must.Get(devcontainer.Compose(t.Context(), in))(t)
	if len(p.Refusals) != 1 || !strings.Contains(p.Refusals[0].Text, "directories that are too deep") {
		t.Errorf("refused %.300v", p.Refusals)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := devcontainer.Compose(ctx, in); !errors.Is(err, context.Canceled) {
		t.Errorf("when it is cancelled: %v", err)
	}
}

func TestAWorkspaceIsThePartOfTheProjectThatIsNamed(t *testing.T) {
	p, err := composed(t, `{"image": "x", "workspaceFolder": "/w/sub",
		"workspaceMount": "type=bind,source=${localWorkspaceFolder}/part,target=/w"}`, map[string]string{"part/sub/x": ""})
	must.Do(t, err)
	want := devcontainer.Workspace{Folder: "/w/sub", Mount: "/w", Source: "part"}
	if p.Workspace != want || len(p.Refusals) > 0 || !strings.Contains(p.Text(), "mount: bind part at /w\n") {
		t.Errorf("the workspace is %+v, want %+v; refused %v\n%s", p.Workspace, want, p.Refusals, p.Text())
	}
}

// The name of an image is in commands that a person is told to run.
func TestTheNameOfAnImageIsNothingElse(t *testing.T) {
	for name, want := range map[string]bool{
		"registry.example:5000/team/dev-image:1.2_x@sha256:" + strings.Repeat("0a", 32): true, "a": true,
		"x;curl|sh": false, "x$(id)": false, "-v": false, "": false, "a b": false, "x`id`": false, "x&": false, "x>y": false,
		"tarball:/home/me/x.tar": false,
	} {
		p, err := composed(t, `{"image": "`+name+`"}`, nil, "HOME=/root")
		must.Do(t, err)
		ok := len(p.Refusals) == 0
		if ok != want || !ok && !strings.Contains(p.Refusals[0].Text, "is no name of an image") {
			t.Errorf("the image %q: refused %v", name, p.Refusals)
		}
	}
}
