package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/internal/hint"
)

// configured returns the error of a config.toml.
func configured(t *testing.T, text string) error {
	t.Helper()
	home := t.TempDir()
	fatal(t, os.WriteFile(filepath.Join(home, "config.toml"), []byte(text), 0o600))
	_, err := readConfig(home)
	return err
}

// checkConfig wants an error with want, or none when want is "".
func checkConfig(t *testing.T, text, want string) {
	t.Helper()
	err := configured(t, text)
	if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
		t.Errorf("%q: the error is %v, want %q", text, err, want)
	}
}

// A limit with which no session can work is refused by its name.
func TestALimitThatCannotWorkIsRefusedByName(t *testing.T) {
	for line, want := range map[string]string{
		"memory_bytes = 1048575": "limits.memory_bytes is 1048575; it must be at least 1048576",
		"memory_bytes = 1":       "limits.memory_bytes is 1; it must be at least 1048576",
		"memory_bytes = 1048576": "",
		"memory_bytes = 0":       "",
		"head_bytes = 4096":      "",
	} {
		checkConfig(t, "[limits]\n"+line+"\n", want)
	}
	for _, key := range []string{
		"head_bytes", "head_fields", "body_bytes", "connections", "requests", "rate", "memory_bytes",
	} {
		checkConfig(t, fmt.Sprintf("[limits]\n%s = -1\n", key), "limits."+key+" is -1; it must not be negative")
	}
	for _, key := range []string{
		"head_timeout", "handshake_timeout", "idle_timeout", "body_timeout", "write_timeout", "dial_timeout",
		"response_header_timeout", "upstream_idle_timeout", "drain_timeout",
	} {
		for _, value := range []string{"-1s", "0s"} {
			checkConfig(t, fmt.Sprintf("[limits]\n%s = %q\n", key, value), "it is not positive")
		}
		checkConfig(t, fmt.Sprintf("[limits]\n%s = \"1m30s\"\n", key), "")
	}
}

// A key that is misspelt, or of another place, is refused by its full name: it
// would be a limit that its owner believes in.
func TestAnUnknownKeyIsRefusedByName(t *testing.T) {
	for text, want := range map[string]string{
		"[limits]\nrequest = 5\n":                        "unknown key limits.request",
		"[limit]\nrequests = 5\n":                        "unknown key limit",
		"requests = 5\n":                                 "unknown key requests",
		"[audit]\ndurability = \"full\"\nfsync = true\n": "unknown key audit.fsync",
		"[upstream]\nca_file = \"x\"\n":                  "unknown key upstream.ca_file",
		"[a.b]\nc = 1\n[limits]\nrates = 1\n":            "limits.rates",
		"[limits]\nrequests = 5\n":                       "",
		"":                                               "",
	} {
		checkConfig(t, text, want)
	}
	if got := hint.Of(configured(t, "[limits]\nrequest = 5\n")); !strings.Contains(got, "docs/configuration.md lists the keys") {
		t.Errorf("the hint is %q", got)
	}
}
