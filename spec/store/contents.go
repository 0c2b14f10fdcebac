package store

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/ALRubinger/aileron/spec"
)

// hashedFiles are a connector's files in the order in which the hash takes
// them. The manifest and the spec must be there, and at most one binary.
var hashedFiles = []string{"connector.wasm", "connector.bin", spec.ManifestFile, spec.SpecFile}

// signatureFile vouches for the hash, and is not part of it.
const signatureFile = "signature.sig"

const (
	maxText   = spec.MaxSize
	maxBinary = 64 << 20
)

// contents are a connector's files by name.
type contents map[string][]byte

// hash is "sha256:" and the digest over one byte stream: the files in the
// order of hashedFiles, each that is there as the length of its name, the
// name, the length of its bytes, the bytes. Lengths are 64 bits, big endian,
// so that no two sets of files give one stream.
func (c contents) hash() string {
	h := sha256.New()
	var size [8]byte
	put := func(b []byte) {
		binary.BigEndian.PutUint64(size[:], uint64(len(b)))
		h.Write(size[:])
		h.Write(b)
	}
	for _, name := range hashedFiles {
		if data, ok := c[name]; ok {
			put([]byte(name))
			put(data)
		}
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// load parses the connector from the bytes in hand.
func (c contents) load() (*spec.Connector, error) {
	for _, name := range []string{spec.ManifestFile, spec.SpecFile} {
		if _, ok := c[name]; !ok {
			return nil, &spec.Diagnostic{File: name, Message: "it is missing"}
		}
	}
	connector, err := spec.Load(c[spec.ManifestFile], c[spec.SpecFile])
	if err != nil {
		return nil, fmt.Errorf("read the connector: %w", err)
	}
	if err := c.checkBinary(connector.Manifest.Provenance); err != nil {
		return nil, err
	}
	connector.Hash = c.hash()
	return connector, nil
}

// checkBinary holds the binary to the hash that the manifest tells.
func (c contents) checkBinary(provenance string) error {
	_, wasm := c["connector.wasm"]
	_, bin := c["connector.bin"]
	if wasm && bin {
		return &spec.Diagnostic{File: "connector.bin", Message: "a connector has one binary, and connector.wasm is there too"}
	}
	if provenance == "" {
		return nil
	}
	for _, name := range hashedFiles[:2] {
		data, ok := c[name]
		if !ok {
			continue
		}
		if got := digest(data); got != provenance {
			return &HashError{What: name, Want: provenance, Got: got}
		}
		return nil
	}
	return &spec.Diagnostic{File: spec.ManifestFile, Path: "connector.provenance_hash", Message: "it is the hash of a binary, and there is none"}
}

// fileError is a file of a connector that cannot be read as one.
type fileError struct {
	name string
	err  error
}

func (e *fileError) Error() string { return "read " + e.name + ": " + e.err.Error() }
func (e *fileError) Unwrap() error { return e.err }

// readDir reads a connector's files. What else is in dir is not looked at.
// Nothing outside dir is reached: links are refused, and the file that was
// looked at is the file that is read.
func readDir(dir string) (contents, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open the connector: %w", err)
	}
	defer root.Close()
	c := contents{}
	for _, name := range append(slices.Clone(hashedFiles), signatureFile) {
		data, err := readFile(root, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, &fileError{name, err}
		}
		c[name] = data
	}
	return c, nil
}

func readFile(root *os.Root, name string) ([]byte, error) {
	seen, err := root.Lstat(name)
	if err != nil {
		return nil, withoutPath(err)
	}
	if !seen.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file")
	}
	// Not blocking: a pipe may have taken the file's place since.
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, withoutPath(err)
	}
	defer f.Close()
	opened, err := f.Stat()
	if err != nil {
		return nil, withoutPath(err)
	}
	if !os.SameFile(seen, opened) {
		return nil, errors.New("it was replaced while it was read")
	}
	return readLimited(f, name)
}

func readLimited(r io.Reader, name string) ([]byte, error) {
	most := int64(maxText)
	if strings.HasPrefix(name, "connector.") {
		most = maxBinary
	}
	data, err := io.ReadAll(io.LimitReader(r, most+1))
	if err != nil {
		return nil, withoutPath(err)
	}
	if int64(len(data)) > most {
		return nil, fmt.Errorf("it is larger than %d bytes", most)
	}
	return data, nil
}

// withoutPath leaves the reason: the caller tells the name.
func withoutPath(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

// readSource reads a directory or an archive.
func readSource(src string) (contents, error) {
	info, err := os.Stat(src)
	if err != nil {
		return nil, fmt.Errorf("read the connector %s: %w", src, withoutPath(err))
	}
	if info.IsDir() {
		return readDir(src)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("read the connector %s: it is neither a directory nor an archive", src)
	}
	f, err := os.Open(filepath.Clean(src))
	if err != nil {
		return nil, fmt.Errorf("read the connector %s: %w", src, withoutPath(err))
	}
	defer f.Close()
	c, err := readArchive(f)
	if err != nil {
		return nil, fmt.Errorf("read the archive %s: %w", src, err)
	}
	return c, nil
}
