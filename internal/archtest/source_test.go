package archtest

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

const module = "github.com/ALRubinger/aileron"

// file is one source file of the repository.
type file struct {
	path string // slash-separated, relative to the repository's root
	text []byte
}

// dir returns the file's directory; for test data, the directory of the package that owns it.
func (f file) dir() string {
	if owner, _, ok := strings.Cut(f.path, "/testdata/"); ok {
		return owner
	}
	return path.Dir(f.path)
}

func (f file) isGo() bool   { return strings.HasSuffix(f.path, ".go") }
func (f file) isTest() bool { return strings.HasSuffix(f.path, "_test.go") }

// imports returns the packages that the file imports. Build constraints do not matter: a file for another system
// has to keep the rules too.
func (f file) imports(t *testing.T) []string {
	t.Helper()
	parsed := must.Get(parser.ParseFile(token.NewFileSet(), f.path, f.text, parser.ImportsOnly))(t)
	var paths []string
	for _, spec := range parsed.Imports {
		imported := must.Get(strconv.Unquote(spec.Path.Value))(t)
		paths = append(paths, imported)
	}
	return paths
}

// sources returns the text files of the repository for which accept returns true.
func sources(t *testing.T, accept func(name string) bool) []file {
	t.Helper()
	root := os.DirFS(filepath.Join("..", ".."))
	var files []file
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == ".git" || name == "bin" || name == "build" || entry.Name() == "node_modules"):
			return fs.SkipDir
		case !entry.Type().IsRegular() || !accept(name):
			return nil
		}
		text, err := fs.ReadFile(root, name)
		files = append(files, file{name, text})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatal("no source file found: the tests run in a directory that is not the repository's")
	}
	return files
}

// goSources returns the Go files that are part of a package, tests included.
func goSources(t *testing.T) []file {
	t.Helper()
	return sources(t, func(name string) bool {
		return strings.HasSuffix(name, ".go") && !strings.Contains(name, "/testdata/")
	})
}
