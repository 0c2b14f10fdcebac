package main

import (
	"encoding/base64"
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/vault"
)

const testToken = "ghp_0123456789abcdefABCDEF+/=tok"
const githubBinding = "bearer/aileron-connector-github/"

// withConnectors is an owner with the GitHub example, and one connector for
// each kind that is asked for, named after it.
func withConnectors(t *testing.T, kinds ...string) owner {
	t.Helper()
	o := newOwner(t)
	o.ok("connector", "install", exampleGitHub, "--yes")
	for _, kind := range kinds {
		dir := t.TempDir()
		credential, declared := "", ""
		if kind != "none" {
			credential = "[capabilities.credential]\nkind = \"" + kind + "\"\nscope = \"read\"\n"
			declared = `,"credential":"` + kind + `"`
			if kind == "oauth2" {
				credential += "[capabilities.credential.oauth2]\nauthorize_url = \"https://login.example/authorize\"\n" +
					"token_url = \"https://api.oauth2.example/token\"\nclient_id = \"acme\"\nscopes = [\"read\"]\n"
			}
		}
		for name, text := range map[string]string{
			"manifest.toml": "[connector]\nname = \"github://acme/" + kind +
				"\"\nversion = \"1.0.0\"\n[capabilities.network]\nhosts = [\"api." + strings.ReplaceAll(kind, "_", "-") +
				".example:443\"]\n" + credential + "[provides]\nintents = [\"read\"]\n",
			"aileron.connector.v1.json": `{"schema_version":"aileron.connector.v1",
				"connector":{"fqn":"github://acme/` + kind + `","version":"1.0.0"},
				"tools":[{"name":"tool-` + kind + `","description":"d","operations":[
				{"name":"get","summary":"s","method":"GET","path":"/x","idempotency":"idempotent",
				 "hosts":["api.` + strings.ReplaceAll(kind, "_", "-") + `.example"]` + declared + `}]}]}`,
		} {
			must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
		}
		o.ok("connector", "install", dir, "--yes")
	}
	return o
}

// Whatever the kind, no form of the secret stands anywhere in the home, and no
// command shows it (SECURITY VLT-08, I-12).
func TestSecretStandsNowhere(t *testing.T) {
	o := withConnectors(t, "basic")
	token := o.file("token", testToken)
	said := ""
	for _, args := range [][]string{
		{"binding", "setup", githubFQN, "--secret-file", token},
		{"binding", "setup", "github://acme/basic", "--username", "ann", "--secret-file", token},
		{"binding", "rebind", githubBinding + "default", "--secret-file", token},
		{"binding", "setup", githubFQN, "--secret-file", token},
		{"binding", "list", "--json"}, {"binding", "inspect", "basic/basic/default"}, {"audit", "list", "--json"}, {"vault",
			"status"},
	} {
		out, errs, _ := o.run(args...)
		said += out + errs
	}
	raw := []byte(testToken)
	forms := []string{testToken, testPassphrase, hex.EncodeToString(raw), base64.StdEncoding.EncodeToString(raw),
		base64.URLEncoding.EncodeToString(raw),
		base64.StdEncoding.EncodeToString([]byte("ann:" +
			testToken)), base64.StdEncoding.EncodeToString([]byte(testPassphrase)), testToken[8:24]}
	look := func(where, text string) {
		for _, form := range forms {
			if strings.Contains(strings.ToLower(text), strings.ToLower(form)) {
				t.Errorf("%q stands in %s", form, where)
			}
		}
	}
	look("what was said", said)
	files := 0
	err := filepath.WalkDir(o.Flag, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files++
		look(path, path+"\n"+string(text))
		return nil
	})
	if err != nil || files < 6 {
		t.Errorf("looked at %d files, %v", files, err)
	}
}

