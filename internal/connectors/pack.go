package connectors

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ALRubinger/aileron/spec/logins"

	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/signature"
	"github.com/ALRubinger/aileron/spec/store"
)

// Pack writes the archive of a connector's directory to a file, all of it at once, signed by each of signers. Without
// one, it has the signature.sig of the directory, if any. The vouches of the directory go with signatures.
func Pack(dir, output string, signers []signature.SecretKey, list FaultLister) (*spec.Connector, error) {
	f, err := os.CreateTemp(filepath.Dir(output), ".aileron-pack-*")
	if err != nil {
		return nil, failure.OfInput(fmt.Errorf("write the archive %s: %w", output, WithoutPath(err)), "")
	}
	defer os.Remove(f.Name())
	c, err := store.PackSigned(dir, f, func(c *spec.Connector, old store.Carried) ([]byte, error) {
		if hasPlaceholderSecret(c) {
			return nil, hint.New(errors.New("the client_secret in manifest.toml is still the placeholder "+
				logins.PlaceholderSecret), "replace it in a copy of the directory, as the release's pipeline does, and pack that; "+
				"never commit the value")
		}
		if err := checkOwnVouches(c, old, len(signers) > 0); err != nil {
			return nil, err
		}
		if len(signers) == 0 {
			return old.Signature, checkOwnSignature(c, old.Signature)
		}
		inOrder, err := signature.NewestFirst(signature.AuthorityOf(c.FQN), old.Trust, signers)
		if err != nil {
			return nil, err
		}
		var all []byte
		for _, key := range inOrder {
			one, err := key.Sign(signature.ClaimOf(c))
			if err != nil {
				return nil, err
			}
			all = append(all, one...)
		}
		return all, checkOwnSignature(c, all)
	})
	err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close())
	if err != nil {
		return nil, failure.OfInput(SourceError(dir, err, list), failure.ReasonConnector)
	}
	if err := os.Rename(f.Name(), output); err != nil {
		return nil, fmt.Errorf("write the archive %s: %w", output, errors.Unwrap(err))
	}
	return c, nil
}

// hasPlaceholderSecret reports whether a connector's client_secret is what its repository has in place of one.
func hasPlaceholderSecret(c *spec.Connector) bool {
	need := c.Credential()
	return need != nil && need.OAuth2 != nil && need.OAuth2.ClientSecret == logins.PlaceholderSecret
}

// SecretWarning returns what is wrong with the client_secret of a connector that is not packed yet, or "".
func SecretWarning(c *spec.Connector) string {
	if !hasPlaceholderSecret(c) {
		return ""
	}
	return "the client_secret in manifest.toml is the placeholder " + logins.PlaceholderSecret + ": a login with it " +
		"fails, and connector pack refuses it, until the release replaces it"
}

// checkOwnVouches returns an error for vouches in a publisher's directory that no user accepts.
func checkOwnVouches(c *spec.Connector, old store.Carried, signed bool) error {
	if old.Trust == nil {
		return nil
	}
	if err := signature.CheckTrustFile(signature.AuthorityOf(c.FQN), old.Trust); err != nil {
		return hint.New(err, "make it again with: aileron connector vouch")
	}
	if !signed && old.Signature == nil {
		return hint.New(errors.New("it has vouches, and no signature"), "sign it with --sign, or remove its file %s",
			signature.TrustFile)
	}
	return nil
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
