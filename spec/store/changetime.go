package store

import (
	"io/fs"
	"syscall"
)

// changeTime is the inode and its change time: they change with the bytes
// even where the modification time is put back.
func changeTime(info fs.FileInfo) [3]int64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return [3]int64{int64(st.Ino), st.Ctim.Sec, st.Ctim.Nsec} //nolint:gosec // an identity, not a quantity
	}
	return [3]int64{}
}
