package h2

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/ALRubinger/aileron/proxy/budget"
	"github.com/ALRubinger/aileron/proxy/wire"
)

// Handler answers the requests of one connection, several at a time.
type Handler interface {
	// Answer returns the response to a request, whose context ends when the
	// client resets the stream or goes away. The response's body is read and
	// closed; its Trailer is read after that. Close ends the whole connection,
	// with ENHANCE_YOUR_CALM.
	Answer(r *http.Request) *http.Response
	// Refuse is told of a stream that was refused before it became a request,
	// and gives the answer, which is sent where HTTP/2 has room for one.
	Refuse(f *wire.Fault) *http.Response
}

const (
	maxStreams   = 100      // open at a time on one connection
	maxEnding    = 100      // closed ones whose handlers have not returned
	streamWindow = 64 << 10 // bytes of a request body that wait for their reader
	connWindow   = 1 << 20  // bytes of all request bodies of a connection
	maxFrame     = 16 << 10 // of a frame that we read (RFC 9113 section 4.2: the least there is)
	maxRefused   = 1000     // streams over these bounds, before the connection ends
	windowLimit  = 1<<31 - 1
)

// Serve speaks HTTP/2 on conn, whose client chose it by ALPN, until the client
// ends it or a limit or ctx does. It closes conn, and returns when everything
// that it started has ended.
func Serve(ctx context.Context, conn net.Conn, opts wire.Options, h Handler) {
	ctx, cancel := context.WithCancelCause(ctx)
	c := &connection{
		conn: conn, ctx: ctx, handler: h, limits: opts.Limits.WithDefaults(), drain: opts.Drain,
		cancel: cancel, log: opts.Log, account: opts.Budget.Conn(),
		streams: map[uint32]*stream{}, peerFrame: maxFrame,
		sendWindow: 65535, initialSend: 65535, recvWindow: connWindow,
	}
	if c.drain == nil {
		c.drain = context.Background()
	}
	c.grown = sync.NewCond(&c.mu)
	c.encoder = hpack.NewEncoder(&c.block)
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

// connection is one client. The goroutine of Serve reads; all write, in turn.
type connection struct {
	conn    net.Conn
	ctx     context.Context //nolint:containedctx // the connection's own life
	handler Handler
	log     *slog.Logger
	limits  wire.Limits
	drain   context.Context //nolint:containedctx // the session's
	running sync.WaitGroup
	account *budget.Conn
	cancel  context.CancelCauseFunc

	// Of the reading goroutine alone.
	framer  *http2.Framer
	decoder *hpack.Decoder
	in      inbox
	large   bool // the framer has read a frame that its buffer had to grow for
	lastID  uint32
	refused int
	settled bool // the client's first SETTINGS came
	answers int  // see maxAnswers

	flushing atomic.Bool  // a write to the client lasts
	waiting  atomic.Int32 // writers that hold or wait for mu; the last one flushes
	mu       sync.Mutex
	bw       *bufio.Writer // nil while there is nothing in it
	encoder  *hpack.Encoder
	block    bytes.Buffer // what encoder writes to
	header   [9]byte
	grown    *sync.Cond         // a send window grew, or a stream ended
	streams  map[uint32]*stream // open, or closed and with a handler
	open     int                // how many of them are not closed
	gone     error              // sticky: nothing can be written any more

	peerFrame   int   // the largest frame that the client reads
	initialSend int64 // a new stream's send window
	sendWindow  int64
	recvWindow  int64       // bytes that the client may still send
	recvOwed    int64       // bytes read, to be given back
	closing     bool        // GOAWAY was sent
	moved       bool        // a piece of a request or a response came or left since the last answer
	resets      [128]uint32 // the streams that we have reset last
	nextReset   int
}

// deadlineWriter bounds each write to the client.
type deadlineWriter struct{ c *connection }

func (w deadlineWriter) Write(p []byte) (int, error) {
	w.c.flushing.Store(true)
	defer w.c.flushing.Store(false)
	span := w.c.limits.Stalled
	if w.c.ctx.Err() != nil { // what is left to write is why
		span = min(span, time.Second)
	}
	_ = w.c.conn.SetWriteDeadline(time.Now().Add(span))
	return w.c.conn.Write(p)
}

// connError ends a connection with a GOAWAY (RFC 9113 section 5.4.1).
type connError struct {
	code http2.ErrCode
	why  string
}

func (e connError) Error() string { return "serve HTTP/2: " + e.why }

func protocolError(format string, args ...any) error {
	return connError{http2.ErrCodeProtocol, fmt.Sprintf(format, args...)}
}

// read serves the connection until it ends.
func (c *connection) read() {
	c.in = inbox{c: c, hold: c.account.Hold(c.shed)}
	preface := make([]byte, len(http2.ClientPreface))
	switch n, err := io.ReadFull(&c.in, preface); {
	case n == 0:
		return // a tunnel opened in advance, and not needed
	case err != nil, string(preface) != http2.ClientPreface:
		c.refuseConn("the connection does not begin with HTTP/2's preface")
		return
	}
	c.decoder = hpack.NewDecoder(4096, nil)
	c.renew()
	if c.hello() != nil {
		return
	}
	// Not before our SETTINGS, which come first (RFC 9113 section 3.4).
	defer context.AfterFunc(c.drain, c.goAwayGently)()
	for {
		c.in.next()
		frame, err := c.framer.ReadFrame()
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

// hello sends our side of the preface.
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

// survives deals with an error of reading or of a frame, and reports whether
// the connection goes on.
func (c *connection) survives(err error) bool {
	var (
		ofStream http2.StreamError
		ofConn   http2.ConnectionError
		ours     connError
		timeout  net.Error
	)
	switch {
	case isShed(c.ctx):
		if c.in.inside {
			c.handler.Refuse(wire.Exhausted())
		}
		c.goAway(http2.ErrCodeEnhanceYourCalm)
	case errors.As(err, &ofStream):
		return c.streamFault(ofStream) == nil
	case errors.As(err, &ours):
		c.refuseConn(ours.why)
		c.goAway(ours.code)
	case errors.As(err, &ofConn):
		c.refuseConn("the client broke HTTP/2's framing")
		c.goAway(http2.ErrCode(ofConn))
	case errors.Is(err, http2.ErrFrameTooLarge):
		c.refuseConn("a frame is larger than was agreed")
		c.goAway(http2.ErrCodeFrameSize)
	case errors.As(err, &timeout) && timeout.Timeout() && c.ctx.Err() == nil:
		if c.in.inside {
			c.refuseConn("a frame did not come in time")
		}
		c.goAway(http2.ErrCodeNo)
	}
	return false
}

// streamFault resets a stream that a frame has broken. A stream that had not
// become a request is written down here; any other by its handler.
func (c *connection) streamFault(e http2.StreamError) error {
	c.mu.Lock()
	st := c.streams[e.StreamID]
	// either side has reset it already
	over := st != nil && (st.left || st.closed && slices.Contains(c.resets[:], e.StreamID))
	if st != nil && !over {
		c.shut(st) // before its handler is woken, which would reset it with another code
	}
	c.mu.Unlock()
	if st == nil && e.StreamID > c.lastID && e.StreamID%2 == 1 {
		c.lastID = e.StreamID
		c.refuse(&wire.Fault{Status: http.StatusBadRequest, Reason: "the fields of the request are not well-formed HTTP/2"})
	}
	if st != nil {
		st.end(errReset)
	}
	if over {
		return nil
	}
	return c.answer(func() {
		c.reset(e.StreamID, e.Code)
		c.grown.Broadcast()
	})
}

// refuseConn writes down a connection that broke while no stream was there to
// tell of it.
func (c *connection) refuseConn(why string) {
	c.handler.Refuse(&wire.Fault{Status: http.StatusBadRequest, Reason: why})
}

// refuse writes a refusal down that is not answered, and ends the connection
// when its client is refused too often.
func (c *connection) refuse(f *wire.Fault) {
	if res := c.handler.Refuse(f); res != nil && res.Close {
		c.endForRefusals()
	}
}

// endForRefusals ends the connection of a client whose refusals are more than
// may wait for their answers.
func (c *connection) endForRefusals() {
	c.goAway(http2.ErrCodeEnhanceYourCalm)
	c.cancel(errRefused)
}

// shed ends the connection because there is no memory for it.
func (c *connection) shed() { c.cancel(budget.ErrShed) }

// abandon ends all streams: the connection is gone.
func (c *connection) abandon() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone == nil {
		c.gone = errGone
	}
	for _, st := range c.streams {
		st.end(errGone)
	}
	c.grown.Broadcast()
}

var (
	errGone  = errors.New("serve HTTP/2: the client is gone")
	errReset = errors.New("serve HTTP/2: the stream was reset")

	errRefused = errors.New("serve HTTP/2: the client is refused too often")
)

// awaitFrame sets the deadline for the time between two frames.
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
	if c.ctx.Err() != nil { // whose end has set one before
		_ = c.conn.SetReadDeadline(time.Unix(1, 0))
	}
}
