package keeper

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/ALRubinger/aileron/internal/system"
	"github.com/ALRubinger/aileron/internal/unixsocket"
)

// ErrNone is returned if no process of this user holds the key.
var ErrNone = errors.New("no process holds the key of the vault")

// ErrSilent is returned if a process of this user holds the key and does not respond: it is
// stopped, as by SIGSTOP or a frozen cgroup.
var ErrSilent = errors.New("the process that holds the key of the vault does not respond")

// call is a line that a client sends.
type call string

const (
	callKey   call = "key\n"
	callUntil call = "until\n"
	callEnd   call = "end\n"
)

// State describes a keeper.
type State struct {
	Until time.Time
	PID   int
}

// Fetch returns the key that is held for the vault of home. The caller checks that it is
// the vault's.
func Fetch(ctx context.Context, home string) ([]byte, error) {
	key, _, err := ask(ctx, home, callKey)
	if err != nil {
		return nil, err
	}
	return key, nil
}

// Ask returns until when the key of the vault of home is held, and by which process. With
// [ErrSilent], only the process is known.
func Ask(ctx context.Context, home string) (State, error) {
	text, pid, err := ask(ctx, home, callUntil)
	if err != nil {
		return State{PID: pid}, err
	}
	until, err := time.Parse(time.RFC3339Nano, string(text))
	if err != nil {
		return State{}, fmt.Errorf("ask who holds the vault's key: %w", err)
	}
	return State{Until: until, PID: pid}, nil
}

// End ends the keeper of home's vault, and waits until no process can reach it. One that does
// not respond is killed: it would go on to hold the key once it is continued. It is not an
// error if there is none.
func End(ctx context.Context, home string) error {
	limited, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := endHolder(limited, home)
	if errors.Is(err, ErrSilent) || errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		err = kill(ctx, home)
	}
	if err != nil && !errors.Is(err, ErrNone) {
		return fmt.Errorf("end the process that holds the vault's key: %w", err)
	}
	return nil
}

// endHolder asks the keeper to end, and waits until it has. The error is ErrNone then.
func endHolder(ctx context.Context, home string) error {
	_, _, err := ask(ctx, home, callEnd)
	for err == nil {
		var conn net.Conn
		if conn, err = dial(ctx, home); err == nil {
			_, _ = io.Copy(io.Discard, conn) // ends when the keeper does
			_ = conn.Close()
			err = ctx.Err()
		}
	}
	return err
}

// kill kills the keeper of home's vault, and waits as endHolder does. It is the process that listens
// on the socket, and it cannot be another one that got its number meanwhile: a connection to it that
// is still open after the process was found shows that it lives.
func kill(ctx context.Context, home string) error {
	conn, err := dial(ctx, home)
	if err != nil {
		return err
	}
	defer conn.Close()
	pid, err := unixsocket.CheckPeer(conn, false)
	if err != nil {
		return err
	}
	lives := true
	err = system.KillProcess(pid, func() bool {
		_ = conn.SetReadDeadline(time.Now().Add(time.Millisecond))
		_, err := conn.Read(make([]byte, 1))
		lives = errors.Is(err, os.ErrDeadlineExceeded)
		return lives
	})
	switch {
	case !lives:
		return ErrNone // it ended by itself
	case err != nil:
		return fmt.Errorf("kill the process %d: %w", pid, err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(callTimeout))
	_, _ = io.Copy(io.Discard, conn) // ends with the process
	again, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return endHolder(again, home)
}

// ask sends one call, and returns the response and the keeper's process. A response that
// is empty is a refusal, or of a keeper that ends.
func ask(ctx context.Context, home string, what call) (response []byte, pid int, err error) {
	conn, err := dial(ctx, home)
	if err != nil {
		return nil, 0, err
	}
	defer conn.Close()
	if pid, err = unixsocket.CheckPeer(conn, false); err != nil {
		return nil, 0, err
	}
	if _, err := conn.Write([]byte(what)); err != nil {
		return nil, 0, ErrNone
	}
	response, err = io.ReadAll(io.LimitReader(conn, MaxKey))
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, pid, ErrSilent
	}
	if err != nil || len(response) == 0 && what != callEnd {
		return nil, 0, ErrNone
	}
	return response, pid, nil
}

func dial(ctx context.Context, home string) (net.Conn, error) {
	path := socketPath(home)
	if checkDir(filepath.Dir(path)) != nil {
		return nil, ErrNone
	}
	conn, err := unixsocket.Dial(ctx, path)
	if err != nil {
		return nil, ErrNone
	}
	deadline, ok := ctx.Deadline()
	if limit := time.Now().Add(callTimeout); !ok || deadline.After(limit) {
		deadline = limit
	}
	_ = conn.SetDeadline(deadline)
	return conn, nil
}
