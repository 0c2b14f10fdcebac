package keeper

import (
	"errors"
	"fmt"
	"io"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/internal/system"
)

// MaxKey bounds the length of a key in bytes.
const MaxKey = 1 << 10

// Key is a key in a page of memory that is never swapped out, is in no core file, and
// is not inherited by a child. It lies outside of Go's heap, so no copy is left there.
type Key struct {
	page []byte
	n    int
}

// ReadKey reads a key to the end of r, directly into locked memory. Call [Key.Erase]
// when it is no longer needed.
func ReadKey(r io.Reader) (*Key, error) {
	page, err := unix.Mmap(-1, 0, unix.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, fmt.Errorf("reserve memory for the key: %w", err)
	}
	k := &Key{page: page}
	if err := errors.Join(unix.Mlock(page), system.KeepPrivate(page)); err != nil {
		k.Erase()
		return nil, fmt.Errorf("lock the memory of the key: %w; raise the limit with: ulimit -l 64", err)
	}
	for k.n <= MaxKey {
		n, err := r.Read(page[k.n : MaxKey+1])
		k.n += n
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			k.Erase()
			return nil, fmt.Errorf("read the key: %w", err)
		}
	}
	if k.n == 0 || k.n > MaxKey {
		k.Erase()
		return nil, fmt.Errorf("read the key: it must have 1 to %d bytes", MaxKey)
	}
	return k, nil
}

func (k *Key) writeTo(w io.Writer) error {
	_, err := w.Write(k.page[:k.n])
	return err
}

// Erase overwrites the key and releases its memory. The key cannot be used afterwards.
func (k *Key) Erase() {
	if k.page == nil {
		return
	}
	clear(k.page)
	_ = unix.Munmap(k.page)
	k.page, k.n = nil, 0
}
