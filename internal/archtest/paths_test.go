package archtest

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	codeSpan  = regexp.MustCompile("`([^`\n]+)`")
	plainName = regexp.MustCompile(`^[A-Za-z0-9_.][A-Za-z0-9_./-]*$`)
)

// TestPathsOfTheManualExist checks the pages that lead a reader into the code: each path of the repository that they
// name is there. A path is a code span with a slash, or the name of a file. A file without its directory belongs to
// some directory that the same paragraph, or row of a table, names.
func TestPathsOfTheManualExist(t *testing.T) {
	root := os.DirFS(filepath.Join("..", ".."))
	for _, page := range []string{"docs/architecture.md", "CONTRIBUTING.md"} {
		text := prose(t, filepath.Join("..", "..", page))
		paths := 0
		for _, paragraph := range paragraphs(text) {
			names := namedPaths(paragraph)
			paths += len(names)
			for _, name := range names {
				if !isThere(root, name, names) {
					t.Errorf("%s names %s, which does not exist", page, name)
				}
			}
		}
		if paths < 10 {
			t.Errorf("%s: %d paths found; the test does not read it as it is written", page, paths)
		}
	}
}

// paragraphs splits a page at its empty lines, and tables into their rows.
func paragraphs(text string) []string {
	return strings.Split(strings.ReplaceAll(text, "\n|", "\n\n|"), "\n\n")
}

// namedPaths returns the code spans that are paths of the repository. Those with a word in capitals, such as
// sandbox/agents/NAME.go, name a file that a reader is about to make; noun_verb.go is a pattern of names.
func namedPaths(text string) []string {
	var names []string
	for _, span := range codeSpan.FindAllStringSubmatch(text, -1) {
		name := span[1]
		switch {
		case !plainName.MatchString(name), strings.Contains(name, "NAME"), name == "noun_verb.go", name == "_test.go":
		case strings.Contains(name, "/"), path.Ext(name) == ".go", path.Ext(name) == ".md":
			names = append(names, name)
		}
	}
	return names
}

// isThere reports whether the path exists: from the root, or in the directory of one of its neighbours.
func isThere(root fs.FS, name string, neighbours []string) bool {
	if exists(root, name) {
		return true
	}
	for _, neighbour := range neighbours {
		if path.Ext(neighbour) != "" {
			neighbour = path.Dir(neighbour)
		}
		if !strings.Contains(name, "/") && exists(root, path.Join(neighbour, name)) {
			return true
		}
	}
	return false
}

func exists(root fs.FS, name string) bool {
	_, err := fs.Stat(root, path.Clean(name))
	return err == nil
}
