package wire

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/ALRubinger/aileron/proxy/budget"
)

// Serve serves HTTP/1.1 on conn until the client closes it, a limit is exceeded,
// ctx is done, or the handler hijacks it. It closes conn unless it was hijacked,
// and returns when every goroutine that it started has ended.
func Serve(ctx context.Context, conn net.Conn, opts Options, h Handler) {
	parked := new(Head)
	ctx, cancel := context.WithCancelCause(WithHead(ctx, parked))
	defer cancel(nil)
	shed := func() { cancel(budget.ErrShed) }
	account := opts.Budget.Conn()
	c := &serverConn{
		conn: conn, src: newConnReader(conn), handler: h, hold: account.Hold(shed), shed: shed,
		limits: opts.Limits.WithDefaults(), drain: opts.Drain, once: opts.Once,
		parked: parked, gone: func() { cancel(nil) }, remote: conn.RemoteAddr().String(),
	}
	parked.Hold = c.hold
	c.src.hold, c.src.most = account.Hold(shed), c.limits.Head+bufferSize
	defer c.hold.Release()
	defer func() {
		if !c.hijacked { // else when the hijacked connection is closed
			c.src.hold.Release()
		}
	}()
	if c.drain == nil {
		c.drain = context.Background()
	}
	c.ended = func() bool { return ctx.Err() != nil }
	c.draining = func() bool { return c.drain.Err() != nil }
	defer context.AfterFunc(c.drain, c.drained)()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(aLongTimeAgo) })
	defer stop()
	defer func() { // a handler's panic closes the connection too
		if !c.hijacked {
			_ = conn.Close()
			c.src.close()
		}
	}()
	for ctx.Err() == nil && c.exchange(ctx) {
	}
}

var aLongTimeAgo = time.Unix(1, 0)

// drainWait is how long a draining connection waits for a request that may
// already have been sent.
const drainWait = 4 * time.Second

// drainable is how much of an unread request body is read and discarded to keep a
// connection, or to allow the client to read its response before the close.
const drainable = 256 << 10

type serverConn struct {
	conn     net.Conn
	src      *connReader
	handler  Handler
	hold     *budget.Hold // of the exchange; src has its own
	shed     func()       // cancels the connection because there is no memory for it
	limits   Limits
	drain    context.Context //nolint:containedctx // see Drain
	once     bool
	hijacked bool
	pending  pendingHead
	parked   *Head  // what the exchange's head takes of hold
	remote   string // the client's address

	// gone cancels the context, which is that of all the connection's requests: one
	// whose client has disconnected is the last of its connection. A cause that the
	// context already has stays.
	gone func()

	ended    func() bool // reports whether the session has ended, and the connection with it
	draining func() bool // reports whether the connection closes once it is idle
	mu       sync.Mutex
	waiting  bool // for a request
}

// drained sets the deadline of a connection that starts to drain while it waits
// for a request. It does not cut short a request that has arrived.
func (c *serverConn) drained() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting {
		c.src.setReadDeadline(time.Now().Add(min(drainWait, c.limits.Idle)), c.ended)
	}
}

func (c *serverConn) wait(is bool) {
	c.mu.Lock()
	c.waiting = is
	c.mu.Unlock()
}

// exchange serves one request and reports whether another may follow.
func (c *serverConn) exchange(ctx context.Context) (more bool) {
	c.wait(true)
	head, err := c.src.head(c.limits, c.ended, c.draining)
	c.wait(false)
	if err != nil {
		if len(head) > 0 && errors.Is(context.Cause(ctx), budget.ErrShed) {
			err = budget.ErrShed
		}
		if f := protocolErrorOf(err, head); f != nil {
			c.refuse(f)
		}
		return false
	}
	CanonicalizeNames(head[bytes.IndexByte(head, '\n')+1:])
	text := string(head)
	frame, perr := validate(text, c.limits)
	if perr != nil {
		c.refuse(perr)
		return false
	}
	req, err := parse(ctx, text, frame)
	if err != nil {
		perr := malformed("the request head cannot be parsed")
		line, _, _ := strings.Cut(text, "\r\n")
		perr.Method, perr.Target = readable(line)
		c.refuse(perr)
		return false
	}
	up := uploadOf(frame)
	if req.Method != http.MethodConnect && !c.hold.Take(Exchange+int64(len(head))+up) {
		perr := Exhausted()
		perr.Method, perr.Target = Readable(req.Method, req.RequestURI)
		c.refuse(perr)
		return false
	}
	defer c.hold.Release()
	if req.Method != http.MethodConnect {
		c.hold.Stall(0) // an exchange that waits for its upstream makes room for others
	}
	c.src.shrink()
	_ = c.conn.SetReadDeadline(time.Time{})
	if ctx.Err() != nil {
		return false // its deadline was just cleared
	}

	req.RemoteAddr = c.remote
	c.parked.Size = int64(len(head))
	body := c.body(req, frame)
	w := &ResponseWriter{c: c, req: req, minor: frame.minor, body: body, gone: c.gone,
		close: c.once || frame.minor == 0 || HasToken(req.Header, "Connection", "close")}

	if req.Method != http.MethodConnect && body == nil {
		c.src.detectDisconnect(c.gone)
	}
	c.handler.ServeHTTP(w, req)
	if c.hijacked {
		return false
	}
	if err := w.finish(); err != nil {
		return false
	}
	if body != nil && !body.detach(drainable) {
		c.lingeringClose()
		return false
	}
	return !w.close
}

// body sets the body of req and returns it, or nil when the request has none.
func (c *serverConn) body(req *http.Request, f framing) *requestBody {
	req.Body, req.GetBody = http.NoBody, nil
	req.TransferEncoding, req.Trailer = nil, nil
	req.ContentLength = f.length
	var from io.Reader
	span := c.limits.Progress
	switch {
	case f.chunked:
		req.ContentLength, span = -1, c.limits.Pause
		from = &chunkedReader{src: c.src}
	case f.length > 0:
		from = &lengthReader{src: c.src, left: f.length}
	default:
		return nil
	}
	b := &requestBody{from: from, conn: c.conn, limit: c.limits.Body, rate: minDataRate{span: span},
		hold:  c.hold,
		ended: func() { c.src.detectDisconnect(c.gone) }, left: c.gone, took: uploadOf(f)}
	if f.expects {
		b.ready = func() error {
			_ = c.conn.SetWriteDeadline(time.Now().Add(c.limits.Stalled))
			_, err := io.WriteString(c.conn, "HTTP/1.1 100 Continue\r\n\r\n")
			return err
		}
	}
	req.Body = b
	return b
}

// uploadOf returns how many bytes the upload of a request with framing f may hold.
func uploadOf(f framing) int64 {
	if f.chunked {
		return Upload
	}
	return min(Upload, f.length)
}

func (c *serverConn) refuse(f *ProtocolError) {
	c.src.discard() // the head is not kept while its client waits for the response
	w := &ResponseWriter{c: c, req: &http.Request{Method: http.MethodGet}, minor: 1, close: true}
	res := c.handler.Refuse(f)
	if res == nil {
		return
	}
	if w.Respond(res) == nil {
		c.lingeringClose()
	}
}

// lingeringClose performs a lingering close, so that the client can read the response
// while it is still sending (RFC 9112 section 9.6). Its bytes are read for a second,
// however many: an unread byte would reset the connection, and the response with
// it.
func (c *serverConn) lingeringClose() {
	if half, ok := c.conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
	_ = c.conn.SetReadDeadline(time.Now().Add(time.Second))
	_, _ = io.Copy(io.Discard, c.src)
}

var errDetached = errors.New("read the request body: the exchange is over")
