package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

// Without this a release would fail only when it is made.
func TestEveryModuleOfAileronHasAKnownLicence(t *testing.T) {
	const format = "{{with .Module}}{{if not .Main}}{{.Path}}\t{{.Version}}\t{{.Dir}}{{end}}{{end}}"
	out, err := goCommand(t.Context(), "list", "-deps", "-f", format, "github.com/ALRubinger/aileron/cmd/aileron")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for line := range strings.Lines(out) {
		fields := strings.Split(strings.TrimSpace(line), "\t")
		if len(fields) != 3 || seen[fields[0]] {
			continue
		}
		seen[fields[0]] = true
		if _, err := withLicence(module{path: fields[0], version: fields[1]}, fields[2]); err != nil {
			t.Error(err)
		}
	}
	if !seen["github.com/spf13/cobra"] {
		t.Errorf("of %d modules none is cobra: go list did not name the modules of aileron", len(seen))
	}
}

func TestAModuleWithoutAKnownLicenceFails(t *testing.T) {
	for name, c := range map[string]struct{ file, body, want string }{
		"no file":       {"README", "MIT", "has no licence"},
		"only a notice": {"NOTICE", "Copyright", "has no licence"},
		"unknown words": {"LICENSE", "Ask me first.", "is not known"},
	} {
		dir := t.TempDir()
		must.Do(t, os.WriteFile(filepath.Join(dir, c.file), []byte(c.body), 0o600))
		_, err := withLicence(module{path: "example.test/m"}, dir)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: withLicence = %v, want %q", name, err, c.want)
		}
	}
}

func TestTheSBOMDependsOnTheProgramAlone(t *testing.T) {
	info := &debug.BuildInfo{GoVersion: "go1.26.9", Main: debug.Module{Path: "example.test/p", Version: "(devel)"}}
	info.Settings = []debug.BuildSetting{{Key: "-ldflags", Value: "-s -X main.version=1.2.3 -w"}}
	modules := []module{{path: "example.test/m", version: "v0.1.0", sum: "h1:abc=", licence: "MIT"}}
	var one, two strings.Builder
	for _, w := range []*strings.Builder{&one, &two} {
		must.Do(t, writeSBOM(w, info, modules))
	}
	if one.String() != two.String() {
		t.Errorf("two documents differ:\n%s\n%s", one.String(), two.String())
	}
	var b bom
	must.Do(t, json.Unmarshal([]byte(one.String()), &b))
	if b.Metadata.Component.PURL != "pkg:golang/example.test/p@v1.2.3" || len(b.Components) != 1 ||
		b.Components[0].PURL != "pkg:golang/example.test/m@v0.1.0" || b.Components[0].Licences[0].Expression != "MIT" {
		t.Errorf("the document is %s", one.String())
	}
	two.Reset()
	modules[0].licence = "ISC"
	if err := writeSBOM(&two, info, modules); err != nil || strings.Contains(two.String(), b.SerialNumber) {
		t.Error("another content has the same serial number")
	}
}

func TestNoticesHoldEachText(t *testing.T) {
	var out strings.Builder
	texts := []text{{"LICENSE", "words\n"}, {"NOTICE", "more\n"}}
	modules := []module{{path: "example.test/m", version: "v0.1.0", licence: "MIT", texts: texts}}
	must.Do(t, writeNotices(&out, modules))
	for _, want := range []string{"example.test/m v0.1.0 (MIT): LICENSE\n", "\nwords\n", "(MIT): NOTICE\n", "\nmore\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the notices have no %q:\n%s", want, out.String())
		}
	}
}
