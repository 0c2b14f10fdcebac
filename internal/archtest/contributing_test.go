package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A table of where things are misleads as soon as one of them has moved.
func TestContributingNamesFilesThatExist(t *testing.T) {
	root := filepath.Join("..", "..")
	text, err := os.ReadFile(filepath.Join(root, "CONTRIBUTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	file := regexp.MustCompile("`([a-z.][a-zA-Z0-9_./-]*/[a-zA-Z0-9_.-]+)`")
	named := 0
	for _, m := range file.FindAllStringSubmatch(string(text), -1) {
		if strings.Contains(m[1], "NAME") {
			continue
		}
		named++
		if _, err := os.Stat(filepath.Join(root, m[1])); err != nil {
			t.Errorf("CONTRIBUTING.md names %s: %v", m[1], err)
		}
	}
	if named == 0 {
		t.Error("CONTRIBUTING.md names no file: the expression does not fit it any more")
	}
}
