package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/doctor"
	"github.com/ALRubinger/aileron/sandbox/engine"
)

// doctorJSON is what doctor --json prints.
type doctorJSON struct {
	OK     bool
	Checks []doctor.Finding
}

// Each thing that is wrong is a line, a warning or a failure, that names the fix.
func TestDoctorNamesWhatIsWrongAndTheFix(t *testing.T) {
	for name, c := range map[string]struct {
		check, state, text, fix string
		spoil                   func(o owner)
	}{
		"open home": {"home", doctor.StateFail, "other users", "chmod 700", func(o owner) {
			must.Do(t, os.Chmod(o.Flag,
				0o755))
		}},
		"settings": {"settings", doctor.StateFail, "config.toml", "correct the file",
			func(o owner) { must.Do(t, os.WriteFile(filepath.Join(o.Flag, "config.toml"), []byte("x = ["), 0o600)) }},
		"locked": {"vault", doctor.StateWarn, "it is locked", "aileron vault unlock", func(o owner) {
			o.ok("vault",
				"lock")
		}},
		"no vault": {"vault", doctor.StateWarn, "there is none yet", "aileron setup",
			func(o owner) { must.Do(t, os.RemoveAll(filepath.Join(o.Flag, "vault"))) }},
		"open vault": {"vault", doctor.StateFail, "identity.age", "permissions", func(o owner) {
			must.Do(t, os.Chmod(filepath.Join(o.Flag, "vault", "identity.age"), 0o666))
		}},
		"unbound": {"connectors", doctor.StateWarn, "has no credential", "aileron binding setup",
			func(o owner) { o.ok("connector", "install", "github", "--yes") }},
		"a changed connector": {"connectors", doctor.StateFail, "was changed", "connector", func(o owner) {
			files := must.Get(filepath.Glob(filepath.Join(o.Flag, "store/connectors/sha256/*/manifest.toml")))(t)
			must.Do(t, os.Chmod(files[0], 0o600))
			must.Do(t, os.WriteFile(files[0], []byte("[connector]\n"), 0o600))
		}},
		"a removed key": {"connectors", doctor.StateWarn, "which was removed from the keys of github://acme",
			"aileron connector remove github://acme/tracker@1.0.0", func(o owner) {
				key, id, _ := secretKey(t)
				o.ok("connector", "install", o.packed(trackerDir(t, "acme", "1.0.0"), key), "--yes")
				o.ok("connector", "keys", "remove", "github://acme", id)
			}},
		"no model": {"agents", doctor.StateWarn, "claude has no connector", "aileron setup claude",
			func(o owner) { o.ok("connector", "remove", "anthropic") }},
		"another provider": {"agents", doctor.StateWarn, "codex has no connector", "aileron setup codex",
			func(o owner) { o.ok("connector", "install", "local-openai", "--yes") }},
		"audit log": {"audit log", doctor.StateFail, "it does not verify", "aileron audit verify", func(o owner) {
			must.Do(t, os.WriteFile(filepath.Join(o.Flag, "audit.db"), []byte("SQLite format 3\x00 and nothing more"), 0o600))
		}},
		"clock": {"clock", doctor.StateFail, "it was set back", "set the clock", func(o owner) {
			l := must.Get(audit.Open(filepath.Join(o.Flag, "audit.db"), audit.Options{}))(t)
			row := audit.Row{Event: "session.ended", TS: time.Now().Add(time.Hour)}
			must.Get(l.Append(t.Context(), row))(t)
			must.Do(t, l.Close())
		}},
	} {
		o := newOwner(t)
		must.Do(t, os.Chmod(o.Flag, 0o700))
		o.ok("setup", "claude", "--yes", "--sandbox=off", "--key-file", o.file("key", anthropicKey))
		o.ok("connector", "install", "npm", "--yes")
		c.spoil(o)
		out, _, code := o.run("doctor", "--json")
		got := decode[doctorJSON](t, out)
		if got.OK != (code == 0) || c.state == doctor.StateFail && code != 1 {
			t.Errorf("%s: it ends with %d: %s", name, code, out)
		}
		found := false
		for _, f := range got.Checks {
			found = found || f.Check == c.check && f.State == c.state && strings.Contains(f.Text, c.text) &&
				strings.Contains(f.Fix, c.fix) && f.Fix != ""
			if f.State != doctor.StateOK && f.Fix == "" {
				t.Errorf("%s: %q has no fix: %s", name, f.Check, f.Text)
			}
		}
		if !found {
			t.Errorf("%s: no %s of %q with %q and %q: %s", name, c.state, c.check, c.text, c.fix, out)
		}
	}
}

// A process without enough descriptors is named as the cause, and starts no session.
func TestTooFewOpenFilesAreNamed(t *testing.T) {
	o := newOwner(t)
	limited := func(limit int, args ...string) string {
		cmd := o.program(args...)
		cmd.Args = append([]string{"sh", "-c", fmt.Sprintf(`ulimit -n %d; exec "$@"`, limit), "sh", cmd.Path},
			cmd.Args[1:]...)
		cmd.Path = "/bin/sh"
		out, _ := cmd.CombinedOutput()
		return string(out)
	}
	if got := limited(20, "run", "--", "true"); !strings.Contains(got, "may have 20 files open, and it needs 32; hint: "+
		"raise the limit of open files (ulimit -n)") {
		t.Errorf("a session with 20 files: %s", got)
	}
	for limit, want := range map[int]string{20: `(?m)^FAIL  limits .*\n +fix: .*ulimit -n`,
		100: `(?m)^warn  limits .*100`} {
		if got := limited(limit, "doctor"); !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("with %d files doctor has no %s: %s", limit, want, got)
		}
	}
}

// An engine that accepts connections and never responds is given up, and named.
func TestDoctorGivesUpAnEngineThatHangs(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for 20 seconds")
	}
	o := newOwner(t)
	dir := must.ShortDir(t)
	l := must.Get(net.Listen("unix", filepath.Join(dir, "s")))(t)
	defer l.Close()
	o.env["DOCKER_HOST"] = "unix://" + filepath.Join(dir, "s")
	out, _ := o.program("doctor", "--json").Output()
	got := decode[doctorJSON](t, string(out))
	for _, f := range got.Checks {
		if f.Check == "docker" && f.State == doctor.StateWarn && strings.Contains(f.Text, "did not respond within 20s") {
			return
		}
	}
	t.Errorf("doctor says nothing of it: %s", out)
}

// Storage that copies images works, and is a warning; a Podman that is installed need not be installed.
func TestDoctorKnowsSlowStorageAndABrokenPodman(t *testing.T) {
	if got := doctor.CheckStorage("podman", engine.About{Storage: "overlay"}); len(got) > 0 {
		t.Errorf("overlay: %v", got)
	}
	got := doctor.CheckStorage("podman", engine.About{Storage: "vfs"})
	if len(got) != 1 || got[0].State != doctor.StateWarn || !strings.Contains(got[0].Text, "a copy of its image") ||
		!strings.Contains(got[0].Fix, "docs/sandbox.md") {
		t.Errorf("vfs: %v", got)
	}
	if fix := doctor.EngineFix(true); strings.Contains(fix, "install Podman (") || !strings.Contains(fix, "podman info") {
		t.Errorf("with a Podman: %q", fix)
	}
	if fix := doctor.EngineFix(false); !strings.Contains(fix, "apt-get install podman") {
		t.Errorf("without: %q", fix)
	}
}
