package store

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/spec"
)

// InstallOptions say what is expected of what is installed.
type InstallOptions struct {
	Hash string // "sha256:…"; "": whatever it is
}

// Installed is the outcome of an installation.
type Installed struct {
	Connector *spec.Connector
	Already   bool // it was there before, byte for byte
	Signed    bool // it came with a signature; nothing has verified it
}

// Read reads and checks a connector's source, a directory or an
// aileron.tar.gz, without installing it.
func Read(src string) (*spec.Connector, error) {
	c, err := readSource(src)
	if err != nil {
		return nil, err
	}
	return c.load()
}

// Install puts a verified copy of a connector into the store: from a
// directory, from an aileron.tar.gz, or, when that very version is already
// there, from FQN@VERSION. It is atomic, and safe beside other installations.
func (s *Store) Install(ctx context.Context, src string, opts InstallOptions) (Installed, error) {
	if name, version, ok := strings.Cut(src, "@"); ok && strings.Contains(name, "://") {
		return s.installed(name, version)
	}
	c, err := readSource(src)
	if err != nil {
		return Installed{}, err
	}
	connector, err := c.load()
	if err != nil {
		return Installed{}, err
	}
	if opts.Hash != "" && opts.Hash != connector.Hash {
		return Installed{}, &HashError{What: src, Want: opts.Hash, Got: connector.Hash}
	}
	if err := ctx.Err(); err != nil {
		return Installed{}, err
	}
	_, signed := c[signatureFile]
	out := Installed{Connector: connector, Signed: signed}
	if _, err := s.Load(connector.Hash); err == nil {
		out.Already = true
		return out, nil
	}
	return out, s.put(connector, c)
}

func (s *Store) installed(name, version string) (Installed, error) {
	if _, err := spec.ParseFQN(name); err != nil {
		return Installed{}, err
	}
	entries, err := s.List()
	if err != nil {
		return Installed{}, err
	}
	for _, e := range entries {
		if string(e.FQN) == name && e.Version == version && e.Err == nil {
			c, err := s.Load(e.Hash)
			return Installed{Connector: c, Already: true}, err
		}
	}
	return Installed{}, fmt.Errorf("install %s@%s: this release fetches nothing from a network; give a directory or an aileron.tar.gz", name, version)
}

// put writes the files beside the store, flushes them, and moves them in with
// one rename. A broken entry of the same hash makes way.
func (s *Store) put(connector *spec.Connector, c contents) error {
	tmp, err := os.MkdirTemp(filepath.Join(s.dir, "tmp"), "install-")
	if err != nil {
		return fmt.Errorf("install the connector: %w", err)
	}
	defer os.RemoveAll(tmp)
	digest := strings.TrimPrefix(connector.Hash, "sha256:")
	fresh := filepath.Join(tmp, digest)
	if err := os.Mkdir(fresh, 0o700); err != nil {
		return fmt.Errorf("install the connector: %w", err)
	}
	for name, data := range c {
		if err := writeFlushed(filepath.Join(fresh, name), data); err != nil {
			return fmt.Errorf("install the connector: %w", err)
		}
	}
	final := filepath.Join(s.connectors(), digest)
	err = os.Rename(fresh, final)
	if err != nil && (errors.Is(err, fs.ErrExist) || errors.Is(err, os.ErrExist)) {
		if _, ok := s.Load(connector.Hash); ok == nil {
			err = nil // another installation was faster
		} else if err = os.Rename(final, filepath.Join(tmp, "broken")); err == nil {
			err = os.Rename(fresh, final)
		}
	}
	if err == nil {
		err = flushDir(s.connectors())
	}
	if err != nil {
		return fmt.Errorf("install the connector: %w", err)
	}
	index, err := json.Marshal(map[string]string{"FQN": string(connector.FQN), "Version": connector.Version})
	if err == nil {
		_ = os.WriteFile(s.indexFile(connector.Hash), index, 0o600) // a cache: doing without is fine
	}
	return nil
}

func writeFlushed(name string, data []byte) error {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func flushDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func readSource(src string) (contents, error) {
	info, err := os.Stat(src)
	if err != nil {
		return nil, fmt.Errorf("read the connector: %w", err)
	}
	if info.IsDir() {
		return readDir(src)
	}
	f, err := os.Open(src)
	if err != nil {
		return nil, fmt.Errorf("read the connector: %w", err)
	}
	defer f.Close()
	c, err := readArchive(f)
	if err != nil {
		return nil, fmt.Errorf("read the archive %s: %w", src, err)
	}
	return c, nil
}

// maxEntries bounds an archive.
const maxEntries = 64

// readArchive takes the known files out of a gzipped tar. They stand at its
// top or in one directory. Anything but plain files and directories, a path
// that leads out, and a file that is there twice are refused.
func readArchive(r io.Reader) (contents, error) {
	zip, err := gzip.NewReader(r)
	if err != nil {
		return nil, errors.New("it is not a gzipped tar")
	}
	files := tar.NewReader(io.LimitReader(zip, maxBinary+8*maxText))
	c := contents{}
	for range maxEntries {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return c, nil
		}
		if err != nil {
			return nil, fmt.Errorf("it is broken: %w", err)
		}
		if h.Typeflag == tar.TypeDir {
			continue
		}
		if h.Typeflag != tar.TypeReg || !filepath.IsLocal(h.Name) {
			return nil, fmt.Errorf("the entry %q is not a plain file inside the archive", h.Name)
		}
		name := path.Base(h.Name)
		if !slices.Contains(hashedFiles, name) && name != signatureFile {
			continue
		}
		if _, twice := c[name]; twice {
			return nil, fmt.Errorf("%s is there twice", name)
		}
		if c[name], err = readLimited(files, name); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("it has more than %d entries", maxEntries)
}

// Pack writes a connector's directory as an aileron.tar.gz, the same bytes
// every time.
func Pack(dir string, w io.Writer) (*spec.Connector, error) {
	c, err := readDir(dir)
	if err != nil {
		return nil, err
	}
	connector, err := c.load()
	if err != nil {
		return nil, err
	}
	zip := gzip.NewWriter(w)
	files := tar.NewWriter(zip)
	for _, name := range append(slices.Clone(hashedFiles), signatureFile) {
		data, ok := c[name]
		if !ok {
			continue
		}
		if err := files.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(data)), Format: tar.FormatUSTAR}); err != nil {
			return nil, fmt.Errorf("pack %s: %w", name, err)
		}
		if _, err := files.Write(data); err != nil {
			return nil, fmt.Errorf("pack %s: %w", name, err)
		}
	}
	if err := errors.Join(files.Close(), zip.Close()); err != nil {
		return nil, fmt.Errorf("pack the connector: %w", err)
	}
	return connector, nil
}
