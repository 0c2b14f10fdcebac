package devcontainer_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/sandbox/devcontainer"
)

// fetching returns a stand-in for the reference implementation, which prints what a script makes.
func fetching(t *testing.T, script string) *devcontainer.CLI {
	t.Helper()
	return versioned(t, "0.89.0", script)
}

func versioned(t *testing.T, version, script string) *devcontainer.CLI {
	t.Helper()
	bin := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(bin, "devcontainer"), []byte("#!/bin/sh\nset -e\n"+
		`if [ "$*" = --version ]; then echo "`+version+`"; exit; fi`+"\n"+script), 0o755))
	t.Setenv("PATH", bin+":/usr/local/bin:/usr/bin:/bin")
	return must.Get(devcontainer.FindCLI(t.TempDir()))(t)
}

// printSet prints a feature that was fetched into a directory.
const printSet = `set_of() { printf '{"featuresConfiguration":{"featureSets":[{"internalVersion":"%s","features":[` +
	`{"value":{"n":1},"cachePath":"%s"}],"sourceInformation":{"type":"oci","userFeatureId":"%s",` +
	`"manifestDigest":"sha256:1"}}]}}' "$@"; }
mkdir -p "$TMPDIR/f"; echo id >"$TMPDIR/f/install.sh"; echo {} >"$TMPDIR/f/devcontainer-feature.json"
`

// The program that fetches sees the request, and nothing else of the project or of this host.
func TestAFetchGetsNothingOfThisHost(t *testing.T) {
	t.Setenv("GITHUB_TOKEN", "stolen")
	t.Setenv("DOCKER_HOST", "unix:///run/docker.sock")
	digest := "ghcr.example/a/x@sha256:" + strings.Repeat("0", 64)
	r := &devcontainer.FeatureRequest{
		Features: map[string]any{"ghcr.example/a/x:1": map[string]any{"token": "secret"}, "./own": "secret"},
		Order:    []string{"./own"},
		Local: []devcontainer.LocalFeature{{Ref: "./own", Depends: map[string]any{"ghcr.example/a/z:1": true},
			Files: []devcontainer.File{{Path: "install.sh", Mode: 0o755, Data: []byte("secret")}}}},
		Lock: []byte(`{"features": {"ghcr.example/a/x:1": {"resolved": "` + digest + `"}}}`)}
	seen := filepath.Join(t.TempDir(), "seen")
	cli := fetching(t, printSet+`{ env; echo "$@"; find . -type f; cat .devcontainer/*.json .devcontainer/*/*
cat "$DOCKER_CONFIG"/*; } >`+seen+"\nset_of 2 \"$TMPDIR/f\" "+digest)
	set := must.Get(cli.Fetch(t.Context(), t.TempDir(), r))(t)
	text := string(must.Get(os.ReadFile(seen))(t))
	for _, want := range []string{
		`{"features":{"./f00":{},"` + digest + `":{}},"image":"scratch","overrideFeatureInstallOrder":["./f00"]}`,
		`{"dependsOn":{"ghcr.example/a/z:1":true},"id":"f00","installsAfter":[],"version":"1.0.0"}`,
		"read-configuration --include-features-configuration", `{"auths":{"aileron.invalid":{}}}`} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not see %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "stolen") || strings.Contains(text, "secret") ||
		strings.Contains(text, "DOCKER_HOST") || strings.Count(text, "\n./") != 2 {
		t.Errorf("it sees\n%s", text)
	}
	if f := set.Features[0]; f.Ref != "ghcr.example/a/x:1" || f.Manifest != "sha256:1" || len(f.Files) != 2 ||
		fmt.Sprint(f.Value) != "map[n:1]" || f.Asked {
		t.Errorf("it fetched %+v", f)
	}
	kept := &devcontainer.FeatureSet{}
	must.Do(t, json.Unmarshal(must.Get(json.Marshal(set))(t), kept))
	if !slices.EqualFunc(kept.Features[0].Files, set.Features[0].Files, func(a, b devcontainer.File) bool {
		return a.Path == b.Path && a.Mode == b.Mode && string(a.Data) == string(b.Data)
	}) {
		t.Errorf("kept as %+v", kept)
	}
}

