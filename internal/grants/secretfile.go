package grants

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/vault"
	"github.com/ALRubinger/aileron/vault/command"
)

// settleTime is how long a file that takes the place of a secret in use must not have changed: a program that does not
// replace it by a rename may have written half of it.
const settleTime = 250 * time.Millisecond

// credential returns the credential of a binding, which comes from a secret. s.mu is held.
func (s *Source) credential(b vault.Binding, from secret) (held, error) {
	c := vault.Credential{Kind: b.Kind, Username: b.Username}
	if len(from.Exec) > 0 {
		printed, err := command.Command(from.Exec).Credential()
		c.Secret, c.Grant = printed.Secret, printed.Grant
		return held{credential: c, digest: digestOf(c)}, err
	}
	path := s.path(from.File)
	if before, ok := s.held[b.Name]; ok && before.file == path && s.isUnsettled(path) {
		return before, nil
	}
	data, err := readFile(path, vault.MaxSecret+2) // and a line end
	if err != nil {
		return held{}, fmt.Errorf("read the secret %s: %w", path, err)
	}
	if c.Secret, err = vault.NewSecret(data); err != nil {
		return held{}, fmt.Errorf("read the secret %s: %w", path, err)
	}
	return held{credential: c, digest: digestOf(c), file: path}, nil
}

// digestOf returns what differs with a credential.
func digestOf(c vault.Credential) string {
	sum := sha256.Sum256([]byte(c.Username + "\x00" + c.Secret.Reveal() + "\x00" + c.Grant.Reveal()))
	return hex.EncodeToString(sum[:])
}

// isUnsettled reports whether a file, from which a credential in use was read, changed just now. s.mu is held.
func (s *Source) isUnsettled(path string) bool {
	used := false
	for _, h := range s.held {
		used = used || h.file == path
	}
	if !used {
		return false
	}
	info, err := os.Stat(path)
	return err == nil && s.now().Sub(info.ModTime()).Abs() < settleTime
}

// readFile reads a regular file of at most limit bytes. It may be a link, as the files of mounted secrets are, that
// does not lead out of its directory: a program that may write there must not choose which file of this host is sent as
// a credential.
func readFile(path string, limit int64) ([]byte, error) {
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return nil, withoutPath(err)
	}
	defer root.Close()
	f, err := openRegular(root, filepath.Base(path))
	if err != nil {
		return nil, withoutPath(err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		return nil, fmt.Errorf("it is larger than %d bytes", limit)
	}
	return data, err
}

// openRegular opens a regular file below root. A named pipe does not keep it waiting.
func openRegular(root *os.Root, name string) (*os.File, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is not a regular file")
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// withoutPath returns the reason in err alone: the caller adds the path.
func withoutPath(err error) error {
	if path := (*fs.PathError)(nil); errors.As(err, &path) {
		return path.Err
	}
	return err
}

// stampOf returns what changes with the file that a path leads to; "" if there is none.
func stampOf(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	stamp := fmt.Sprint(info.Size(), info.ModTime().UnixNano())
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		stamp += fmt.Sprint(" ", st.Dev, st.Ino)
	}
	return stamp
}
