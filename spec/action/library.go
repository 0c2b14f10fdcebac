package action

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/internal/durable"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/regular"
	"github.com/ALRubinger/aileron/spec"
)

// maxFiles bounds the action files of a home.
const maxFiles = 256

// Library is the directory actions of a home, with a copy of each action that was added under its hash. Its methods
// are safe for concurrent use by processes: a file appears whole or not at all.
//
//	<home>/actions/NAME.md                             what is in force; its owner may edit it
//	<home>/store/actions/sha256/<hash>/action.md       what was added
type Library struct{ home string }

// In returns the library of a home, which need not have one yet.
func In(home string) Library { return Library{home} }

// File is an action file. If Err is not nil, it cannot be used.
type File struct {
	Name   string  // without .md
	Action *Action // nil if it cannot be read, or is not valid
	Err    error
	Added  bool // these bytes were added by a person who was shown them, and not edited since
}

// Dir returns the directory of the action files.
func (l Library) Dir() string { return filepath.Join(l.home, "actions") }

// path returns the file of an action.
func (l Library) path(name string) string { return filepath.Join(l.Dir(), name+".md") }

func (l Library) copyOf(hash string) string {
	return filepath.Join(l.home, "store", "actions", "sha256", strings.TrimPrefix(hash, "sha256:"))
}

// names returns the names of all files that end in .md. A directory that is a link is refused: it would make another
// place, such as a project, a source of actions.
func (l Library) names() ([]string, error) {
	info, err := os.Lstat(l.Dir())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("list the actions: %w", err)
	case !info.IsDir():
		return nil, hint.New(fmt.Errorf("list the actions: %s is a link or a file", l.Dir()),
			"make it a directory of the home: no other place is a source of actions")
	}
	entries, err := os.ReadDir(l.Dir())
	if err != nil {
		return nil, fmt.Errorf("list the actions: %w", err)
	}
	var names []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".md"); ok && !strings.HasPrefix(name, ".") {
			names = append(names, name)
		}
	}
	if len(names) > maxFiles {
		return nil, hint.New(fmt.Errorf("list the actions: %s has more than %d", l.Dir(), maxFiles), "remove some")
	}
	return names, nil
}

