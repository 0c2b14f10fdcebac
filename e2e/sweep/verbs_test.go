package sweep

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/vault"
)

// fqn returns the name of a connector of testdata.
func fqn(name string) string { return "github://sweep/" + name }

// furnish makes the vault, installs the connectors and binds their secrets, in every way in which a secret is given,
// and passes values that are refused.
func (p *person) furnish() {
	p.t.Helper()
	pass := []string{"--passphrase-file", filepath.Join(p.in, "passphrase")}
	with := func(args ...string) []string { return append(args, pass...) }
	p.must(with("vault", "init")...)
	p.must("vault", "status")
	p.must("sync", "--yes")
	for name := range paths {
		dir := filepath.Join("testdata", "connectors", name)
		p.must("spec", "validate", dir)
		p.must("connector", "check", dir)
		p.must("connector", "install", dir, "--yes")
	}
	p.must("connector", "install", filepath.Join("testdata", "connectors", "other"), "--yes")
	secret := p.canary.secret
	p.must(with("binding", "setup", fqn("bearer"), "--identity", "work", "--secret-file",
		p.give("bearer", secret("bearer")))...)
	p.feed(secret("path")+"\n", with("binding", "setup", fqn("path"), "--identity", "work", "--secret-stdin")...)
	p.must(with("binding", "setup", "--identity", "work", "--secrets-file", p.give("secrets",
		fqn("basic")+"=user:"+secret("basic")+"\n"+fqn("query")+"="+secret("query")))...)
	refused := secret("refused secret")
	p.refused(refused+"\x01\n", with("binding", "setup", fqn("bearer"), "--identity", "none", "--secret-stdin")...)
	p.refused(refused+"\n"+refused+"\n",
		with("binding", "setup", fqn("bearer"), "--identity", "none", "--secret-stdin")...)
	for _, text := range []string{refused, "=" + refused, fqn("bearer") + " " + refused, "no-such=" + refused,
		fqn("basic") + "=" + refused, fqn("bearer") + "=" + refused + "\n" + fqn("bearer") + "=" + refused} {
		p.refused("", with("binding", "setup", "--identity", "none", "--secrets-file", p.give("refused", text))...)
	}
	p.refused("", "binding", "setup", fqn("bearer"), "--identity", "x", "--secret-file", p.give("again", refused),
		"--passphrase-file", filepath.Join(p.in, "wrong"))
	p.refused("", with("binding", "setup", fqn("bearer"), "--identity", "work", "--secret-file",
		filepath.Join(p.in, "again"))...)
	p.refused("", "vault", "passwd", "--passphrase-file", filepath.Join(p.in, "wrong"), "--new-passphrase-file",
		filepath.Join(p.in, "next"))
	p.refused("", with("vault", "passwd", "--new-passphrase-file", p.give("short", "short"))...)
	p.refused("", "vault", "unlock", "--for", "1h", "--passphrase-file", filepath.Join(p.in, "wrong"))
	for _, verb := range [][]string{{"binding", "list"}, {"connector", "list"}, {"connector", "verify"},
		{"vault", "status"},
		{"connector", "show", fqn("bearer")}, {"binding", "inspect", "bearer/bearer/work"}} {
		p.must(verb...)
		p.must(append(verb, "--json")...)
	}
	p.must("spec", "match", "GET", "https://bearer.sweep.test/v1/forms")
	p.must("connector", "new", filepath.Join(p.temp, "new"), "--name", "github://sweep/new")
	p.sign(with)
	p.act()
}

// sign makes a publisher's key, packs a connector with and without its signature, and accepts and removes the key.
func (p *person) sign(with func(args ...string) []string) {
	p.t.Helper()
	archive, key := filepath.Join(p.temp, "other.tar.gz"), filepath.Join(p.temp, "sweep.key")
	p.must("connector", "schema", "manifest")
	p.must("connector", "test", filepath.Join("testdata", "connectors", "other"))
	p.must("connector", "pack", "testdata/connectors/other", "--output", archive)
	p.must(with("connector", "keygen", "--out", key, "--json")...)
	if info, err := os.Stat(key); err != nil || info.Mode().Perm() != 0o600 {
		p.t.Errorf("keygen made %v, %v", info, err)
	}
	p.refused("", with("connector", "keygen", "--out", key)...)
	p.must(with("connector", "pack", "testdata/connectors/other", "--sign", key, "--output", archive)...)
	p.refused("", "connector", "pack", "testdata/connectors/other", "--output", archive,
		"--sign", "../../spec/signature/testdata/encrypted.key", "--passphrase-file", filepath.Join(p.in, "wrong"))
	p.must("connector", "keys", "add", "github://sweep-signs", filepath.Join(p.temp, "sweep.pub"))
	p.must("connector", "keys", "list")
	p.must("connector", "keys", "list", "--json")
	p.must("connector", "keys", "remove", "github://sweep-signs", "--forget")
	p.refused("", "connector", "keys", "remove", "github://sweep-signs", "0123456789ABCDEF")
}

