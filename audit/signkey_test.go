package audit

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/mod/sumdb/note"

	"github.com/ALRubinger/aileron/audit/internal/chain"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/hint"
)

const keyEnv = "AILERON_TEST_KEY_OF"

// TestKeyProcess is a process of TestProcessesMakeOneKey.
func TestKeyProcess(t *testing.T) {
	path := os.Getenv(keyEnv)
	if path == "" {
		t.Skip("it is a process of TestProcessesMakeOneKey")
	}
	k := must.Get(chain.MakeKey(path))(t)
	fmt.Println("key", k.Public)
}

func TestProcessesMakeOneKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), databaseName)
	// What a process that was killed while it made the key leaves.
	must.Do(t, os.Mkdir(filepath.Dir(chain.KeyPath(path)), 0o700))
	must.Do(t, os.WriteFile(chain.KeyPath(path)+".new", []byte("PRIVATE+KEY+half of one"), 0o600))
	var running sync.WaitGroup
	keys := make([]string, 8)
	for i := range keys {
		running.Go(func() {
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKeyProcess$")
			cmd.Env = append(os.Environ(), keyEnv+"="+path)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("%v: %s", err, out)
			}
			_, keys[i], _ = strings.Cut(string(out), "key ")
			keys[i], _, _ = strings.Cut(keys[i], "\n")
		})
	}
	running.Wait()
	for _, k := range keys {
		if k == "" || k != keys[0] {
			t.Errorf("the keys are %q", keys)
			break
		}
	}
	if _, err := note.NewVerifier(keys[0]); err != nil {
		t.Error(err)
	}
	left, err := os.ReadDir(filepath.Dir(chain.KeyPath(path)))
	if err != nil || len(left) != 1 || left[0].Name() != "audit.key" {
		t.Errorf("the directory has %v, %v", left, err)
	}
}

// A key that is not one is an error, which does not have its content.
func TestAGarbledKeyIsNotPrinted(t *testing.T) {
	path := filepath.Join(t.TempDir(), databaseName)
	k, err := chain.MakeKey(path)
	if err != nil || !strings.HasPrefix(k.Signer.Name(), chain.OriginPrefix) {
		t.Fatalf("%+v, %v", k, err)
	}
	raw := must.Get(os.ReadFile(chain.KeyPath(path)))(t)
	for _, text := range []string{"", "SECRETCANARY", strings.ToLower(string(raw)), string(raw[:len(raw)/2])} {
		must.Do(t, os.WriteFile(chain.KeyPath(path), []byte(text), 0o600))
		_, err := chain.MakeKey(path)
		if err == nil || !strings.Contains(err.Error(), chain.ErrKeyGarbled.Error()) ||
			strings.Contains(err.Error(), "CANARY") {
			t.Errorf("%q: %v", text, err)
		}
	}
	must.Do(t, os.Remove(chain.KeyPath(path)))
	must.Do(t, os.Symlink("elsewhere", chain.KeyPath(path)))
	if _, err := chain.MakeKey(path); err == nil || !strings.Contains(err.Error(), "it is a link") ||
		!strings.Contains(hint.Of(err), "from a backup") {
		t.Errorf("of a link: %v, hint %q", err, hint.Of(err))
	}
}
