package hostfiles

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/internal/hint"
)

// Cover is a copy of a place of the project. It lies over the place in a sandbox, which can read it and not change it.
type Cover struct {
	Source string // the copy, an absolute path
	Path   string // relative to the project
}

// The bounds of copies.
const (
	maxCovers      = 256
	maxCoverFiles  = 2000
	maxCoverSource = 64 << 20
)

// HookDirs returns the hooks directories of git that a project has at its top.
func HookDirs(dir string) []string { return hooksAt(dir, path.Join(".git", "hooks")) }

// CommonHookDirs returns the hooks directories that a directory of git has.
func CommonHookDirs(dir string) []string { return hooksAt(dir, "hooks") }

// Held returns the directories of a project that must keep their names, because with them the hooks would be replaced.
func Held(dir string) []string {
	if info, err := os.Lstat(filepath.Join(dir, ".git")); err != nil || !info.IsDir() {
		return nil
	}
	return []string{".git"}
}

func hooksAt(dir, at string) []string {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil
	}
	defer root.Close()
	if info, err := root.Lstat(at); err != nil || !info.IsDir() {
		return nil
	}
	return []string{at}
}

// Copy copies places of the project in dir into a new directory below to. The copies are what a sandbox gets in place
// of the project's own: a mount of these would be resolved by the engine, and another sandbox of the same project
// could put a link there meanwhile. Links and special files are left out.
func Copy(dir string, places []string, to string) ([]Cover, error) {
	if len(places) > maxCovers {
		return nil, hint.New(fmt.Errorf("protect %d places of %s: %d is the most", len(places), dir, maxCovers),
			"start in a directory below it, or without --protect")
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("protect files of the project: %w", err)
	}
	defer root.Close()
	if err := os.Mkdir(to, 0o711); err != nil { //nolint:gosec // the sandbox's user reads them
		return nil, fmt.Errorf("protect files of the project: %w", err)
	}
	c := &copier{root: root}
	var covers []Cover
	for i, at := range places {
		target := filepath.Join(to, strconv.Itoa(i))
		switch err := c.copy(at, target, 0); {
		case errors.Is(err, errNotCopied):
			continue
		case err != nil:
			return nil, fmt.Errorf("protect %s of the project: %w", at, err)
		}
		covers = append(covers, Cover{Source: target, Path: at})
	}
	return covers, nil
}

// errNotCopied is returned for what is neither a file nor a directory.
var errNotCopied = errors.New("it is no file and no directory")

type copier struct {
	root  *os.Root
	files int // with directories
	bytes int64
}

func (c *copier) copy(at, to string, depth int) error {
	info, err := c.root.Lstat(at)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errNotCopied
	case err != nil:
		return err
	case info.IsDir():
		return c.copyDir(at, to, depth)
	case info.Mode().IsRegular():
		return c.copyFile(at, to)
	}
	return errNotCopied
}

func (c *copier) copyDir(at, to string, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("it is more than %d directories deep", maxDepth)
	}
	dir, err := c.root.OpenFile(at, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer dir.Close()
	entries, err := dir.ReadDir(maxCoverFiles + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if err := c.count(0); err != nil {
		return err
	}
	if err := os.Mkdir(to, 0o755); err != nil { //nolint:gosec // the sandbox's user reads it
		return err
	}
	for _, e := range entries {
		err := c.copy(path.Join(at, e.Name()), filepath.Join(to, e.Name()), depth+1)
		if err != nil && !errors.Is(err, errNotCopied) {
			return err
		}
	}
	return os.Chmod(to, 0o755) //nolint:gosec // as above, whatever the umask
}

// count counts a file or directory of a size, and returns an error for the first that is too many.
func (c *copier) count(size int64) error {
	c.files++
	c.bytes += size
	if c.files > maxCoverFiles || c.bytes > maxCoverSource {
		return fmt.Errorf("there are more than %d files or %d bytes to protect", maxCoverFiles, maxCoverSource)
	}
	return nil
}

func (c *copier) copyFile(at, to string) error {
	src, err := c.root.OpenFile(at, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer src.Close()
	info, err := src.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return errors.Join(err, errNotCopied)
	}
	if err := c.count(info.Size()); err != nil {
		return err
	}
	mode := 0o644 | info.Mode().Perm()&0o111
	dst, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(dst, io.LimitReader(src, info.Size()))
	return errors.Join(err, os.Chmod(to, mode), dst.Close())
}