// What was fetched is read from its place alone, and a program that fails, or prints something else, fetches nothing.
func TestAHostileFetchIsRefused(t *testing.T) {
	for script, want := range map[string]string{
		"echo why >&2; exit 3":         "exit status 3: why",
		"echo no":                      "read what the reference implementation prints",
		"echo {}":                      "there are 0",
		"set_of 1 $TMPDIR/f a/x":       "is of a form that is not known",
		"set_of 2 /etc a/x":            "was put outside of its place",
		"set_of 2 ../../../../etc a/x": "was put outside of its place",
		"ln -s /etc $TMPDIR/l; set_of 2 $TMPDIR/l a/x":                    "path escapes",
		"ln -s /etc $TMPDIR/f/l; set_of 2 $TMPDIR/f a/x":                  "leads out of the context",
		"mkfifo $TMPDIR/f/p; set_of 2 $TMPDIR/f a/x":                      "is no file, directory or link",
		"head -c 70000000 /dev/zero >$TMPDIR/f/b; set_of 2 $TMPDIR/f a/x": "a context has at most 64 MiB",
		"head -c 17000000 /dev/zero":                                      "more than 16 MiB",
		"for i in 1 2 3 4 5 6; do head -c 50000000 /dev/zero >$TMPDIR/$i; done; sleep 30; set_of 2 $TMPDIR/f a/x": "" +
			"has more than 256 MiB",
		"head -c 140000000 /dev/zero >$TMPDIR/f/b; set_of 2 $TMPDIR/f a/x": "exit status 153",
		"ln $TMPDIR/f/install.sh $TMPDIR/l; set_of 2 $TMPDIR/f a/x":        "install.sh has another name",
	} {
		scratch := t.TempDir()
		r := &devcontainer.FeatureRequest{Features: map[string]any{"a/x": nil}}
		_, err := fetching(t, printSet+script).Fetch(t.Context(), scratch, r)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", script, err, want)
		}
		if left := must.Get(os.ReadDir(scratch))(t); len(left) > 0 {
			t.Errorf("%s: left %v", script, left)
		}
	}
	for lock, want := range map[string]string{
		`{`: "read devcontainer-lock.json", `{"features": {"a/x": {"resolved": "b/x@sha256:0"}}}`: "it resolves a/x",
		`{"features": {"a/x": {"resolved": "a/x@sha256:0"}}}`: "it resolves a/x",
	} {
		r := &devcontainer.FeatureRequest{Features: map[string]any{"a/x": nil}, Lock: []byte(lock)}
		if _, err := fetching(t, "exit 9").Fetch(t.Context(), t.TempDir(), r); err == nil ||
			!strings.Contains(err.Error(), want) || hint.Of(err) == "" {
			t.Errorf("%s: %v, want %q", lock, err, want)
		}
	}
}

// An older version unpacks hard links to files of this host.
// What a fetch has left that was killed is removed by a later one. One that runs is not disturbed.
func TestWhatAKilledFetchHasLeftIsRemoved(t *testing.T) {
	scratch := t.TempDir()
	var kept []string
	for name, age := range map[string]time.Duration{"fetch-1": 2 * time.Hour, "fetch-2": 20 * time.Minute,
		"other": 2 * time.Hour} {
		dir := filepath.Join(scratch, name)
		must.Do(t, os.MkdirAll(filepath.Join(dir, "tmp"), 0o700))
		at := time.Now().Add(-age)
		must.Do(t, os.Chtimes(dir, at, at))
		if name != "fetch-1" {
			kept = append(kept, name)
		}
	}
	_, _ = fetching(t, "exit 9").Fetch(t.Context(), scratch, &devcontainer.FeatureRequest{})
	var left []string
	for _, e := range must.Get(os.ReadDir(scratch))(t) {
		left = append(left, e.Name())
	}
	slices.Sort(kept)
	if !slices.Equal(left, kept) {
		t.Errorf("left are %q, want %q", left, kept)
	}
}

