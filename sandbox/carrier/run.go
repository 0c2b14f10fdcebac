package carrier

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/ALRubinger/aileron/internal/peer"
)

// Run serves the session's sockets in dir, and carries their connections over in and out until in ends: the
// session that reads out has ended. It ends with an error when a socket was removed.
func Run(ctx context.Context, dir string, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	err := run(ctx, cancel, dir, in, out)
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

func run(ctx context.Context, cancel context.CancelCauseFunc, dir string, in io.Reader, out io.Writer) error {
	s := newStream(in, out, func() { cancel(nil) })
	r := &relay{transport: &http.Transport{Protocols: plain(), HTTP2: limits(), DisableCompression: true,
		DialContext: dialOnce(s)}}
	var listeners []net.Listener
	defer func() {
		for _, l := range listeners {
			_ = l.Close()
		}
	}()
	names, err := r.names(ctx)
	if err != nil {
		return fmt.Errorf("reach the session over the standard streams: %w", err)
	}
	for _, name := range names {
		at := filepath.Join(dir, name)
		_ = os.Remove(at) // of a carrier that was killed: the volume is the session's alone
		l, err := new(net.ListenConfig).Listen(ctx, "unix", at)
		if err != nil {
			return fmt.Errorf("open the sandbox's socket: %w", err)
		}
		listeners = append(listeners, l)
		if err := os.Chmod(at, 0o666); err != nil { //nolint:gosec // only the gateway sees the volume
			return fmt.Errorf("open the sandbox's socket: %w", err)
		}
	}
	if err := r.tell(ctx); err != nil {
		return fmt.Errorf("reach the session over the standard streams: %w", err)
	}
	for i, l := range listeners {
		go func() { cancel(r.accept(ctx, l, names[i])) }()
	}
	go watch(ctx, cancel, dir, names)
	<-ctx.Done()
	return nil
}

// dialOnce returns the stream, and an error to whom asks again.
func dialOnce(s *stream) func(context.Context, string, string) (net.Conn, error) {
	var mu sync.Mutex
	given := false
	return func(context.Context, string, string) (net.Conn, error) {
		mu.Lock()
		defer mu.Unlock()
		if given {
			return nil, net.ErrClosed
		}
		given = true
		return s, nil
	}
}

// watch ends the carrier when its sockets are gone: with them goes the sandbox's only way out, which would not notice.
func watch(ctx context.Context, cancel context.CancelCauseFunc, dir string, names []string) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, name := range names {
			if _, err := os.Lstat(filepath.Join(dir, name)); err != nil {
				cancel(fmt.Errorf("%s was removed from the volume of the sandbox's sockets", name))
				return
			}
		}
	}
}

// relay carries connections.
type relay struct{ transport *http.Transport }

func (r *relay) request(ctx context.Context, name string, body io.Reader) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://carrier/"+name, body)
	if err != nil {
		return nil, err
	}
	res, err := r.transport.RoundTrip(req)
	if err == nil && res.StatusCode != http.StatusOK {
		_ = res.Body.Close()
		err = errors.New(res.Status)
	}
	return res, err
}

// names asks the session which sockets it has.
func (r *relay) names(ctx context.Context) ([]string, error) {
	res, err := r.request(ctx, namesPath, nil)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	list, err := io.ReadAll(io.LimitReader(res.Body, 1<<10))
	names := strings.Fields(string(list))
	if i := slices.IndexFunc(names, func(name string) bool { return !isCarried(name) }); i >= 0 {
		return nil, fmt.Errorf("it has the socket %q, which is not known", names[i])
	}
	return names, err
}

// tell reports to the session that the sockets are there.
func (r *relay) tell(ctx context.Context) error {
	res, err := r.request(ctx, readyPath, nil)
	if err != nil {
		return err
	}
	return res.Body.Close()
}

// accept carries each connection of a socket, until that is closed.
func (r *relay) accept(ctx context.Context, l net.Listener, name string) error {
	for {
		conn, err := l.Accept()
		switch {
		case err == nil:
			go r.carry(ctx, conn.(*net.UnixConn), name)
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE), errors.Is(err, syscall.ECONNABORTED):
			time.Sleep(20 * time.Millisecond) // connections that hold descriptors will end
		default:
			return fmt.Errorf("accept a connection of %s: %w", name, err)
		}
	}
}

// carry carries a connection of the gateway's until both directions have ended, or it is gone.
func (r *relay) carry(ctx context.Context, conn *net.UnixConn, name string) {
	defer conn.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	sent := &upload{Reader: conn, ended: make(chan struct{})}
	res, err := r.request(ctx, name, sent)
	if err != nil {
		return
	}
	defer res.Body.Close()
	defer cancel() // first: Close waits for a request that still sends
	answered := make(chan struct{})
	go departed(ctx, cancel, conn, sent.ended, answered)
	err = readFrames(conn, res.Body)
	close(answered)
	if err != nil {
		return
	}
	_ = conn.CloseWrite()
	_, _ = io.Copy(io.Discard, res.Body) // ends when the other direction has
}

// upload is what a connection sends, as the body of a request. ended is closed when it has sent all.
type upload struct {
	io.Reader
	once  sync.Once
	ended chan struct{}
}

func (u *upload) Read(p []byte) (int, error) {
	n, err := u.Reader.Read(p)
	if errors.Is(err, io.EOF) {
		u.once.Do(func() { close(u.ended) })
	}
	return n, err
}

// departed cancels a connection whose peer is gone before it has its response, and has not only sent all.
func departed(ctx context.Context, cancel context.CancelFunc, conn net.Conn, ended, answered <-chan struct{}) {
	select {
	case <-ended:
	case <-answered:
		return
	case <-ctx.Done():
		return
	}
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		if peer.Gone(conn, netip.AddrPort{}) {
			cancel()
			return
		}
		select {
		case <-time.After(pause):
		case <-answered:
			return
		case <-ctx.Done():
			return
		}
	}
}
