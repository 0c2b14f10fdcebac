package vault

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"filippo.io/age"

	"github.com/ALRubinger/aileron/internal/format"
)

// Binding names the credential of a connector. It holds no secret.
type Binding struct {
	Name      string    `json:"name"` // <kind>/<service>/<identity>
	Kind      string    `json:"kind"`
	Connector string    `json:"connector_fqn"`
	Identity  string    `json:"identity"`
	Username  string    `json:"username,omitempty"` // of the kind basic
	Created   time.Time `json:"created"`
	Updated   time.Time `json:"updated"`

	// Of a credential that comes from a login; see package oauth. None of these is secret.
	Login   string    `json:"login,omitempty"` // the id of the login: its tokens change, and this does not
	Client  string    `json:"client_id,omitempty"`
	Scopes  Scopes    `json:"scopes,omitempty"`         // that were asked for
	Granted Scopes    `json:"granted_scopes,omitempty"` // that the service granted, if they are others
	Expires time.Time `json:"expires_at,omitzero"`      // of the secret; zero: it does not say
	Renewal string    `json:"renewal,omitempty"`        // one of the states of package oauth
}

// Scopes are scopes of OAuth with a space between them, as RFC 6749 section 3.3 writes them. As JSON they are an array.
type Scopes string

// MarshalJSON returns the array of the scopes.
func (s Scopes) MarshalJSON() ([]byte, error) { return json.Marshal(strings.Fields(string(s))) }

// UnmarshalJSON reads an array of scopes.
func (s *Scopes) UnmarshalJSON(data []byte) error {
	var list []string
	err := json.Unmarshal(data, &list)
	*s = Scopes(strings.Join(list, " "))
	return err
}

// Credential is a binding with its secret.
type Credential struct {
	Kind     string
	Username string
	Secret   Secret
	Grant    Secret // what renews Secret, for package oauth; zero: nothing does
}

// stored is the file of a binding. The part that can be read without the
// passphrase is repeated inside the sealed part, and must agree with it.
type stored struct {
	Binding Binding `json:"binding"`
	Sealed  []byte  `json:"sealed"`
}

type sealedPart struct {
	Binding Binding `json:"binding"`
	Secret  string  `json:"secret"`
	Grant   string  `json:"grant,omitempty"`
}

// Bind seals a new credential. It returns [ErrExists] if there is a binding of that
// name. The vault may be locked: sealing needs its recipient only.
func (v *Vault) Bind(b Binding, s Secret) error { return v.BindLogin(b, Credential{Secret: s}) }

// BindLogin is Bind for a credential that has a grant. A release that knows of no
// grants uses its secret.
func (v *Vault) BindLogin(b Binding, c Credential) error {
	file, err := bindingFile(b.Name)
	if err != nil {
		return err
	}
	unlock, err := v.change()
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := os.Lstat(v.path(file)); err == nil {
		return fmt.Errorf("bind %s: %w", b.Name, ErrExists)
	}
	b.Created = now()
	b.Updated = b.Created
	return v.store(b, c.Secret, c.Grant)
}

// Rebind replaces the secret of an existing binding and, unless username is "", its
// username. A login is removed. It never restores a binding that was revoked.
func (v *Vault) Rebind(name, username string, s Secret) error {
	return v.RebindLogin(Binding{Name: name, Username: username}, Credential{Secret: s})
}

// RebindLogin is Rebind for a credential that has a grant: b has the name of the binding and the facts of its login.
func (v *Vault) RebindLogin(b Binding, c Credential) error {
	unlock, err := v.change()
	if err != nil {
		return err
	}
	defer unlock()
	old, err := v.binding(b.Name)
	if err != nil {
		return err
	}
	b.Kind, b.Connector, b.Identity = old.Binding.Kind, old.Binding.Connector, old.Binding.Identity
	b.Username = cmp.Or(b.Username, old.Binding.Username)
	b.Created, b.Updated = old.Binding.Created, now()
	return v.store(b, c.Secret, c.Grant)
}

// ErrChanged is returned for a binding that is no longer what its reader saw.
var ErrChanged = errors.New("the binding was changed meanwhile")

// change locks the vault, which must exist, for one change.
func (v *Vault) change() (func(), error) {
	if !v.Initialised() {
		return nil, ErrNotInitialised
	}
	return v.exclusive()
}

func now() time.Time { return time.Now().UTC().Truncate(time.Second) }

// store seals and writes one binding. The caller holds the lock of exclusive.
func (v *Vault) store(b Binding, s, grant Secret) error {
	if err := b.Check(); err != nil {
		return err
	}
	if s.IsZero() {
		return errors.New("seal the credential: there is no secret")
	}
	file, err := bindingFile(b.Name)
	if err != nil {
		return err
	}
	recipient, err := v.recipient()
	if err != nil {
		return err
	}
	inner, err := json.Marshal(sealedPart{b, s.Reveal(), grant.Reveal()}) //nolint:gosec // it is encrypted next
	if err != nil {
		return fmt.Errorf("seal the credential: %w", err)
	}
	out := stored{Binding: b}
	if out.Sealed, err = seal(inner, recipient); err != nil {
		return err
	}
	data, err := json.MarshalIndent(out, "", "  ")
	if err != nil {
		return fmt.Errorf("seal the credential: %w", err)
	}
	return v.write(file, append(data, '\n'))
}