// change changes what is in force under a running session.
func (p *person) change() {
	p.t.Helper()
	pass := []string{"--passphrase-file", filepath.Join(p.in, "passphrase")}
	p.must("connector", "remove", fqn("other"))
	p.must("connector", "install", filepath.Join("testdata", "connectors", "other"), "--yes")
	p.feed(p.canary.secret("rebound")+"\n", append([]string{"binding", "rebind", "bearer/bearer/work",
		"--secret-stdin"}, pass...)...)
	p.must("vault", "lock")
	p.must("vault", "unlock", "--passphrase-file", filepath.Join(p.in, "passphrase"))
	p.must(append([]string{"binding", "rebind", "bearer/bearer/work", "--secret-file", filepath.Join(p.in, "bearer")},
		pass...)...)
	p.must("binding", "revoke", "api_key/query/work", "--yes")
}

// passwd changes the passphrase, and changes it back.
func (p *person) passwd() {
	p.t.Helper()
	now, next := filepath.Join(p.in, "passphrase"), filepath.Join(p.in, "next")
	p.must("vault", "passwd", "--passphrase-file", now, "--new-passphrase-file", next)
	p.must("vault", "passwd", "--passphrase-file", next, "--new-passphrase-file", now)
}

// interrupt leaves every change as a command does that was killed before it acted. The next command records that.
func (p *person) interrupt() {
	p.t.Helper()
	log, err := audit.Open(filepath.Join(p.home, "audit.db"), audit.Options{})
	if err != nil {
		p.t.Fatal(err)
	}
	for _, change := range audit.Changes() {
		if change == audit.ChangeCATrust || change == audit.ChangeCAUntrust {
			continue // these have records of their own
		}
		file := map[string]any{"format": 1, "change": change, "request_id": audit.NewID(), "intent": audit.NewID(),
			"outcome": audit.NewID(), "binding": "bearer/bearer/interrupted"}
		switch change {
		case audit.ChangeConnectorInstall:
			file["hash"] = "sha256:" + strings.Repeat("0", 64)
		case audit.ChangeConnectorRemove:
			file["hash"] = p.installed()
		case audit.ChangeActionAdd:
			file["action"], file["hash"] = "interrupted", "sha256:"+strings.Repeat("0", 64)
		case audit.ChangeActionRemove:
			file["action"] = "sweeping"
		case audit.ChangePublisherKeyAdd, audit.ChangePublisherKeyRemove:
			file["authority"], file["key_id"] = "github://sweep", "0123456789ABCDEF"
		case audit.ChangeBindingRevoke:
			file["binding"] = "bearer/bearer/work"
		case audit.ChangeVaultInit, audit.ChangeVaultPasswd:
			before := must.Get(vault.Open(filepath.Join(p.home, "vault")).Digest(vault.Identity))(p.t)
			file["before"] = before
		case audit.ChangeVaultUnlock:
			p.must("vault", "lock")
		case audit.ChangeVaultLock:
			p.must("vault", "unlock", "--passphrase-file", filepath.Join(p.in, "passphrase"))
		}
		if _, err := log.Append(p.t.Context(), audit.Row{ID: file["intent"].(string), Event: change.Started(),
			Source: audit.SourceCLI, Fields: map[string]any{"request_id": file["request_id"]}}); err != nil {
			p.t.Fatal(err)
		}
		raw, err := json.Marshal(file)
		if err != nil {
			p.t.Fatal(err)
		}
		must.Do(p.t, os.MkdirAll(filepath.Join(p.home, "changes"), 0o700))
		p.write(filepath.Join(p.home, "changes", file["request_id"].(string)+".json"), string(raw)+"\n")
		p.must("session", "list")
	}
	p.must("vault", "unlock", "--passphrase-file", filepath.Join(p.in, "passphrase"))
	must.Do(p.t, log.Close())
}

// installed returns the hash of a connector that is installed.
func (p *person) installed() string {
	p.t.Helper()
	dirs, err := filepath.Glob(filepath.Join(p.home, "store", "connectors", "sha256", "*"))
	if err != nil || len(dirs) == 0 {
		p.t.Fatalf("no connector is installed: %v", err)
	}
	return "sha256:" + filepath.Base(dirs[0])
}

