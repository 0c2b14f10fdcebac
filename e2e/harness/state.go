package harness

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// StateLabel is the label of the volumes in which an engine keeps the states of
// agents of a home.
func StateLabel(home string) string {
	owner := sha256.Sum256([]byte(strconv.Itoa(os.Getuid()) + "\x00" + home))
	return "aileron.state=" + hex.EncodeToString(owner[:])
}

// States are the names of those volumes.
func States(t testing.TB, engine, home string) []string {
	t.Helper()
	return strings.Fields(ask(t, engine, "volume", "ls", "-q", "--filter", "label="+StateLabel(home)))
}

// SearchState fails the test if the volume of a state has a secret in any
// encoding, or a private key, or if it has nothing of a conversation, in which a
// word was said.
func SearchState(t testing.TB, engine, volume, word string, secrets ...string) {
	t.Helper()
	SearchDir(t, strings.TrimSpace(ask(t, engine, "volume", "inspect", "-f", "{{.Mountpoint}}", volume)), word, secrets...)
}

// SearchDir is SearchState of a directory of this host.
func SearchDir(t testing.TB, at, word string, secrets ...string) {
	t.Helper()
	pieces := []string{"PRIVATE KEY-----"} // of a CA
	for _, secret := range secrets {
		pieces = append(pieces, encodings(secret)...)
	}
	found := false
	err := filepath.WalkDir(at, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		found = found || bytes.Contains(data, []byte(word))
		for _, piece := range pieces {
			if bytes.Contains(data, []byte(piece)) {
				t.Errorf("%s has %q", path, piece)
			}
		}
		return err
	})
	if err != nil || !found {
		t.Errorf("the state %s has no conversation: %v", at, err)
	}
}

// encodings are those of a secret, without what depends on its neighbours: so
// that of Basic is among them, whatever the user's name.
func encodings(secret string) []string {
	quoted, _ := json.Marshal(secret)
	all := []string{secret, url.QueryEscape(secret), url.PathEscape(secret), string(quoted[1 : len(quoted)-1]),
		strings.ReplaceAll(secret, "/", `\/`), hex.EncodeToString([]byte(secret)),
		strings.ToUpper(hex.EncodeToString([]byte(secret)))}
	for shift := range 3 {
		for _, alphabet := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			text := alphabet.EncodeToString([]byte("aa"[:shift] + secret))
			all = append(all, text[4:len(text)-4])
		}
	}
	return all
}

func ask(t testing.TB, engine string, args ...string) string {
	t.Helper()
	cmd := exec.Command(engine, args...)
	cmd.Env = EngineEnv(t)
	out, err := List(cmd)
	if err != nil {
		t.Fatalf("%s %s: %v", engine, strings.Join(args, " "), err)
	}
	return out
}
