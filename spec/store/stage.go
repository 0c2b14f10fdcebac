package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Stage is a directory of the store for an archive that is being downloaded. It
// grants nothing. The next lock of the store removes it, unless its process still
// lives.
type Stage struct {
	Archive *os.File // empty at first
	dir     string
	lock    *os.File
}

const (
	stagePrefix = "fetched-"
	stageLock   = ".lock"
)

// Stage returns a new stage. Its caller closes it.
func (s *Store) Stage() (stage *Stage, err error) {
	unlock, err := s.lock() // or another process takes it for what a killed one has left
	if err != nil {
		return nil, err
	}
	defer unlock()
	st := &Stage{}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("make room in the connector store: %w", err), st.Close())
		}
	}()
	if st.dir, err = os.MkdirTemp(filepath.Join(s.dir, "tmp"), stagePrefix); err != nil {
		return nil, err
	}
	if st.lock, err = os.OpenFile(filepath.Join(st.dir, stageLock), os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return nil, err
	}
	if err := s.flock(int(st.lock.Fd()), syscall.LOCK_EX); err != nil {
		return nil, err
	}
	name := filepath.Join(st.dir, "aileron.tar.gz")
	if st.Archive, err = os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600); err != nil {
		return nil, err
	}
	return st, nil
}

// Close removes the stage.
func (st *Stage) Close() error {
	var errs []error
	if st.Archive != nil {
		errs = append(errs, st.Archive.Close())
	}
	if st.dir != "" {
		errs = append(errs, os.RemoveAll(st.dir))
	}
	if st.lock != nil {
		errs = append(errs, st.lock.Close())
	}
	return errors.Join(errs...)
}

// isInUse reports whether an entry of tmp is a stage whose process lives.
func (s *Store) isInUse(dir string) bool {
	if !strings.HasPrefix(filepath.Base(dir), stagePrefix) {
		return false
	}
	f, err := os.OpenFile(filepath.Join(dir, stageLock), os.O_RDWR, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	return errors.Is(s.flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}