// recipient returns the recipient to which secrets are sealed. In an unlocked vault
// it comes from the identity and cannot be exchanged on disk.
func (v *Vault) recipient() (age.Recipient, error) {
	v.mu.Lock()
	identity := v.identity
	v.mu.Unlock()
	if identity != nil {
		return identity.Recipient(), nil
	}
	raw, err := v.read(recipientFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("seal the credential: %s is missing; write it anew with: aileron vault unlock",
			v.path(recipientFile))
	}
	if err != nil {
		return nil, err
	}
	recipient, err := age.ParseX25519Recipient(strings.TrimSpace(string(raw)))
	if err != nil {
		return nil, fmt.Errorf("seal the credential: %[1]s is broken; remove it, and write it anew with: "+
			"aileron vault unlock", v.path(recipientFile))
	}
	return recipient, nil
}

func (v *Vault) binding(name string) (stored, error) {
	file, err := bindingFile(name)
	if err != nil {
		return stored{}, err
	}
	raw, err := v.read(file)
	if errors.Is(err, fs.ErrNotExist) {
		return stored{}, fmt.Errorf("%s: %w", name, ErrNotBound)
	}
	if err != nil {
		return stored{}, err
	}
	if err := format.CheckJSON(raw, v.path(file), vaultFormat); err != nil {
		return stored{}, err
	}
	var s stored
	if json.Unmarshal(raw, &s) != nil || s.Binding.Name != name || s.Binding.Check() != nil {
		return stored{}, fmt.Errorf("read the binding %[1]s: %[2]s is broken or of another binding; "+
			"remove it with: aileron binding revoke %[1]s", name, v.path(file))
	}
	return s, nil
}

// Binding returns a binding without its secret.
func (v *Vault) Binding(name string) (Binding, error) {
	s, err := v.binding(name)
	return s.Binding, err
}

// Credential returns a binding with its secret. It returns [ErrLocked] while the
// vault is locked, in this process or for all, and [ErrNotBound] if there is no
// binding of that name. If its file was edited, exchanged, or sealed to another
// vault, the error names the binding.
func (v *Vault) Credential(name string) (Credential, error) {
	v.mu.Lock()
	identity := v.identity
	v.mu.Unlock()
	locked, err := v.LockState()
	switch {
	case err != nil:
		return Credential{}, err
	case identity == nil || locked:
		return Credential{}, ErrLocked
	}
	s, err := v.binding(name)
	if err != nil {
		return Credential{}, err
	}
	plain, err := open(s.Sealed, identity)
	if err != nil {
		return Credential{}, fmt.Errorf("open the binding %[1]s: it is broken, or not sealed to this vault; "+
			"set its secret again with: aileron binding rebind %[1]s", name)
	}
	var inner sealedPart
	if json.Unmarshal(plain, &inner) != nil || inner.Binding != s.Binding {
		return Credential{}, fmt.Errorf("open the binding %[1]s: its file was changed, as it does not agree with "+
			"what is sealed in it; remove it with: aileron binding revoke %[1]s", name)
	}
	secret, err := NewSecret([]byte(inner.Secret))
	if err != nil {
		return Credential{}, fmt.Errorf("open the binding %s: %w", name, err)
	}
	c := Credential{Kind: inner.Binding.Kind, Username: inner.Binding.Username, Secret: secret}
	if inner.Grant != "" {
		if c.Grant, err = NewSecret([]byte(inner.Grant)); err != nil {
			return Credential{}, fmt.Errorf("open the binding %s: its grant: %w", name, err)
		}
	}
	return c, nil
}

// Bindings returns all bindings, by name, without their secrets. The error names
// each binding that could not be read; the others are returned all the same.
func (v *Vault) Bindings() ([]Binding, error) {
	if !v.Initialised() {
		return nil, ErrNotInitialised
	}
	if err := v.safe(""); err != nil {
		return nil, err
	}
	names, err := v.bindingNames()
	if err != nil {
		return nil, err
	}
	var all []Binding
	var broken []error
	for _, name := range names {
		b, err := v.Binding(name)
		switch {
		case errors.Is(err, ErrNotBound): // revoked between two looks
		case err != nil:
			broken = append(broken, err)
		default:
			all = append(all, b)
		}
	}
	slices.SortFunc(all, func(a, b Binding) int { return strings.Compare(a.Name, b.Name) })
	return all, errors.Join(broken...)
}

// Revoke removes a binding, even if its file is broken.
func (v *Vault) Revoke(name string) error {
	file, err := bindingFile(name)
	if err != nil {
		return err
	}
	unlock, err := v.change()
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := v.binding(name); errors.As(err, new(*format.Error)) {
		return fmt.Errorf("revoke %s: %w", name, err) // what else it means is not known here
	}
	err = v.remove(file)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w", name, ErrNotBound)
	}
	if err == nil {
		err = v.removeLock(file)
	}
	if err != nil {
		return fmt.Errorf("revoke %s: %w", name, err)
	}
	return nil
}
