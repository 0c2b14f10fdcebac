// Package keeper holds the key of an unlocked vault in a process of its user for a
// bounded time, as ssh-agent does, so that one passphrase serves many commands.
//
// A command that has the key starts a process that calls [Serve] with a [Key] in
// locked memory. Other commands call [Fetch] with the home of the vault:
//
//	key, err := keeper.Fetch(ctx, home)
//	if errors.Is(err, keeper.ErrNone) {
//		// ask for the passphrase
//	}
//
// [Ask] returns until when the key is held, and [End] ends the keeper.
//
// The keeper listens on a unix socket of mode 0600 in a directory that only its user
// may enter, and responds to processes of the same user only. A process in a PID
// namespace below the keeper's is refused: it is in a container. No sandbox has the
// directory, see [Dir]; these checks are for one that got it by mistake. Any other
// program of the user can ask for the key while it is held.
//
// serve.go is the keeper, client.go what calls it, place.go the socket, and memory.go
// the page that holds the key.
package keeper

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/internal/unixsocket"
)

// MaxTime is the longest time for which a key is held.
const MaxTime = 24 * time.Hour

const (
	checkEvery  = time.Second
	callTimeout = 5 * time.Second
	maxCalls    = 16 // at once
)

// Options are the options of [Serve].
type Options struct {
	Home  string    // of the vault
	Until time.Time // when the keeper ends

	// Current reports whether the key still opens the vault of Home and may be given
	// out. It is called before the key is, and every second; false ends the keeper.
	Current func() bool
	// Ready is called once other processes can reach the keeper.
	Ready func()

	now func() time.Time // nil: time.Now
}

// keeper is the state of one Serve.
type keeper struct {
	Options
	key   *Key
	start time.Time // monotonic: a clock that is set back does not prolong the time
	limit time.Duration
	stop  context.CancelFunc
	calls sync.WaitGroup
	slots chan struct{}
}

// Serve sends key to other processes of the user until its time is over, ctx ends, a
// process calls [End], Current returns false, or the socket is removed, as the runtime
// directory is at a logout. It erases the key before it returns.
func Serve(ctx context.Context, key *Key, o Options) error {
	defer key.Erase()
	if o.now == nil {
		o.now = time.Now
	}
	k := &keeper{Options: o, key: key, start: time.Now(), slots: make(chan struct{}, maxCalls)}
	if k.limit = o.Until.Sub(o.now()); k.limit <= 0 || k.limit > MaxTime {
		return fmt.Errorf("hold the vault's key: the time must be at most %v", MaxTime)
	}
	l, socket, err := listen(o.Home)
	if err != nil {
		return fmt.Errorf("hold the vault's key: %w", err)
	}
	ctx, k.stop = context.WithCancel(ctx)
	defer k.stop()
	accepted := make(chan struct{})
	go func() {
		defer close(accepted)
		k.accept(ctx, l)
	}()
	o.Ready()
	k.watch(ctx, socket)
	_ = l.Close()
	<-accepted
	k.calls.Wait()
	return nil
}

// listen listens on the socket of home, in the place of one that a killed keeper left.
func listen(home string) (net.Listener, fs.FileInfo, error) {
	path := socketPath(home)
	if err := makeDir(filepath.Dir(path)); err != nil {
		return nil, nil, err
	}
	// Of two that start at once, neither reaches the other, and one would remove the other's socket.
	release, err := lock(path + ".lock")
	if err != nil {
		return nil, nil, err
	}
	defer release()
	if conn, err := unixsocket.Dial(context.Background(), path); err == nil {
		_ = conn.Close()
		return nil, nil, errors.New("another process holds it already; end it with: aileron vault lock")
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	l, err := unixsocket.Listen(path, 0o600)
	if err != nil {
		return nil, nil, err
	}
	info, err := os.Lstat(path)
	if err != nil {
		_ = l.Close()
		return nil, nil, err
	}
	return l, info, nil
}

// lock waits until no other process has the lock of the file at path, which is made.
func lock(path string) (release func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		_ = f.Close()
		return nil, err
	}
	return func() { _ = f.Close() }, nil
}

// watch returns when the keeper has to end.
func (k *keeper) watch(ctx context.Context, socket fs.FileInfo) {
	tick := time.NewTicker(checkEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			info, err := os.Lstat(socketPath(k.Home))
			if err != nil || !os.SameFile(info, socket) || !k.valid() {
				return
			}
		}
	}
}

// valid reports whether the key may be given out now. Both clocks count: the monotonic
// one stands still while the machine sleeps, and the other one can be set back.
func (k *keeper) valid() bool {
	return k.now().Round(0).Before(k.Until.Round(0)) && time.Since(k.start) < k.limit && k.Current()
}

func (k *keeper) accept(ctx context.Context, l net.Listener) {
	defer k.stop()
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		k.slots <- struct{}{}
		k.calls.Go(func() {
			defer func() { <-k.slots }()
			defer conn.Close()
			defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
			k.serve(conn)
		})
	}
}

// serve answers one call: a line with what is asked for.
func (k *keeper) serve(conn net.Conn) {
	_ = conn.SetDeadline(time.Now().Add(callTimeout))
	if _, err := unixsocket.CheckPeer(conn, true); err != nil {
		return
	}
	line, err := bufio.NewReaderSize(conn, 16).ReadSlice('\n')
	if err != nil {
		return
	}
	// Not before: the caller chooses when its line comes.
	if !k.valid() {
		k.stop()
		return
	}
	switch call(line) {
	case callKey:
		_ = k.key.writeTo(conn)
	case callUntil:
		_, _ = conn.Write([]byte(k.Until.UTC().Format(time.RFC3339Nano)))
	case callEnd:
		k.stop()
	}
}
