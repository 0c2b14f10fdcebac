package store

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/ALRubinger/aileron/internal/durable"
	"github.com/ALRubinger/aileron/spec"
)

// MaxArchive is how many bytes an aileron.tar.gz has at most.
const MaxArchive = maxUnpacked

// Source is one of the connectors that [Store.InstallAll] installs.
type Source struct {
	Src   string // as for [Store.Install]
	Hash  string // the expected "sha256:…"; "" accepts any
	Files fs.FS  // not nil: the connector's files, and Src is their name in errors

	// Archive, if not "", is the aileron.tar.gz that was fetched as Src. It must hold
	// the connector FQN in that Version, if those are not "".
	Archive string
	FQN     spec.FQN
	Version string

	// Checked reports that Signature is the one to install, which was checked; nil is
	// none. Otherwise the source's is installed, which was not.
	Checked   bool
	Signature []byte
}

// Candidate is a connector that may be installed.
type Candidate struct {
	Connector *spec.Connector
	Signature []byte // its signatures and vouches, not verified; nil: it has no signature
}

// Read reads and validates the connector without installing it. It returns a
// [*HashError] if it does not have the expected hash, and a [*NameError] if it is not
// the one that was fetched.
func (s Source) Read() (*Candidate, error) {
	connector, c, err := s.load()
	if err != nil {
		return nil, err
	}
	c.release()
	return &Candidate{Connector: connector, Signature: c[signatureFile]}, nil
}

func (s Source) load() (*spec.Connector, contents, error) {
	c, err := s.read()
	if err != nil {
		return nil, nil, err
	}
	connector, err := c.loadNew()
	if err != nil {
		return nil, nil, err
	}
	if s.FQN != "" && (connector.FQN != s.FQN || connector.Version != s.Version) {
		return nil, nil, &NameError{Source: s, FQN: connector.FQN, Version: connector.Version}
	}
	carried := c.carried()
	if s.Checked {
		carried = s.Signature
	}
	delete(c, signatureFile)
	delete(c, trustFile)
	if carried != nil {
		c[signatureFile] = carried
	}
	if s.Hash != "" && s.Hash != connector.Hash {
		return nil, nil, &HashError{What: s.Src, Want: s.Hash, Got: connector.Hash,
			Of: Entry{FQN: connector.FQN, Version: connector.Version}.name()}
	}
	return connector, c, nil
}

// read reads the connector's files.
func (s Source) read() (contents, error) {
	switch {
	case s.Files != nil:
		return readFS(s.Files)
	case s.Archive != "":
		return readNamed(s.Archive, s.Src) // its own name is that of a temporary file
	}
	return readPath(s.Src)
}

// NameError is returned for an archive that holds another connector, or another
// version, than the one that it was fetched as.
type NameError struct {
	Source  Source
	FQN     spec.FQN
	Version string
}

func (e *NameError) Error() string {
	return fmt.Sprintf("what was fetched as %s@%s calls itself %s@%s", e.Source.FQN, e.Source.Version, e.FQN, e.Version)
}

// ErrorClass and ErrorReason return those in the error object of --json.
func (*NameError) ErrorClass() string  { return "hash_mismatch" }
func (*NameError) ErrorReason() string { return "name_mismatch" }

// ErrorConnector returns the connector in the error object of --json.
func (e *NameError) ErrorConnector() string {
	return Entry{FQN: e.Source.FQN, Version: e.Source.Version}.name()
}

// maxSignature bounds signature.sig, and trust.
const maxSignature = 64 << 10

// SignatureError is returned for a signature.sig, or a file of vouches, of a source that cannot be read.
type SignatureError struct {
	File   string
	Reason string
	Err    error
}

func (e *SignatureError) Error() string { return "read " + e.File + ": " + e.Err.Error() }
func (e *SignatureError) Unwrap() error { return e.Err }

// ErrorClass and ErrorReason return those in the error object of --json.
func (*SignatureError) ErrorClass() string    { return "signature_failure" }
func (e *SignatureError) ErrorReason() string { return e.Reason }

var errNotRegular = errors.New("it is not a regular file")

// tooLargeError is returned for a file that is larger than most bytes.
type tooLargeError struct{ most int64 }

func (e tooLargeError) Error() string { return fmt.Sprintf("it is larger than %d bytes", e.most) }

// asSignature returns err as a [*SignatureError], if it is about what signature.sig or trust is.
func asSignature(err error) error {
	var file *fileError
	switch {
	case !errors.As(err, &file) || file.name != signatureFile && file.name != trustFile:
		return err
	case errors.Is(err, errNotRegular):
		return &SignatureError{file.name, "signature_not_a_file", file.err}
	case errors.As(err, new(tooLargeError)):
		return &SignatureError{file.name, "signature_too_large", file.err}
	}
	return err
}

// sign sets the signature to what sign returns.
func (c contents) sign(connector *spec.Connector, sign func(*spec.Connector, Carried) ([]byte, error)) error {
	sig, err := sign(connector, Carried{c[signatureFile], c[trustFile]})
	delete(c, signatureFile)
	if sig != nil {
		c[signatureFile] = sig
	}
	return err
}

// Signature returns the signatures and vouches with which a connector was installed, which
// are not verified; nil if it has none.
func (s *Store) Signature(hash string) ([]byte, error) {
	if !IsHash(hash) {
		return nil, fmt.Errorf("read the signature: %q is not sha256: and 64 hexadecimal digits", hash)
	}
	root, err := os.OpenRoot(filepath.Join(s.connectors(), strings.TrimPrefix(hash, "sha256:")))
	if err != nil {
		return nil, fmt.Errorf("read the signature: %w", withoutPath(err))
	}
	defer root.Close()
	sig, err := readFile(root, signatureFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, asSignature(&fileError{signatureFile, err})
	}
	return sig, nil
}

// replaceSignature replaces the signature of an installed connector. The lock is held.
func (s *Store) replaceSignature(hash string, sig []byte) error {
	if old, err := s.Signature(hash); err == nil && bytes.Equal(old, sig) {
		return nil
	}
	dir := filepath.Join(s.connectors(), strings.TrimPrefix(hash, "sha256:"))
	tmp, err := durable.New(filepath.Join(s.dir, "tmp"), sig)
	if err == nil {
		defer os.Remove(tmp)
		err = os.Rename(tmp, filepath.Join(dir, signatureFile))
	}
	if err == nil {
		err = durable.SyncDir(dir)
	}
	if err != nil {
		return fmt.Errorf("install the signature: %w", err)
	}
	return nil
}
