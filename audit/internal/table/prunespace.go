package table

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/internal/system"
)

// ClearIndex empties the records of blocks of which no row is left: they have hashes of what the rows had.
func (d *Database) ClearIndex(last int64) error {
	x, err := WriteIndex(d.path)
	if err != nil {
		return err
	}
	defer x.Close()
	end := BlockAt(last / BlockRows)
	err = system.Erase(x.file, IndexHead, end-IndexHead)
	if !errors.Is(err, unix.EOPNOTSUPP) {
		return err
	}
	for at := int64(IndexHead); at < end; at += min(end-at, 1<<20) {
		if _, err := x.file.WriteAt(make([]byte, min(end-at, 1<<20)), at); err != nil {
			return err
		}
	}
	return nil
}

// Shrunk is the size of the database in bytes, before and after Shrink.
type Shrunk struct {
	Before int64 `json:"bytes_before,omitempty"`
	After  int64 `json:"bytes_after,omitempty"`
}

const (
	// shrinkTimeout bounds how long Shrink holds the lock of the database: sessions go on, with their rows in journals.
	shrinkTimeout = 30 * time.Second
	// minFree is how much of the database, in bytes, has to be free for Shrink to do anything.
	minFree = 1 << 20
)

// ErrNotShrunk is returned by Shrink if the database has free space and keeps it: for new rows.
var ErrNotShrunk = errors.New("the database keeps its size, and its free space is used for new rows")

// Shrink returns the space of removed rows to the file system, unless there is little of it. It rewrites what is left,
// which needs as much space again for a moment, and takes at most 30 s. Rows can be read meanwhile; sessions write to
// their journals. If it does not succeed, the error wraps [ErrNotShrunk] and the log is what it was.
func (d *Database) Shrink(ctx context.Context) (s Shrunk, err error) {
	size := func() int64 {
		info, err := os.Stat(d.path)
		if err != nil {
			return 0
		}
		return info.Size()
	}
	s.Before = size()
	s.After = s.Before
	var free, pages, page int64
	const query = "SELECT (SELECT freelist_count FROM pragma_freelist_count), " +
		"(SELECT page_count FROM pragma_page_count), (SELECT page_size FROM pragma_page_size)"
	if err := d.SQL().QueryRowContext(ctx, query).Scan(&free, &pages, &page); err != nil {
		return s, fmt.Errorf("%w: %w", ErrNotShrunk, err)
	}
	if free*page < minFree {
		return s, nil
	}
	if room, err := system.FreeSpace(d.path); err == nil && room < 2*(pages-free)*page {
		return s, fmt.Errorf("%w: the file system has too little space to rewrite the rows that are left", ErrNotShrunk)
	}
	ctx, stop := context.WithTimeout(ctx, shrinkTimeout)
	defer stop()
	if _, err := d.SQL().ExecContext(ctx, "VACUUM"); err != nil {
		return s, fmt.Errorf("%w: %w", ErrNotShrunk, err)
	}
	// A reader may hold this back; then a later checkpoint cuts the file.
	_, _ = d.SQL().ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)")
	s.After = size()
	return s, nil
}
