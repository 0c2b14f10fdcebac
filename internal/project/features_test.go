package project

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

// fetcher puts a stand-in for the reference implementation on the PATH, which fetches a feature whose install.sh is the
// file word, and counts its runs in the file runs.
func fetcher(t *testing.T) (word, runs string) {
	t.Helper()
	bin := t.TempDir()
	word, runs = filepath.Join(bin, "word"), filepath.Join(bin, "runs")
	must.Do(t, os.WriteFile(filepath.Join(bin, "devcontainer"), []byte(`#!/bin/sh
set -e
if [ "$*" = --version ]; then echo 0.89.0; exit; fi
echo run >>`+runs+`
mkdir "$TMPDIR/f"
cp `+word+` "$TMPDIR/f/install.sh"
cd "$TMPDIR/f"
echo '{"version": "1.2.3", "containerEnv": {"A": "b"}, "postCreateCommand": "make"}' >devcontainer-feature.json
printf '{"featuresConfiguration":{"featureSets":[{"internalVersion":"2","features":[{"cachePath":"%s"}],' "$PWD"
printf '"sourceInformation":{"type":"oci","userFeatureId":"ghcr.example/a/x:1","manifestDigest":"sha256:0"}}]}}'
`), 0o755))
	must.Do(t, os.WriteFile(word, []byte("echo one\n"), 0o644))
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	return word, runs
}

func TestFeaturesNeedConsentToTheirFetchAndToTheirBytes(t *testing.T) {
	word, runs := fetcher(t)
	dir, a := t.TempDir(), asker(t, t.Output())
	withFiles(t, dir, map[string]string{devcontainerFile: `{"image": "x", "features": {"ghcr.example/a/x:1": {}}}`})
	_, err := using(a, dir)
	if want := `a person must agree to it first: fetch the feature "ghcr.example/a/x:1"`; err == nil ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("without consent: %v", err)
	}
	if _, err := os.Stat(runs); err == nil {
		t.Fatal("it was fetched before a person has agreed")
	}
	w, err := using(a, dir, trusting)
	must.Do(t, err)
	asked := w.ProjectFile().Widens
	for _, want := range []string{`fetch the feature "ghcr.example/a/x:1"`,
		`install the feature "ghcr.example/a/x:1" "1.2.3" (sha256:0)`, "set the variable A of the image",
		"run postCreateCommand of the feature ghcr.example/a/x:1 in the sandbox"} {
		if !slices.ContainsFunc(asked, func(s string) bool { return strings.HasPrefix(s, want) }) {
			t.Errorf("asked about is %q, want %q", asked, want)
		}
	}
	// From here on the registry has something else.
	must.Do(t, os.WriteFile(word, []byte("echo two\n"), 0o644))
	same, err := using(a, dir)
	if err != nil || same.Devcontainer.Plan.Digest != w.Devcontainer.Plan.Digest {
		t.Errorf("the same is asked about again: %v", err)
	}
	anew := func(w *wanted) { w.Devcontainer.Anew = true }
	if _, err := using(a, dir, anew); err == nil || !strings.Contains(err.Error(), "install the feature") {
		t.Errorf("another content has the old consent: %v", err)
	}
	if n := strings.Count(string(must.Get(os.ReadFile(runs))(t)), "run"); n != 2 {
		t.Errorf("it was fetched %d times, want 2", n)
	}
}

// A file of the project can name machines to which the fetch, on this host, sends a request.
func TestWhatALocalFeatureNamesIsAskedAbout(t *testing.T) {
	_, runs := fetcher(t)
	dir, a := t.TempDir(), asker(t, t.Output())
	withFiles(t, dir, map[string]string{devcontainerFile: `{"image": "x", "features": {"./own": {}}}`,
		".devcontainer/own/install.sh": "id", ".devcontainer/own/devcontainer-feature.json": `{"id": "own",
			"dependsOn": {"evil.example/any/data:1": {}}, "installsAfter": ["other.example/any/data"]}`})
	_, err := using(a, dir)
	for _, want := range []string{`fetch the feature "evil.example/any/data:1", which "./own" names`,
		`fetch the feature "other.example/any/data", which "./own" names`, "fetch what these depend on"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("it asks %v, want %q", err, want)
		}
	}
	if _, err := os.Stat(runs); err == nil {
		t.Error("it was fetched before a person has agreed")
	}
}

// What a person is asked about is what was fetched: a file that changes during the fetch ends the start.
func TestFeaturesThatChangeDuringTheirFetchAreNotUsed(t *testing.T) {
	word, _ := fetcher(t)
	dir, a := t.TempDir(), asker(t, t.Output())
	withFiles(t, dir, map[string]string{devcontainerFile: `{"image": "x", "features": {"ghcr.example/a/x:1": {}}}`})
	cli := filepath.Join(filepath.Dir(word), "devcontainer")
	script := string(must.Get(os.ReadFile(cli))(t))
	must.Do(t, os.WriteFile(cli, []byte(script+"\nsed -i s/x:1/y:1/ '"+filepath.Join(dir, devcontainerFile)+"'\n"), 0o755))
	if _, err := using(a, dir, trusting); err == nil || !strings.Contains(err.Error(), "have changed while") {
		t.Errorf("it is used: %v", err)
	}
}

// A secret in an option is not kept on this host, and another option is no other fetch.
func TestOptionsAreNotKept(t *testing.T) {
	_, runs := fetcher(t)
	dir, a := t.TempDir(), asker(t, t.Output())
	for _, option := range []string{"the-secret", "the-other-secret"} {
		withFiles(t, dir, map[string]string{devcontainerFile: `{"image": "x",
			"features": {"ghcr.example/a/x:1": {"token": "` + option + `"}}}`})
		w, err := using(a, dir, trusting)
		must.Do(t, err)
		if got := w.Devcontainer.Plan.Features[0].Options; len(got) != 1 || got[0].Value != option {
			t.Errorf("the options are %v", got)
		}
	}
	kept := must.Get(filepath.Glob(filepath.Join(features{must.Get(a.Home())(t)}.dir(), "*.json")))(t)
	if len(kept) != 1 || strings.Contains(string(must.Get(os.ReadFile(kept[0]))(t)), "secret") {
		t.Errorf("kept are %v, or one has a secret", kept)
	}
	if n := strings.Count(string(must.Get(os.ReadFile(runs))(t)), "run"); n != 1 {
		t.Errorf("it was fetched %d times, want once", n)
	}
}

func TestOldFetchesAreForgotten(t *testing.T) {
	fetcher(t)
	dir, a := t.TempDir(), asker(t, t.Output())
	home := must.Get(a.Home())(t)
	for i := range maxRequests + 2 {
		withFiles(t, dir, map[string]string{devcontainerFile: `{"image": "x", "features": {"ghcr.example/a/x:1` +
			strings.Repeat("1", i) + `": {}}}`})
		_, err := using(a, dir, trusting)
		must.Do(t, err)
	}
	if kept := must.Get(os.ReadDir(features{home}.dir()))(t); len(kept) != maxRequests {
		t.Errorf("%d are kept, want %d", len(kept), maxRequests)
	}
}
