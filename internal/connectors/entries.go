package connectors

import (
	"fmt"
	"strings"

	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/home"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/catalog"
	"github.com/ALRubinger/aileron/spec/signature"
	"github.com/ALRubinger/aileron/spec/store"
)

// EntryJSON is one installed connector, as connector list, verify and remove print it.
type EntryJSON struct {
	FQN     string `json:"fqn"`
	Version string `json:"version"`
	Hash    string `json:"hash"`
	OK      bool   `json:"ok"`
	Error   string `json:"error,omitempty"`
	Reason  string `json:"reason,omitempty"` // hash_mismatch, connector_unreadable, or of its signature

	Signature *SignatureJSON `json:"signature,omitempty"` // none: it is broken, or was removed
}

// CheckEntries verifies the signatures of installed connectors that are not broken.
func CheckEntries(d *home.Dir, s *store.Store, entries []store.Entry) Publishers {
	all := Publishers{}
	for _, e := range entries {
		if e.Err == nil {
			all[e.Hash] = CheckInstalled(d, s, signature.Claim{FQN: e.FQN, Version: e.Version, Hash: e.Hash})
		}
	}
	return all
}

// DescribeEntries returns entries for --json.
func DescribeEntries(entries []store.Entry, by Publishers) []EntryJSON {
	out := []EntryJSON{}
	for _, e := range entries {
		out = append(out, DescribeEntry(e, by))
	}
	return out
}

// DescribeEntry returns an entry for --json.
func DescribeEntry(e store.Entry, by Publishers) EntryJSON {
	j := EntryJSON{FQN: string(e.FQN), Version: e.Version, Hash: e.Hash, OK: e.Err == nil}
	if e.Err != nil {
		j.Error, j.Reason = failure.AsLine(e.Err.Error()), failure.ReasonOf(e.Err)
	}
	if p, ok := by[e.Hash]; ok {
		j.Signature = p.Json()
		if p.Err != nil {
			j.OK, j.Error, j.Reason = false, j.Signature.Error, j.Signature.Reason
		}
	}
	return j
}

// ShortHash returns the beginning of a content hash, for a line.
func ShortHash(h string) string { return h[:min(len(h), len("sha256:")+12)] }

// splitVersion splits NAME[@VERSION], and returns the FQN that the name stands for.
func splitVersion(d *home.Dir, name string) (spec.FQN, string, error) {
	name, version, _ := strings.Cut(name, "@")
	fqn, err := NewNames(d).Resolve(name)
	return fqn, version, err
}

// ChosenEntries returns the entries of NAME[@VERSION], at least one, in the order of their versions.
func ChosenEntries(d *home.Dir, entries []store.Entry, name string) ([]store.Entry, error) {
	fqn, version, err := splitVersion(d, name)
	if err != nil {
		return nil, err
	}
	var chosen []store.Entry
	for _, e := range entries {
		if e.FQN == fqn && (version == "" || e.Version == version) {
			chosen = append(chosen, e)
		}
	}
	if len(chosen) == 0 {
		return nil, NotInstalled(name, fqn)
	}
	return chosen, nil
}

// InstalledVersion returns NAME[@VERSION] of the store, verified, and who published it; the newest version if none is
// named.
func InstalledVersion(d *home.Dir, name string) (*spec.Connector, Publisher, error) {
	s, entries, err := d.Installed()
	if err != nil {
		return nil, Publisher{}, err
	}
	chosen, err := ChosenEntries(d, entries, name)
	if err != nil {
		return nil, Publisher{}, err
	}
	found := chosen[len(chosen)-1]
	c, err := s.Load(found.Hash)
	if err != nil {
		return nil, Publisher{}, store.Hint(err)
	}
	return c, CheckInstalled(d, s, signature.ClaimOf(c)), nil
}

// CatalogJSON is a connector that can be installed by its name.
type CatalogJSON struct {
	Name       string          `json:"name"`
	FQN        string          `json:"fqn"`
	Version    string          `json:"version"`
	Hash       string          `json:"hash"`
	Summary    string          `json:"summary"`
	Hosts      []string        `json:"hosts"`
	Credential *CredentialJSON `json:"credential"` // null: it needs no secret
	Installed  []string        `json:"installed"`  // the installed versions of the FQN
}

// DescribeCatalog returns an entry of the catalogue beside what is installed.
func DescribeCatalog(e catalog.Entry, installed []store.Entry) (CatalogJSON, error) {
	c, err := store.ReadFS(e.Files)
	if err != nil {
		return CatalogJSON{}, fmt.Errorf("read the catalogue: %w", err)
	}
	d := DescribeConnector(c)
	j := CatalogJSON{Name: e.Name, FQN: d.FQN, Version: d.Version, Hash: d.Hash, Summary: e.Summary, Hosts: d.Hosts,
		Credential: d.Credential, Installed: []string{}}
	for _, i := range installed {
		if i.FQN == c.FQN {
			j.Installed = append(j.Installed, i.Version)
		}
	}
	return j, nil
}
