package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/home"
	"github.com/ALRubinger/aileron/vault"
)

const exampleGitHub = "../../examples/connectors/github"

const githubFQN = "github://alrubinger/aileron-connector-github"

// cli runs one command line in a home of the test's own.
type runner struct {
	t    *testing.T
	Flag string
}

func newRunner(t *testing.T) runner { return runner{t, t.TempDir()} }

func (c runner) run(args ...string) (stdout, stderr string, code int) {
	c.t.Helper()
	return c.runWith(strings.NewReader(""), args...)
}

func (c runner) runWith(stdin io.Reader, args ...string) (stdout, stderr string, code int) {
	c.t.Helper()
	var out, errs bytes.Buffer
	a := cli.New(&console.Console{Stdin: stdin, Stdout: &out, Stderr: &errs},
		&home.Dir{VaultOptions: cheapVaults()})
	code = Main(c.t.Context(), append([]string{"--home", c.Flag}, args...), a)
	return out.String(), errs.String(), code
}

// ok runs what must succeed.
func (c runner) ok(args ...string) string {
	c.t.Helper()
	out, errs, code := c.run(args...)
	if code != 0 {
		c.t.Fatalf("aileron %q ends with %d: %s", args, code, errs)
	}
	return out
}

func decode[T any](t *testing.T, s string) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(s), &v); err != nil {
		t.Fatalf("%q is not JSON: %v", s, err)
	}
	return v
}

const testPassphrase = "correct horse battery"

// cheapVaults is what keeps scrypt, slow on purpose, from being most of what
// these tests do.
func cheapVaults() []vault.Option { return []vault.Option{vault.TestOnlyWorkFactor(10)} }

// owner is a cli whose environment holds the vault's passphrase.
type owner struct {
	runner
	env map[string]string
}

func newOwner(t *testing.T) owner {
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "") // the developer's own keyring is no part of this
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	return owner{newRunner(t), map[string]string{"AILERON_VAULT_PASSPHRASE": testPassphrase}}
}

func (o owner) runWith(stdin io.Reader, args ...string) (stdout, stderr string, code int) {
	o.t.Helper()
	var out, errs bytes.Buffer
	a := cli.New(&console.Console{Stdin: stdin, Stdout: &out, Stderr: &errs},
		&home.Dir{Environ: func(k string) string { return o.env[k] }, VaultOptions: cheapVaults()})
	code = Main(o.t.Context(), append([]string{"--home", o.Flag}, args...), a)
	return out.String(), errs.String(), code
}

func (o owner) run(args ...string) (stdout, stderr string, code int) {
	o.t.Helper()
	return o.runWith(strings.NewReader(""), args...)
}

func (o owner) ok(args ...string) string {
	o.t.Helper()
	out, errs, code := o.run(args...)
	if code != 0 {
		o.t.Fatalf("aileron %q ends with %d: %s", args, code, errs)
	}
	return out
}

// isFailure reports whether text is what a failed command prints: its error and its hint in one line, or an object with
// --json.
func isFailure(text string) bool {
	return regexp.MustCompile(`^aileron: [^\n]+\n$|^\{"error":[^\n]+\}\n$`).MatchString(text)
}

// waits are what a command says of an engine that a busy machine makes slow.
var waits = regexp.MustCompile(`(?m)^aileron: waiting for \w+ to .* \(\d+s; Ctrl-C ends it\)\n`)

// fails runs what must fail with want in its error or its hint.
func (o owner) fails(want string, args ...string) {
	o.t.Helper()
	out, errs, code := o.run(args...)
	errs = waits.ReplaceAllString(errs, "")
	if code == 0 || !strings.Contains(errs, want) || !isFailure(errs) || strings.Contains(errs, testPassphrase) {
		o.t.Errorf("aileron %q ends with %d and says %q, want a failure with %q", args, code, errs, want)
	}
	if out != "" {
		o.t.Errorf("aileron %q fails and prints %q", args, out)
	}
}

func (o owner) file(name, text string) string {
	o.t.Helper()
	path := filepath.Join(o.t.TempDir(), name)
	must.Do(o.t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

type statusJSON struct {
	Initialised, Locked bool
	Bindings            int
}
