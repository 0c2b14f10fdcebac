package mcpserver

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ALRubinger/aileron/spec"
)

// maxMessage bounds a message of the client: the largest call that a session reads, and what is around it.
const maxMessage = spec.MaxSize + 64<<10

// stdio is a transport of messages that are a line each. A line that is no message, or too long, is answered with an
// error, and the next is read: the SDK's transport ends the connection.
type stdio struct {
	in  io.Reader
	out io.Writer

	broken func()          // called when out cannot be written, and at the end of in
	ended  <-chan struct{} // closed when nothing is to be written any more
}

// Connect implements [mcp.Transport].
func (t *stdio) Connect(context.Context) (mcp.Connection, error) {
	c := &conn{stdio: t, lines: make(chan line), writes: make(chan write), closed: make(chan struct{}),
		asked: map[jsonrpc.ID]int{}, answered: make(chan struct{}, 1)}
	go c.read(bufio.NewReaderSize(t.in, 64<<10))
	go c.writeAll()
	return c, nil
}

// conn is a connection.
type conn struct {
	*stdio
	lines  chan line
	writes chan write
	closed chan struct{}
	close  sync.Once

	mu       sync.Mutex         // of what follows
	asked    map[jsonrpc.ID]int // the requests that are to be answered, and the length of each
	size     int                // of all of them
	answered chan struct{}      // gets a value with each response
}

// Of the requests that a client has sent and not read the responses of. It may send more when it has read some.
const (
	maxAsked     = 1024
	maxAskedSize = 8 << 20
)

// write is a line to write.
type write struct {
	raw  []byte
	done chan<- error
}

// line is what was read: a line, a longer one that was skipped, or the end.
type line struct {
	data []byte
	long bool
	err  error
}

// read reads lines until the end. A read of stdin cannot be ended, so that it may outlive the connection.
func (c *conn) read(in *bufio.Reader) {
	for {
		l := readLine(in)
		select {
		case c.lines <- l:
		case <-c.closed:
			return
		}
		if l.err != nil {
			return
		}
	}
}

// readLine reads a line. Of one that is too long, nothing is kept.
func readLine(in *bufio.Reader) (l line) {
	for {
		piece, err := in.ReadSlice('\n')
		if len(l.data)+len(piece) > maxMessage {
			l.long, l.data = true, nil
		}
		if !l.long {
			l.data = append(l.data, piece...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if len(l.data) == 0 && !l.long {
			l.err = err
		}
		return l // a last line without an end is one
	}
}

// Read implements [mcp.Connection].
func (c *conn) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		var l line
		select {
		case l = <-c.lines:
		case <-c.closed:
			return nil, io.EOF
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		data := bytes.TrimSpace(l.data)
		switch {
		case l.err != nil:
			c.awaitResponses(ctx)
			c.broken() // of what waits to be written, nothing is read
			return nil, l.err
		case l.long:
			text := fmt.Sprintf("the message has more than %d bytes", maxMessage)
			if err := c.refuse(nil, jsonrpc.CodeInvalidRequest, text); err != nil {
				return nil, err
			}
			continue
		case len(data) == 0:
			continue
		}
		m, err := message(data)
		if err == nil {
			if !c.note(ctx, m, len(data)) {
				continue // it has ended: what follows returns that
			}
			return m, nil
		}
		code := int64(jsonrpc.CodeInvalidRequest)
		if !json.Valid(data) {
			code = jsonrpc.CodeParseError
		}
		if err := c.refuse(idOf(data), code, err.Error()); err != nil {
			return nil, err
		}
	}
}

// note counts a request that is to be answered, when there is room for it. It reports false if the connection ends
// before.
func (c *conn) note(ctx context.Context, m jsonrpc.Message, size int) bool {
	r, ok := m.(*jsonrpc.Request)
	if !ok || !r.IsCall() {
		return true
	}
	room := func(asked, sum int) bool { return asked == 0 || asked < maxAsked && sum+size <= maxAskedSize }
	if !c.await(ctx, nil, room) {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.size += size - c.asked[r.ID]
	c.asked[r.ID] = size
	return true
}

// awaitResponses waits until the requests that were read are answered: after the end, the SDK drops them.
func (c *conn) awaitResponses(ctx context.Context) {
	grace := time.NewTimer(endGrace)
	defer grace.Stop()
	c.await(ctx, grace.C, func(asked, _ int) bool { return asked == 0 })
}

// await waits until enough requests are answered, and reports false if the connection, ctx or the time ends before. It
// is called by one goroutine, that of [conn.Read].
func (c *conn) await(ctx context.Context, late <-chan time.Time, enough func(asked, size int) bool) bool {
	for {
		c.mu.Lock()
		asked, size := len(c.asked), c.size
		c.mu.Unlock()
		if enough(asked, size) {
			return true
		}
		select {
		case <-c.answered:
		case <-c.closed:
			return false
		case <-ctx.Done():
			return false
		case <-late:
			return false
		}
	}
}

// message reads a message, which is a request, a notification or a response.
func message(data []byte) (jsonrpc.Message, error) {
	switch {
	case !json.Valid(data):
		return nil, errors.New("the line is no JSON; a message is one line")
	case data[0] != '{':
		return nil, errors.New("the message is no object; batches are not part of the protocol")
	}
	m, err := jsonrpc.DecodeMessage(data)
	if err != nil {
		return nil, errors.New("the object is no message of JSON-RPC 2.0")
	}
	return m, nil
}

// idOf returns the id of what is no message, if it has one.
func idOf(data []byte) any {
	var m struct {
		ID any `json:"id"`
	}
	_ = json.Unmarshal(data, &m)
	switch m.ID.(type) {
	case string, float64:
		return m.ID
	}
	return nil
}

// refuse answers what is no message.
func (c *conn) refuse(id any, code int64, text string) error {
	raw, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id,
		"error": map[string]any{"code": code, "message": text}})
	if err != nil {
		return err
	}
	return c.write(raw)
}

// Write implements [mcp.Connection].
func (c *conn) Write(_ context.Context, m jsonrpc.Message) error {
	raw, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	err = c.write(raw)
	if r, ok := m.(*jsonrpc.Response); ok {
		c.mu.Lock()
		c.size -= c.asked[r.ID]
		delete(c.asked, r.ID)
		c.mu.Unlock()
		select {
		case c.answered <- struct{}{}:
		default:
		}
	}
	return err
}

// write writes a line. It returns when the server has ended, too: a client that reads no more would keep it.
func (c *conn) write(raw []byte) error {
	done := make(chan error, 1)
	select {
	case c.writes <- write{append(raw, '\n'), done}:
	case <-c.ended:
		return io.ErrClosedPipe
	}
	select {
	case err := <-done:
		return err
	case <-c.ended:
		return io.ErrClosedPipe
	}
}

// writeAll writes lines, one at a time, until the connection ends. A write cannot be ended, so that it may outlive the
// connection.
func (c *conn) writeAll() {
	for {
		select {
		case w := <-c.writes:
			_, err := c.out.Write(w.raw)
			if err != nil {
				c.broken()
			}
			w.done <- err
		case <-c.ended:
			return
		}
	}
}

// Close implements [mcp.Connection].
func (c *conn) Close() error {
	c.close.Do(func() { close(c.closed) })
	return nil
}

// SessionID implements [mcp.Connection].
func (c *conn) SessionID() string { return "" }