func TestBindingKinds(t *testing.T) {
	o := withConnectors(t, "basic", "api_key", "oauth2", "none")
	token := o.file("token", testToken)
	o.fails("needs none", "binding", "setup", "github://acme/none", "--secret-file", token)
	o.fails("needs --username", "binding", "setup", "github://acme/basic", "--secret-file", token)
	o.fails("colon", "binding", "setup", "github://acme/basic", "--username", "a:b", "--secret-file", token)
	o.fails("--username is for", "binding", "setup", "github://acme/api_key", "--username", "ann", "--secret-file", token)
	o.fails("must be 1 to 65535", "binding", "setup", "github://acme/oauth2", "--callback-port", "99999")
	o.fails("is given, or is of kind", "binding", "setup", "github://acme/api_key", "--client-id", "mine",
		"--secret-file", token)
	for kind, args := range map[string][]string{"basic": {"--username", "ann"}, "api_key": nil, "oauth2": nil} {
		args = append([]string{"binding", "setup", "github://acme/" + kind, "--secret-file", token}, args...)
		if got, want := o.ok(args...), kind+"/"+kind+"/default\n"; got != want {
			t.Errorf("%s is bound as %q, want %q", kind, got, want)
		}
	}
	if b := decode[vault.Binding](t, o.ok("binding", "inspect", "basic/basic/default", "--json")); b.Username != "ann" {
		t.Errorf("the username is %q", b.Username)
	}
	o.fails("--username is for", "binding", "rebind", "api_key/api_key/default", "--username", "ann", "--secret-file",
		token)
}

func TestBadSecretsAreRefused(t *testing.T) {
	o := withConnectors(t)
	o.ok("vault", "init")
	setup := func(args ...string) []string { return append([]string{"binding", "setup", githubFQN}, args...) }
	for want, text := range map[string]string{
		"fewer than 8": "abc", "not printable ASCII": "two-lines\nof-text",
		"begins or ends with a space": " spaces around ", "more than 16384": strings.Repeat("ab", 10000),
	} {
		o.fails(want, setup("--secret-file", o.file("bad", text))...)
	}
	o.fails("is a directory", setup("--secret-file", t.TempDir())...)
	o.fails("no such file", setup("--secret-file", "/nonexistent")...)
	o.fails("--secret-file or --secret-stdin", setup()...)
	o.fails("exclude each other", setup("--secret-stdin", "--secret-file", "x")...)
	o.fails("unknown flag", setup("--secret", testToken)...)
	o.fails("the identity", setup("--identity", "../x", "--secret-file", o.file("token", testToken))...)
	o.fails("not installed", "binding", "setup", "github://acme/tracker", "--secret-file", o.file("token", testToken))
	o.fails("not installed", "binding", "setup", "tracker", "--secret-file", o.file("token", testToken))
	o.env["AILERON_VAULT_PASSPHRASE"] = "not the passphrase"
	o.fails("the passphrase is wrong", setup("--secret-file", o.file("token", testToken))...)
	if got := o.ok("binding", "list", "--json"); got != "[]\n" {
		t.Errorf("something was bound: %s", got)
	}
}

// Binding and rebinding need no passphrase once there is a vault; what was bound is usable with it.
func TestBindingNeedsNoPassphrase(t *testing.T) {
	o := withConnectors(t)
	o.ok("vault", "init")
	env := o.env
	o.env = nil
	name := strings.TrimSpace(o.ok("binding", "setup", githubFQN, "--secret-file", o.file("token", testToken)))
	o.ok("binding", "rebind", name, "--secret-file", o.file("token2", testToken+"2"))
	if errs, code := o.person([]string{testToken}, "binding", "setup", githubFQN, "--identity", "home"); code != 0 ||
		strings.Contains(errs, "passphrase") {
		t.Errorf("a person who binds is asked for more than the secret: exit %d, %s", code, errs)
	}
	o.env = env
	v := vault.Open(filepath.Join(o.Flag, "vault"), cheapVaults()...)
	must.Do(t, v.Unlock([]byte(testPassphrase)))
	if c, err := v.Credential(name); err != nil || c.Secret.Reveal() != testToken+"2" {
		t.Errorf("%s does not hold what was bound: %v", name, err)
	}
}

