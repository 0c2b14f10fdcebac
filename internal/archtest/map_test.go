package archtest

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestTheMapHasEveryPackage checks that the drawing of the packages in docs/architecture.md names each of them, in full
// or by its last part.
func TestTheMapHasEveryPackage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "\n## Packages\n")
	_, rest, _ = strings.Cut(rest, "\n```\n")
	drawing, _, _ := strings.Cut(rest, "\n```\n")
	words := strings.Fields(drawing)
	packages := 0
	err = fs.WalkDir(os.DirFS(filepath.Join("..", "..")), ".", func(at string, d fs.DirEntry, err error) error {
		name := d.Name()
		switch {
		case err != nil:
			return err
		case d.IsDir() && (name == "testdata" || name == "e2e" || len(name) > 1 && name[0] == '.'):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		pkg := path.Dir(at)
		if strings.Contains(pkg, "/internal/") || pkg == "internal/hostport/hosttest" { // a part of the one above it
			return nil
		}
		packages++
		if !slices.Contains(words, pkg) && !slices.Contains(words, path.Base(pkg)) {
			t.Errorf("the drawing does not have %s", pkg)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if packages < 30 {
		t.Errorf("%d files of packages found; the test does not look where they are", packages)
	}
}
