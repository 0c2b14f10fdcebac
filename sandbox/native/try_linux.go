package native

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
)

// Try makes a sandbox, in which no command begins, and removes it. The error is that of [Start].
func Try(binary, seccomp string) (err error) {
	dir, err := os.MkdirTemp("", "aileron-try-")
	if err != nil {
		return fmt.Errorf("try to make a sandbox: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	for _, name := range []string{"proxy.sock", "redirect.sock"} { // which nothing connects to
		l, err := net.Listen("unix", filepath.Join(dir, name))
		if err != nil {
			return fmt.Errorf("try to make a sandbox: %w", err)
		}
		defer l.Close()
	}
	etc, err := HostEtc()
	if err != nil {
		return err
	}
	box, err := Start(Config{
		Binary: binary, Sockets: dir, Seccomp: seccomp, Session: filepath.Base(dir), Etc: etc,
		Owner: Owner{os.Geteuid(), os.Getegid()}, Command: []string{"/bin/true"}, Dir: "/",
	})
	if err != nil {
		return err
	}
	box.Close()
	return nil
}
