package ca

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/internal/hint"
)

// toolTime bounds each run of a program that changes a store. On a busy machine Java takes its time.
const toolTime = 3 * time.Minute

// runTool runs a program that reads or changes a trust store, and returns what it prints. It is in a session of its
// own: without a terminal it cannot ask for the password of a database, and a Ctrl-C does not end it half-way.
func runTool(ctx context.Context, stdin []byte, name string, args ...string) ([]byte, error) {
	path, err := findTool(name)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, toolTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...) //nolint:gosec // a tool of the system, by a fixed name
	cmd.Stdin = bytes.NewReader(stdin)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH") + ":/usr/sbin:/sbin", "HOME=" + os.Getenv("HOME"), "LC_ALL=C"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return unix.Kill(-cmd.Process.Pid, unix.SIGKILL) }
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	switch {
	case ctx.Err() != nil:
		return out, fmt.Errorf("run %s: %w", filepath.Base(name), context.Cause(ctx))
	case err != nil:
		return out, &toolError{filepath.Base(name), string(out), err}
	}
	return out, nil
}

// toolError is the failure of a program. Its text has the first line that the program printed.
type toolError struct {
	name, out string
	err       error
}

func (e *toolError) Error() string {
	line := e.err.Error()
	for text := range strings.Lines(e.out) {
		if text = strings.TrimSpace(text); text != "" && !strings.HasPrefix(text, "Warning") {
			line = text
			break
		}
	}
	return fmt.Sprintf("%s: %.300s", e.name, line)
}

func (e *toolError) Unwrap() error { return e.err }

// findTool returns the path of a program. The directories of the administrator's programs are not in everyone's PATH.
func findTool(name string) (string, error) {
	path, err := exec.LookPath(name)
	for _, dir := range []string{"/usr/sbin", "/sbin"} {
		if err == nil || filepath.IsAbs(name) {
			break
		}
		path, err = exec.LookPath(filepath.Join(dir, name))
	}
	if err == nil {
		return path, nil
	}
	packages := map[string]string{"certutil": "libnss3-tools (Debian) or nss-tools (Fedora)",
		"update-ca-certificates": "ca-certificates", "update-ca-trust": "ca-certificates", "trust": "p11-kit"}
	if p := packages[name]; p != "" {
		return "", hint.New(fmt.Errorf("%s is not installed", name), "install the package %s", p)
	}
	return "", fmt.Errorf("%s is not installed", filepath.Base(name))
}

// writable returns an error unless this user, and no other but root, can change what path names. Root follows no name
// that another user could move to something else, and changes nothing of another user.
func writable(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	switch owner, us := ownerOf(info), os.Geteuid(); {
	case !filepath.IsAbs(path):
		return hint.New(fmt.Errorf("%s is not an absolute path", path), "check JAVA_HOME and HOME")
	case info.Mode()&fs.ModeSymlink != 0:
		return fmt.Errorf("%s is a symbolic link now", path)
	case owner == 0 && us != 0:
		return needsRoot(path)
	case owner != us:
		return hint.New(fmt.Errorf("%s belongs to the user %d", path, owner), "run the session and this command as that user")
	case unix.Access(path, unix.W_OK) != nil:
		return hint.New(fmt.Errorf("%s cannot be written", path), "check its rights, and whether it is mounted read-only")
	}
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		info, err := os.Lstat(dir)
		if err != nil {
			return err
		}
		open := info.Mode().Perm()&0o022 != 0 && info.Mode()&fs.ModeSticky == 0
		if owner := ownerOf(info); !info.IsDir() || owner != 0 && owner != os.Geteuid() || open && os.Geteuid() == 0 {
			return hint.New(fmt.Errorf("another user could replace %s: %s is not yours alone", path, dir),
				"remove the rights of others to write there")
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
	}
}

func ownerOf(info fs.FileInfo) int {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid)
	}
	return -1
}

// lockWait is how long another aileron may take for its change of a store.
const lockWait = 2 * time.Minute

// lockDir locks a directory against other processes of aileron, of whatever home.
func lockDir(ctx context.Context, dir string) (unlock func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { _ = f.Close() }, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			_ = f.Close()
			return nil, fmt.Errorf("lock %s: %w", dir, err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			_ = f.Close()
			return nil, hint.New(fmt.Errorf("another process holds the lock of %s", dir), "try again when it has ended")
		}
	}
}
