package connector

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/spec/signature"
	"github.com/ALRubinger/aileron/vault"
)

type connectorKeygenOptions struct {
	out            string
	PassphraseFile string
}

func newConnectorKeygenCommand(a *cli.App) *cobra.Command {
	opts := &connectorKeygenOptions{}
	cmd := &cobra.Command{
		Use:   "keygen",
		Short: "Make the pair of keys that signs a publisher's connectors",
		Long: "Make the pair of keys with which connector pack --sign signs, in the format of\n" +
			"minisign. The secret key is encrypted with a passphrase; that takes 1 GiB of memory\n" +
			"for some seconds. Files that exist are never overwritten.",
		Example: "  aileron connector keygen\n  aileron connector keygen --out acme.key",
		Args:    cli.UsageArgs(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return opts.run(cmd.Context(), a) },
	}
	cmd.Flags().StringVarP(&opts.out, "out", "o", "",
		"file for the secret key (default publisher.key in aileron's home); the public key is beside it")
	signingPassphraseFlag(cmd, &opts.PassphraseFile)
	return cmd
}

func (o *connectorKeygenOptions) run(ctx context.Context, a *cli.App) error {
	secret := o.out
	if secret == "" {
		home, err := a.Home()
		if err != nil {
			return err
		}
		secret = filepath.Join(home, "publisher.key")
	}
	public := PublicKeyFile(secret)
	for _, file := range []string{secret, public} { // before a passphrase is asked for
		if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
			return keyFileExists(file, err)
		}
	}
	if err := canCreateIn(filepath.Dir(secret)); err != nil { // before that, too
		return failure.OfInput(fmt.Errorf("write %s: %w", secret, err), "")
	}
	p, err := signingPassphrase(ctx, a, o.PassphraseFile, true)
	if err != nil {
		return err
	}
	defer clear(p)
	key, err := signature.GenerateKey()
	if err != nil {
		return err
	}
	var sealed []byte
	err = a.ShowDuring(ctx, "aileron: encrypting the key, which takes some seconds", func() (err error) {
		sealed, err = key.Encrypt(p)
		return err
	})
	if err != nil {
		return err
	}
	if err := WriteNewFile(secret, sealed, 0o600); err != nil {
		return err
	}
	if err := WriteNewFile(public, key.Public().File(), 0o644); err != nil {
		return errors.Join(err, os.Remove(secret))
	}
	if a.JSON {
		return a.PrintJSON(map[string]string{"secret_key_file": secret, "public_key_file": public,
			"key_id": key.Public().ID().String(), "public_key": key.Public().String()})
	}
	fmt.Fprintf(a.Stdout, "%s\n", key.Public())
	a.Infof("aileron: made the key %s", key.Public().ID())
	a.Infof("  %s: the secret key. Keep it out of the repository, and a copy in a safe place: without it and", secret)
	a.Infof("  its passphrase, your users have to accept another key. Sign: aileron connector pack DIR --sign %s", secret)
	a.Infof("  %s: the public key. Publish it where your users already trust you: your repository, your site.", public)
	return nil
}

// PublicKeyFile returns the name of the public key beside a secret key.
func PublicKeyFile(secret string) string { return strings.TrimSuffix(secret, ".key") + ".pub" }

// WriteNewFile creates a file with all of its content at once. It replaces none.
func WriteNewFile(name string, data []byte, mode os.FileMode) error {
	fail := func(err error) error { return fmt.Errorf("write %s: %w", name, withoutPath(err)) }
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

// canCreateIn returns an error if no file can be created in a directory.
func canCreateIn(dir string) error {
	err := unix.Access(dir, unix.W_OK|unix.X_OK)
	if errors.Is(err, fs.ErrNotExist) {
		return hint.New(err, "create its directory first: mkdir -p %s", dir)
	}
	return err
}

// withoutPath returns the cause of an error of a file that the caller names.
func withoutPath(err error) error {
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

// signingPassphraseFlag adds the two flags that name a file with the passphrase of a signing key.
func signingPassphraseFlag(cmd *cobra.Command, file *string) {
	f := cmd.Flags()
	f.StringVar(file, "passphrase-file", "", "file that holds the signing key's passphrase")
	f.Var((*cli.DescriptorFile)(file), "passphrase-fd", "number of an open descriptor with the signing key's passphrase")
}

// signingPassphrase returns the passphrase of a signing key, from the file that was named or from a prompt. That of the
// vault, in the environment or the keyring, is another one.
func signingPassphrase(ctx context.Context, a *cli.App, file string, fresh bool) (p []byte, err error) {
	switch {
	case file != "":
		p, err = a.AwaitPassphraseFile(ctx, file)
	case a.Interactive() && fresh:
		return a.PromptNewPassphrase(ctx, "signing key")
	case a.Interactive():
		return a.PromptSecret(ctx, "passphrase of the signing key", false)
	default:
		err = hint.New(errors.New("find the signing key's passphrase: none was given, and there is no terminal to ask on"),
			"pass --passphrase-file, or run it in a terminal")
	}
	if err == nil && fresh {
		err = vault.CheckPassphrase(p)
	}
	return p, err
}
