package sweep

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/ALRubinger/aileron/e2e/must"
)

// publish raises the version of a new connector, has its publisher's key vouch for the next one, and releases it.
func (p *person) publish() {
	p.t.Helper()
	dir, archive := filepath.Join(p.temp, "published"), filepath.Join(p.temp, "published.tar.gz")
	key, next := filepath.Join(p.temp, "publisher.key"), filepath.Join(p.temp, "next.key")
	with := func(args ...string) []string {
		return append(args, "--passphrase-file", filepath.Join(p.in, "passphrase"))
	}
	wrong := []string{"--sign", key, "--passphrase-file", filepath.Join(p.in, "wrong")}
	p.must(with("connector", "keygen", "--out", key)...)
	p.must(with("connector", "keygen", "--out", next)...)
	p.must("connector", "new", dir, "--name", "github://sweep/published")
	p.git(dir, "init", "--quiet")
	p.git(dir, "remote", "add", "origin", "https://user:"+p.canary.secret("forge")+"@github.com/sweep/published.git")
	p.must("connector", "bump", "minor", "--dir", dir)
	public := filepath.Join(p.temp, "next.pub")
	p.refused("", append([]string{"connector", "vouch", dir, public}, wrong...)...)
	p.must(with("connector", "vouch", dir, public, "--sign", key, "--json")...)
	p.refused("", "connector", "release", dir, "--output", archive) // not all is committed
	p.git(dir, "add", "--all")
	p.git(dir, "commit", "--quiet", "--message", "x")
	p.refused("", append([]string{"connector", "release", dir, "--output", archive}, wrong...)...)
	p.must(with("connector", "release", dir, "--output", archive, "--sign", next, "--dry-run")...)
	p.must(with("connector", "release", dir, "--output", archive, "--sign", next, "--json")...)
	p.must("connector", "bump", "--dir", dir, "--since", archive, "--json")
	must.Do(p.t, os.RemoveAll(filepath.Join(dir, ".git"))) // git keeps the address as the person gave it
}

// git runs git without the settings of the person who runs the test.
func (p *person) git(dir string, args ...string) {
	p.t.Helper()
	who := []string{"-C", dir, "-c", "user.name=x", "-c", "user.email=x@example.com"}
	cmd := exec.Command("git", append(who, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		p.t.Fatalf("git %q: %v\n%s", args, err, out)
	}
}

// fetch asks a forge for what is not public, with a credential that the forge repeats in all that it answers.
func (p *person) fetch() {
	p.t.Helper()
	const identity = "forge"
	p.must("connector", "install", "github", "--yes")
	p.must("binding", "setup", "github", "--identity", identity, "--secret-file",
		p.give("forge", p.canary.secret("forge")), "--passphrase-file", filepath.Join(p.in, "passphrase"))
	p.t.Setenv("AILERON_VAULT_PASSPHRASE", p.canary.secret("passphrase"))
	defer func() { _ = os.Unsetenv("AILERON_VAULT_PASSPHRASE") }() // what comes next finds it as before
	reach := []string{"--upstream-ca", p.origin.Roots, "--private=" + identity}
	for _, host := range forges {
		reach = append(reach, "--resolve", host+":443:"+p.origin.Addr)
	}
	p.refused("", append([]string{"connector", "install", "github://sweep/private@1.0.0", "--yes"}, reach...)...)
	p.run(append([]string{"connector", "outdated"}, reach...)...)
	p.run(append([]string{"connector", "outdated", "--json"}, reach...)...)
	p.must("binding", "revoke", "bearer/aileron-connector-github/"+identity, "--yes")
	for _, seen := range p.origin.Seen() {
		if seen.Host == "api.github.com" && strings.Contains(seen.Auth(), p.canary.secret("forge")) {
			return
		}
	}
	p.t.Error("the forge got no credential")
}
