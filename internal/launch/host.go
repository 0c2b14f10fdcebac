package launch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/session"
	"github.com/ALRubinger/aileron/internal/system"
	"github.com/ALRubinger/aileron/sandbox/agents"
)

// HostCommand describes a command on this host.
type HostCommand struct {
	Agent string   // names the command in the audit log
	Path  string   // of the program, as FindCommand returned it
	Args  []string // the command and its arguments
	Env   []string // further variables
	// File is the text of a file of the session for which [agents.FilePlace] stands among Args; "" is none.
	File   string
	Models []agents.Endpoint // that the command takes from its environment
}

// place writes the file of the command into the directory of its session.
func (c *HostCommand) place(dir string) error {
	at := slices.Index(c.Args, agents.FilePlace)
	if c.File == "" || at < 0 {
		return nil
	}
	path := filepath.Join(dir, "extension.js")
	if err := os.WriteFile(path, []byte(c.File), 0o600); err != nil {
		return fmt.Errorf("tell %s of the session's operations: %w", c.Agent, err)
	}
	c.Args = slices.Clone(c.Args)
	c.Args[at] = path
	return nil
}

// stopGrace is how long a command on this host has between SIGTERM and SIGKILL when its session is stopped, like one in
// a sandbox.
const stopGrace = 5 * time.Second

// OnHost runs a command on this host with a session of its own. The error is an [ExitError] with the command's exit
// code if that is not 0, or with a shell's code if the command cannot run.
func (l *Launcher) OnHost(ctx context.Context, c HostCommand) error {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	defer signal.Stop(signals)

	stop := session.NewStopRequest()
	host, err := l.OpenHost(ctx, Host{Agent: c.Agent, Mode: "off", Listen: "127.0.0.1:0", Stop: stop, Models: c.Models})
	if err != nil {
		return err
	}
	err = c.place(host.Dir())
	var reaper *hostReaper
	if err == nil {
		reaper, err = l.startHostReaper(host.ID())
	}
	if err != nil {
		_ = l.unrecorded(1, host.Close(ctx, 1, "the command did not start"))
		return err
	}
	defer reaper.dismiss()
	child := l.command(c, host)
	ended, err := l.startTied(child)
	if err != nil {
		_ = l.unrecorded(1, host.Close(ctx, 1, "the command did not start"))
		return startError(c.Args[0], err)
	}
	reaper.watch(child.Process.Pid)
	began := time.Now()
	code, cause := l.await(child.Process, ended, signals, stop)
	err = host.Close(ctx, code, cause)
	l.ended(host.Session, Ended{Agent: c.Agent, Duration: time.Since(began), ExitCode: code, Cause: cause})
	if stop.Requested() {
		l.Infof("aileron: %s", session.StoppedCause)
	}
	return l.unrecorded(code, err)
}

// command returns the command with its environment and streams.
func (l *Launcher) command(c HostCommand, host *HostSession) *exec.Cmd {
	child := exec.Command(c.Path, c.Args[1:]...) //nolint:gosec,noctx // the person's own; it ends by signals, as a shell's
	child.Args[0] = c.Args[0]
	settings := findSettings(".", host.clients())
	for _, note := range settings.notes {
		l.Infof("%s", note)
	}
	child.Env = slices.Concat(l.Environ, host.Environment(), settings.env, c.Env)
	child.Stdin, child.Stdout, child.Stderr = l.Stdin, l.Stdout, l.Stderr
	return child
}

// await passes signals to a command until it has ended, and returns its exit code and the cause of its end. A stop
// request is a SIGTERM, and after stopGrace a SIGKILL.
func (l *Launcher) await(
	child *os.Process, ended <-chan error, signals <-chan os.Signal, stop *session.StopRequest,
) (code int, cause string) {
	stopped, cause, kill := stop.Done(), "the command ended", (<-chan time.Time)(nil)
	for {
		select {
		case err := <-ended:
			return exitCodeOf(err), cause
		case sig := <-signals:
			// On a terminal the command has the key's signal already.
			if !IsTerminal(l.Stdin) || sig == syscall.SIGTERM || sig == syscall.SIGHUP {
				_ = child.Signal(sig)
			}
		case <-stopped:
			cause, stopped, kill = session.StoppedCause, nil, time.After(stopGrace)
			_ = child.Signal(syscall.SIGTERM)
		case <-kill:
			_ = child.Kill()
		}
	}
}

// startTied starts a command that gets a SIGTERM when this process ends without waiting for it. The kernel sends that
// at the end of the thread that started the command, so the thread is kept until the command has ended.
func (l *Launcher) startTied(cmd *exec.Cmd) (ended <-chan error, err error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	system.DieWithParent(cmd.SysProcAttr, syscall.SIGTERM)
	start := l.Start
	if start == nil {
		start = (*exec.Cmd).Start
	}
	started, done := make(chan error), make(chan error, 1)
	go func() {
		runtime.LockOSThread() // the thread ends with this goroutine
		err := start(cmd)
		started <- err
		if err == nil {
			done <- cmd.Wait()
		}
	}()
	return done, <-started
}

// exitCodeOf returns the exit code of a command that ended with err: 128+N if signal N ended it.
func exitCodeOf(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case !errors.As(err, &exit):
		return 1
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return exit.ExitCode()
}

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
