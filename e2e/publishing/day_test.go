package publishing

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/forge"
	"github.com/ALRubinger/aileron/e2e/must"
)

// run runs a command of the person, and returns what it prints.
func (p *person) run(name string, args ...string) (out, errs string, code int) {
	p.t.Helper()
	cmd := exec.CommandContext(p.t.Context(), name, args...)
	if name == "aileron" { // the script that reaches the stand-in
		cmd.Path, cmd.Err = filepath.Join(p.path, name), nil
	}
	var stdout, stderr bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = p.at, p.env, &stdout, &stderr
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		p.t.Fatalf("%s %q: %v", name, args, err)
	}
	return stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
}

// ok runs a command that succeeds, and returns all that it prints.
func (p *person) ok(name string, args ...string) string {
	p.t.Helper()
	out, errs, code := p.run(name, args...)
	if code != 0 {
		p.t.Fatalf("%s %q ends with %d:\n%s%s", name, args, code, out, errs)
	}
	return out + errs
}

// fails runs a command of aileron that fails for a reason.
func (p *person) fails(reason string, args ...string) string {
	p.t.Helper()
	_, errs, code := p.run("aileron", append(args, "--json")...)
	var refused struct {
		Error struct {
			Message string
			Details struct{ Reason string }
		}
	}
	lines := strings.Split(strings.TrimSpace(errs), "\n")
	_ = json.Unmarshal([]byte(lines[len(lines)-1]), &refused)
	if code != 1 || refused.Error.Details.Reason != reason {
		p.t.Errorf("aileron %q ends with %d and %q, want the reason %s", args, code, errs, reason)
	}
	return refused.Error.Message
}

// keyStates returns the keys that the person's aileron knows, as the last characters of their ids, by state.
func (p *person) keyStates() (states map[string][]string) {
	p.t.Helper()
	var keys []struct {
		State     string
		PublicKey string `json:"public_key"`
	}
	out, _, _ := p.run("aileron", "connector", "keys", "list", "--json")
	must.Do(p.t, json.Unmarshal([]byte(out), &keys))
	states = map[string][]string{}
	for _, k := range keys {
		states[k.State] = append(states[k.State], k.PublicKey)
	}
	return states
}

// key returns the public key of a file that keygen wrote.
func (p *person) key(name string) string {
	p.t.Helper()
	text := must.Get(os.ReadFile(filepath.Join(p.at, "..", name+".pub")))(p.t)
	lines := strings.Fields(string(text))
	return lines[len(lines)-1]
}

// keyID returns its id.
func (p *person) keyID(name string) string {
	p.t.Helper()
	text := must.Get(os.ReadFile(filepath.Join(p.at, "..", name+".pub")))(p.t)
	line, _, _ := strings.Cut(string(text), "\n")
	return line[strings.LastIndexByte(line, ' ')+1:]
}

// hashOf returns the content hash of an archive or directory.
func (p *person) hashOf(src string) string {
	p.t.Helper()
	out, errs, _ := p.run("aileron", "connector", "pack", src, "--output", filepath.Join(p.dir, "hash.tar.gz"), "--json")
	var c struct{ Hash string }
	if err := json.Unmarshal([]byte(out), &c); err != nil {
		p.t.Fatalf("%v: %s%s", err, out, errs)
	}
	return c.Hash
}

// edit replaces text in a file where the person is.
func (p *person) edit(name, old, now string) {
	p.t.Helper()
	file := filepath.Join(p.at, name)
	text := string(must.Get(os.ReadFile(file))(p.t))
	if !strings.Contains(text, old) {
		p.t.Fatalf("%s has no %q", name, old)
	}
	must.Do(p.t, os.WriteFile(file, []byte(strings.Replace(text, old, now, 1)), 0o644))
}

// verified reports on each installed version whether its signature is accepted, by version.
func (p *person) verified() map[string]bool {
	p.t.Helper()
	out, _, _ := p.run("aileron", "connector", "list", "--json")
	var all []struct {
		Version string
		OK      bool
	}
	must.Do(p.t, json.Unmarshal([]byte(out), &all))
	got := map[string]bool{}
	for _, e := range all {
		got[e.Version] = e.OK
	}
	return got
}

