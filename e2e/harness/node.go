package harness

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
)

// NeedNPM is Need where there is no npm: no script installs Node.js.
func NeedNPM(t testing.TB) {
	t.Helper()
	if _, err := exec.LookPath("npm"); err != nil {
		Need(t, "npm, which comes with Node.js")
	}
}

// installing is held while packages are installed: tests that run at the same time may want the same.
var installing sync.Mutex

// NodeModules returns a directory with Node's packages as the package-lock.json of dir names them, and the other files
// of dir. They are installed once, into the user's cache, under a name that begins with name.
func NodeModules(name, dir string) (string, error) {
	lock, err := os.ReadFile(filepath.Join(dir, "package-lock.json"))
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(lock)
	installing.Lock()
	defer installing.Unlock()
	installed := filepath.Join(cache, "aileron", name+"-"+hex.EncodeToString(sum[:])[:16])
	if _, err := os.Stat(installed); err == nil {
		return installed, nil
	}
	made := installed + "." + strconv.Itoa(os.Getpid())
	defer os.RemoveAll(made)
	if err := os.MkdirAll(made, 0o755); err != nil {
		return "", err
	}
	if err := os.CopyFS(made, os.DirFS(dir)); err != nil {
		return "", err
	}
	for range 3 { // the registry is not of this machine
		cmd := exec.Command("npm", "ci")
		cmd.Dir = made
		var out []byte
		if out, err = cmd.CombinedOutput(); err == nil {
			break
		}
		err = fmt.Errorf("npm ci: %w\n%s", err, out)
	}
	if err != nil {
		return "", err
	}
	if err := os.Rename(made, installed); err != nil && !os.IsExist(err) {
		return "", err
	}
	return installed, nil
}
