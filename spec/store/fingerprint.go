package store

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
)

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
