package hosttrust

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/ca"
	"github.com/ALRubinger/aileron/internal/durable"
	"github.com/ALRubinger/aileron/internal/format"
	"github.com/ALRubinger/aileron/internal/hint"
)

// recordFormat is the version of <home>/trusted/*.json.
const recordFormat = format.First

// record is <home>/trusted/<session>.json: the stores that may have the session's root.
type record struct {
	Format   int        `json:"format"`
	Session  string     `json:"session_id"`
	SHA256   string     `json:"sha256"`
	NotAfter time.Time  `json:"not_after"`
	PEM      string     `json:"pem"`
	Stores   []ca.Store `json:"stores"`
}

// Record is what a session's root was added to.
type Record struct {
	Session  string
	NotAfter time.Time
	Stores   []ca.Store
	Err      error // the record cannot be read
}

// Records returns the records of the home.
func (l Ledger) Records() (all []Record) {
	entries, _ := os.ReadDir(l.dir()) // an error: no root was ever added
	for _, e := range entries {
		id, ok := strings.CutSuffix(e.Name(), ".json")
		if !ok || !isID(id) {
			continue
		}
		r, err := l.read(id)
		if !errors.Is(err, errNoRecord) {
			all = append(all, Record{id, r.NotAfter, r.Stores, err})
		}
	}
	return all
}

// isID reports whether the text has the form of a session's id: it becomes a path.
func isID(text string) bool {
	return text != "" && len(text) <= 26 && strings.Trim(text, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}

// errNoRecord is returned for a session whose root is in no store.
var errNoRecord = errors.New("the session's root is in no trust store")

// maxRecord bounds what is read of a record.
const maxRecord = 1 << 20

func (l Ledger) path(session string) string { return filepath.Join(l.dir(), session+".json") }

func (l Ledger) has(session string) bool {
	_, err := os.Lstat(l.path(session))
	return err == nil
}

func (l Ledger) read(session string) (r record, err error) {
	path := l.path(session)
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return r, errNoRecord
	}
	if err != nil {
		return r, damaged(path, err)
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxRecord))
	if err != nil {
		return r, damaged(path, err)
	}
	if err := format.CheckJSON(raw, path, recordFormat); err != nil {
		return r, err
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return r, damaged(path, err)
	}
	if r.Session != session {
		return r, damaged(path, fmt.Errorf("it is that of the session %.26q", r.Session))
	}
	if _, err := r.root(); err != nil {
		return r, damaged(path, err)
	}
	return r, nil
}

func damaged(path string, err error) error {
	return hint.New(fmt.Errorf("read the record of a trusted root, %s: %w", path, err),
		"look for a root named \"Aileron host root\" in your browsers and the system's store, remove it, then this file")
}

// root returns the root that was added.
func (r record) root() (*x509.Certificate, error) {
	block, _ := pem.Decode([]byte(r.PEM))
	if block == nil {
		return nil, errors.New("it has no certificate")
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, err
	}
	if fingerprint(c) != r.SHA256 {
		return nil, errors.New("its certificate has another fingerprint")
	}
	return c, nil
}

func encode(c *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
}

// write replaces the record. It is on the disk before a store is changed.
func (l Ledger) write(r record) error {
	raw, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := durable.Replace(l.path(r.Session), append(raw, '\n')); err != nil {
		return hint.New(fmt.Errorf("record what trusts the session's root: %w", err),
			"check the disk and the rights on %s", l.Home)
	}
	return nil
}

// settle writes what is left of the record, or removes it if nothing is.
func (l Ledger) settle(r record) error {
	if len(r.Stores) > 0 {
		return l.write(r)
	}
	if err := os.Remove(l.path(r.Session)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the record of a trusted root: %w", err)
	}
	return nil
}

// lockWait is how long another process may take for its change: it may wait for a Java on a busy machine.
const lockWait = 5 * time.Minute

// lock keeps other processes from changing the account.
func (l Ledger) lock(ctx context.Context) (unlock func(), err error) {
	fail := func(err error) error { return fmt.Errorf("lock the account of trusted roots: %w", err) }
	if err := os.MkdirAll(l.dir(), 0o700); err != nil {
		return nil, fail(err)
	}
	ctx, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		f, err := l.Locks.Lock(filepath.Join(l.dir(), "lock"), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { _ = f.Close() }, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, fs.ErrNotExist) {
			return nil, fail(err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, hint.New(fail(err), "another aileron ca trust or untrust is at work; try again when it has ended")
		}
	}
}
