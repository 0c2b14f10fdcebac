package carrier

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/ALRubinger/aileron/internal/unixsocket"
)

// End is this host's end of a carrier's stream.
type End struct {
	ready chan struct{}
	s     *stream
}

// Serve serves a carrier whose standard streams are r and w. It connects it with the sockets in dir until the stream
// ends, or ctx does, and then calls shut.
func Serve(ctx context.Context, r io.Reader, w io.Writer, shut func(), dir string) *End {
	e := &End{ready: make(chan struct{}), s: newStream(r, w, shut)}
	h := &host{dir: dir, ready: sync.OnceFunc(func() { close(e.ready) })}
	server := &http.Server{Handler: h, Protocols: plain(), HTTP2: limits(), //nolint:gosec // its client is ours
		BaseContext: func(net.Listener) context.Context { return ctx }}
	stop := context.AfterFunc(ctx, func() { _ = e.s.Close() })
	go func() {
		defer stop()
		_ = server.Serve(&oneConn{stream: e.s})
		_ = server.Close()
	}()
	return e
}

// Ready is closed when the carrier serves its sockets.
func (e *End) Ready() <-chan struct{} { return e.ready }

// Ended is closed when the stream has ended. All connections end with it.
func (e *End) Ended() <-chan struct{} { return e.s.ended }

// oneConn is a listener of one connection, which is open as long as that is.
type oneConn struct {
	*stream
	once sync.Once
}

// Accept returns the connection, and an error when it has ended.
func (l *oneConn) Accept() (conn net.Conn, err error) {
	l.once.Do(func() { conn = l.stream })
	if conn != nil {
		return conn, nil
	}
	<-l.ended
	return nil, net.ErrClosed
}

// Addr is of no meaning.
func (l *oneConn) Addr() net.Addr { return address{} }

// What a carrier asks for before it has a connection: which sockets there are, and, when it serves them, the start.
const (
	namesPath = "names"
	readyPath = "ready"
)

// host connects the requests of a carrier with sockets of this host.
type host struct {
	dir   string
	ready func()
}

func (h *host) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, "/")
	switch name {
	case readyPath:
		h.ready()
		return
	case namesPath:
		for _, name := range Sockets {
			if _, err := os.Stat(filepath.Join(h.dir, name)); err == nil {
				_, _ = fmt.Fprintln(w, name)
			}
		}
		return
	}
	if !isCarried(name) {
		http.Error(w, "there is no such socket", http.StatusNotFound)
		return
	}
	conn, err := unixsocket.Dial(r.Context(), filepath.Join(h.dir, name))
	if err != nil {
		http.Error(w, "the session's socket does not respond", http.StatusBadGateway)
		return
	}
	defer conn.Close()
	defer context.AfterFunc(r.Context(), func() { _ = conn.Close() })()
	w.WriteHeader(http.StatusOK)
	control := http.NewResponseController(w)
	if control.Flush() != nil {
		return
	}
	var up sync.WaitGroup
	up.Go(func() {
		_, err := io.Copy(conn, r.Body)
		switch {
		case err == nil:
			_ = conn.(*net.UnixConn).CloseWrite()
		case r.Context().Err() != nil:
			_ = conn.Close() // the client is gone
		}
	})
	err = h.respond(w, control, conn)
	if err != nil {
		panic(http.ErrAbortHandler) // resets the stream
	}
	up.Wait()
}

// respond copies what a connection receives into frames, each of which is sent at once.
func (h *host) respond(w io.Writer, control *http.ResponseController, from io.Reader) error {
	buf := make([]byte, frameHead+maxFrame)
	for {
		n, err := from.Read(buf[frameHead:])
		if n > 0 || errors.Is(err, io.EOF) {
			if err := errors.Join(writeFrame(w, buf[:frameHead+n]), control.Flush()); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF) && n == 0:
			return nil
		case err != nil && !errors.Is(err, io.EOF):
			return err
		}
	}
}
