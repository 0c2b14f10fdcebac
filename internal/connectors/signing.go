package connectors

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/regular"
	"github.com/ALRubinger/aileron/internal/unlock"
	"github.com/ALRubinger/aileron/spec/signature"
	"github.com/ALRubinger/aileron/vault"
)

// GenerateKey makes the pair of keys that signs a publisher's connectors. It writes the encrypted secret key to a file,
// and the public key to another one beside it, whose name it returns.
func GenerateKey(ctx context.Context, u *unlock.Unlocker, secret, passphraseFile string) (key signature.PublicKey,
	public string, err error,
) {
	public = PublicKeyFile(secret)
	for _, file := range []string{secret, public} { // before a passphrase is asked for
		if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
			return key, public, keyFileExists(file, err)
		}
	}
	if err := CanCreateIn(filepath.Dir(secret)); err != nil { // before that, too
		return key, public, failure.OfInput(fmt.Errorf("write %s: %w", secret, err), "")
	}
	p, err := signingPassphrase(ctx, u, passphraseFile, true)
	if err != nil {
		return key, public, err
	}
	defer clear(p)
	pair, err := signature.GenerateKey()
	if err != nil {
		return key, public, err
	}
	var sealed []byte
	err = u.ShowDuring(ctx, "aileron: encrypting the key, which takes some seconds", func() (err error) {
		sealed, err = pair.Encrypt(p)
		return err
	})
	if err != nil {
		return key, public, err
	}
	if err := writeNewFile(secret, sealed, 0o600); err != nil {
		return key, public, err
	}
	if err := writeNewFile(public, pair.Public().File(), 0o644); err != nil {
		return key, public, errors.Join(err, os.Remove(secret))
	}
	return pair.Public(), public, nil
}

// PublicKeyFile returns the name of the public key beside a secret key.
func PublicKeyFile(secret string) string { return strings.TrimSuffix(secret, ".key") + ".pub" }

// writeNewFile creates a file with all of its content at once. It replaces none.
func writeNewFile(name string, data []byte, mode os.FileMode) error {
	fail := func(err error) error { return fmt.Errorf("write %s: %w", name, WithoutPath(err)) }
	tmp, err := os.CreateTemp(filepath.Dir(name), ".aileron-key-*")
	if err != nil {
		return fail(err)
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(data)
	if err = errors.Join(err, tmp.Chmod(mode), tmp.Sync(), tmp.Close()); err != nil {
		return fail(err)
	}
	// A link, because a rename would replace a file that has appeared since.
	if err := os.Link(tmp.Name(), name); err != nil {
		return keyFileExists(name, err)
	}
	return nil
}

// CanCreateIn returns an error if no file can be created in a directory.
func CanCreateIn(dir string) error {
	err := unix.Access(dir, unix.W_OK|unix.X_OK)
	if errors.Is(err, fs.ErrNotExist) {
		return hint.New(err, "create its directory first: mkdir -p %s", dir)
	}
	return err
}

// WithoutPath returns the cause of an error of a file that the caller names.
func WithoutPath(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

// keyFileExists returns the error for a file that is not overwritten. cause is nil if it is known to exist.
func keyFileExists(name string, cause error) error {
	if cause != nil && !errors.Is(cause, fs.ErrExist) {
		return fmt.Errorf("write %s: %w", name, cause)
	}
	return failure.Input(hint.New(fmt.Errorf("write %s: it exists already", name),
		"a key that was published is not replaced; name another file with --out"), failure.ReasonExists)
}

// signingPassphrase returns the passphrase of a signing key, from the file that was named or from a prompt. That of the
// vault, in the environment or the keyring, is another one.
func signingPassphrase(ctx context.Context, u *unlock.Unlocker, file string, fresh bool) (p []byte, err error) {
	switch {
	case file != "":
		p, err = u.AwaitPassphraseFile(ctx, file)
	case u.Interactive() && fresh:
		return u.PromptNewPassphrase(ctx, "signing key")
	case u.Interactive():
		return u.PromptSecret(ctx, "passphrase of the signing key", false)
	default:
		err = hint.New(errors.New("find the signing key's passphrase: none was given, and there is no terminal to ask on"),
			"pass --passphrase-file, or run it in a terminal")
	}
	if err == nil && fresh {
		err = vault.CheckPassphrase(p)
	}
	return p, err
}

// ReadSigningKey reads a publisher's secret key, and asks for its passphrase if it is encrypted.
func ReadSigningKey(ctx context.Context, u *unlock.Unlocker, file, passphraseFile string) (signature.SecretKey, error) {
	raw, err := u.ReadSecretFile(file, signature.MaxKeyFile)
	if err != nil {
		return signature.SecretKey{}, failure.OfInput(hint.New(fmt.Errorf("read the signing key: %w", err),
			"make one with: aileron connector keygen"), "")
	}
	defer clear(raw)
	key, err := signature.ParseSecretKey(raw, func() ([]byte, error) { return nil, errEncrypted })
	switch {
	case errors.Is(err, errEncrypted):
		key, err = decryptSigningKey(ctx, u, raw, passphraseFile)
	case err != nil:
		err = failure.Input(err, failure.ReasonKey)
	}
	if err != nil {
		return signature.SecretKey{}, fmt.Errorf("read the signing key %s: %w", file, err)
	}
	return key, nil
}

// ReadSigningKeys reads secret keys, in their order. All that are encrypted have the passphrase of the file, if one is
// named.
func ReadSigningKeys(ctx context.Context, u *unlock.Unlocker, files []string, passphraseFile string,
) (all []signature.SecretKey, err error) {
	for _, file := range files {
		key, err := ReadSigningKey(ctx, u, file, passphraseFile)
		if err != nil {
			return nil, err
		}
		all = append(all, key)
	}
	return all, nil
}

// errEncrypted is the error of a key that has a passphrase.
var errEncrypted = errors.New("it is encrypted")

// decryptSigningKey decrypts a publisher's secret key. A person may mistype its passphrase.
func decryptSigningKey(ctx context.Context, u *unlock.Unlocker, raw []byte, passphraseFile string,
) (signature.SecretKey, error) {
	for try := 1; ; try++ {
		p, err := signingPassphrase(ctx, u, passphraseFile, false)
		if err != nil {
			return signature.SecretKey{}, err
		}
		var key signature.SecretKey
		err = u.ShowDuring(ctx, "aileron: decrypting the key, which takes some seconds", func() (err error) {
			key, err = signature.ParseSecretKey(raw, func() ([]byte, error) { return p, nil })
			return err
		})
		switch {
		case err == nil:
			return key, nil
		case !errors.Is(err, signature.ErrWrongPassphrase):
			return signature.SecretKey{}, err
		case passphraseFile != "":
			return signature.SecretKey{}, hint.New(err, "it came from %s", unlock.FromFile)
		case try == unlock.MaxPassphraseTries:
			return signature.SecretKey{}, err
		}
		u.Infof("aileron: %v; try again", err)
	}
}

// ReadPublicKey reads a publisher's public key from its file.
func ReadPublicKey(file string) (signature.PublicKey, error) {
	raw, err := regular.Read(file, signature.MaxKeyFile)
	if err != nil {
		return signature.PublicKey{}, failure.OfInput(fmt.Errorf("read the key %s: %w", file, err), "")
	}
	key, err := signature.ParsePublicKey(raw)
	if err != nil {
		return signature.PublicKey{}, failure.Input(hint.New(fmt.Errorf("read the key %s: %w", file, err),
			"name the publisher's public key file, which begins with %q", "untrusted comment:"), failure.ReasonKey)
	}
	return key, nil
}