func TestOnlyATestedVersionFetches(t *testing.T) {
	r := &devcontainer.FeatureRequest{Features: map[string]any{"a/x": nil}}
	for version, ok := range map[string]bool{"0.89.0": true, "0.100.0": true, "1.0.0": true, "0.88.9": false,
		"0.9.0": false, "": false, "next": false} {
		_, err := versioned(t, version, printSet+"set_of 2 $TMPDIR/f a/x").Fetch(t.Context(), t.TempDir(), r)
		if (err == nil) != ok || !ok && (!strings.Contains(err.Error(), "the oldest that is used is 0.89.0") ||
			!strings.Contains(hint.Of(err), "npm install")) {
			t.Errorf("the version %q: %v", version, err)
		}
	}
}

// What a local feature names is fetched by a program in JavaScript on this host, so a person is asked about all that
// this program finds.
func TestWhatALocalFeatureNamesIsKnownBeforeItIsFetched(t *testing.T) {
	both := `{"image": "x", "features": {"./a": {}, "./b": {}}}`
	for metadata, want := range map[string]string{
		`{"dependsOn": {"evil.example/a/d:1": {}},
			"installsAfter": ["./b", "./c", "evil.example/a/i"]}`: `[{evil.example/a/d:1  ./a} {evil.example/a/i  ./a}]`,
		`{"dependsOn": {"./b": {"n": true}}}`:                             "[]",
		`{"__proto__": {"dependsOn": {"evil.example/a/d:1": {}}}}`:        `it has the key "__proto__"`,
		`{"dependsOn": {"a/b/c": {"o": [{"constructor": 1}]}}}`:           `it has the key "constructor"`,
		`{"dependsOn": {"a/b/c": {"o": "${localEnv:HOME}"}}}`:             "has a variable",
		`{"dependsOn": {"https://evil.example/${localEnv:X}/a.tgz": {}}}`: "has a variable",
		`{"dependsOn": {"a b": {}}}`:                                      `it names "a b"`,
		`{"dependsOn": {"./c": {}}}`:                                      `on "./c", which is not among the features`,
		`{"dependsOn": ["a/b/c"]}`:                                        "its dependsOn is no object",
		`{"installsAfter": [["a/b/c"]]}`:                                  "its installsAfter is no list",
		`{"installsAfter": "a/b/c"}`:                                      "its installsAfter is no list",
		`{`:                                                               "read its devcontainer-feature.json",
	} {
		p := must.Get(composed(t, both, map[string]string{
			".devcontainer/a/install.sh": "id", ".devcontainer/b/install.sh": "id",
			".devcontainer/a/devcontainer-feature.json": metadata, ".devcontainer/b/devcontainer-feature.json": "{}",
			// Where the file system ignores case, this is the same file.
			".devcontainer/b/DEVCONTAINER-FEATURE.json": `{"dependsOn": {"evil.example/a/d:1": {}}}`}))(t)
		if len(p.Refusals) > 0 {
			if len(p.Refusals) != 1 || !strings.Contains(p.Refusals[0].Text, want) || p.Refusals[0].Hint == "" {
				t.Errorf("%s: refused %v, want %q", metadata, p.Refusals, want)
			}
			continue
		}
		if remote := must.Get(p.Requested.Remote())(t); fmt.Sprint(remote) != want {
			t.Errorf("%s: it fetches %v, want %s", metadata, remote, want)
		}
	}
	for _, text := range []string{`{"constructor": {}}`, `{"a/b/c": {"o": {"__proto__": {"p": 1}}}}`} {
		p := must.Get(composed(t, `{"image": "x", "features": `+text+`}`, nil))(t)
		if len(p.Refusals) != 1 || !strings.Contains(p.Refusals[0].Text, "which stands for something else") {
			t.Errorf("%s: refused %v", text, p.Refusals)
		}
	}
}

