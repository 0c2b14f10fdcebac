package launch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/internal/hint"
)

// The exit codes that a shell has for a command that cannot run.
const (
	codeNotExecutable = 126
	codeNotFound      = 127
)

// FindCommand returns the path of a command of this host. The error is an [ExitError] with a shell's code: 127 if there
// is no such command, 126 if it is not executable.
func FindCommand(name string) (string, error) {
	path, err := exec.LookPath(name)
	switch {
	case err == nil:
		return path, nil
	case errors.Is(err, fs.ErrNotExist):
		return "", notFound(name, "there is no such file")
	case !errors.Is(err, exec.ErrNotFound):
		return "", notExecutable(name, name+" is not executable")
	}
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		place := filepath.Join(dir, name)
		if info, err := os.Stat(place); err == nil && !strings.Contains(name, "/") && !info.IsDir() {
			return "", notExecutable(name, place+" is not executable")
		}
	}
	return "", notFound(name, "there is no such command on PATH")
}

// startError returns why a command that was found did not start.
func startError(name string, err error) error {
	cause := err
	if bad := (*fs.PathError)(nil); errors.As(err, &bad) {
		cause = bad.Err // without the path, which the message has
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return notFound(name, "its interpreter is not there")
	case errors.Is(err, fs.ErrPermission), errors.Is(err, unix.ENOEXEC):
		return notExecutable(name, cause.Error())
	}
	return hint.New(fmt.Errorf("run %s: %w", name, cause), "check that it may be executed")
}

func notFound(name, why string) error {
	return &ExitError{codeNotFound, hint.New(fmt.Errorf("run %s: %s", name, why), "install it, or give its path")}
}

func notExecutable(name, why string) error {
	return &ExitError{codeNotExecutable, hint.New(fmt.Errorf("run %s: %s", name, why),
		"check that it is a program for this machine, and its mode")}
}
