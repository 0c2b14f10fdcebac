package h2

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/ALRubinger/aileron/proxy/budget"
	"github.com/ALRubinger/aileron/proxy/wire"
)

// Handler serves the requests of one connection, several at a time.
type Handler interface {
	// Answer returns the response to a request, whose context is canceled when
	// the client resets the stream or disconnects. The response's body is read and
	// closed; its Trailer is read after that. If Close is set, the whole
	// connection is closed with ENHANCE_YOUR_CALM.
	Answer(r *http.Request) *http.Response
	// Refuse records a stream that was rejected before it became a request. It
	// returns the response, which is sent if the stream can still carry one.
	Refuse(f *wire.ProtocolError) *http.Response
}

const (
	maxStreams   = 100      // open at a time on one connection
	maxEnding    = 100      // closed streams whose handlers have not returned
	streamWindow = 64 << 10 // bytes of a request body that wait for their reader
	connWindow   = 1 << 20  // the same, for all request bodies of a connection
	maxFrame     = 16 << 10 // largest frame that is read (RFC 9113 section 4.2: the minimum)
	maxRefused   = 1000     // streams over these bounds before the connection is closed
	windowLimit  = 1<<31 - 1
)

// Serve serves HTTP/2 on conn, whose client chose it by ALPN, until the client
// closes it, a limit is exceeded, or ctx is done. It closes conn, and returns when
// every goroutine that it started has ended.
func Serve(ctx context.Context, conn net.Conn, opts wire.Options, h Handler) {
	ctx, cancel := context.WithCancelCause(ctx)
	c := &connection{
		conn: conn, remote: conn.RemoteAddr().String(), ctx: ctx,
		handler: h, limits: opts.Limits.WithDefaults(), drain: opts.Drain,
		cancel: cancel, start: opts.Go, log: opts.Log, account: opts.Budget.Conn(),
		streams: map[uint32]*stream{}, peerFrame: maxFrame,
		sendWindow: 65535, initialSend: 65535, recvWindow: connWindow,
	}
	if c.start == nil {
		c.start = func(f func()) { go f() }
	}
	if c.drain == nil {
		c.drain = context.Background()
	}
	c.grown = sync.NewCond(&c.mu)
	defer func() {
		cancel(nil)
		_ = conn.Close()
		c.abandon()
		c.running.Wait()
		c.in.close()
	}()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	c.read()
}

// connection serves one client. The goroutine of Serve reads; any may write, in
// turn.
type connection struct {
	conn    net.Conn
	remote  string          // the client's address
	ctx     context.Context //nolint:containedctx // the connection's lifetime
	handler Handler
	start   func(func()) // starts a stream's goroutine
	log     *slog.Logger
	limits  wire.Limits
	drain   context.Context //nolint:containedctx // the session's
	running sync.WaitGroup
	account *budget.Conn
	cancel  context.CancelCauseFunc

	// Used by the reading goroutine alone.
	framer  *http2.Framer
	decoder *hpack.Decoder
	in      inbox
	large   bool // the framer's buffer had to grow for a frame

	frameHeader http2.FrameHeader // of the frame that is read, or of the first of a field section

	lastID  uint32
	refused int
	settled bool // the client's first SETTINGS arrived
	answers int  // see maxAnswers

	flushing atomic.Bool  // a write to the client is in progress
	waiting  atomic.Int32 // writers that hold or wait for mu; the last one flushes
	mu       sync.Mutex
	bw       *bufio.Writer // nil while there is nothing in it
	header   [9]byte
	grown    *sync.Cond         // a send window grew, or a stream ended
	streams  map[uint32]*stream // open, or closed with a handler that has not returned
	open     int                // how many of them are not closed
	gone     error              // sticky: nothing can be written any more

	tableless bool // the client has been told that no dynamic table is used

	peerFrame   int   // the largest frame that the client reads
	initialSend int64 // a new stream's send window
	sendWindow  int64
	recvWindow  int64       // bytes that the client may still send
	recvOwed    int64       // bytes read and not yet returned by WINDOW_UPDATE
	closing     bool        // GOAWAY was sent
	moved       bool        // a piece of a request or a response was received or sent since the last answer
	resets      [128]uint32 // the streams that we reset most recently
	nextReset   int
}

// deadlineWriter bounds each write to the client.
type deadlineWriter struct{ c *connection }

func (w deadlineWriter) Write(p []byte) (int, error) {
	w.c.flushing.Store(true)
	defer w.c.flushing.Store(false)
	span := w.c.limits.Stalled
	if w.c.ctx.Err() != nil { // only the reason is left to write
		span = min(span, time.Second)
	}
	_ = w.c.conn.SetWriteDeadline(time.Now().Add(span))
	return w.c.conn.Write(p)
}

// read serves the connection until it ends.
func (c *connection) read() {
	c.in = inbox{c: c, hold: c.account.Hold(c.shed)}
	preface := make([]byte, len(http2.ClientPreface))
	switch n, err := io.ReadFull(&c.in, preface); {
	case n == 0:
		return // a tunnel opened in advance and never used
	case err != nil, string(preface) != http2.ClientPreface:
		c.refuseConn("the connection does not begin with HTTP/2's preface")
		return
	}
	c.decoder = hpack.NewDecoder(4096, nil)
	c.renew()
	if c.hello() != nil {
		return
	}
	// Not before our SETTINGS, which must be first (RFC 9113 section 3.4).
	defer context.AfterFunc(c.drain, c.goAwayGently)()
	for {
		c.in.next()
		var frame http2.Frame
		var err error
		if c.frameHeader, err = c.framer.ReadFrameHeader(); err == nil {
			frame, err = c.framer.ReadFrameForHeader(c.frameHeader)
		}
		if err == nil {
			c.in.release()
			c.large = c.large || frame.Header().Length > 1<<10
			err = c.frame(frame)
		}
		if err != nil && !c.survives(err) {
			return
		}
	}
}

// hello sends our connection preface.
func (c *connection) hello() error {
	return c.write(func() {
		settings := []http2.Setting{
			{ID: http2.SettingMaxConcurrentStreams, Val: maxStreams},
			{ID: http2.SettingInitialWindowSize, Val: streamWindow},
			{ID: http2.SettingMaxHeaderListSize, Val: uint32(c.limits.Head)}, //nolint:gosec // a limit of ours
		}
		c.frameHead(6*len(settings), http2.FrameSettings, 0, 0)
		for _, s := range settings {
			_, _ = c.bw.Write([]byte{byte(s.ID >> 8), byte(s.ID), byte(s.Val >> 24), byte(s.Val >> 16), byte(s.Val >> 8),
				byte(s.Val)})
		}
		c.windowUpdate(0, connWindow-65535)
	})
}

// awaitFrame sets the read deadline between two frames.
func (c *connection) awaitFrame() {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case len(c.streams) > 0:
		_ = c.conn.SetReadDeadline(time.Time{})
	case c.closing:
		_ = c.conn.SetReadDeadline(time.Now().Add(time.Second))
	default:
		_ = c.conn.SetReadDeadline(time.Now().Add(c.limits.Idle))
	}
	if c.ctx.Err() != nil { // its end has set a deadline, which must stay in force
		_ = c.conn.SetReadDeadline(time.Unix(1, 0))
	}
}
