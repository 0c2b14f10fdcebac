package mcpserver

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/ALRubinger/aileron/e2e/must"
)

// A client gets no further ahead of what it has read than a bound: in requests, and in bytes of them.
func TestRequestsWaitForResponsesToBeRead(t *testing.T) {
	request := func(n int) (*jsonrpc.Request, *jsonrpc.Response) {
		id := must.Get(jsonrpc.MakeID(float64(n)))(t)
		return &jsonrpc.Request{ID: id, Method: "ping"}, &jsonrpc.Response{ID: id, Result: []byte("{}")}
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct{ size, most int }{
		"small": {60, maxAsked}, "large": {maxMessage, maxAskedSize / maxMessage}, "too large for any": {maxAskedSize + 1, 1},
	} {
		to := &stdio{in: strings.NewReader(""), out: io.Discard, broken: func() {}}
		conn := must.Get(to.Connect(t.Context()))(t).(*conn)
		for n := range c.most {
			r, _ := request(n)
			if !conn.note(t.Context(), r, c.size) {
				t.Fatalf("%s: there is no room for request %d", name, n)
			}
		}
		next, _ := request(c.most)
		if conn.note(over, next, c.size) {
			t.Errorf("%s: %d requests were read, and one more", name, c.most)
		}
		_, first := request(0)
		must.Do(t, conn.Write(t.Context(), first))
		if !conn.note(t.Context(), next, c.size) {
			t.Errorf("%s: there is no room after a response was read", name)
		}
	}
}
