package approvals

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/system"
	"github.com/ALRubinger/aileron/internal/unixsocket"
)

// Check returns why the program cannot decide, or must not: it is missing, or another user could replace it. The error
// has a hint.
func (d *Decider) Check() error {
	path, isSocket := d.Socket, true
	if path == "" {
		path, isSocket = d.Command[0], false
	}
	at, err := resolve(path)
	if err != nil {
		return err
	}
	info, err := os.Stat(at)
	if err != nil {
		return err
	}
	switch mode := info.Mode(); {
	case isSocket && mode.Type() != fs.ModeSocket:
		return hint.New(fmt.Errorf("%s is no socket", at), "start the decider, or correct [approval] decider")
	case isSocket:
		return nil // its peer is checked
	case mode.Perm()&0o022 != 0:
		return hint.New(fmt.Errorf("%s could be changed by another user of this host (mode %v)", at, mode),
			"chmod go-w %s", at)
	case !mode.IsRegular() || unix.Access(at, unix.X_OK) != nil:
		return hint.New(fmt.Errorf("%s is no executable file", at), "chmod u+x %s", at)
	}
	return nil
}

// resolve returns the path that path leads to, on which there is no link. The error is that there is none, or that
// another user could change where it leads: they own something on the way, or may write to a directory of it.
func resolve(path string) (string, error) {
	return walk(path, func(at, next string) error {
		dir, err := os.Stat(at)
		if err != nil {
			return err
		}
		if !isOwn(dir) || dir.Mode().Perm()&0o022 != 0 && dir.Mode()&fs.ModeSticky == 0 {
			return hint.New(fmt.Errorf("%s could be replaced by another user of this host, who may write to %s", path, at),
				"move it to a directory that only you or root may write to, or: chmod go-w %s", at)
		}
		info, err := os.Lstat(next)
		if pathErr := (*fs.PathError)(nil); errors.As(err, &pathErr) {
			return hint.New(fmt.Errorf("%s: %w", next, pathErr.Err),
				"start or install the decider, or correct [approval] decider")
		}
		if !isOwn(info) {
			return hint.New(fmt.Errorf("%s belongs to another user of this host", next),
				"chown -h %d %s", os.Geteuid(), next)
		}
		return nil
	})
}

// isOwn reports whether a file is this user's or root's.
func isOwn(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && (stat.Uid == 0 || int(stat.Uid) == os.Geteuid())
}

// call asks at the socket. The answer ends with the connection. A process of another user, or in a container, is no
// decider.
func (d *Decider) call(ctx context.Context, question []byte, answer *reply) error {
	if err := d.Check(); err != nil {
		return err
	}
	conn, err := unixsocket.Dial(ctx, d.Socket)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if _, err := unixsocket.CheckPeer(conn, true); err != nil {
		return err
	}
	if _, err := conn.Write(question); err != nil {
		return err
	}
	if c, ok := conn.(*net.UnixConn); ok {
		if err := c.CloseWrite(); err != nil {
			return err
		}
	}
	_, err = io.Copy(answer, conn)
	return err
}

// run runs the command, and ends all that it started.
func (d *Decider) run(ctx context.Context, question []byte, answer *reply) error {
	if err := d.Check(); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, d.Command[0], d.Command[1:]...) //nolint:gosec // the person's own, of config.toml
	mark := "AILERON_DECIDER=" + rand.Text()
	cmd.Env, cmd.Stdin, cmd.Stdout = append(d.Environ.list(), mark), bytes.NewReader(question), answer
	cmd.Dir = "/" // not the project, in which an interpreter could find modules
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	end := func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Cancel, cmd.WaitDelay = end, time.Second
	start := d.Start
	if start == nil {
		start = (*exec.Cmd).Start
	}
	if err := start(cmd); err != nil {
		return err
	}
	system.AwaitExit(cmd.Process.Pid)
	_ = end() // what it left behind; until Wait, no other process has its number
	endMarked(mark)
	return cmd.Wait()
}
