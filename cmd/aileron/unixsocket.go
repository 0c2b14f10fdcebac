package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
)

// maxSocketPath is what fits into sockaddr_un, its final NUL included.
const maxSocketPath = 107

// shortPath gives a path of the same file that fits into sockaddr_un: a long
// directory is named by its descriptor. release gives the descriptor back,
// when the path is not needed any more.
func shortPath(path string) (short string, release func(), err error) {
	if len(path) <= maxSocketPath {
		return path, func() {}, nil
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path)), func() { _ = dir.Close() }, nil
}

// listenUnix listens on a fresh unix socket with the given mode. Closing the
// listener removes the socket.
func listenUnix(path string, mode os.FileMode) (net.Listener, error) {
	short, release, err := shortPath(path)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("unix", short)
	if err != nil {
		release()
		return nil, err
	}
	if err := os.Chmod(path, mode); err != nil {
		_ = l.Close()
		release()
		return nil, err
	}
	return &unixListener{Listener: l, release: release}, nil
}

type unixListener struct {
	net.Listener
	release func()
}

func (l *unixListener) Close() error {
	err := l.Listener.Close()
	l.release()
	return err
}

func dialUnix(ctx context.Context, path string) (net.Conn, error) {
	short, release, err := shortPath(path)
	if err != nil {
		return nil, err
	}
	defer release()
	return (&net.Dialer{}).DialContext(ctx, "unix", short)
}
