package keeper

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// Dir returns the directory of the keeper's socket for the vault of home: aileron in
// the runtime directory of the user's login, which goes at the logout, or else run in
// home. A sandbox must never have it.
func Dir(home string) string {
	for _, dir := range []string{os.Getenv("XDG_RUNTIME_DIR"), filepath.Join("/run/user", strconv.Itoa(os.Geteuid()))} {
		if !filepath.IsAbs(dir) {
			continue
		}
		// Others who may write there could put their own directory in the place of ours.
		if info, err := os.Stat(dir); err == nil && info.IsDir() && info.Mode().Perm()&0o022 == 0 && own(info) {
			return filepath.Join(dir, "aileron")
		}
	}
	return filepath.Join(home, "run")
}

// socketPath returns the path of the keeper's socket for the vault of home.
func socketPath(home string) string {
	if real, err := filepath.EvalSymlinks(home); err == nil {
		home = real
	}
	sum := sha256.Sum256([]byte(home))
	return filepath.Join(Dir(home), "vault-"+hex.EncodeToString(sum[:8])+".sock")
}

// checkDir returns an error unless only this user may enter the directory of the socket.
func checkDir(dir string) error {
	info, err := os.Lstat(dir)
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is not a directory; move it away", dir)
	case !own(info):
		return fmt.Errorf("%s belongs to another user; it must be yours", dir)
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("others may enter %[1]s; run: chmod 700 %[1]s", dir)
	}
	return nil
}

func makeDir(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return checkDir(dir)
}

func own(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}
