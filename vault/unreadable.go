package vault

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

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
