package project

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/ALRubinger/aileron/internal/config"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/protect"
	"github.com/ALRubinger/aileron/sandbox/devcontainer"
)

// initialize runs the initializeCommand of a devcontainer on this host, after a person has agreed to it for this start,
// and returns the plan of what is there then, and what was agreed to. It comes before all else, as in the reference
// implementation: it may make the files of a build, or change the configuration itself, so these are read and asked
// about afterwards.
func (a *Asker) initialize(ctx context.Context, u *Use, plan *devcontainer.Plan, dir, home string) (*devcontainer.Plan,
	[]Widening, error) {
	first, err := composeDevcontainer(ctx, dir, home, devcontainer.Input{File: plan.File, Unbuilt: true})
	if err == nil {
		err = refused(first, true)
	}
	if err != nil || first.OnHost == nil {
		return plan, nil, err
	}
	d := &Use{Trust: u.Trust, File: &config.Project{Path: filepath.Join(dir, plan.File), Hash: first.Digest}}
	d.readsOfHost(first)
	d.InForce = []string{first.OnHost.Phase}
	// The digest does not have the files that the command starts, such as a script, a Makefile or a package.json.
	what := "run " + first.OnHost.Phase + " on this host, outside of any sandbox, with files of the project, which an " +
		"agent may have changed"
	d.Widens = append(d.Widens, Widening{What: what, Value: ": " + commandText(*first.OnHost), Each: true,
		Brief: "run a command on this host"})
	if a.Initialized { // a person was asked by the process that ran it
		return plan, d.Widens, nil
	}
	if err := a.agreeToProject(home, d); err != nil {
		return plan, d.Widens, err
	}
	err = a.Interruptible(ctx, func(ctx context.Context) error { return runOnHost(ctx, dir, first.OnHost, a.Stderr) })
	if err != nil {
		return nil, nil, err
	}
	plan, err = composeDevcontainer(ctx, dir, home, devcontainer.Input{File: plan.File})
	return plan, d.Widens, err
}

// hostGrace is how long a command on this host, and what it has started, may take to end.
const hostGrace = 5 * time.Second

// runOnHost runs a command in a directory of this host: its parts at once, each in a process group of its own, which a
// SIGTERM ends when ctx ends. Their output goes to w, that of a part with a name behind the name.
func runOnHost(ctx context.Context, dir string, c *devcontainer.Command, w io.Writer) error {
	faults := make([]error, len(c.Parts))
	var lock sync.Mutex
	var all sync.WaitGroup
	for i, part := range c.Parts {
		argv, name := part.Argv(), c.Phase
		out := &labelled{w: w, lock: &lock}
		if part.Name != "" {
			name += "." + part.Name
			out.label = part.Name + ": "
		}
		cmd := exec.CommandContext(ctx, argv[0], argv[1:]...) //nolint:gosec // a person has agreed to it
		cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.Env = dir, out, out, protect.WithoutSecrets(os.Environ())
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
		cmd.WaitDelay = hostGrace
		all.Go(func() {
			err := cmd.Run()
			if ctx.Err() != nil && cmd.Process != nil { // what did not end with the SIGTERM
				_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
			}
			out.end()
			if err != nil {
				faults[i] = hint.New(fmt.Errorf("run %s on this host: %w", name, err),
					"run it yourself to see why; or start without the devcontainer: --devcontainer=off")
			}
		})
	}
	all.Wait()
	return errors.Join(faults...)
}

// maxLabelled bounds a line that waits for its end.
const maxLabelled = 4 << 10

// labelled writes whole lines behind a label, so that those of several programs stay apart. Without one it writes what
// it gets.
type labelled struct {
	label string
	w     io.Writer
	lock  *sync.Mutex // of w
	line  []byte
}

func (l *labelled) Write(p []byte) (int, error) {
	l.lock.Lock()
	defer l.lock.Unlock()
	if l.label == "" {
		return l.w.Write(p)
	}
	for line := range bytes.Lines(p) {
		l.line = append(l.line, line...)
		if !bytes.HasSuffix(line, []byte("\n")) && len(l.line) < maxLabelled {
			continue
		}
		if err := l.flush(); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// flush writes the line that is there. The lock is held.
func (l *labelled) flush() error {
	line := append([]byte(l.label), bytes.TrimSuffix(l.line, []byte("\n"))...)
	l.line = l.line[:0]
	_, err := l.w.Write(append(line, '\n'))
	return err
}

// end writes a last line that has no end.
func (l *labelled) end() {
	l.lock.Lock()
	defer l.lock.Unlock()
	if len(l.line) > 0 {
		_ = l.flush()
	}
}