// A publisher's whole day, and a user who follows it: new, check, test, a release, a second one, a rotation, a
// revocation. The user takes no step by hand but those that protect her. Between them is a thief of each key, who can
// publish what he likes at the forge. The forge is the stand-in of e2e/forge, not GitHub.
func TestAPublishersWholeDay(t *testing.T) {
	f := forge.Start(t)
	publisher, user, late := newPerson(t, f), newPerson(t, f), newPerson(t, f)
	repo := filepath.Join(publisher.dir, "forge", "acme", "tracker.git")
	publisher.ok("git", "init", "--quiet", "--bare", repo)
	publisher.at = filepath.Join(publisher.at, "tracker")
	must.Do(t, os.Mkdir(publisher.at, 0o700))
	put := func(version, archive string) {
		t.Helper()
		f.Publish(t, fqn, version, "aileron.tar.gz", must.Get(os.ReadFile(archive))(t))
	}
	release := func(version string, keys ...string) {
		t.Helper()
		publisher.ok("git", "add", "--all")
		publisher.ok("git", "commit", "--quiet", "--message", "Release "+version)
		args := []string{"connector", "release", "."}
		for _, k := range keys {
			args = append(args, "--sign", "../"+k+".key")
		}
		out, errs, code := publisher.run("aileron", args...)
		if code != 0 || !strings.Contains(out, "git push origin HEAD v"+version+"\n") {
			t.Fatalf("release ends with %d: %s%s", code, out, errs)
		}
		cmd := exec.CommandContext(t.Context(), "sh", "-ec", out) // the commands, as they are printed
		cmd.Dir, cmd.Env = publisher.at, publisher.env
		if said, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", out, err, said)
		}
		put(version, filepath.Join(publisher.dir, "releases", "v"+version, "aileron.tar.gz"))
	}
	install := func(version string, more ...string) []string {
		return append([]string{"connector", "install", fqn + "@" + version, "--yes"}, more...)
	}

	// The first release.
	publisher.ok("git", "init", "--quiet")
	publisher.ok("git", "remote", "add", "origin", "https://github.com/acme/tracker.git")
	publisher.ok("aileron", "connector", "new", ".", "--host", "api.tracker.example", "--credential", "api_key")
	publisher.ok("aileron", "connector", "check", ".")
	publisher.ok("aileron", "connector", "test", ".")
	publisher.ok("aileron", "connector", "keygen", "--out", "../first.key")
	release("0.1.0", "first")
	for _, p := range []*person{user, late} {
		p.ok("aileron", install("0.1.0")...)
		if got := p.keyStates(); !slices.Equal(got["trusted"], []string{publisher.key("first")}) {
			t.Fatalf("after the first release the keys are %v", got)
		}
	}

	// The second release: what is due is named, and less is refused.
	publisher.edit("aileron.connector.v1.json", `{"name": "title"`,
		`{"name": "color", "type": "string"}, {"name": "title"`)
	out := publisher.ok("aileron", "connector", "bump")
	if !strings.Contains(out, "minor  tracker items.create has the input color") ||
		!strings.Contains(out, "for which minor is due") {
		t.Errorf("bump prints %s", out)
	}
	publisher.fails("connector_invalid", "connector", "bump", "patch")
	publisher.ok("aileron", "connector", "bump", "minor")
	publisher.ok("aileron", "connector", "test", ".")
	release("0.2.0", "first")
	secondHash := publisher.hashOf(".")
	if out := user.ok("aileron", "connector", "check"); !strings.Contains(out, "0.2.0 is newer") {
		t.Errorf("check prints %s", out)
	}
	user.ok("aileron", install("0.2.0")...)

	// The rotation: the old key vouches for the new one, which signs alone from now on.
	publisher.ok("aileron", "connector", "keygen", "--out", "../second.key")
	publisher.ok("aileron", "connector", "vouch", ".", "../second.pub", "--sign", "../first.key")
	publisher.ok("aileron", "connector", "bump", "patch")
	release("0.2.1", "second")
	for _, p := range []*person{user, late} { // late skips a version
		out := p.ok("aileron", install("0.2.1")...)
		if !strings.Contains(out, "for which its key "+publisher.keyID("first")+" vouches") {
			t.Errorf("install prints %s", out)
		}
		got := p.keyStates()
		if !slices.Equal(got["trusted"], []string{publisher.key("second")}) ||
			!slices.Equal(got["replaced"], []string{publisher.key("first")}) {
			t.Errorf("after the rotation the keys are %v", got)
		}
		p.ok("aileron", "connector", "verify")
		if out, errs, _ := p.run("aileron", "doctor"); strings.Contains(out+errs, "signature is refused") {
			t.Errorf("doctor prints %s%s", out, errs)
		}
	}

	// The thief of the first key, who also has the forge.
	thief := filepath.Join(publisher.dir, "thief")
	publisher.ok("cp", "-r", publisher.at, thief)
	forged := func(version string, keys ...string) string {
		t.Helper()
		for _, name := range []string{"manifest.toml", "aileron.connector.v1.json"} {
			text := string(must.Get(os.ReadFile(filepath.Join(publisher.at, name)))(t))
			text = strings.NewReplacer(`"0.2.1"`, `"`+version+`"`, "Read one item", "Read every item").Replace(text)
			must.Do(t, os.WriteFile(filepath.Join(thief, name), []byte(text), 0o600))
		}
		archive := filepath.Join(publisher.dir, "forged-"+version+".tar.gz")
		args := []string{"connector", "pack", thief, "--output", archive}
		for _, k := range keys {
			args = append(args, "--sign", "../"+k+".key")
		}
		publisher.ok("aileron", args...)
		return archive
	}
	// An older release under a newer tag.
	put("0.3.0", filepath.Join(publisher.dir, "releases", "v0.2.0", "aileron.tar.gz"))
	user.fails("name_mismatch", install("0.3.0")...)
	put("0.9.0", forged("0.9.0", "first"))
	user.fails("publisher_key_retired", install("0.9.0")...)
	must.Do(t, os.Remove(filepath.Join(thief, "trust")))
	publisher.ok("aileron", "connector", "keygen", "--out", "../evil.key")
	publisher.ok("aileron", "connector", "vouch", thief, "../evil.pub", "--sign", "../first.key")
	put("0.9.1", forged("0.9.1", "evil"))
	user.fails("publisher_key_retired", install("0.9.1")...)
	put("0.9.2", forged("0.9.2", "evil", "first"))
	user.fails("publisher_key_retired", install("0.9.2")...)

	// A replay of an older release, which the user does not have: refused, unless its hash is named, or it is signed
	// again.
	late.fails("publisher_key_retired", install("0.2.0")...)
	late.ok("aileron", install("0.2.0", "--hash", secondHash)...)
	late.ok("aileron", "connector", "remove", fqn+"@0.2.0")
	publisher.ok("git", "worktree", "add", "--quiet", "../again", "v0.2.0")
	publisher.ok("aileron", "connector", "pack", "../again", "--sign", "../first.key", "--sign", "../second.key",
		"--output", filepath.Join(publisher.dir, "again.tar.gz"))
	put("0.2.0", filepath.Join(publisher.dir, "again.tar.gz"))
	late.ok("aileron", install("0.2.0")...)

	// The revocation: the second key is in other hands, and the publisher has announced a third one.
	user.ok("aileron", "connector", "keys", "remove", "github://acme", publisher.keyID("second"))
	if got := user.verified(); got["0.2.1"] || !got["0.2.0"] || !got["0.1.0"] {
		t.Errorf("after the revocation, verified are %v", got)
	}
	user.fails("publisher_key_revoked", "connector", "verify")
	if out, errs, _ := user.run("aileron", "doctor"); !strings.Contains(out+errs, "its signature is refused") {
		t.Errorf("doctor prints %s%s", out, errs)
	}
	publisher.ok("aileron", "connector", "keygen", "--out", "../third.key")
	put("0.9.3", forged("0.9.3", "second"))
	user.fails("publisher_key_revoked", install("0.9.3")...)
	must.Do(t, os.Remove(filepath.Join(thief, "trust")))
	publisher.ok("aileron", "connector", "vouch", thief, "../evil.pub", "--sign", "../second.key")
	put("0.9.4", forged("0.9.4", "evil"))
	user.fails("publisher_key_revoked", install("0.9.4")...)
	must.Do(t, os.Remove(filepath.Join(publisher.at, "trust")))
	publisher.ok("aileron", "connector", "bump", "patch", "--since", "v0.2.1")
	release("0.2.2", "third")
	user.ok("aileron", "connector", "keys", "add", "github://acme", filepath.Join(publisher.at, "..", "third.pub"))
	user.ok("aileron", install("0.2.2")...)
	if got := user.keyStates(); !slices.Equal(got["trusted"], []string{publisher.key("third")}) ||
		!slices.Equal(got["removed"], []string{publisher.key("second")}) {
		t.Errorf("after the revocation the keys are %v", got)
	}
	// Every refusal and every change of keys is in the audit log.
	log := user.ok("aileron", "audit", "list", "--rows", "--json")
	for event, want := range map[string]int{"connector.verify_failed": 5, `"vouched_by"`: 1, "publisher_key.removed": 1} {
		if got := strings.Count(log, event); got < want {
			t.Errorf("the audit log has %d of %s, want %d", got, event, want)
		}
	}
}
