package store

import (
	"fmt"
	"io/fs"

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
	// the connector FQN in that Version.
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
	Signature []byte // its signature.sig, not verified; nil: it has none
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
	connector, err := c.load()
	if err != nil {
		return nil, nil, err
	}
	if s.Archive != "" && (connector.FQN != s.FQN || connector.Version != s.Version) {
		return nil, nil, &NameError{Source: s, FQN: connector.FQN, Version: connector.Version}
	}
	if s.Checked {
		delete(c, signatureFile)
		if s.Signature != nil {
			c[signatureFile] = s.Signature
		}
	}
	if s.Hash != "" && s.Hash != connector.Hash {
		return nil, nil, &HashError{What: s.Src, Want: s.Hash, Got: connector.Hash}
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
