package store

import (
	"io/fs"
	"syscall"
)

// changeTime returns the inode and its change time, which change with the bytes
// even if the modification time is set back.
func changeTime(info fs.FileInfo) [3]int64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		//nolint:gosec,unconvert // an identity, not a quantity; 32-bit machines have narrower fields
		return [3]int64{int64(st.Ino), int64(st.Ctim.Sec), int64(st.Ctim.Nsec)}
	}
	return [3]int64{}
}
