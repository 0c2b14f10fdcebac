package main

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

// hostCommandError is a command that cannot run on this host, with the exit
// code that a shell has for it: 127 for a command that is not there, 126 for
// one that cannot be executed.
type hostCommandError struct {
	name string
	code int
	why  string
}

func (e *hostCommandError) Error() string { return fmt.Sprintf("run %s: %s", e.name, e.why) }

// ExitCode is the exit code of aileron, see [app.exitCode].
func (e *hostCommandError) ExitCode() int { return e.code }

// findCommand returns the path of a command of this host.
func findCommand(name string) (string, error) {
	path, err := exec.LookPath(name)
	switch {
	case err == nil:
		return path, nil
	case errors.Is(err, fs.ErrNotExist):
		return "", notThere(name, "there is no such file")
	case !errors.Is(err, exec.ErrNotFound):
		return "", notExecutable(name, name+" is not executable")
	}
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		place := filepath.Join(dir, name)
		if info, err := os.Stat(place); err == nil && !strings.Contains(name, "/") && !info.IsDir() {
			return "", notExecutable(name, place+" is not executable")
		}
	}
	return "", notThere(name, "there is no such command on PATH")
}

// startError returns why a command that was found did not start.
func startError(name string, err error) error {
	cause := plainCause(err)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return notThere(name, "its interpreter is not there")
	case errors.Is(err, fs.ErrPermission), errors.Is(err, unix.ENOEXEC):
		return notExecutable(name, cause.Error())
	}
	return hint.New(fmt.Errorf("run %s: %w", name, cause), "check that it may be executed")
}

func notThere(name, why string) error {
	return hint.New(&hostCommandError{name, 127, why}, "install it, or give its path")
}

func notExecutable(name, why string) error {
	return hint.New(&hostCommandError{name, 126, why}, "check that it is a program of this machine, and its mode")
}
