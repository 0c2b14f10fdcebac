package chain

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/internal/hint"
)

// OriginPrefix is the beginning of the origin of every checkpoint, which is also the name of the key that signs it. An
// id of NewID follows: two installations never have the same origin.
const OriginPrefix = "github.com/ALRubinger/aileron/audit/"

// maxKeySize bounds the file of the key.
const maxKeySize = 1 << 10

// SignKey is the Ed25519 key with which an installation signs its checkpoints.
type SignKey struct {
	Signer note.Signer
	Public string // as note.NewVerifier reads it
}

// KeyPath returns the file of the key of a log. It is in the directory of the vault, and not encrypted: a session signs
// while the vault is locked.
func KeyPath(db string) string { return filepath.Join(filepath.Dir(db), "vault", "audit.key") }

// MakeKey returns the key of a log, and creates it if there is none. Of several processes that do so at the same time,
// all get the same key, whatever is killed when.
func MakeKey(db string) (*SignKey, error) {
	path := KeyPath(db)
	k, err := ReadKey(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return k, err
	}
	// Not MkdirAll: a home that was removed stays removed.
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("create the key of the audit log: %w", err)
	}
	if err := createKey(path); err != nil {
		return nil, fmt.Errorf("create the key of the audit log: %w", err)
	}
	return ReadKey(path)
}

// createKey creates the key at path, unless there is one. The lock of the new file belongs to who may write it. A
// process that is killed leaves it to the next one.
func createKey(path string) error {
	work := path + ".new"
	f, err := os.OpenFile(work, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := Flock(f, unix.LOCK_EX, BusyTimeout); err != nil {
		return err
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		_ = os.Remove(work) // another process was faster: with a key, nothing needs this file
		return err
	}
	secret, _, err := note.GenerateKey(rand.Reader, OriginPrefix+NewID())
	if err != nil {
		return err
	}
	if err := f.Truncate(0); err != nil {
		return err
	}
	if _, err := f.WriteAt([]byte(secret+"\n"), 0); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := os.Link(work, path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return os.Remove(work)
}

// ReadKey reads the key at path.
func ReadKey(path string) (*SignKey, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, unix.ELOOP) {
		return nil, unusableKey(path, errors.New("it is a link"))
	}
	if err != nil {
		return nil, fmt.Errorf("read the key of the audit log: %w", err)
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxKeySize))
	if err != nil {
		return nil, fmt.Errorf("read the key of the audit log: %w", err)
	}
	k, err := parseKey(strings.TrimSuffix(string(raw), "\n"))
	if err != nil {
		return nil, unusableKey(path, err)
	}
	return k, nil
}

// unusableKey returns the error of a key that no process of aileron wrote.
func unusableKey(path string, why error) error {
	return hint.New(fmt.Errorf("read the key of the audit log: %s: %w", path, why),
		"restore it from a backup; if there is none, remove it: the next session makes a new one, and what the old one "+
			"signed is verified by audit verify --key with its public key")
}

// ErrKeyGarbled has no word of the file, which is secret.
var ErrKeyGarbled = errors.New("it is not a key of this program")

// parseKey parses a key as note.GenerateKey returns it.
func parseKey(secret string) (*SignKey, error) {
	signer, err := note.NewSigner(secret)
	if err != nil || !strings.HasPrefix(signer.Name(), OriginPrefix) {
		return nil, ErrKeyGarbled
	}
	const digits = 44 // of base64, which has plus signs too; NewSigner has decoded them
	seed, err := base64.StdEncoding.DecodeString(secret[len(secret)-digits:])
	if err != nil || len(seed) != 1+ed25519.SeedSize {
		return nil, ErrKeyGarbled
	}
	public, ok := ed25519.NewKeyFromSeed(seed[1:]).Public().(ed25519.PublicKey)
	if !ok {
		return nil, ErrKeyGarbled
	}
	k := &SignKey{Signer: signer}
	if k.Public, err = note.NewEd25519VerifierKey(signer.Name(), public); err != nil {
		return nil, ErrKeyGarbled
	}
	return k, nil
}
