package detached

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// MaxKept is of how many sessions the output is kept when one begins, beside those that
// run.
const MaxKept = 20

// outputs returns the directory that has one of each detached session.
func outputs(home string) string { return filepath.Join(home, "detached") }

// Dir returns the directory of the output of a session.
func Dir(home, id string) string { return filepath.Join(outputs(home), id) }

// MessagesPath returns the path of the messages that aileron wrote about a session
// since its command began.
func MessagesPath(home, id string) string { return filepath.Join(Dir(home, id), "messages") }

// MakeLog makes the file to which the process of a session that has no command writes its messages, and returns its
// path: [Output.Copy] reads it as what a command has written. The output of older sessions is removed, as it is by
// [Terminal.Open].
func MakeLog(s Session) (path string, err error) {
	_, _ = Prune(s.Home, MaxKept-1, s.Alive) // what cannot be removed now is by the next session
	dir := Dir(s.Home, s.ID)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make the file of the session's messages: %w", err)
	}
	return filepath.Join(dir, segmentName(0)), nil
}

// maxMessages bounds what is read of messages: the end of them.
const maxMessages = 64 << 10

// Messages returns the messages of a session, "" if there are none.
func Messages(home, id string) string {
	f, err := os.Open(MessagesPath(home, id))
	if err != nil {
		return ""
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > maxMessages {
		_, _ = f.Seek(-maxMessages, io.SeekEnd)
	}
	text, _ := io.ReadAll(io.LimitReader(f, maxMessages)) // what can be read
	return string(text)
}

// Has reports whether there is output of a session.
func Has(home, id string) bool {
	_, err := os.Stat(Dir(home, id))
	return err == nil
}

// Remove removes the output of a session.
func Remove(home, id string) error { return os.RemoveAll(Dir(home, id)) }

// Prune removes the output of ended sessions but of the newest keep, and returns how
// many there were.
func Prune(home string, keep int, alive func(id string) bool) (removed int, err error) {
	entries, readErr := os.ReadDir(outputs(home))
	if os.IsNotExist(readErr) {
		return 0, nil
	}
	slices.SortFunc(entries, func(a, b os.DirEntry) int { return strings.Compare(b.Name(), a.Name()) }) // newest first
	for _, e := range entries {
		if alive(e.Name()) {
			continue
		}
		if keep--; keep >= 0 {
			continue
		}
		removeErr := Remove(home, e.Name())
		if err = cmp.Or(err, removeErr); removeErr == nil {
			removed++
		}
	}
	return removed, cmp.Or(err, readErr)
}