// read runs every command that reads the log, and wants the positive controls in what it prints.
func (p *person) read(rows []audit.Row) {
	p.t.Helper()
	for _, verb := range [][]string{{"list", "--limit", "0"}, {"list", "--limit", "0", "-v"},
		{"list", "--limit", "0", "--json"}, {"tail", "-n", "1000"}, {"export", "--format", "jsonl"},
		{"export", "--format", "csv"}, {"export", "--format", "har"}} {
		said := p.must(append([]string{"audit"}, verb...)...)
		if text := said.out.String(); !strings.Contains(text, trace) {
			p.t.Errorf("audit %s has no path: the search finds nothing there", strings.Join(verb, " "))
		}
		if verb[0] == "export" && verb[2] == "jsonl" {
			file := filepath.Join(p.project, "rows.jsonl")
			p.write(file, said.out.String())
			p.must("audit", "verify", file)
		}
	}
	for _, verb := range [][]string{{"audit", "summary"}, {"audit", "used", "bearer/bearer/work"}, {"audit", "head"},
		{"audit", "verify"}, {"session", "list"}, {"doctor"}} {
		p.run(verb...)
		p.run(append(verb, "--json")...)
	}
	for _, by := range []string{"binding", "connector", "host", "operation", "reason", "session"} {
		p.must("audit", "stats", "--by", by)
	}
	shown := map[audit.Event]int{}
	for _, r := range rows {
		if shown[r.Event]++; shown[r.Event] <= 3 {
			p.must("audit", "show", r.ID)
			p.must("audit", "show", r.ID, "--json")
		}
	}
	for _, r := range rows {
		if r.Event == audit.EventSessionStarted {
			p.must("session", "show", r.SessionID)
			p.must("session", "show", r.SessionID, "--json")
		}
	}
}

// damage prunes the log, changes what is installed and the log itself, and has it found and repaired.
func (p *person) damage() {
	p.t.Helper()
	p.refused("", "audit", "ship", "--to", "nats://127.0.0.1:9/audit") // nothing listens there
	p.must("audit", "prune", "--before", p.rows()[4].TS.Format(time.RFC3339Nano), "--yes")
	manifest, err := filepath.Glob(filepath.Join(p.home, "store", "connectors", "sha256", "*", "manifest.toml"))
	if err != nil || len(manifest) == 0 {
		p.t.Fatalf("no connector is installed: %v", err)
	}
	whole, err := os.ReadFile(manifest[0])
	if err != nil {
		p.t.Fatal(err)
	}
	p.write(manifest[0], string(whole)+"# "+trace)
	p.refused("", "connector", "verify")
	p.run("run", "--passphrase-file", filepath.Join(p.in, "passphrase"), "--", "true")
	p.write(manifest[0], string(whole))
	must.Do(p.t, os.Remove(filepath.Join(p.home, "audit.head")))
	p.refused("", "audit", "verify")
	p.must("run", "--passphrase-file", filepath.Join(p.in, "passphrase"), "--", "true")
	p.refused("", "audit", "verify")
	path := filepath.Join(p.home, "audit.db")
	raw, err := os.ReadFile(path)
	if err != nil {
		p.t.Fatal(err)
	}
	const page = 4096
	copy(raw[len(raw)/page/2*page:], strings.Repeat("\xa5", page))
	must.Do(p.t, os.WriteFile(path, raw, 0o600))
	for _, verb := range []string{"list", "verify", "export", "summary", "stats", "tail"} {
		p.run("audit", verb)
	}
	p.must("audit", "recover")
}

// follow runs audit tail -f until the function that it returns is called.
func (p *person) follow(flags ...string) (stop func()) {
	p.t.Helper()
	cmd, _ := p.command(append([]string{"audit", "tail", "-f"}, flags...)...)
	must.Do(p.t, cmd.Start())
	return func() {
		_ = cmd.Process.Signal(syscall.SIGINT)
		_ = cmd.Wait()
	}
}

// others runs the commands that need nothing.
func (p *person) others() {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		p.must("completion", shell)
	}
	p.must("version")
	p.must(append(append([]string{"run", "--budget", "requests=1"}, p.reach()...), "--", "curl", "-sS", "-o", os.DevNull,
		"https://bearer.sweep.test/v1/forms")...)
	p.must("audit", "head", "--public-key")
	key := p.give("key", p.canary.secret("refused secret"))
	p.run("setup", "opencode", "--yes", "--sandbox=off", "--key-file", key, "--github-token-file", key, "--provider",
		"anthropic", "--passphrase-file", filepath.Join(p.in, "passphrase"))
	p.run("demo", "--sandbox=off")
	p.run("kube")
	p.must("kube", "render", "fix-1", "--shape", "pods", "--image", "registry.example/aileron:1",
		"--agent-image", "registry.example/agent:1", "--", "agent", "a prompt")
	for _, r := range p.rows() {
		if r.Decision == audit.DecisionRejected && r.ConnectorFQN != "" && r.Path != "" {
			p.run("allow", r.ID, "--yes")
			break
		}
	}
	p.run("allow", trace+".example", "--yes")
	p.must("learn", "--unused")
	for _, r := range p.rows() {
		if r.Event == audit.EventSessionStarted && r.Fields["learn"] == true {
			p.must("learn", r.SessionID, "--output", filepath.Join(p.temp, "learnt"), "--diff")
			p.must("learn", r.SessionID, "--json")
			p.run("spec", "test", filepath.Join(p.temp, "learnt"), "--session", r.SessionID)
		}
	}
	p.run("no-such-command", p.canary.text("a query"))
}
