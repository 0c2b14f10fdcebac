package devcontainer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/regular"
)

// Bounds of what a build reads. All of it is hashed at each start.
const (
	maxContextFiles = 10_000
	maxContextBytes = 64 << 20
	maxIgnoreFile   = 64 << 10
	maxIgnoreLines  = 1000
	maxIgnoreLine   = 1 << 10
	// maxEntries bounds the names that are looked at, most of which .dockerignore may name, and maxMatching the bytes of
	// its patterns that they are compared with.
	maxEntries  = 100_000
	maxMatching = 1 << 27
	// maxCompared bounds the products of the lengths of the patterns, those of COPY too, and of the names.
	maxCompared = 1 << 33
	maxPath     = 1024 // of one name in the context, in bytes
	// entriesAtOnce are read of a directory, which may have millions.
	entriesAtOnce = 1024
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
	ctx     context.Context //nolint:containedctx // of one call of readContext
	root    *os.Root        // of the context
	ignored []ignore
	length  int64 // of the patterns in ignored
	files   map[string]File
	bytes   int64
	entries int64 // that were looked at
	work    int64 // as maxCompared

	unpacked bool // by another program: each file has one name
}

// readContext returns the files of a context that match one of patterns, those below the directories that do, and the
// directories above, but for those that .dockerignore names. No link leads out of the context. The order is that of
// the paths. The error is that of ctx when it ends.
func readContext(ctx context.Context, root *os.Root, dir, file string, patterns []string) ([]File, error) {
	if len(patterns) == 0 {
		return nil, nil
	}
	from, err := root.OpenRoot(dir)
	if err != nil {
		return nil, hint.New(fmt.Errorf("open the context %s: %w", dir, err), "name a directory of the project")
	}
	defer from.Close()
	r := &contextReader{ctx: ctx, root: from, files: map[string]File{}}
	for _, name := range []string{file + ".dockerignore", path.Join(dir, ".dockerignore")} {
		data, err := regular.ReadIn(root, name, maxIgnoreFile)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		if r.ignored, err = parseIgnore(data); err != nil {
			return nil, hint.New(fmt.Errorf("read %s: %w", name, err), "correct the file, or write fewer and shorter lines")
		}
		for _, i := range r.ignored {
			r.length += int64(len(i.is.String()))
		}
		break
	}
	if err := r.walk(".", patterns); err != nil {
		return nil, err
	}
	return r.sorted(), nil
}

// readTree returns all files of a directory below root, as readContext does.
func readTree(ctx context.Context, root *os.Root, dir string) ([]File, error) {
	return treeOf(ctx, root, dir, false)
}

// readUnpacked is readTree for what another program has unpacked. A file that has a second name is refused: an archive
// can name a file of this host as the first one.
func readUnpacked(ctx context.Context, root *os.Root, dir string) ([]File, error) {
	return treeOf(ctx, root, dir, true)
}

func treeOf(ctx context.Context, root *os.Root, dir string, unpacked bool) ([]File, error) {
	from, err := root.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", dir, err)
	}
	defer from.Close()
	r := &contextReader{ctx: ctx, root: from, files: map[string]File{}, unpacked: unpacked}
	if err := r.walk(".", nil); err != nil {
		return nil, errors.New(err.Error()) // without the hint, which is about a .dockerignore
	}
	return r.sorted(), nil
}

// sorted returns what was read.
func (r *contextReader) sorted() []File {
	names := make([]string, 0, len(r.files))
	for name := range r.files {
		names = append(names, name)
	}
	slices.Sort(names)
	files := make([]File, 0, len(names))
	for _, name := range names {
		files = append(files, r.files[name])
	}
	return files
}

// walk reads what lies in a directory of the context. Without patterns that is all.
func (r *contextReader) walk(dir string, patterns []string) error {
	if slices.Contains(patterns, ".") {
		patterns = nil
	}
	if len(dir) > maxPath {
		return hint.New(fmt.Errorf("read the context: %.40s… has directories that are too deep", dir),
			"name it in .dockerignore, or copy less")
	}
	d, err := openDir(r.root, dir)
	if err != nil {
		return fmt.Errorf("read the context: %w", err)
	}
	defer d.Close()
	for {
		entries, err := d.ReadDir(entriesAtOnce)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the context: %w", err)
		}
		for _, entry := range entries {
			if err := r.count(path.Join(dir, entry.Name()), patterns); err != nil {
				return err
			}
			below, wanted := patternsBelow(patterns, entry.Name())
			if !wanted {
				continue
			}
			if err := r.entry(path.Join(dir, entry.Name()), below); err != nil {
				return err
			}
		}
	}
}

// count returns an error for an entry beyond the bounds, before it is compared with patterns.
func (r *contextReader) count(name string, patterns []string) error {
	length := r.length
	for _, p := range patterns {
		length += int64(len(p))
	}
	r.entries++
	r.work += length * int64(len(name))
	if r.entries > maxEntries || r.entries*r.length > maxMatching || r.work > maxCompared {
		return hint.New(fmt.Errorf("read the context: it has more files than are compared with its .dockerignore and what "+
			"is copied (%d)", r.entries-1), "name a smaller context, copy less of it, or write fewer lines into "+
			".dockerignore, and none that begins with !")
	}
	return r.ctx.Err()
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
	case info.Mode().IsRegular() && r.unpacked && names(info) != 1:
		return fmt.Errorf("%s has another name, which may be one of this host", name)
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

// names returns how many names a file has: hard links.
func names(info fs.FileInfo) uint64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(stat.Nlink) //nolint:unconvert // it has another size on other systems
	}
	return 0
}

// ignore is one line of .dockerignore.
type ignore struct {
	is  *regexp.Regexp
	not bool
}

// parseIgnore reads a .dockerignore file of at most 1000 patterns. A pattern is one of [path.Match], with ** for any
// number of directories.
func parseIgnore(data []byte) (all []ignore, err error) {
	for line := range bytes.Lines(bytes.TrimPrefix(data, []byte("\ufeff"))) {
		text := string(bytes.TrimSpace(line))
		switch {
		case text == "" || strings.HasPrefix(text, "#"):
			continue
		case len(all) == maxIgnoreLines:
			return nil, fmt.Errorf("it has more than %d patterns", maxIgnoreLines)
		case len(text) > maxIgnoreLine:
			return nil, fmt.Errorf("the line that begins with %q has more than %d bytes", text[:20], maxIgnoreLine)
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
