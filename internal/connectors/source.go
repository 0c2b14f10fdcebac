package connectors

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/store"
)

// FaultLister prints a fault of a connector's files.
type FaultLister func(format string, args ...any)

// ReadSource reads a connector that may be installed.
func ReadSource(src store.Source, list FaultLister) (*store.Candidate, error) {
	c, err := src.Read()
	var hash *store.HashError
	var name *store.NameError
	switch {
	case errors.As(err, &hash):
		return nil, hint.New(err, "nothing was installed; get the connector and its hash from its publisher again")
	case errors.As(err, &name):
		return nil, hint.New(err, "nothing was installed; tell its publisher")
	case err != nil:
		err = failure.OfInput(SourceError(src.Src, refusedSource(src.Src, err), list), failure.ReasonConnector)
		return nil, withNearSource(src.Src, err)
	}
	return c, nil
}

// ReadCandidate reads a connector from a directory, an archive or the catalogue.
func ReadCandidate(src string, list FaultLister) (*store.Candidate, error) {
	entry, inCatalog, err := CatalogSource(src)
	if err != nil {
		return nil, err
	}
	from := store.Source{Src: src}
	if inCatalog {
		from.Files = entry.Files
	}
	return ReadSource(from, list)
}

// SourceError returns the error for a connector's source that has faults. If it has several, it prints each on a line
// with list; if that is nil, all are in the error.
func SourceError(src string, err error, list FaultLister) error {
	faults := spec.Diagnostics(err)
	if len(faults) == 0 {
		return err
	}
	if len(faults) == 1 || list == nil {
		var all []string
		for _, f := range faults {
			all = append(all, f.Error())
		}
		err = fmt.Errorf("read the connector %s: %s", src, strings.Join(all, "; "))
		return failure.Input(hint.New(err, SeeConnectors), failure.ReasonConnector)
	}
	for _, f := range faults {
		list("%s", f)
	}
	err = fmt.Errorf("read the connector %s: %d faults, the first: %w", src, len(faults), faults[0])
	return failure.Input(hint.New(err, SeeConnectors), failure.ReasonConnector)
}

// SeeConnectors is the hint for faults of a manifest or a spec.
const SeeConnectors = "docs/connectors.md describes both files"
