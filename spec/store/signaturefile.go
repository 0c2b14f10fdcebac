package store

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/ALRubinger/aileron/spec"
)

// maxSignature bounds signature.sig.
const maxSignature = 16 << 10

// SignatureError is returned for a signature.sig of a source that cannot be read.
type SignatureError struct {
	Reason string
	Err    error
}

func (e *SignatureError) Error() string { return "read " + signatureFile + ": " + e.Err.Error() }
func (e *SignatureError) Unwrap() error { return e.Err }

// ErrorClass and ErrorReason return those in the error object of --json.
func (*SignatureError) ErrorClass() string    { return "signature_failure" }
func (e *SignatureError) ErrorReason() string { return e.Reason }

var errNotRegular = errors.New("it is not a regular file")

// tooLargeError is returned for a file that is larger than most bytes.
type tooLargeError struct{ most int64 }

func (e tooLargeError) Error() string { return fmt.Sprintf("it is larger than %d bytes", e.most) }

// asSignature returns err as a [*SignatureError], if it is about what signature.sig is.
func asSignature(err error) error {
	var file *fileError
	switch {
	case !errors.As(err, &file) || file.name != signatureFile:
		return err
	case errors.Is(err, errNotRegular):
		return &SignatureError{"signature_not_a_file", file.err}
	case errors.As(err, new(tooLargeError)):
		return &SignatureError{"signature_too_large", file.err}
	}
	return err
}

// sign sets the signature to what sign returns.
func (c contents) sign(connector *spec.Connector, sign func(*spec.Connector, []byte) ([]byte, error)) error {
	sig, err := sign(connector, c[signatureFile])
	delete(c, signatureFile)
	if sig != nil {
		c[signatureFile] = sig
	}
	return err
}

// Signature returns the signature.sig of an installed connector, which is not verified;
// nil if it has none.
func (s *Store) Signature(hash string) ([]byte, error) {
	if !isHash(hash) {
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
	tmp, err := os.MkdirTemp(filepath.Join(s.dir, "tmp"), "signature-")
	if err != nil {
		return fmt.Errorf("install the signature: %w", err)
	}
	defer os.RemoveAll(tmp)
	dir := filepath.Join(s.connectors(), strings.TrimPrefix(hash, "sha256:"))
	err = writeFlushed(filepath.Join(tmp, signatureFile), sig)
	if err == nil {
		err = os.Rename(filepath.Join(tmp, signatureFile), filepath.Join(dir, signatureFile))
	}
	if err == nil {
		err = flushDir(dir)
	}
	if err != nil {
		return fmt.Errorf("install the signature: %w", err)
	}
	return nil
}
