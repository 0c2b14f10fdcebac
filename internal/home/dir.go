// Package home is aileron's home directory. Open [Dir] first: it finds the directory, and opens what is in it, namely
// the audit log, the connector store, the vault, the publishers' keys and the actions.
package home

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/auditlog"
	"github.com/ALRubinger/aileron/internal/config"
	"github.com/ALRubinger/aileron/internal/filelock"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/spec/action"
	"github.com/ALRubinger/aileron/spec/signature"
	"github.com/ALRubinger/aileron/spec/store"
	"github.com/ALRubinger/aileron/vault"
)

// Dir is aileron's home directory, and how what is in it is opened.
type Dir struct {
	Flag    string                           // --home; use Home()
	Environ func(name string) string         // use Getenv(); nil: no variable is set
	Warn    func(format string, args ...any) // use Warnf(); nil: nothing is printed
	Logger  func() *slog.Logger              // nil: nothing is logged

	VaultOptions []vault.Option // none in a release
	Locks        filelock.Locker
	stores       openedStore // use OpenStore()
}

// Getenv returns a variable of the environment.
func (d *Dir) Getenv(name string) string {
	if d.Environ == nil {
		return ""
	}
	return d.Environ(name)
}

// Warnf prints a message for a person.
func (d *Dir) Warnf(format string, args ...any) {
	if d.Warn != nil {
		d.Warn(format, args...)
	}
}

// HomePath returns aileron's directory as an absolute path: --home, else AILERON_HOME, else ~/.aileron.
func (d *Dir) HomePath() (string, error) {
	dir := d.Flag
	if dir == "" {
		dir = d.Getenv("AILERON_HOME")
	}
	if dir == "" {
		user, err := os.UserHomeDir()
		if err != nil {
			return "", hint.New(fmt.Errorf("find the home directory: %w", err), "pass --home DIR or set AILERON_HOME")
		}
		dir = filepath.Join(user, ".aileron")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("resolve the home directory: %w", err)
	}
	return dir, nil
}

// Home returns aileron's directory, and creates it with mode 0700 if it does not exist.
func (d *Dir) Home() (string, error) {
	dir, err := d.HomePath()
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", hint.New(fmt.Errorf("create the home directory: %w", err),
			"pass --home DIR with a directory that you may write to")
	}
	return dir, nil
}

// Settings returns aileron's directory, and its config.toml.
func (d *Dir) Settings() (home string, conf config.Config, err error) {
	if home, err = d.Home(); err == nil {
		conf, err = config.Read(home)
	}
	return home, conf, err
}

// OpenStore returns the connector store of the home, which is opened once.
func (d *Dir) OpenStore() (*store.Store, error) {
	home, err := d.Home()
	if err != nil {
		return nil, err
	}
	d.stores.Lock()
	defer d.stores.Unlock()
	if d.stores.home != home {
		s, err := store.Open(filepath.Join(home, "store"))
		if err != nil {
			return nil, hint.New(err, "check the permissions of %s", home)
		}
		d.stores.home, d.stores.store = home, s
	}
	return d.stores.store, nil
}

// openedStore is the connector store of a home.
type openedStore struct {
	sync.Mutex
	home  string // "": none is open
	store *store.Store
}

// Installed returns the store of the home and its entries, in the order of their versions.
func (d *Dir) Installed() (*store.Store, []store.Entry, error) {
	s, err := d.OpenStore()
	if err != nil {
		return nil, nil, err
	}
	entries, err := s.List()
	return s, entries, err
}

// VaultOf returns the vault of the home, locked. It need not exist.
func (d *Dir) VaultOf() (*vault.Vault, error) {
	home, err := d.Home()
	if err != nil {
		return nil, err
	}
	return d.VaultAt(home), nil
}

// VaultAt returns the vault of a home, locked. It need not exist.
func (d *Dir) VaultAt(home string) *vault.Vault {
	return vault.Open(filepath.Join(home, "vault"), d.VaultOptions...)
}

// KeepInKeyring stores the passphrase in the keyring of the operating system.
func (d *Dir) KeepInKeyring(passphrase []byte) error {
	home, err := d.Home()
	if err != nil {
		return err
	}
	if err := vault.ToKeyring(home, passphrase); err != nil {
		return hint.New(fmt.Errorf("store the passphrase in the OS keyring: %w", err),
			"unlock it, and store the passphrase with: aileron vault unlock --keyring; or do without: "+
				"AILERON_VAULT_PASSPHRASE, --passphrase-file")
	}
	return nil
}

// NotInitialised returns the error of an operation that needs a vault.
func NotInitialised(operation string) error {
	return hint.New(errors.New(operation+": it is not initialised"), "create it with: aileron vault init")
}

// OpenLog opens the audit log of the home for appending. A config.toml that cannot be read is not a reason to refuse to
// lock the vault: the log is then flushed after every row.
func (d *Dir) OpenLog(home string) (*audit.Log, error) {
	conf, err := config.Read(home)
	if err != nil {
		d.Warnf("aileron: warning: %v", err)
		conf.Audit.Durability = "full"
	}
	log := slog.New(slog.DiscardHandler)
	if d.Logger != nil {
		log = d.Logger()
	}
	opts := audit.Options{Durability: conf.Audit.Durability, OnBroken: auditlog.Reporter{Log: log}.Broken}
	return audit.Open(filepath.Join(home, "audit.db"), opts)
}

// PublisherKeys returns the publishers' keys of the home.
func (d *Dir) PublisherKeys() (*signature.Keys, error) {
	home, err := d.Home()
	if err != nil {
		return nil, err
	}
	return signature.OpenKeys(home), nil
}

// Actions returns the action files of the home.
func (d *Dir) Actions() (action.Library, error) {
	home, err := d.Home()
	return action.In(home), err
}

// AuditReader opens the log for reading. It returns nil if there is none yet.
func (d *Dir) AuditReader() (*audit.Log, error) {
	home, err := d.Home()
	if err != nil {
		return nil, err
	}
	l, err := audit.OpenReader(filepath.Join(home, "audit.db"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if n := l.Unfolded(); n > 0 {
		const lacks = "aileron: warning: audit.db lacks %d rows of sessions: they are in journals, and cannot be added now"
		d.Warnf(lacks, n)
	}
	var foreign *audit.SchemaError
	if errors.As(l.Foreign(), &foreign) {
		if len(foreign.Lacks) > 0 {
			return nil, errors.Join(auditlog.Hint(fmt.Errorf("read the audit log: %w", foreign)), l.Close())
		}
		d.Warnf("aileron: warning: %v: only the columns that this version knows are printed", foreign)
	}
	return l, nil
}

// ReadAudit calls read with the log, or prints that there is none yet.
func (d *Dir) ReadAudit(read func(*audit.Log) error) error {
	l, err := d.AuditReader()
	if err != nil {
		return err
	}
	if l == nil {
		d.Warnf("aileron: no audit log yet; it begins with the first session")
		return nil
	}
	defer l.Close()
	return auditlog.Hint(read(l))
}
