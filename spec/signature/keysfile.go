package signature

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/BurntSushi/toml"
	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/internal/durable"
	"github.com/ALRubinger/aileron/internal/format"
)

// The bounds of a file of keys.
const (
	maxTrustFile = 64 << 10
	maxKeys      = 64 // of an authority, and as many that were removed
)

// trustFile is <home>/trust/keys/SCHEME_OWNER.toml.
type trustFile struct {
	Format    int         `toml:"format"`
	Authority string      `toml:"authority"`
	Keys      []knownFile `toml:"keys"`
	Retired   []knownFile `toml:"retired"`
	Revoked   []knownFile `toml:"revoked"`
}

type knownFile struct {
	PublicKey string    `toml:"public_key"`
	Since     time.Time `toml:"since"`
	By        string    `toml:"by"`
	VouchedBy string    `toml:"vouched_by"`
}

// fileOf returns the name of an authority's file. A scheme has no underscore.
func fileOf(a Authority) string { return strings.Replace(string(a), "://", "_", 1) + ".toml" }

// authorityOfFile is the reverse of fileOf.
func authorityOfFile(name string) (Authority, bool) {
	stem, ok := strings.CutSuffix(name, ".toml")
	a, err := ParseAuthority(strings.Replace(stem, "_", "://", 1))
	return a, ok && err == nil && fileOf(a) == name
}

// parseTrust reads the file of an authority: every key of it, and nothing else.
func parseTrust(data []byte) (Trust, error) {
	var f trustFile
	meta, err := toml.Decode(string(data), &f)
	if err != nil {
		return Trust{}, err
	}
	if unknown := meta.Undecoded(); len(unknown) > 0 {
		return Trust{}, fmt.Errorf("it has the unknown key %s", unknown[0])
	}
	if f.Format != format.First {
		return Trust{}, fmt.Errorf("it has the format %d, and this aileron knows %d", f.Format, format.First)
	}
	t := Trust{}
	if t.Authority, err = ParseAuthority(f.Authority); err != nil || string(t.Authority) != f.Authority {
		return Trust{}, fmt.Errorf("%q is not an authority", f.Authority)
	}
	seen := map[KeyID]bool{}
	read := func(from []knownFile) (all []Known, err error) {
		for _, k := range from {
			key, err := parseKeyLine(k.PublicKey)
			switch {
			case err != nil:
				return nil, fmt.Errorf("the key %q: %w", k.PublicKey, err)
			case seen[key.ID()]:
				return nil, fmt.Errorf("it has the key %s twice", key.ID())
			case len(all) == maxKeys:
				return nil, fmt.Errorf("it has more than %d keys", maxKeys)
			}
			seen[key.ID()] = true
			one := Known{Key: key, Since: k.Since, By: k.By}
			if k.VouchedBy != "" {
				if one.VouchedBy, err = ParseKeyID(k.VouchedBy); err != nil {
					return nil, err
				}
			}
			all = append(all, one)
		}
		return all, nil
	}
	for _, list := range []struct {
		from []knownFile
		to   *[]Known
	}{{f.Keys, &t.Keys}, {f.Retired, &t.Retired}, {f.Revoked, &t.Revoked}} {
		if *list.to, err = read(list.from); err != nil {
			return Trust{}, err
		}
	}
	if !t.Signs() {
		return Trust{}, errors.New("it has no key")
	}
	return t, nil
}

// marshal returns the file of an authority.
func (t Trust) marshal() []byte {
	b := fmt.Appendf(nil, "# The keys that sign the connectors of %s: see aileron connector keys --help\n"+
		"format = %d\nauthority = %q\n", t.Authority, format.First, t.Authority)
	for _, table := range []struct {
		name string
		keys []Known
	}{{"keys", t.Keys}, {"retired", t.Retired}, {"revoked", t.Revoked}} {
		for _, k := range table.keys {
			b = fmt.Appendf(b, "\n[[%s]] # %s\npublic_key = %q\nsince = %s\n", table.name, k.Key.ID(), k.Key.String(),
				k.Since.UTC().Format(time.RFC3339))
			if k.By != "" {
				b = fmt.Appendf(b, "by = %q\n", k.By)
			}
			if k.VouchedBy != 0 {
				b = fmt.Appendf(b, "vouched_by = %q\n", k.VouchedBy)
			}
		}
	}
	return b
}

// write replaces the file of an authority: a reader, a kill and a power cut see the old
// one or the new one. Without keys it removes the file. The lock is held.
func (k *Keys) write(t Trust) error {
	fail := func(err error) error { return fmt.Errorf("write the keys of %s: %w", t.Authority, err) }
	file := filepath.Join(k.dir, fileOf(t.Authority))
	if !t.Signs() {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fail(err)
		}
		return durable.SyncDir(k.dir)
	}
	if err := durable.Replace(file, t.marshal()); err != nil {
		return fail(err)
	}
	return nil
}

// KeysError is returned for publishers' keys that cannot be read or trusted.
type KeysError struct {
	Path string
	Err  error
}

func (e *KeysError) Error() string {
	return fmt.Sprintf("read the publishers' keys in %s: %v", e.Path, e.Err)
}

func (e *KeysError) Unwrap() error { return e.Err }

// ErrorClass and ErrorReason return those in the error object of --json.
func (*KeysError) ErrorClass() string  { return "unavailable" }
func (*KeysError) ErrorReason() string { return "publisher_keys_unreadable" }

// read returns the content of a file that only its owner can have written.
func (k *Keys) read(name string) ([]byte, error) {
	if err := k.safe(); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(k.dir, name), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, unix.ELOOP) {
		return nil, errors.New("it is a symbolic link")
	}
	if err != nil {
		return nil, reasonIn(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, reasonIn(err)
	}
	if err := checkOwner(info); err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file")
	}
	data, err := io.ReadAll(io.LimitReader(f, maxTrustFile+1))
	if err != nil {
		return nil, reasonIn(err)
	}
	if len(data) > maxTrustFile {
		return nil, fmt.Errorf("it is larger than %d bytes", maxTrustFile)
	}
	return data, nil
}

// safe returns an error if another user could change the directory, or the one above it.
func (k *Keys) safe() error {
	for _, dir := range []string{filepath.Dir(k.dir), k.dir} {
		info, err := os.Lstat(dir)
		if err != nil {
			return reasonIn(err)
		}
		if !info.IsDir() {
			return fmt.Errorf("%s is not a directory", dir)
		}
		if err := checkOwner(info); err != nil {
			return fmt.Errorf("%s: %w", dir, err)
		}
	}
	return nil
}

// checkOwner returns an error if a user other than this one could have changed a file.
func checkOwner(info fs.FileInfo) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case info.Mode().Perm()&0o022 != 0:
		return errors.New("others may write to it; run chmod go-w on it")
	case ok && int(st.Uid) != os.Geteuid() && os.Geteuid() != 0:
		return errors.New("it belongs to another user")
	case ok && info.Mode().IsRegular() && st.Nlink > 1:
		return errors.New("it has a second name (a hard link)")
	}
	return nil
}

// reasonIn returns the reason in err alone: the caller adds the path.
func reasonIn(err error) error {
	if path := (*fs.PathError)(nil); errors.As(err, &path) {
		return path.Err
	}
	return err
}
