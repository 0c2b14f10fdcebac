package ca

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/ALRubinger/aileron/internal/hint"
)

// truststore's own handling of NSS is not used: it treats all databases as one, passes over those that fail, and
// believes that a root that has expired is not there, so that it is never removed.

func (s Store) addNSS(ctx context.Context, root *x509.Certificate) error {
	// C: it vouches for servers. Not for mail or programs.
	_, err := s.certutil(ctx, encodePEM(root), "-A", "-a", "-t", "C,,", "-n", root.Subject.CommonName)
	if err != nil {
		return err
	}
	found, err := s.nssHolds(ctx, root)
	if err == nil && !found {
		err = errors.New("certutil has not added it")
	}
	return err
}

// removeNSS removes every certificate with the root's name: certutil removes one at a time.
func (s Store) removeNSS(ctx context.Context, root *x509.Certificate) error {
	if _, err := os.Stat(filepath.Join(s.Path, nssDatabase)); err != nil {
		return nil //nolint:nilerr // certutil would make a database
	}
	for range 4 {
		found, err := s.nssHolds(ctx, root)
		if err != nil || !found {
			return err
		}
		if _, err := s.certutil(ctx, nil, "-D", "-n", root.Subject.CommonName); err != nil {
			return err
		}
	}
	return errors.New("certutil has not removed it")
}

// nssHolds reports whether the database has the root. certutil's check of validity is not asked: an expired one counts.
func (s Store) nssHolds(ctx context.Context, root *x509.Certificate) (bool, error) {
	out, err := s.certutil(ctx, nil, "-L", "-a", "-n", root.Subject.CommonName)
	failed := (*toolError)(nil)
	if errors.As(err, &failed) && strings.Contains(failed.out, "Could not find cert") {
		return false, nil
	}
	return err == nil && holds(out, root), err
}

// nssDatabase is the file of a database of certificates. Those of before 2018, cert8.db, no program reads any more.
const nssDatabase = "cert9.db"

func (s Store) certutil(ctx context.Context, stdin []byte, args ...string) ([]byte, error) {
	out, err := runTool(ctx, stdin, "certutil", append(args, "-d", "sql:"+s.Path)...)
	failed := (*toolError)(nil)
	if !errors.As(err, &failed) {
		return out, err
	}
	switch {
	case strings.Contains(failed.out, "SEC_ERROR_BAD_PASSWORD"), strings.Contains(failed.out, "Incorrect password"):
		return out, hint.New(fmt.Errorf("%w: the database has a password", err), "add the root in the browser's settings: "+
			"aileron ca show SESSION --pem > FILE; and remove it there afterwards")
	case strings.Contains(failed.out, "SEC_ERROR_PKCS11_GENERAL_ERROR"), strings.Contains(failed.out, "SEC_ERROR_BUSY"),
		strings.Contains(failed.out, "SEC_ERROR_PKCS11_DEVICE_ERROR"), strings.Contains(failed.out, "SEC_ERROR_IO"),
		strings.Contains(failed.out, "SEC_ERROR_BAD_DATABASE"):
		return out, hint.New(fmt.Errorf("%w: the database is damaged, or another process holds its lock", err),
			"close the browser that uses it, and try again")
	}
	return out, err
}
