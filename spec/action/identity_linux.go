package action

import (
	"fmt"
	"io/fs"
	"syscall"
)

// identity returns the inode and its change time, which changes with the bytes even if the modification time is set
// back.
func identity(info fs.FileInfo) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return fmt.Sprint(st.Ino, st.Ctim)
}
