package publishing

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/ALRubinger/aileron/internal/connectors"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/regular"
	"github.com/ALRubinger/aileron/internal/unlock"
	"github.com/ALRubinger/aileron/spec/signature"
	"github.com/ALRubinger/aileron/spec/store"
)

// VouchOptions are those of [Vouch].
type VouchOptions struct {
	Dir            string // of the connector
	Next           string // file of the next public key
	Key            string // file of the secret key that users know
	PassphraseFile string
}

// Vouched is what [Vouch] wrote.
type Vouched struct {
	Authority signature.Authority
	Key, Next signature.PublicKey
	File      string
}

// Vouch adds to the file trust of a connector the statement, signed with the key that users know, that another key is
// the next one of their publisher. Nothing is written if that is not one that users would accept.
func Vouch(ctx context.Context, u *unlock.Unlocker, o VouchOptions) (Vouched, error) {
	c, err := store.Read(o.Dir)
	if err != nil {
		return Vouched{}, failure.OfInput(connectors.SourceError(o.Dir, err, nil), failure.ReasonConnector)
	}
	v := Vouched{Authority: signature.AuthorityOf(c.FQN), File: filepath.Join(o.Dir, signature.TrustFile)}
	if v.Next, err = connectors.ReadPublicKey(o.Next); err != nil {
		return v, err
	}
	file, err := regular.Read(v.File, signature.MaxSize)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return v, failure.OfInput(fmt.Errorf("read %s: %w", v.File, err), "")
	}
	key, err := connectors.ReadSigningKey(ctx, u, o.Key, o.PassphraseFile)
	if err != nil {
		return v, err
	}
	v.Key = key.Public()
	statement, err := key.Vouch(v.Authority, v.Next)
	if err == nil {
		file, err = signature.AddVouch(v.Authority, file, statement)
	}
	if err != nil {
		return v, failure.Input(hint.New(err, "a key vouches once, for another one that no key vouches for yet"),
			failure.ReasonKey)
	}
	if err := replace(v.File, file); err != nil {
		return v, fmt.Errorf("write %s: %w", v.File, connectors.WithoutPath(err))
	}
	return v, nil
}
