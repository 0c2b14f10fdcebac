package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A limit with which no session can work is refused by its name.
func TestALimitThatCannotWorkIsRefusedByName(t *testing.T) {
	for line, want := range map[string]string{
		"memory_bytes = 1048575": "limits.memory_bytes is 1048575; it must be at least 1048576",
		"memory_bytes = 1":       "limits.memory_bytes is 1; it must be at least 1048576",
		"memory_bytes = -1":      "limits.memory_bytes is -1; it must not be negative",
		"requests = -2":          "limits.requests is -2; it must not be negative",
		"memory_bytes = 1048576": "",
		"memory_bytes = 0":       "",
		"head_bytes = 4096":      "",
	} {
		home := t.TempDir()
		if err := os.WriteFile(filepath.Join(home, "config.toml"), []byte("[limits]\n"+line+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := readConfig(home)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: the error is %v, want %q", line, err, want)
		}
	}
}
