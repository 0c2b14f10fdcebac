package vault

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"filippo.io/age"
)

// Binding says which credential a connector gets. It holds no secret.
type Binding struct {
	Name      string    `json:"name"` // <kind>/<service>/<identity>
	Kind      string    `json:"kind"`
	Connector string    `json:"connector_fqn"`
	Identity  string    `json:"identity"`
	Username  string    `json:"username,omitempty"` // of kind basic
	Created   time.Time `json:"created"`
	Updated   time.Time `json:"updated"`
}

// Credential is an opened binding.
type Credential struct {
	Kind     string
	Username string
	Secret   Secret
}

// stored is a binding's file. What can be read without the passphrase is
// repeated inside the seal, and must agree with it.
type stored struct {
	Binding Binding `json:"binding"`
	Sealed  []byte  `json:"sealed"`
}

type sealedPart struct {
	Binding Binding `json:"binding"`
	Secret  string  `json:"secret"`
}

// BindingName is the name of a connector's binding for an identity, when no
// other connector of the same last name has taken it; else the owner's name
// goes before the service's.
func (v *Vault) BindingName(kind, connector, identity string) (string, error) {
	if !isIdentity(identity) {
		return "", fmt.Errorf("the identity %q is not letters, digits and ._-@+", identity)
	}
	parts := strings.Split(connector, "/")
	service := parts[len(parts)-1]
	all, err := v.Bindings()
	if err != nil && !errors.Is(err, ErrNotInitialised) {
		return "", err
	}
	for _, b := range all {
		if s := strings.Split(b.Name, "/"); len(s) == 3 && s[1] == service && b.Connector != connector && len(parts) > 2 {
			service = parts[2] + "." + service
			break
		}
	}
	return kind + "/" + service + "/" + identity, nil
}

func isIdentity(s string) bool {
	if s == "" || len(s) > 100 || s[0] == '.' || s[0] == '-' {
		return false
	}
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && strings.IndexByte("._-@+", c) < 0 {
			return false
		}
	}
	return true
}

// file is where a binding stands; its name's parts are checked again, for
// they may come from a command line.
func bindingFile(name string) (string, error) {
	parts := strings.Split(name, "/")
	if len(parts) != 3 {
		return "", fmt.Errorf("the binding name %q is not kind/service/identity", name)
	}
	for _, p := range parts {
		if !isIdentity(p) {
			return "", fmt.Errorf("the binding name %q is not kind/service/identity", name)
		}
	}
	return filepath.Join("bindings", parts[0], parts[1], parts[2]+".json"), nil
}

// Bind seals a new credential. A binding that is there is ErrExists. The
// vault need not be unlocked: sealing takes the recipient only.
func (v *Vault) Bind(b Binding, s Secret) error {
	return v.store(b, s, false)
}

// Rebind replaces the secret of a binding that is there, and keeps the rest.
func (v *Vault) Rebind(name string, username string, s Secret) error {
	old, err := v.binding(name)
	if err != nil {
		return err
	}
	b := old.Binding
	if username != "" {
		b.Username = username
	}
	return v.store(b, s, true)
}

func (v *Vault) store(b Binding, s Secret, replace bool) error {
	if !v.Initialised() {
		return ErrNotInitialised
	}
	name, err := bindingFile(b.Name)
	if err != nil {
		return err
	}
	unlock, err := v.exclusive()
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := os.Lstat(filepath.Join(v.dir, name)); err == nil && !replace {
		return fmt.Errorf("bind %s: %w", b.Name, ErrExists)
	}
	now := time.Now().UTC().Truncate(time.Second)
	if !replace {
		b.Created = now
	}
	b.Updated = now
	raw, err := v.read(recipientFile)
	if err != nil {
		return err
	}
	recipient, err := age.ParseX25519Recipient(strings.TrimSpace(string(raw)))
	if err != nil {
		return errors.New("seal the credential: the vault's recipient is broken")
	}
	inner, err := json.Marshal(sealedPart{b, s.Reveal()})
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
	return v.write(name, append(data, '\n'))
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
	var s stored
	if json.Unmarshal(raw, &s) != nil || s.Binding.Name != name {
		return stored{}, fmt.Errorf("read the binding %s: its file is broken; bind it again", name)
	}
	return s, nil
}

// Binding gives one binding without its secret.
func (v *Vault) Binding(name string) (Binding, error) {
	s, err := v.binding(name)
	return s.Binding, err
}

// Credential opens a binding.
func (v *Vault) Credential(name string) (Credential, error) {
	v.mu.Lock()
	identity := v.identity
	v.mu.Unlock()
	if identity == nil {
		return Credential{}, ErrLocked
	}
	s, err := v.binding(name)
	if err != nil {
		return Credential{}, err
	}
	plain, err := open(s.Sealed, identity)
	if err != nil {
		return Credential{}, fmt.Errorf("open the binding %s: it is not sealed to this vault", name)
	}
	var inner sealedPart
	if json.Unmarshal(plain, &inner) != nil || inner.Binding != s.Binding {
		return Credential{}, fmt.Errorf("open the binding %s: its file does not agree with what is sealed in it; somebody changed it", name)
	}
	secret, err := NewSecret([]byte(inner.Secret))
	if err != nil {
		return Credential{}, fmt.Errorf("open the binding %s: %w", name, err)
	}
	return Credential{Kind: inner.Binding.Kind, Username: inner.Binding.Username, Secret: secret}, nil
}

// Revoke removes a binding.
func (v *Vault) Revoke(name string) error {
	if _, err := v.binding(name); err != nil && errors.Is(err, ErrNotBound) {
		return err
	}
	file, err := bindingFile(name)
	if err != nil {
		return err
	}
	unlock, err := v.exclusive()
	if err != nil {
		return err
	}
	defer unlock()
	if err := os.Remove(filepath.Join(v.dir, file)); err != nil {
		return fmt.Errorf("revoke %s: %w", name, err)
	}
	return nil
}

// Bindings lists what is bound, by name, without any secret.
func (v *Vault) Bindings() ([]Binding, error) {
	if !v.Initialised() {
		return nil, ErrNotInitialised
	}
	files, err := filepath.Glob(filepath.Join(v.dir, "bindings", "*", "*", "*.json"))
	if err != nil {
		return nil, fmt.Errorf("list the bindings: %w", err)
	}
	var all []Binding
	for _, f := range files {
		rel, err := filepath.Rel(filepath.Join(v.dir, "bindings"), f)
		if err != nil {
			return nil, fmt.Errorf("list the bindings: %w", err)
		}
		b, err := v.Binding(strings.TrimSuffix(filepath.ToSlash(rel), ".json"))
		if errors.Is(err, ErrNotBound) {
			continue // revoked between two looks
		}
		if err != nil {
			return nil, err
		}
		all = append(all, b)
	}
	slices.SortFunc(all, func(a, b Binding) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// Fingerprint changes whenever a binding, the identity or the mark of
// SetLocked may have changed.
func (v *Vault) Fingerprint() (string, error) {
	h := sha256.New()
	err := filepath.WalkDir(v.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == lockFile {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		}
		if info, err := d.Info(); err == nil {
			fmt.Fprintln(h, path, info.Size(), info.ModTime().UnixNano(), inode(info))
		}
		return nil
	})
	return hex.EncodeToString(h.Sum(nil)), err
}

func inode(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Ino
	}
	return 0
}
