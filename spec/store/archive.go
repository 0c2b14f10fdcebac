package store

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/spec"
)

// maxEntries bounds the entries of an archive.
const maxEntries = 64

// readArchive reads a connector's files from a gzipped tar. They are at its top
// or together in one directory. Links, devices, paths that lead out, duplicates
// and files that a connector does not have are refused. Documents such as a
// README are ignored.
func readArchive(r io.Reader) (contents, error) {
	zip, err := gzip.NewReader(r)
	if err != nil {
		return nil, errors.New("it is not a gzipped tar")
	}
	files := tar.NewReader(io.LimitReader(zip, maxBinary+8*maxText))
	c := contents{}
	home := ""
	for range maxEntries {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return c, nil
		}
		if err != nil {
			return nil, fmt.Errorf("it is broken or too large: %w", err)
		}
		if !filepath.IsLocal(h.Name) || h.Typeflag != tar.TypeReg && h.Typeflag != tar.TypeDir {
			return nil, fmt.Errorf("the entry %q is not a plain file inside the archive", h.Name)
		}
		dir, name := path.Split(path.Clean(h.Name))
		switch {
		case h.Typeflag == tar.TypeDir, dir == home && isDocument(name):
			continue
		case len(c) == 0 && strings.Count(dir, "/") <= 1:
			home = dir
		case dir != home:
			return nil, fmt.Errorf("the entry %q is not in the same directory as the others", h.Name)
		}
		if !slices.Contains(hashedFiles, name) && name != signatureFile {
			if isDocument(name) {
				continue
			}
			return nil, fmt.Errorf("the entry %q is no file of a connector", h.Name)
		}
		if _, twice := c[name]; twice {
			return nil, fmt.Errorf("the entry %q appears twice", name)
		}
		if c[name], err = readLimited(files, name); err != nil {
			return nil, &fileError{name, err}
		}
	}
	return nil, fmt.Errorf("it has more than %d entries", maxEntries)
}

// isDocument reports whether a file is for people and grants nothing.
func isDocument(name string) bool {
	stem, _, _ := strings.Cut(strings.ToLower(name), ".")
	return slices.Contains([]string{"readme", "license", "licence", "notice", "changelog", "copying"}, stem)
}

// Pack writes the connector in dir to w as an aileron.tar.gz. The same connector
// results in the same bytes.
func Pack(dir string, w io.Writer) (*spec.Connector, error) {
	c, err := readDir(dir)
	if err != nil {
		return nil, err
	}
	connector, err := c.load()
	if err == nil {
		err = c.isPublic()
	}
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
		header := &tar.Header{Name: name, Mode: 0o644, Size: int64(len(data)), Format: tar.FormatUSTAR}
		if err := files.WriteHeader(header); err != nil {
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
