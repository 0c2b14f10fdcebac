package main

import (
	"encoding/base64"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/connectors"
	"github.com/ALRubinger/aileron/internal/unlock"
)

// A new passphrase is explained, asked for twice, and asked for again if the entries differ or it is too short.
func TestKeygenAsksForAPassphraseUntilItIsOne(t *testing.T) {
	const word = "horse"
	for _, w := range []struct {
		name  string
		typed []string
		code  int
		says  []string
	}{
		{"interrupted", []string{"\x03"}, 130, []string{"must have 8 to 1024 bytes; it is not shown while you type"}},
		{"the input ends", []string{"\x04"}, 1, []string{"the input ended"}},
		{"empty", []string{"\n", "\n", "\x03"}, 130, []string{"the passphrase must have 8 to 1024 bytes; try again"}},
		{"the entries differ",
			[]string{word + word + "\n", word + "house\n", word + "\n", word + "\n", "\n", "\n"}, 1, []string{
				"the two entries differ; try again", "the passphrase must have 8 to 1024 bytes; try again"}},
	} {
		t.Run(w.name, func(t *testing.T) {
			o, dir := newOwner(t), t.TempDir()
			shown, code := o.dialogue(w.typed, "connector", "keygen", "--out", filepath.Join(dir, "acme.key"))
			for _, text := range w.says {
				if code != w.code || !strings.Contains(shown, text) || strings.Contains(shown, word) {
					t.Errorf("it ends with %d: %s; want %q", code, shown, text)
				}
			}
			if files, _ := os.ReadDir(dir); len(files) > 0 {
				t.Errorf("it has made %v", files)
			}
		})
	}
}

// What cannot be written is known before a passphrase is typed, and seconds go into it.
func TestKeygenAsksForNothingWhereItCannotWrite(t *testing.T) {
	o, dir := newOwner(t), t.TempDir()
	missing := filepath.Join(dir, "no")
	shown, code := o.dialogue(nil, "connector", "keygen", "--out", filepath.Join(missing, "acme.key"))
	if code != 1 || strings.Contains(shown, "passphrase") || !strings.Contains(shown, "mkdir -p "+missing) {
		t.Errorf("it ends with %d: %s", code, shown)
	}
}

// encryptedKey returns a file with a key that no passphrase decrypts, for little scrypt.
func encryptedKey(t *testing.T) string {
	t.Helper()
	raw := append([]byte("EdScB2"), make([]byte, 152)...)
	binary.LittleEndian.PutUint64(raw[38:], 32768)  // operations
	binary.LittleEndian.PutUint64(raw[46:], 16<<20) // bytes of memory
	file := filepath.Join(t.TempDir(), "publisher.key")
	text := "untrusted comment: an encrypted key\n" + base64.StdEncoding.EncodeToString(raw) + "\n"
	must.Do(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

func TestAMistypedPassphraseOfASigningKeyIsAskedForAgain(t *testing.T) {
	o, key := newOwner(t), encryptedKey(t)
	pack := []string{"connector", "pack", trackerDir(t, "acme", "1.0.0"), "--sign", key, "--output",
		filepath.Join(t.TempDir(), "aileron.tar.gz")}
	shown, code := o.dialogue([]string{"one horse\n", "two horse\n", "three horse\n"}, pack...)
	if code != 1 || strings.Count(shown, "the passphrase is wrong; try again") != unlock.MaxPassphraseTries-1 ||
		strings.Count(shown, "passphrase of the signing key: ") != unlock.MaxPassphraseTries || strings.Contains(shown,
		"horse") {
		t.Errorf("it ends with %d: %q", code, shown)
	}
	if !strings.Contains(shown, "\raileron: decrypting the key") || !strings.Contains(shown, "\r\x1b[K") {
		t.Errorf("a person waits without knowing for what: %q", shown)
	}
	o.fails("it came from --passphrase-file", append(pack, "--passphrase-file", o.file("wrong", "not this one"))...)
}

// What is there already is not asked about again, another answer than yes or no is asked for again, and the end of the
// input is said on a line of its own.
func TestActionAddAsksLikeConnectorInstall(t *testing.T) {
	o := newOwner(t)
	hash := decode[connectors.ConnectorJSON](t, o.ok("connector", "install", trackerDir(t, "acme", "1.0.0"), "--yes",
		"--json")).Hash
	file := o.file("get.md", `+++
[action]
name = "get"
version = "1.0.0"
description = "Get an issue"
[[requires.connectors]]
name = "github://acme/tracker"
version = "1.0.0"
hash = "`+hash+`"
capabilities = ["issues.get"]
[[execute]]
tool = "tracker"
operation = "issues.get"
args = { id = 7 }
+++
`)
	if shown, code := o.dialogue([]string{"maybe\n", "n\n"}, "action", "add", file); code != 1 ||
		!strings.Contains(shown, "answer with yes or no") || !strings.Contains(shown, "not added: it was not confirmed") {
		t.Errorf("it ends with %d: %s", code, shown)
	}
	if shown, code := o.dialogue([]string{"n\n"}, "action", "add", "--json", file); code != 1 ||
		!strings.Contains(shown, `"class":"approval_denied"`) || !strings.Contains(shown, `"reason":"not_confirmed"`) {
		t.Errorf("it ends with %d: %s", code, shown)
	}
	if shown, code := o.dialogue([]string{"\x04"}, "action", "add", file); code != 1 ||
		!strings.Contains(shown, "[y/N] \r\naileron: ") {
		t.Errorf("it ends with %d: %q", code, shown)
	}
	if shown, code := o.dialogue([]string{"y\n"}, "action", "add", file); code != 0 ||
		!strings.Contains(shown, "\nadded get 1.0.0") {
		t.Errorf("it ends with %d: %s", code, shown)
	}
	if shown, code := o.dialogue(nil, "action", "add", file); code != 0 || !strings.Contains(shown, "already added get") {
		t.Errorf("it ends with %d: %s", code, shown)
	}
	o.fails("did you mean get?", "action", "show", "gte")
}