// Options stay here: the program that fetches would replace variables in them once more.
func TestOptionsAreTakenFromTheRequest(t *testing.T) {
	text := `{"image": "x", "features": {"ghcr.example/a/x:1": {"n": "$${localEnv:NONE}{localEnv:SECRET}"}}}`
	asked := devcontainer.FetchedFeature{Ref: "ghcr.example/a/x:1", Asked: true,
		Files: feature("", `{}`, nil).Files}
	other := asked
	other.Asked, other.Value = false, map[string]any{"n": "2"}
	same := asked
	same.Asked, same.Value = false, map[string]any{"n": "${localEnv:SECRET}"}
	p := featured(t, text, other, asked, same)
	if len(p.Features) != 2 || fmt.Sprint(p.Features[0].Options, p.Features[1].Options) !=
		"[{N 2}] [{N ${localEnv:SECRET}}]" {
		t.Errorf("the features are %+v %v", p.Features, p.Refusals)
	}
}

func TestTheProgramThatFetchesIsNoneOfTheProjects(t *testing.T) {
	dir := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	must.Do(t, os.WriteFile(filepath.Join(dir, "devcontainer"), []byte("#!/bin/sh\n"), 0o755))
	t.Setenv("PATH", dir)
	if _, err := devcontainer.FindCLI(dir); err == nil || !strings.Contains(err.Error(), "a file of the project") {
		t.Errorf("it is %v", err)
	}
	link := t.TempDir()
	must.Do(t, os.Symlink(filepath.Join(dir, "devcontainer"), filepath.Join(link, "devcontainer")))
	t.Setenv("PATH", link)
	if _, err := devcontainer.FindCLI(dir); err == nil || !strings.Contains(err.Error(), "a file of the project") {
		t.Errorf("through a link it is %v", err)
	}
	// A program that it starts, and finds by name, is none of the project's either.
	must.Do(t, os.WriteFile(filepath.Join(link, "devcontainer-own"), []byte(
		"#!/bin/sh\nif [ \"$*\" = --version ]; then echo 0.89.0; exit; fi\necho \"$PATH\" >&2\nexit 1\n"), 0o755))
	must.Do(t, os.Remove(filepath.Join(link, "devcontainer")))
	must.Do(t, os.Rename(filepath.Join(link, "devcontainer-own"), filepath.Join(link, "devcontainer")))
	inside, alias := filepath.Join(dir, "bin"), filepath.Join(t.TempDir(), "alias")
	must.Do(t, os.Mkdir(inside, 0o755))
	must.Do(t, os.Symlink(inside, alias))
	t.Setenv("PATH", "bin:"+inside+":"+alias+":"+link+":/usr/bin:/bin")
	_, err := must.Get(devcontainer.FindCLI(dir))(t).Fetch(t.Context(), t.TempDir(),
		&devcontainer.FeatureRequest{Features: map[string]any{"a/x": nil}})
	if err == nil || !strings.HasSuffix(err.Error(), ": "+link+":/usr/bin:/bin") {
		t.Errorf("it looks for programs in %v", err)
	}
	node := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(inside, "node"), []byte("#!/bin/sh\n"), 0o755))
	must.Do(t, os.Symlink(filepath.Join(inside, "node"), filepath.Join(node, "node")))
	t.Setenv("PATH", node+":"+link+":/usr/bin:/bin")
	if _, err := devcontainer.FindCLI(dir); err == nil || !strings.Contains(err.Error(), "the node on the PATH is") {
		t.Errorf("with a node of the project: %v", err)
	}
	t.Setenv("PATH", link+":/usr/bin:/bin")
	if found, err := devcontainer.FindCLI(t.TempDir()); err != nil || found.Path != filepath.Join(link, "devcontainer") {
		t.Errorf("it is %+v, %v", found, err)
	}
	t.Setenv("PATH", t.TempDir())
	if _, err := devcontainer.FindCLI(dir); err == nil || !strings.Contains(hint.Of(err), "npm install") {
		t.Errorf("without it: %v", err)
	}
}
