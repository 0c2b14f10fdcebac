package api

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/proxy"
	"github.com/ALRubinger/aileron/proxy/budget"
	"github.com/ALRubinger/aileron/proxy/wire"
)

// connection returns requests of one client, whose connection has a part of a budget.
func connection(t *testing.T, b *budget.Budget) *http.Request {
	head := &wire.Head{Hold: b.Conn().Hold(func() {})}
	t.Cleanup(head.Hold.Release)
	return (&http.Request{}).WithContext(wire.WithHead(t.Context(), head))
}

// What a client does not read counts against the session's memory, and makes room for another client's response.
func TestAListingCountsAgainstTheMemory(t *testing.T) {
	b := budget.New(200 << 10)
	text := strings.Repeat("x", 60<<10)
	first, d := listing(connection(t, b), text)
	if d != nil || b.Used() < int64(len(text)) {
		t.Fatalf("%v, and %d bytes are used", d, b.Used())
	}
	part := must.Get(io.ReadAll(io.LimitReader(first.Body, 10)))(t)
	var others []*http.Response
	for range 3 {
		res, d := listing(connection(t, b), text)
		if d != nil {
			t.Fatalf("a response makes no room for another: %v", d)
		}
		others = append(others, res)
	}
	if rest, err := io.ReadAll(first.Body); !errors.Is(err, budget.ErrShed) || len(part)+len(rest) >= len(text) {
		t.Errorf("after %d bytes: %v, want %v", len(part)+len(rest), err, budget.ErrShed)
	}
	last := others[len(others)-1]
	if whole := must.Get(io.ReadAll(last.Body))(t); int64(len(whole)) != last.ContentLength {
		t.Errorf("it has %d bytes, and says %d", len(whole), last.ContentLength)
	}
	for _, res := range append(others, first) {
		must.Do(t, res.Body.Close())
	}
	if b.Used() != 0 {
		t.Errorf("%d bytes are used in the end", b.Used())
	}
	if _, d := listing(connection(t, b), strings.Repeat("x", 150<<10)); d == nil || d.Reason != proxy.ReasonMemory {
		t.Errorf("more than a connection may have: %v", d)
	}
}

// One request at a time reads all operations: that for the session, too.
func TestADescriptionWaitsForItsTurn(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	a := New(nil)
	a.listings <- struct{}{} // of another
	if _, d := a.describe((&http.Request{}).WithContext(ctx)); d == nil || d.Reason != proxy.ReasonClientGone {
		t.Errorf("it does not wait: %v", d)
	}
}
