package capture

import "golang.org/x/sys/unix"

// exchangeNames exchanges the names of two files, in one step.
func exchangeNames(a, b string) error {
	return unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
}