// List returns the action files, by name. What is no valid action is listed with its error.
func (l Library) List() ([]File, error) {
	names, err := l.names()
	if err != nil {
		return nil, err
	}
	var all []File
	for _, name := range names {
		f, err := l.Find(name)
		if err == nil {
			all = append(all, f)
		}
	}
	slices.SortFunc(all, func(a, b File) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}

// ErrNotAdded is returned for an action that has not been added.
var ErrNotAdded = errors.New("there is no such action")

// Find returns the action file of that name.
func (l Library) Find(name string) (File, error) {
	f := File{Name: name}
	if name == "" || strings.ContainsAny(name, "/\x00") || strings.HasPrefix(name, ".") {
		return f, fmt.Errorf("find the action %q: %w", name, ErrNotAdded)
	}
	if _, err := os.Lstat(l.path(name)); errors.Is(err, fs.ErrNotExist) {
		return f, fmt.Errorf("find the action %s: %w", name, ErrNotAdded)
	}
	f.Action, f.Err = Read(l.path(name))
	if f.Err == nil && f.Action.Name != name {
		f.Err = hint.New(fmt.Errorf("its name is %s and its file's %s.md", f.Action.Name, name),
			"rename one of the two: aileron action add does that right")
		f.Action = nil
	}
	if f.Action != nil {
		added, err := regular.Read(filepath.Join(l.copyOf(f.Action.Hash), "action.md"), MaxSize)
		f.Added = err == nil && string(added) == string(f.Action.Raw)
	}
	return f, nil
}

// Read reads and validates an action file. A link, a device and a named pipe are refused.
func Read(path string) (*Action, error) {
	data, err := regular.Read(path, MaxSize)
	if err != nil {
		return nil, err
	}
	return Parse(data)
}

// ExistsError is returned when another action has the name.
type ExistsError struct {
	Name    string
	Version string // of the one that there is; "" if it is broken
}

func (e *ExistsError) Error() string {
	return fmt.Sprintf("add the action %s: another one of that name is there%s", e.Name,
		map[bool]string{true: " (" + e.Version + ")"}[e.Version != ""])
}

// ErrorClass and ErrorReason return those in the error object of --json.
func (*ExistsError) ErrorClass() string  { return "invalid_request" }
func (*ExistsError) ErrorReason() string { return "already_exists" }

// Add adds an action, or replaces the one of its name if replace is set. It reports whether these bytes were there
// already, and returns an [*ExistsError] if others are and replace is not set.
func (l Library) Add(a *Action, replace bool) (already bool, err error) {
	if f, err := l.Find(a.Name); err == nil && f.Action != nil && f.Action.Hash == a.Hash && f.Added {
		return true, nil
	}
	for _, dir := range []string{l.Dir(), filepath.Join(l.home, "store", "tmp"),
		filepath.Join(l.home, "store", "actions", "sha256")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return false, fmt.Errorf("add the action %s: %w", a.Name, err)
		}
	}
	if _, err := l.names(); err != nil { // the directory is not a link
		return false, err
	}
	if err := l.keepCopy(a); err != nil {
		return false, fmt.Errorf("add the action %s: %w", a.Name, err)
	}
	tmp, err := l.write(a.Raw)
	if err != nil {
		return false, fmt.Errorf("add the action %s: %w", a.Name, err)
	}
	defer os.Remove(tmp)
	if replace {
		err = os.Rename(tmp, l.path(a.Name))
	} else {
		err = os.Link(tmp, l.path(a.Name)) // unlike a rename it replaces nothing
	}
	switch {
	case errors.Is(err, fs.ErrExist):
		there, _ := l.Find(a.Name)
		if there.Action != nil && there.Action.Hash == a.Hash {
			return true, nil
		}
		exists := &ExistsError{Name: a.Name}
		if there.Action != nil {
			exists.Version = there.Action.Version
		}
		return false, hint.New(exists,
			"pass --replace to put this one in its place; see the other with: aileron action show %s", a.Name)
	case err != nil:
		return false, fmt.Errorf("add the action %s: %w", a.Name, err)
	}
	return false, durable.SyncDir(l.Dir())
}

// keepCopy stores the bytes of an action under their hash.
func (l Library) keepCopy(a *Action) error {
	dir := l.copyOf(a.Hash)
	if old, err := regular.Read(filepath.Join(dir, "action.md"), MaxSize); err == nil && string(old) == string(a.Raw) {
		return nil
	}
	tmp, err := l.write(a.Raw)
	if err != nil {
		return err
	}
	defer os.Remove(tmp)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := os.Rename(tmp, filepath.Join(dir, "action.md")); err != nil {
		return err
	}
	return durable.SyncDir(dir)
}

// write writes a new file in the store's directory for what is not finished, and returns its path.
func (l Library) write(data []byte) (path string, err error) {
	return durable.New(filepath.Join(l.home, "store", "tmp"), data)
}

// Remove removes an action file. The copy under its hash stays, as the audit log names it.
func (l Library) Remove(name string) error {
	if _, err := l.Find(name); err != nil {
		return err
	}
	if err := os.Remove(l.path(name)); err != nil {
		return fmt.Errorf("remove the action %s: %w", name, err)
	}
	return durable.SyncDir(l.Dir())
}

// Fingerprint returns a value that changes whenever an action file may have changed. It reads no file.
func (l Library) Fingerprint() (string, error) {
	names, err := l.names()
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, name := range names {
		info, err := os.Lstat(l.path(name))
		if err != nil {
			continue // gone between two looks: the next one sees it
		}
		fmt.Fprintf(&b, "%q %d %d %v %s\n", name, info.Size(), info.ModTime().UnixNano(), info.Mode(), identity(info))
	}
	return b.String(), nil
}

// Diagnostics returns the mistakes of an action file one by one.
func Diagnostics(err error) []*spec.Diagnostic { return spec.Diagnostics(err) }
