package store

import (
	"io/fs"
	"syscall"
)

// changeTime is the inode and its change time: they change with the bytes
// even where the modification time is put back.
func changeTime(info fs.FileInfo) [3]int64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return [3]int64{int64(st.Ino), int64(st.Ctim.Sec), int64(st.Ctim.Nsec)} //nolint:gosec,unconvert // an identity, not a quantity; 32-bit machines have narrower fields
	}
	return [3]int64{}
}