// A passphrase that is given has to be right, and then the recipient on disk is checked against the vault's identity
// before a secret is sealed.
func TestAGivenPassphraseChecksTheRecipient(t *testing.T) {
	o := withConnectors(t)
	o.ok("vault", "init")
	at := filepath.Join(o.Flag, "vault", "recipient")
	elsewhere := filepath.Join(t.TempDir(), "vault")
	other := vault.Open(elsewhere, cheapVaults()...)
	must.Do(t, other.Init([]byte(testPassphrase)))
	foreign := must.Get(os.ReadFile(filepath.Join(elsewhere, "recipient")))(t)
	must.Do(t, os.WriteFile(at, foreign, 0o600))
	token := o.file("token", testToken)
	o.fails("was changed", "binding", "setup", githubFQN, "--secret-file", token)
	o.env = nil
	o.fails("was changed", "binding", "setup", githubFQN, "--secret-file", token,
		"--passphrase-file", o.file("passphrase", testPassphrase))
	if got := o.ok("binding", "list", "--json"); got != "[]\n" {
		t.Errorf("something was bound: %s", got)
	}
}

// What stands for a connector's name in a file of secrets may contain the secret.
func TestALineOfSecretsIsNotPrinted(t *testing.T) {
	o := newOwner(t)
	path := o.file("secrets", "github://acme/tracker/c3F1ZWFtaXNo==")
	_, errs, _ := o.run("binding", "setup", "--secrets-file", path)
	if !strings.Contains(errs, "line 1: find the connector") || strings.Contains(errs, "c3F1") {
		t.Errorf("the error is %s", errs)
	}
}

func TestAPersonBindsWithoutFlags(t *testing.T) {
	o := withConnectors(t, "basic")
	o.env = nil
	errs, code := o.person([]string{"ann", testToken, testPassphrase, testPassphrase}, "binding", "setup",
		"github://acme/basic")
	if code != 0 || strings.Contains(errs, testToken) {
		t.Fatalf("setup ends with %d: %s", code, errs)
	}
	name := "basic/basic/default"
	if errs, code := o.person([]string{"n"}, "binding", "revoke", name); code != 1 || !strings.Contains(errs,
		"not confirmed") {
		t.Errorf("no ends with %d: %s", code, errs)
	}
	if errs, code := o.person([]string{"y"}, "binding", "revoke", name); code != 0 {
		t.Errorf("yes ends with %d: %s", code, errs)
	}
}

// A vault that others could change is not said to be empty (SECURITY VLT-01).
func TestUnsafeVaultIsRefusedWithAHint(t *testing.T) {
	o := withConnectors(t)
	o.ok("vault", "init")
	dir := filepath.Join(o.Flag, "vault")
	must.Do(t, os.Chmod(dir, 0o777))
	for _, args := range [][]string{
		{"vault", "status"}, {"vault", "status", "--json"}, {"vault", "lock"}, {"vault", "unlock"}, {"vault", "passwd",
			"--new-passphrase-file", o.file("p", "a new passphrase")},
		{"binding", "list"}, {"binding", "list", "--json"}, {"binding", "setup", githubFQN, "--secret-file",
			o.file("token", testToken)},
	} {
		o.fails("chmod 700 "+dir, args...)
	}
}

// One broken file is named, hides nothing else, and can be removed.
func TestBrokenBindingCanBeRevoked(t *testing.T) {
	o := withConnectors(t)
	token := o.file("token", testToken)
	o.ok("binding", "setup", githubFQN, "--secret-file", token)
	o.ok("binding", "setup", githubFQN, "--identity", "work", "--secret-file", token)
	file := filepath.Join(o.Flag, "vault/bindings", githubBinding+"work.json")
	if err := os.WriteFile(file, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, errs, code := o.run("binding", "list", "--json")
	if all := decode[[]vault.Binding](t, out); code != 1 || len(all) != 1 || !strings.Contains(errs,
		"binding revoke "+githubBinding+"work") {
		t.Errorf("the list ends with %d: %s%s", code, out, errs)
	}
	o.ok("binding", "revoke", githubBinding+"work")
	o.ok("binding", "setup", githubFQN, "--identity", "work", "--secret-file", token)
}
