package config_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/config"
	"github.com/ALRubinger/aileron/internal/format"
	"github.com/ALRubinger/aileron/internal/hint"
)

// read reads a config.toml with the given text.
func read(t *testing.T, text string) (config.Config, error) {
	t.Helper()
	home := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(home, "config.toml"), []byte(text), 0o600))
	return config.Read(home)
}

// check wants an error that contains want, or none if want is "".
func check(t *testing.T, text, want string) {
	t.Helper()
	_, err := read(t, text)
	if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
		t.Errorf("%q: the error is %v, want %q", text, err, want)
	}
}

func TestAMissingFileMeansTheDefaults(t *testing.T) {
	c, err := config.Read(t.TempDir())
	if err != nil || c.Limits != (config.Limits{}) || !reflect.DeepEqual(c.Sandbox, config.Sandbox{}) {
		t.Errorf("Read = %+v, %v; want the zero value", c, err)
	}
}

func TestAFileThatCannotBeReadIsAnError(t *testing.T) {
	home := t.TempDir()
	if err := os.Mkdir(filepath.Join(home, "config.toml"), 0o700); err != nil { // reading a directory fails
		t.Fatal(err)
	}
	_, err := config.Read(home)
	var unreadable *config.UnreadableError
	if !errors.As(err, &unreadable) || unreadable.ErrorReason() != "config_unreadable" {
		t.Errorf("Read: %v, want an UnreadableError", err)
	}
}

// What a newer aileron wrote is named as such, even if the rest of the file is
// unknown too.
func TestANewerFormatIsRefusedAsThat(t *testing.T) {
	for _, text := range []string{"format = 2\nnews = 1\n", "format = \"two\"\n"} {
		if _, err := read(t, text); !errors.As(err, new(*format.Error)) {
			t.Errorf("%q: %v, want a format.Error", text, err)
		}
	}
	check(t, "format = 1\n", "")
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
		check(t, "[limits]\n"+line+"\n", want)
	}
	for _, key := range []string{
		"head_bytes", "head_fields", "body_bytes", "connections", "requests", "rate", "memory_bytes",
	} {
		check(t, fmt.Sprintf("[limits]\n%s = -1\n", key), "limits."+key+" is -1; it must not be negative")
	}
	for _, key := range []string{
		"head_timeout", "handshake_timeout", "idle_timeout", "body_timeout", "body_pause_timeout", "write_timeout",
		"dial_timeout", "response_header_timeout", "upstream_idle_timeout", "drain_timeout",
	} {
		check(t, fmt.Sprintf("[limits]\n%s = \"8\"\n", key), `"8" has no unit; write 8s, 8m or 8h`)
		for _, value := range []string{"-1s", "0s"} {
			check(t, fmt.Sprintf("[limits]\n%s = %q\n", key, value), "it is not positive")
		}
		check(t, fmt.Sprintf("[limits]\n%s = \"1m30s\"\n", key), "")
	}
}

// A key that is misspelt, or of another table, is refused by its full name: it
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
		check(t, text, want)
	}
	_, err := read(t, "[limits]\nrequest = 5\n")
	if got, want := hint.Of(err), "docs/configuration.md lists the keys"; got != want {
		t.Errorf("the hint is %q, want %q", got, want)
	}
}

// The answer is added to whatever the file has, or the file stays as it is.
func TestUnattendedIsAddedToTheFile(t *testing.T) {
	for before, after := range map[string]string{
		"":                     "[sandbox]\nunattended = true\n",
		"# mine\ntunnel = []":  "# mine\ntunnel = []\n\n[sandbox]\nunattended = true\n",
		"[limits]\nrate = 5\n": "[limits]\nrate = 5\n\n[sandbox]\nunattended = true\n",
		"[sandbox] # here\nkeep = false\n\n[audit]\n": "[sandbox] # here\nunattended = true\nkeep = false\n\n[audit]\n",
		"sandbox = {keep = false}\n":                  "",
	} {
		home := t.TempDir()
		path := filepath.Join(home, "config.toml")
		must.Do(t, os.WriteFile(path, []byte(before), 0o600))
		err := config.KeepUnattended(home, true)
		if got := string(must.Get(os.ReadFile(path))(t)); after != "" && (got != after || err != nil) ||
			after == "" && (got != before || err == nil || hint.Of(err) == "") {
			t.Errorf("%q becomes %q, %v; want %q", before, got, err, after)
		}
		if c, err := config.Read(home); err != nil || after != "" && (c.Sandbox.Unattended == nil || !*c.Sandbox.Unattended) {
			t.Errorf("%q is read as %v, %v", after, c.Sandbox.Unattended, err)
		}
	}
}
