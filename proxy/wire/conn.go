package wire

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/ALRubinger/aileron/proxy/budget"
)

// Serve speaks HTTP/1.1 on conn until the client ends it, a limit or ctx
// does, or the handler hijacks it. It closes conn unless it was hijacked, and
// returns when everything that it started has ended.
func Serve(ctx context.Context, conn net.Conn, opts Options, h Handler) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	shed := func() { cancel(budget.ErrShed) }
	account := opts.Budget.Conn()
	c := &serving{
		conn: conn, src: newSource(conn), handler: h, hold: account.Hold(shed), shed: shed,
		limits: opts.Limits.WithDefaults(), drain: opts.Drain, once: opts.Once,
	}
	c.src.hold, c.src.most = account.Hold(shed), c.limits.Head+bufferSize
	defer c.hold.Release()
	defer c.src.hold.Release()
	if c.drain == nil {
		c.drain = context.Background()
	}
	c.ended = func() bool { return ctx.Err() != nil }
	c.draining = func() bool { return c.drain.Err() != nil }
	defer context.AfterFunc(c.drain, c.drained)()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(aLongTimeAgo) })
	defer stop()
	defer func() { // a handler's panic ends the connection too
		if !c.hijacked {
			_ = conn.Close()
			c.src.close()
		}
	}()
	for ctx.Err() == nil && c.exchange(ctx) {
	}
}

var aLongTimeAgo = time.Unix(1, 0)

// drainWait is how long a connection that is to end waits for a request that
// is on its way.
const drainWait = 4 * time.Second

// drainable is how much of an unread request body is read and thrown away to
// keep a connection, or to let the client read its answer before the end.
const drainable = 256 << 10

type serving struct {
	conn     net.Conn
	src      *source
	handler  Handler
	hold     *budget.Hold // of the exchange; src has its own
	shed     func()       // ends the connection because there is no memory for it
	limits   Limits
	drain    context.Context //nolint:containedctx // see Drain
	once     bool
	hijacked bool

	ended    func() bool // the session, and the connection with it
	draining func() bool // it is to end once it is idle
	mu       sync.Mutex
	waiting  bool // for a request
}

// drained sets the deadline of a connection that begins to drain while it
// waits for a request. A request that has come is not cut short by it.
func (c *serving) drained() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting {
		c.src.until(time.Now().Add(min(drainWait, c.limits.Idle)), c.ended)
	}
}

func (c *serving) wait(is bool) {
	c.mu.Lock()
	c.waiting = is
	c.mu.Unlock()
}

// exchange serves one request and reports whether another may follow.
func (c *serving) exchange(ctx context.Context) (more bool) {
	c.wait(true)
	head, err := c.src.head(c.limits, c.ended, c.draining)
	c.wait(false)
	if err != nil {
		if len(head) > 0 && errors.Is(context.Cause(ctx), budget.ErrShed) {
			err = budget.ErrShed
		}
		if f := faultOf(err, head); f != nil {
			c.refuse(f)
		}
		return false
	}
	frame, fault := judge(head, c.limits)
	if fault != nil {
		c.refuse(fault)
		return false
	}
	req, err := parse(head)
	if err != nil {
		fault := malformed("the request head cannot be parsed")
		line, _, _ := bytes.Cut(head, []byte("\r\n"))
		fault.Method, fault.Target = readable(line)
		c.refuse(fault)
		return false
	}
	up := uploadOf(frame)
	if req.Method != http.MethodConnect && !c.hold.Take(Exchange+int64(len(head))+up) {
		fault := Exhausted()
		fault.Method, fault.Target = Readable(req.Method, req.RequestURI)
		c.refuse(fault)
		return false
	}
	defer c.hold.Release()
	if req.Method != http.MethodConnect {
		c.hold.Stall(0) // whom the upstream keeps waiting makes room for others
	}
	c.src.shrink()
	_ = c.conn.SetReadDeadline(time.Time{})
	if ctx.Err() != nil {
		return false // its deadline was just cleared
	}

	connection := ctx
	ctx, cancel := context.WithCancelCause(ctx)
	// What ended the connection is the cause, however the end is noticed.
	gone := func() { cancel(context.Cause(connection)) }
	defer gone()
	req = req.WithContext(WithHead(ctx, c.hold, int64(len(head))))
	req.Host = frame.host // net/http forgets it beside an absolute target; a handler must see both
	req.RemoteAddr = c.conn.RemoteAddr().String()
	body := c.body(req, frame, gone)
	w := &ResponseWriter{c: c, req: req, minor: frame.minor, body: body, gone: gone,
		close: c.once || frame.minor == 0 || HasToken(req.Header, "Connection", "close")}

	if req.Method != http.MethodConnect && body == nil {
		c.src.watch(gone)
	}
	c.handler.ServeHTTP(w, req)
	if c.hijacked {
		return false
	}
	if err := w.finish(); err != nil {
		return false
	}
	if body != nil && !body.release(drainable) {
		c.linger()
		return false
	}
	return !w.close
}

// parsers are the readers that net/http wants to parse a head with.
var parsers = sync.Pool{New: func() any { return bufio.NewReader(nil) }}

// parse makes the request of a judged head. It keeps nothing of it.
func parse(head []byte) (*http.Request, error) {
	r := parsers.Get().(*bufio.Reader)
	defer parsers.Put(r)
	r.Reset(bytes.NewReader(head))
	defer r.Reset(nil)
	return http.ReadRequest(r)
}

// body gives req its body, nil when it has none.
func (c *serving) body(req *http.Request, f framing, gone func()) *requestBody {
	req.Body, req.GetBody = http.NoBody, nil
	req.TransferEncoding, req.Trailer = nil, nil
	req.ContentLength = f.length
	var from io.Reader
	switch {
	case f.chunked:
		req.ContentLength = -1
		from = &chunkedReader{src: c.src}
	case f.length > 0:
		from = &lengthReader{src: c.src, left: f.length}
	default:
		return nil
	}
	b := &requestBody{from: from, conn: c.conn, limit: c.limits.Body, pace: pace{span: c.limits.Progress}, hold: c.hold,
		ended: func() { c.src.watch(gone) }, took: uploadOf(f)}
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

// uploadOf returns what the upload of a request so framed may hold.
func uploadOf(f framing) int64 {
	if f.chunked {
		return Upload
	}
	return min(Upload, f.length)
}

func (c *serving) refuse(f *Fault) {
	c.src.discard() // the head is not kept while its client waits for the answer
	w := &ResponseWriter{c: c, req: &http.Request{Method: http.MethodGet}, minor: 1, close: true}
	res := c.handler.Refuse(f)
	if res == nil {
		return
	}
	if w.Respond(res) == nil {
		c.linger()
	}
}

// linger lets the client read the answer before the connection ends under
// bytes that it is still sending (RFC 9112 section 9.6). They are read for a
// second, however many: an unread one would reset the connection, and the
// answer with it.
func (c *serving) linger() {
	if half, ok := c.conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
	_ = c.conn.SetReadDeadline(time.Now().Add(time.Second))
	_, _ = io.Copy(io.Discard, c.src)
}

var errDetached = errors.New("read the request body: the exchange is over")
