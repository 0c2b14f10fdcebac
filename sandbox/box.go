package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// File is one file, or directory, that is put into a box before it starts.
type File struct {
	Path string
	Mode fs.FileMode
	Data []byte
}

// Box is one command in a sealed box.
type Box struct {
	Session   string // names and labels the containers
	Image     string
	Command   []string
	Env       []string
	Dir       string // the project; at Workspace in the box
	SocketDir string // holds proxy.sock and redirect.sock; only the gateway sees it
	Binary    string // a static aileron, for the gateway
	Files     []File
	Stdin     io.Reader // nil: none
	Stdout    io.Writer
	Stderr    io.Writer // with a TTY, Stdout has it all
	TTY       bool      // Stdin and Stdout are terminals
	Signals   <-chan os.Signal
}

// cleanupTime bounds the removal of a run's containers.
const cleanupTime = 30 * time.Second

// Run runs a box from its creation to its removal and gives the command's
// exit code, 128+N when signal N ended it. When ctx ends, the command is
// stopped. The error is about the box, never about the command's work.
func (e *Engine) Run(ctx context.Context, b Box) (code int, err error) {
	resolv := filepath.Join(b.SocketDir, "resolv.conf")
	if err := os.WriteFile(resolv, []byte("nameserver 127.0.0.53\noptions ndots:1 timeout:2 attempts:1\n"), 0o644); err != nil { //nolint:gosec // the box's user reads it
		return 1, fmt.Errorf("write the box's resolv.conf: %w", err)
	}
	seccomp, err := e.profile(b.SocketDir)
	if err != nil {
		return 1, err
	}
	var made []string
	defer func() {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
		defer cancel()
		for i := len(made) - 1; i >= 0; i-- { // the box before its gateway
			if removeErr := e.remove(clean, made[i]); removeErr != nil {
				err = errors.Join(err, removeErr)
			}
		}
	}()
	gateway, err := e.createGateway(ctx, b, seccomp)
	if err != nil {
		return 1, err
	}
	made = append(made, gateway)
	if err := e.startGateway(ctx, gateway); err != nil {
		return 1, err
	}
	box, err := e.createBox(ctx, b, gateway, resolv, seccomp)
	if box != "" {
		made = append(made, box)
	}
	if err != nil {
		return 1, err
	}
	if err := e.put(ctx, box, b.Files); err != nil {
		return 1, err
	}
	if err := e.findCommand(ctx, b, box); err != nil {
		if bad := (*CommandError)(nil); errors.As(err, &bad) {
			return bad.Code, err
		}
		return 1, err
	}
	return e.runBox(ctx, b, box, gateway)
}
