package vault

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/internal/durable"
	"github.com/ALRubinger/aileron/internal/format"
)

// maxFile is the size of the largest file of a vault that is read.
const maxFile = 256 << 10

// writersWait bounds the wait for another process that writes to the vault.
// Each writes for milliseconds, so a process that needs longer hangs. Tests change it.
var writersWait = 10 * time.Second

// vaultFormat is the format of the vault's directory, and of each binding.
const vaultFormat = format.First

func (v *Vault) path(name string) string { return filepath.Join(v.dir, name) }

// exclusive keeps other processes from writing until the function that it returns is
// called.
func (v *Vault) exclusive() (func(), error) {
	if err := v.safe(""); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), writersWait)
	defer cancel()
	f, err := v.lock(ctx, lockFile)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return nil, fmt.Errorf("write to the vault: another aileron has been writing to %s for %s; end it", v.dir,
			writersWait)
	case err != nil:
		return nil, err
	}
	return func() { _ = f.Close() }, nil
}

// lock locks a file of the vault, which it creates. It waits until ctx ends. The lock ends when the file is closed.
func (v *Vault) lock(ctx context.Context, name string) (*os.File, error) {
	f, err := os.OpenFile(v.path(name), os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the vault: %w", err)
	}
	for {
		err := v.flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			_ = f.Close()
			return nil, fmt.Errorf("lock the vault: %w", err)
		}
		select {
		case <-ctx.Done():
			_ = f.Close()
			return nil, fmt.Errorf("lock the vault: %w", ctx.Err())
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// safe returns an error if another user could change a directory of the vault on the
// path to name. It is called before every read and every write.
func (v *Vault) safe(name string) error {
	// Who may write to the parent may put another vault in this one's place.
	// A sticky directory, like /tmp, keeps others from it.
	parent, err := os.Stat(filepath.Dir(v.dir))
	if err == nil && parent.Mode()&0o002 != 0 && parent.Mode()&fs.ModeSticky == 0 {
		return fmt.Errorf("open the vault: every user may write to %[1]s; run: chmod go-w %[1]s", filepath.Dir(v.dir))
	}
	dir := v.dir
	for _, next := range append(strings.Split(filepath.Dir(filepath.FromSlash(name)), string(filepath.Separator)), "") {
		info, err := os.Lstat(dir)
		if err != nil {
			return markUnreadable(fmt.Errorf("open the vault: %w", err))
		}
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			return fmt.Errorf("open the vault: %s is a symbolic link; put a directory in its place", dir)
		case !info.IsDir():
			return fmt.Errorf("open the vault: %s is not a directory; move it away", dir)
		case info.Mode().Perm()&0o022 != 0:
			return fmt.Errorf("open the vault: others may write to %[1]s; run: chmod 700 %[1]s", dir)
		case !owned(info):
			return fmt.Errorf("open the vault: %s belongs to another user; it must be yours", dir)
		}
		if next == "" || next == "." {
			return markUnreadable(format.Check(v.dir, vaultFormat))
		}
		dir = filepath.Join(dir, next)
	}
	return nil
}

// owned reports whether a file belongs to this user. Root may read every file.
func owned(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return !ok || os.Geteuid() == 0 || int(st.Uid) == os.Geteuid()
}

// read returns the content of a regular file that has one name and that only its
// owner can write to. Aileron makes no links or pipes: they may lead anywhere.
func (v *Vault) read(name string) ([]byte, error) {
	fail := func(err error) error { return fmt.Errorf("read %s: %w", v.path(name), err) }
	if err := v.safe(name); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(v.path(name), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, unix.ELOOP) {
		return nil, fail(errors.New("it is a symbolic link; put the file itself there"))
	}
	if err != nil {
		return nil, markUnreadable(fail(errors.Unwrap(err)))
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, markUnreadable(fail(errors.Unwrap(err)))
	}
	st, _ := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.Mode().IsRegular():
		return nil, fail(errors.New("it is not a regular file; put the file itself there"))
	case st != nil && st.Nlink > 1:
		return nil, fail(errors.New("it has a second name (a hard link); replace it by a copy"))
	case info.Mode().Perm()&0o022 != 0:
		return nil, fail(errors.New("others may write to it; chmod 600 it"))
	case !owned(info):
		return nil, fail(errors.New("it belongs to another user; it must be yours"))
	case info.Size() > maxFile:
		return nil, fail(errors.New("it is too large to be of a vault"))
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		return nil, markUnreadable(fail(err))
	}
	return data, nil
}

