package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	"github.com/ALRubinger/aileron/spec"
)

// hashedFiles are a connector's files in the order in which they are hashed. The
// manifest and the specification must exist, and at most one binary.
var hashedFiles = []string{"connector.wasm", "connector.bin", spec.ManifestFile, spec.SpecFile}

// What signs the hash and is not part of it: signatures, and the vouches of keys for the next ones. Of what is
// installed, signatureFile has both.
const (
	signatureFile = "signature.sig"
	trustFile     = "trust"
)

// knownFiles returns the names of all that a package may have, and that is read.
func knownFiles() []string { return append(slices.Clone(hashedFiles), signatureFile, trustFile) }

// FileNames returns the names of the files on which the hash of a connector depends.
func FileNames() []string { return slices.Clone(hashedFiles) }

// carried returns the signatures and the vouches of a package together; nil if it has no signature.
func (c contents) carried() []byte {
	sig, ok := c[signatureFile]
	if !ok || len(c[trustFile]) == 0 {
		return sig
	}
	if len(sig) > 0 && sig[len(sig)-1] != '\n' {
		sig = append(slices.Clip(sig), '\n')
	}
	return slices.Concat(sig, c[trustFile])
}

const (
	maxText   = spec.MaxSpecSize
	maxBinary = 64 << 20
)

// contents holds a connector's files by name.
type contents map[string][]byte

// hash returns "sha256:" and the digest of one byte stream: the files in the order
// of hashedFiles, each as the length of its name, the name, the length of its
// bytes, the bytes. Lengths have 64 bits, big endian, so that no two sets of
// files have the same stream.
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

func sha256Digest(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// load parses the connector from these bytes.
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

// loadNew parses a connector that is to be installed, packed or checked.
func (c contents) loadNew() (*spec.Connector, error) {
	connector, err := c.load()
	if err == nil {
		if err = connector.Manifest.CheckLogin(); err != nil {
			return nil, fmt.Errorf("read the connector: %w", err)
		}
	}
	return connector, err
}

// isPublic returns an error for a connector that was made on one machine, for it
// alone: an archive, which is how connectors are published, must not hold one.
func (c contents) isPublic() error {
	if m, err := spec.ParseManifest(c[spec.ManifestFile]); err == nil && m.Name.IsLocal() {
		return &ArchiveError{Why: fmt.Sprintf("it holds %s, and a connector whose name begins with local:// is installed "+
			"from a directory only", m.Name)}
	}
	return nil
}

// checkBinary compares the binary with the hash that the manifest declares.
func (c contents) checkBinary(provenance string) error {
	_, wasm := c["connector.wasm"]
	_, bin := c["connector.bin"]
	if wasm && bin {
		return &spec.Diagnostic{
			File:    "connector.bin",
			Message: "a connector has one binary, and connector.wasm exists too",
		}
	}
	if provenance == "" {
		return nil
	}
	for _, name := range hashedFiles[:2] {
		data, ok := c[name]
		if !ok {
			continue
		}
		if got := sha256Digest(data); got != provenance {
			return &HashError{What: name, Want: provenance, Got: got}
		}
		return nil
	}
	return &spec.Diagnostic{
		File:    spec.ManifestFile,
		Path:    "connector.provenance_hash",
		Message: "it is the hash of a binary, and there is none",
	}
}

// fileError is the error of reading a file of a connector.
type fileError struct {
	name string
	err  error
}

func (e *fileError) Error() string { return "read " + e.name + ": " + e.err.Error() }
func (e *fileError) Unwrap() error { return e.err }

// readDir reads a connector's files and ignores everything else in dir. It reads
// nothing outside dir: links are refused, and the file that was checked is the
// file that is read.
func readDir(dir string) (contents, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("read the connector %s: %w", dir, withoutPath(err))
	}
	defer root.Close()
	c := contents{}
	for _, name := range knownFiles() {
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
		return nil, errNotRegular
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
	return readLimited(f, name, opened.Size())
}

// readLimited reads a file of a connector that has, or seems to have, size bytes.
func readLimited(r io.Reader, name string, size int64) ([]byte, error) {
	most := int64(maxText)
	switch {
	case name == signatureFile, name == trustFile:
		most = maxSignature
	case strings.HasPrefix(name, "connector."):
		most = maxBinary
	}
	// The size is a hint that saves copies of a large binary.
	data := bytes.NewBuffer(make([]byte, 0, min(max(size, 0), most)+bytes.MinRead))
	if _, err := data.ReadFrom(io.LimitReader(r, most+1)); err != nil {
		return nil, withoutPath(err)
	}
	if int64(data.Len()) > most {
		return nil, tooLargeError{most}
	}
	return data.Bytes(), nil
}

// largeBinary is the size from which the memory of a binary is returned as soon as it
// has been checked.
const largeBinary = 1 << 20

// release returns the memory of a large connector that was read to be checked: the
// next one would be read beside it.
func (c contents) release() {
	large := false
	for _, name := range hashedFiles[:2] {
		large = large || len(c[name]) >= largeBinary
		delete(c, name)
	}
	if large {
		debug.FreeOSMemory()
	}
}

// withoutPath returns the reason in err alone: the caller adds the name.
func withoutPath(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

// readFS reads a connector's files from the top of a file system.
func readFS(fsys fs.FS) (contents, error) {
	c := contents{}
	for _, name := range knownFiles() {
		f, err := fsys.Open(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, &fileError{name, withoutPath(err)}
		}
		c[name], err = readLimited(f, name, 0)
		if err := errors.Join(err, f.Close()); err != nil {
			return nil, &fileError{name, err}
		}
	}
	return c, nil
}

// readPath reads a directory or an archive.
func readPath(path string) (contents, error) { return readNamed(path, path) }

// readNamed reads what is at path, whose name in errors is src.
func readNamed(path, src string) (contents, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read the connector %s: %w", src, withoutPath(err))
	}
	if info.IsDir() {
		c, err := readDir(path)
		return c, asSignature(err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("read the connector %s: it is neither a directory nor an archive", src)
	}
	f, err := os.Open(filepath.Clean(path))
	if err != nil {
		return nil, fmt.Errorf("read the connector %s: %w", src, withoutPath(err))
	}
	defer f.Close()
	if info.Size() >= largeBinary {
		debug.FreeOSMemory() // what fetched it, and showed what it grants, is garbage by now
	}
	c, err := readArchive(f)
	if err == nil {
		err = c.isPublic()
	}
	if err != nil {
		return nil, fmt.Errorf("read the archive %s: %w", src, asSignature(err))
	}
	return c, nil
}
