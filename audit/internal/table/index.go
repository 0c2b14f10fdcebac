package table

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// The index is a file beside the database from which readers learn which rows can match a filter, so that they need
// not read all of them. For each complete block of BlockRows numbers it has a record of fixed size and at a fixed
// place: a salted hash of each column that a filter or an id selects by, and the time, of each row; and, if they fit,
// the groups of the rows (see sum). So its size is bounded whatever the rows have in their columns.
//
// Why not indexes of SQLite: a filter can be any of eight columns or the time, and show needs the id. On a million
// rows of the benchmark (2026-11-27, load 12), these ten take 257 MiB where this file takes 46, cost each row that is
// folded 28 µs of processor time beside the 9 that it costs without, or 18 s if they are made at rest, and what
// Verify promises below would need PRAGMA integrity_check: 16 s. Without any index, a filter that selects nothing
// takes 0.7 to 0.9 s of processor time, for a goal of 0.1 s on the clock; with this one, 10 to 20 ms.
//
// It is a cache and never evidence. A row that it selects is still compared with the filter by SQLite; only counts of
// whole blocks are taken from it. A record is used only if its checksums fit and the row of the database that ends its
// block has the hash that the record names; any other block is read from the database, and its record is written anew.
// Verify compares every record with the rows, because a record that omits a value would hide a row from a filter, and
// its sums could be wrong. Records are made of the rows of the database only, by readers and by a session that rests:
// 18 ms of processor time for a block (load 48), off the path of requests.

const (
	IndexName     = "audit.index"
	IndexMagic    = "aileron index 3\n" // 1 and 2 had fewer columns
	IndexHead     = 4096                // where the first record begins
	indexHeadSize = len(IndexMagic) + 8
)

// indexFile is an open index.
type indexFile struct {
	file *os.File
	salt uint64
}

// IndexPath returns the path of the index of the database at path.
func IndexPath(path string) string { return filepath.Join(filepath.Dir(path), IndexName) }

var errNoIndex = errors.New("there is no index")

// openIndex opens the index of the database at path for reading. It returns nil if there is none that can be read:
// then all rows are read.
func openIndex(path string) *indexFile {
	f, err := os.OpenFile(IndexPath(path), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	x := &indexFile{file: f}
	if x.readHead() != nil {
		_ = f.Close()
		return nil
	}
	return x
}

func (x *indexFile) readHead() error {
	if info, err := x.file.Stat(); err != nil || !info.Mode().IsRegular() {
		return errNoIndex
	}
	var head [indexHeadSize]byte
	if _, err := x.file.ReadAt(head[:], 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if string(head[:len(IndexMagic)]) != IndexMagic {
		return errNoIndex
	}
	x.salt = binary.LittleEndian.Uint64(head[len(IndexMagic):])
	return nil
}

// WriteIndex opens the index for writing, locked, and creates it if there is none. Only the owner of the database
// does so: a file of root beside it could not be written by its sessions.
func WriteIndex(path string) (*indexFile, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); !ok || int(stat.Uid) != os.Geteuid() {
		return nil, fmt.Errorf("write %s: the database is of another user", IndexName)
	}
	flags := os.O_RDWR | os.O_CREATE | unix.O_NOFOLLOW | unix.O_NONBLOCK
	f, err := os.OpenFile(IndexPath(path), flags, 0o600)
	if err != nil {
		return nil, err
	}
	x := &indexFile{file: f}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	err = x.readHead()
	if errors.Is(err, errNoIndex) {
		err = x.begin()
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return x, nil
}

// begin makes the file an index without records.
func (x *indexFile) begin() error {
	if info, err := x.file.Stat(); err != nil || !info.Mode().IsRegular() {
		return errors.Join(errNoIndex, err)
	}
	var salt [8]byte
	if _, err := rand.Read(salt[:]); err != nil {
		return err
	}
	if err := x.file.Truncate(0); err != nil {
		return err
	}
	_, err := x.file.WriteAt(append([]byte(IndexMagic), salt[:]...), 0)
	x.salt = binary.LittleEndian.Uint64(salt[:])
	return err
}

func (x *indexFile) Close() {
	if x != nil {
		_ = x.file.Close()
	}
}

// mark returns a hash of a column's value. The salt keeps a value from being chosen that collides with another.
func mark(salt uint64, value string) uint32 {
	const prime = 0x9e3779b97f4a7c15
	h := salt ^ uint64(len(value))*prime
	for ; len(value) >= 8; value = value[8:] {
		word := uint64(value[0]) | uint64(value[1])<<8 | uint64(value[2])<<16 | uint64(value[3])<<24 |
			uint64(value[4])<<32 | uint64(value[5])<<40 | uint64(value[6])<<48 | uint64(value[7])<<56
		h = (h ^ word) * prime
		h ^= h >> 29
	}
	word := uint64(0)
	for i := range len(value) {
		word |= uint64(value[i]) << (8 * i)
	}
	h = (h ^ word) * prime
	h = (h ^ h>>32) * 0xff51afd7ed558ccd // the finalizer of MurmurHash3
	return uint32(h ^ h>>33)             //nolint:gosec // the lower half
}
