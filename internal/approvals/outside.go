package approvals

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/internal/hint"
)

// Programs are the commands that config.toml has this host run about approvals, as its user.
type Programs struct {
	Decider []string
	Socket  string // of a decider
	Notify  []string
	Environ *Environ // of them
}

// CheckOutside returns an error if what a sandbox may write to, files and directories without links on their paths, has
// one of the programs, a file that is an argument of one, or a link on the way to it: an agent could put another one
// there, which would decide about its requests, and run outside of the sandbox. The error has a hint.
func (p Programs) CheckOutside(writable []string) error {
	for _, of := range []struct {
		name  string
		words []string
	}{{"decider", p.Decider}, {"decider", []string{p.Socket}}, {"notify", p.Notify}} {
		for i, word := range of.words {
			if i == 0 && word != "" && !strings.Contains(word, "/") {
				if word, _ = exec.LookPath(word); word == "" {
					continue // it cannot be run
				}
			}
			if dir := within(word, writable); dir != "" {
				return hint.New(fmt.Errorf("[approval] %s of config.toml has %s, and the sandbox may write to %s: an agent could "+
					"put another program in its place", of.name, word, dir),
					"move it to a directory that no sandbox has, and correct config.toml")
			}
		}
	}
	return nil
}

// within returns the one of dirs that has the file which a word of a command names, or something on the way to it; ""
// if none has. A word of a shell may name it anywhere.
func within(word string, dirs []string) (found string) {
	_, value, _ := strings.Cut(word, "=") // --config=FILE
	for _, dir := range dirs {
		if names(word, dir) {
			return dir
		}
	}
	for _, path := range []string{word, value} {
		if path == "" || strings.Contains(path, "\x00") {
			continue
		}
		_, _ = walk(path, func(_, next string) error {
			for _, dir := range dirs {
				if found == "" && isSame(next, dir) {
					found = dir
				}
			}
			return nil
		})
	}
	return found
}

// names reports whether a path stands anywhere in a text, and not as a part of the name of another file.
func names(text, path string) bool {
	ofName := func(r rune) bool {
		return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("._-~", r))
	}
	for {
		before, rest, found := strings.Cut(text, path)
		if !found {
			return false
		}
		last, _ := utf8.DecodeLastRuneInString(before)
		next, _ := utf8.DecodeRuneInString(rest)
		isFlag := len(before) == 2 && before[0] == '-' // -I/lib
		if (isFlag || !ofName(last)) && !ofName(next) {
			return true
		}
		text = rest
	}
}

// isSame reports whether two paths are of one file: the same path, or by mounts of this host.
func isSame(path, other string) bool {
	a, err := os.Lstat(path)
	b, otherErr := os.Lstat(other)
	return path == other || err == nil && otherErr == nil && os.SameFile(a, b)
}

// maxLinks bounds the symbolic links on the way to a file, as the kernel does.
const maxLinks = 40

// walk follows a path from the root directory, and returns where it leads, without links. It calls visit with all that
// is on the way, links too, before it is looked at, and the directory that has it.
func walk(path string, visit func(dir, next string) error) (string, error) {
	at, rest := "/", strings.Split(path, "/")
	for links := 0; len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		if name == "" || name == "." {
			continue
		}
		if name == ".." {
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, name)
		if err := visit(at, next); err != nil {
			return "", err
		}
		info, err := os.Lstat(next)
		if err != nil {
			return "", err
		}
		if info.Mode().Type() != fs.ModeSymlink {
			at = next
			continue
		}
		target, err := os.Readlink(next)
		if links++; err != nil || links > maxLinks {
			return "", fmt.Errorf("%s: %w", next, cmp.Or(err, error(unix.ELOOP)))
		}
		if filepath.IsAbs(target) {
			at = "/"
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return at, nil
}