// write replaces one file: a reader, a kill and a power cut see the old one or the
// new one. The caller holds the lock of exclusive.
func (v *Vault) write(name string, data []byte) error {
	dir := filepath.Dir(v.path(name))
	fail := func(err error) error { return fmt.Errorf("write %s: %w", v.path(name), err) }
	if err := v.makeDirs(dir); err != nil {
		return fail(err)
	}
	if err := v.safe(name); err != nil {
		return err
	}
	// No other process writes now, so incomplete files are left from killed ones.
	if left, err := filepath.Glob(filepath.Join(globLiteral(dir), durable.Prefix+"*")); err == nil {
		for _, path := range left {
			_ = os.Remove(path)
		}
	}
	if err := durable.Replace(v.path(name), data); err != nil {
		return fail(err)
	}
	return nil
}

// makeDirs creates dir and what is missing above it in the vault, each durably.
func (v *Vault) makeDirs(dir string) error {
	if dir == v.dir {
		return nil
	}
	if err := v.makeDirs(filepath.Dir(dir)); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); errors.Is(err, fs.ErrExist) {
		return nil
	} else if err != nil {
		return err
	}
	return durable.SyncDir(filepath.Dir(dir))
}

// remove removes one file durably, so that what was revoked remains revoked.
func (v *Vault) remove(name string) error {
	if err := v.safe(name); err != nil {
		return err
	}
	if err := os.Remove(v.path(name)); err != nil {
		return err
	}
	return durable.SyncDir(filepath.Dir(v.path(name)))
}

// globLiteral returns the pattern that matches path alone.
func globLiteral(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// UnreadableError is returned for a file of the vault that could not be read, so
// that its content is not known.
type UnreadableError struct{ Err error }

func (e *UnreadableError) Error() string { return e.Err.Error() }
func (e *UnreadableError) Unwrap() error { return e.Err }

// ErrorClass and ErrorReason return those in the error object of --json.
func (*UnreadableError) ErrorClass() string  { return "unavailable" }
func (*UnreadableError) ErrorReason() string { return "vault_unreadable" }

// markUnreadable returns an error of the system as an *UnreadableError, and any other
// error, about a missing file or the content of one, as it is.
func markUnreadable(err error) error {
	if errors.As(err, new(syscall.Errno)) && !errors.Is(err, fs.ErrNotExist) {
		return &UnreadableError{err}
	}
	return err
}

// bindingNames returns the names of all bindings that have a file, sorted.
func (v *Vault) bindingNames() ([]string, error) {
	names := []string{""}
	for range 3 { // <kind>/<service>/<identity>.json
		var next []string
		for _, dir := range names {
			entries, err := os.ReadDir(filepath.Join(v.path("bindings"), filepath.FromSlash(dir)))
			if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
				return nil, markUnreadable(fmt.Errorf("list the bindings: %w", err))
			}
			for _, e := range entries {
				next = append(next, path.Join(dir, e.Name()))
			}
		}
		names = next
	}
	names = slices.DeleteFunc(names, func(n string) bool { return !strings.HasSuffix(n, ".json") })
	for i, n := range names {
		names[i] = strings.TrimSuffix(n, ".json")
	}
	slices.Sort(names)
	return names, nil
}

// there reports whether the vault has a file of that name.
func (v *Vault) there(name string) (bool, error) {
	_, err := os.Lstat(v.path(name))
	if err == nil {
		return true, nil
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return false, nil
	}
	return false, markUnreadable(fmt.Errorf("stat %s: %w", v.path(name), errors.Unwrap(err)))
}

// Dir returns the vault's directory.
func (v *Vault) Dir() string { return v.dir }
