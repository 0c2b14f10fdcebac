package store

import (
	"io/fs"
	"os"
	"slices"

	"github.com/ALRubinger/aileron/spec"
)

// All returns every version of every connector, in the order of names and versions. It omits entries that could not be
// read or fail their verification, and versions that appear twice with different bytes, and returns an [*EntryError]
// for each. If the store could not be listed, the only error is a [*ListError].
func (s *Store) All() ([]*spec.Connector, []error) {
	entries, err := s.List()
	if err != nil {
		return nil, []error{err}
	}
	return verified(entries)
}

// verified returns the connectors of entries, and the errors of the others.
func verified(entries []Entry) (all []*spec.Connector, errs []error) {
	for i, e := range entries {
		if e.Err != nil {
			errs = append(errs, &EntryError{e, e.Err})
			continue
		}
		if other := otherCopy(entries, i); other != "" {
			errs = append(errs, &EntryError{e, &HashError{What: "another installed copy", Want: e.Hash, Got: other}})
			continue
		}
		all = append(all, e.connector)
	}
	return all, errs
}

// Current returns the version in force of every connector, by name, and the errors of [Store.All].
func (s *Store) Current() ([]*spec.Connector, []error) {
	all, errs := s.All()
	return InForce(all, nil), errs
}

// CurrentOf returns what [Store.Current] does of the connectors of these names, without its errors, and reads no other:
// the cache of the index tells them apart. One that the cache has another name for is missing, so what is returned is
// good for asking a person early, and for no decision.
func (s *Store) CurrentOf(names []spec.FQN) []*spec.Connector {
	dirs, err := os.ReadDir(s.connectors())
	if err != nil || len(names) == 0 {
		return nil
	}
	dirs = slices.DeleteFunc(dirs, func(d fs.DirEntry) bool {
		known := s.readCache("sha256:" + d.Name()).FQN
		return known != "" && !slices.Contains(names, known)
	})
	all, _ := verified(sortedEntries(s.readEntries(dirs, false)))
	return InForce(all, nil)
}

// InForce returns one version of every connector of a list that [Store.All] returned: the chosen one where there is
// a choice, which may name a version that is not there, and the highest one otherwise. A pre-release is the highest
// only of pre-releases.
func InForce(all []*spec.Connector, chosen map[spec.FQN]string) []*spec.Connector {
	var current []*spec.Connector
	for _, c := range all {
		version, isChosen := chosen[c.FQN]
		if isChosen && c.Version != version {
			continue
		}
		n := len(current)
		switch {
		case n == 0 || current[n-1].FQN != c.FQN:
			current = append(current, c)
		case !spec.IsPrerelease(c.Version) || spec.IsPrerelease(current[n-1].Version):
			current[n-1] = c // they are in the order of versions
		}
	}
	return current
}

// otherCopy returns the hash of another valid entry of the same name and version,
// or "".
func otherCopy(entries []Entry, i int) string {
	for _, o := range entries {
		if o.Err == nil && o.Hash != entries[i].Hash && o.FQN == entries[i].FQN && o.Version == entries[i].Version {
			return o.Hash
		}
	}
	return ""
}
