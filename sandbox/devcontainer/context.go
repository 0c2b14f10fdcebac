package devcontainer

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/regular"
)

// Bounds of what a build reads. All of it is hashed at each start.
const (
	maxContextFiles = 10_000
	maxContextBytes = 64 << 20
	maxIgnoreFile   = 64 << 10
)

// File is a file, a directory or a link of a build's context.
type File struct {
	Path string // relative to the context
	Mode fs.FileMode
	Link string
	Data []byte
}

// contextReader reads files of a context.
type contextReader struct {
	root    *os.Root // of the context
	ignored []ignore
	files   map[string]File
	bytes   int64
}

// readContext returns the files of a context that match one of patterns, those below the directories that do, and the
// directories above, but for those that .dockerignore names. No link leads out of the context. The order is that of
// the paths.
func readContext(root *os.Root, dir, file string, patterns []string) ([]File, error) {
	if len(patterns) == 0 {
		return nil, nil
	}
	context, err := root.OpenRoot(dir)
	if err != nil {
		return nil, hint.New(fmt.Errorf("open the context %s: %w", dir, err), "name a directory of the project")
	}
	defer context.Close()
	r := &contextReader{root: context, files: map[string]File{}}
	for _, name := range []string{file + ".dockerignore", path.Join(dir, ".dockerignore")} {
		data, err := regular.ReadIn(root, name, maxIgnoreFile)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		if r.ignored, err = parseIgnore(data); err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		break
	}
	if err := r.walk(".", patterns); err != nil {
		return nil, err
	}
	names := make([]string, 0, len(r.files))
	for name := range r.files {
		names = append(names, name)
	}
	slices.Sort(names)
	files := make([]File, 0, len(names))
	for _, name := range names {
		files = append(files, r.files[name])
	}
	return files, nil
}

// walk reads what lies in a directory of the context. Without patterns that is all.
func (r *contextReader) walk(dir string, patterns []string) error {
	if slices.Contains(patterns, ".") {
		patterns = nil
	}
	d, err := openDir(r.root, dir)
	if err != nil {
		return fmt.Errorf("read the context: %w", err)
	}
	entries, err := d.ReadDir(-1)
	d.Close()
	if err != nil {
		return fmt.Errorf("read the context: %w", err)
	}
	for _, entry := range entries {
		below, wanted := patternsBelow(patterns, entry.Name())
		if !wanted {
			continue
		}
		if err := r.entry(path.Join(dir, entry.Name()), below); err != nil {
			return err
		}
	}
	return nil
}

// patternsBelow returns the patterns for what lies in an entry of a directory, nil for all of it, and whether any
// pattern is about the entry.
func patternsBelow(patterns []string, name string) (below []string, wanted bool) {
	if patterns == nil {
		return nil, true
	}
	for _, p := range patterns {
		first, rest, more := strings.Cut(p, "/")
		ok, _ := path.Match(first, name)
		switch {
		case !ok:
		case !more:
			return nil, true
		default:
			below, wanted = append(below, rest), true
		}
	}
	return below, wanted
}

// entry reads one file, or a directory with what lies in it.
func (r *contextReader) entry(name string, below []string) error {
	info, err := r.root.Lstat(name)
	if err != nil {
		return fmt.Errorf("read the context: %w", err)
	}
	ignored := isIgnored(r.ignored, name)
	if ignored && (!info.IsDir() || !slices.ContainsFunc(r.ignored, func(i ignore) bool { return i.not })) {
		return nil
	}
	f := File{Path: name, Mode: info.Mode().Type() | 0o644} // as git keeps it: a umask changes nothing
	if info.IsDir() || info.Mode()&0o100 != 0 {
		f.Mode |= 0o111
	}
	switch {
	case info.IsDir():
		if !ignored {
			r.files[name] = f
		}
		return r.walk(name, below)
	case info.Mode()&fs.ModeSymlink != 0:
		if f.Link, err = r.root.Readlink(name); err != nil {
			return fmt.Errorf("read the context: %w", err)
		}
		_, err := r.root.Stat(name) // as it leads, and not as it reads
		if path.IsAbs(f.Link) || err != nil && !errors.Is(err, fs.ErrNotExist) ||
			!fs.ValidPath(path.Join(path.Dir(name), f.Link)) {
			return hint.New(fmt.Errorf("%s is a link that leads out of the context, to %s", name, f.Link),
				"name it in .dockerignore, or copy other files")
		}
	case info.Mode().IsRegular():
		if f.Data, err = regular.ReadIn(r.root, name, maxContextBytes-r.bytes); err != nil {
			return hint.New(fmt.Errorf("read %s: %w (a context has at most %d MiB)", name, err, maxContextBytes>>20),
				"name what the build does not need in .dockerignore")
		}
		r.bytes += int64(len(f.Data))
	default:
		return hint.New(fmt.Errorf("%s is no file, directory or link", name), "name it in .dockerignore")
	}
	if r.files[name] = f; len(r.files) > maxContextFiles {
		return hint.New(fmt.Errorf("the build reads more than %d files", maxContextFiles),
			"name what it does not need in .dockerignore, or copy less")
	}
	return nil
}

// ignore is one line of .dockerignore.
type ignore struct {
	is  *regexp.Regexp
	not bool
}

// parseIgnore reads a .dockerignore file. A pattern is one of [path.Match], with ** for any number of directories.
func parseIgnore(data []byte) (all []ignore, err error) {
	for lines := bufio.NewScanner(bytes.NewReader(bytes.TrimPrefix(data, []byte("\ufeff")))); lines.Scan(); {
		text := strings.TrimSpace(lines.Text())
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		pattern, not := strings.CutPrefix(text, "!")
		pattern = strings.TrimPrefix(path.Clean(strings.TrimSpace(pattern)), "/")
		is, err := regexp.Compile("^(?:" + expression(pattern) + ")(?:/.*)?$")
		if err != nil {
			return nil, fmt.Errorf("%q is no pattern", text)
		}
		all = append(all, ignore{is, not})
	}
	return all, nil
}

// expression returns the regular expression of a pattern.
func expression(pattern string) string {
	var s strings.Builder
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case strings.HasPrefix(pattern[i:], "**/"):
			s.WriteString("(?:.*/)?")
			i += 2
		case strings.HasPrefix(pattern[i:], "**"):
			s.WriteString(".*")
			i++
		case c == '*':
			s.WriteString("[^/]*")
		case c == '?':
			s.WriteString("[^/]")
		case c == '[' || c == ']' || c == '-':
			s.WriteByte(c)
		case c == '\\' && i+1 < len(pattern):
			i++
			s.WriteString(regexp.QuoteMeta(pattern[i : i+1]))
		default:
			s.WriteString(regexp.QuoteMeta(string(c)))
		}
	}
	return s.String()
}

// isIgnored reports whether the last line that is about a path ignores it.
func isIgnored(lines []ignore, name string) bool {
	ignored := false
	for _, line := range lines {
		if line.is.MatchString(name) {
			ignored = !line.not
		}
	}
	return ignored
}
