package store

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/spec"
)

// isDocument reports whether a file is for people and grants nothing.
func isDocument(name string) bool {
	stem, _, _ := strings.Cut(strings.ToLower(name), ".")
	return slices.Contains([]string{"readme", "license", "licence", "notice", "changelog", "copying"}, stem)
}

// Pack writes the connector in dir to w as an aileron.tar.gz. The same connector
// results in the same bytes.
func Pack(dir string, w io.Writer) (*spec.Connector, error) { return PackSigned(dir, w, nil) }

// PackSigned is [Pack] with the signature.sig that sign returns for the connector and
// the one in dir, either of which is nil if there is none.
func PackSigned(dir string, w io.Writer, sign func(c *spec.Connector, old []byte) ([]byte, error),
) (*spec.Connector, error) {
	c, err := readDir(dir)
	if err != nil {
		return nil, err
	}
	connector, err := c.load()
	if err == nil {
		err = c.isPublic()
	}
	if err == nil && sign != nil {
		err = c.sign(connector, sign)
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
