package connector

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/unlock"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/signature"
	"github.com/ALRubinger/aileron/spec/store"
)

type connectorPackOptions struct {
	output         string
	key            string // file of the secret key; "": it is not signed
	PassphraseFile string
}

func newConnectorPackCommand(a *cli.App) *cobra.Command {
	opts := &connectorPackOptions{}
	cmd := &cobra.Command{
		Use:   "pack DIR",
		Short: "Pack a connector's directory into an archive that can be installed",
		Long: "Pack a connector's directory into an archive that can be installed. The same files\n" +
			"result in the same archive. --sign adds signature.sig, by a key that connector keygen\n" +
			"or minisign -G has made.",
		Example: "  aileron connector pack ./examples/connectors/github --output aileron.tar.gz\n" +
			"  aileron connector pack ./tracker --sign ~/.aileron/publisher.key",
		Args: cli.UsageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return opts.run(cmd.Context(), a, args[0]) },
	}
	f := cmd.Flags()
	f.StringVarP(&opts.output, "output", "o", "aileron.tar.gz", "where to write the archive")
	f.StringVar(&opts.key, "sign", "", "sign the archive with the secret key in this file")
	signingPassphraseFlag(cmd, &opts.PassphraseFile)
	return cmd
}

func (o *connectorPackOptions) run(ctx context.Context, a *cli.App, dir string) error {
	if o.key == "" && o.PassphraseFile != "" {
		return failure.Usagef("--passphrase-file is that of the key that --sign names")
	}
	var signer *signature.SecretKey
	if o.key != "" {
		if _, err := store.Read(dir); err != nil { // before a passphrase is asked for
			return failure.OfInput(sourceError(a, dir, err), failure.ReasonConnector)
		}
		if err := canCreateIn(filepath.Dir(o.output)); err != nil { // before that, too
			return failure.OfInput(fmt.Errorf("write the archive %s: %w", o.output, err), "")
		}
		key, err := readSigningKey(ctx, a, o.key, o.PassphraseFile)
		if err != nil {
			return err
		}
		signer = &key
	}
	c, err := o.write(a, dir, signer)
	if err != nil {
		return err
	}
	if a.JSON {
		j := map[string]string{"fqn": string(c.FQN), "version": c.Version, "hash": c.Hash, "file": o.output}
		if signer != nil {
			j["key_id"], j["public_key"] = signer.Public().ID().String(), signer.Public().String()
		}
		return a.PrintJSON(j)
	}
	fmt.Fprintf(a.Stdout, "%s  %s %s %s\n", o.output, c.FQN, c.Version, c.Hash)
	if signer != nil {
		a.Infof("aileron: signed with the key %s", signer.Public().ID())
	}
	return nil
}

// write writes the archive, all of it at once.
func (o *connectorPackOptions) write(a *cli.App, dir string, signer *signature.SecretKey) (*spec.Connector, error) {
	f, err := os.CreateTemp(filepath.Dir(o.output), ".aileron-pack-*")
	if err != nil {
		return nil, failure.OfInput(fmt.Errorf("write the archive %s: %w", o.output, withoutPath(err)), "")
	}
	defer os.Remove(f.Name())
	c, err := store.PackSigned(dir, f, func(c *spec.Connector, old []byte) ([]byte, error) {
		if signer != nil {
			return signer.Sign(signature.ClaimOf(c))
		}
		return old, checkOwnSignature(c, old)
	})
	err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close())
	if err != nil {
		return nil, failure.OfInput(sourceError(a, dir, err), failure.ReasonConnector)
	}
	if err := os.Rename(f.Name(), o.output); err != nil {
		return nil, fmt.Errorf("write the archive %s: %w", o.output, errors.Unwrap(err))
	}
	return c, nil
}

// checkOwnSignature returns an error if the signature.sig in a publisher's directory signs other files than those that
// are packed, such as those of an earlier version. It does not check whose key made it.
func checkOwnSignature(c *spec.Connector, sig []byte) error {
	var refused *signature.Error
	_, err := signature.Check(signature.Trust{Authority: signature.AuthorityOf(c.FQN)}, signature.ClaimOf(c), sig)
	if errors.As(err, &refused) && refused.Reason == signature.ReasonKeyUnknown {
		return nil
	}
	if err != nil {
		return hint.New(err, "remove its signature.sig, or sign it again with --sign")
	}
	return nil
}

// readSigningKey reads a publisher's secret key, and asks for its passphrase if it is encrypted.
func readSigningKey(ctx context.Context, a *cli.App, file, passphraseFile string) (signature.SecretKey, error) {
	raw, err := a.ReadSecretFile(file, signature.MaxKeyFile)
	if err != nil {
		return signature.SecretKey{}, failure.OfInput(hint.New(fmt.Errorf("read the signing key: %w", err),
			"make one with: aileron connector keygen"), "")
	}
	defer clear(raw)
	key, err := signature.ParseSecretKey(raw, func() ([]byte, error) { return nil, errEncrypted })
	switch {
	case errors.Is(err, errEncrypted):
		key, err = decryptSigningKey(ctx, a, raw, passphraseFile)
	case err != nil:
		err = failure.Input(err, failure.ReasonKey)
	}
	if err != nil {
		return signature.SecretKey{}, fmt.Errorf("read the signing key %s: %w", file, err)
	}
	return key, nil
}

// errEncrypted is the error of a key that has a passphrase.
var errEncrypted = errors.New("it is encrypted")

// decryptSigningKey decrypts a publisher's secret key. A person may mistype its passphrase.
func decryptSigningKey(ctx context.Context, a *cli.App, raw []byte, passphraseFile string) (signature.SecretKey,
	error) {
	for try := 1; ; try++ {
		p, err := signingPassphrase(ctx, a, passphraseFile, false)
		if err != nil {
			return signature.SecretKey{}, err
		}
		var key signature.SecretKey
		err = a.ShowDuring(ctx, "aileron: decrypting the key, which takes some seconds", func() (err error) {
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
		a.Infof("aileron: %v; try again", err)
	}
}
