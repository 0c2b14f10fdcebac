package store

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime/debug"
	"slices"

	"github.com/ALRubinger/aileron/spec"
)

// Reading is a list of the store that was begun before it is needed. See [Store.Begin].
type Reading struct {
	done        chan struct{}
	fingerprint string // of the store before it was read
	err         error  // of the fingerprint
	connectors  []*spec.Connector
	faults      []error
}

// Begin begins to read, verify and parse the connectors of the store, beside what the caller does meanwhile. The caller
// waits for its end, with [Reading.Wait].
func (s *Store) Begin() *Reading {
	r := &Reading{done: make(chan struct{})}
	go func() {
		defer close(r.done)
		// What is read stays: to look for garbage meanwhile costs more than what is found.
		defer debug.SetGCPercent(debug.SetGCPercent(400))
		if r.fingerprint, r.err = s.Fingerprint(); r.err == nil {
			r.connectors, r.faults = s.All()
		}
	}()
	return r
}

// Wait waits for the end of the reading. That of nil has ended.
func (r *Reading) Wait() {
	if r != nil {
		<-r.done
	}
}

// All waits for the end of the reading, and returns what [Store.All] returned in it. It reports false if the store has
// another fingerprint now than before the reading, if anything was not as it should be, and for nil: then the store has
// to be read again.
func (r *Reading) All(fingerprint string) ([]*spec.Connector, bool) {
	r.Wait()
	if r == nil || r.err != nil || len(r.faults) > 0 || r.fingerprint != fingerprint {
		return nil, false
	}
	return slices.Clone(r.connectors), true
}

// Fingerprint returns a value that changes whenever a file of the store may have
// changed. It reads no file.
func (s *Store) Fingerprint() (string, error) {
	h := sha256.New()
	err := filepath.WalkDir(s.connectors(), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		}
		info, err := d.Info()
		if err != nil {
			return nil //nolint:nilerr // gone between two looks: the next one sees it
		}
		fmt.Fprintf(h, "%q %d %d %v %v\n", path, info.Size(), info.ModTime().UnixNano(), info.Mode(), changeTime(info))
		return nil
	})
	return hex.EncodeToString(h.Sum(nil)), err
}
