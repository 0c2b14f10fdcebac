package connectors

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

// A file that appears between the look and the writing is not replaced either.
func TestANewFileReplacesNone(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "acme.key")
	must.Do(t, os.WriteFile(file, []byte("precious"), 0o600))
	if err := writeNewFile(file, []byte("new"), 0o600); err == nil || !strings.Contains(err.Error(),
		"exists already") {
		t.Errorf("writeNewFile = %v", err)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "precious" {
		t.Errorf("the file has %q, %v", text, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("the directory has %v, %v", left, err)
	}
}
