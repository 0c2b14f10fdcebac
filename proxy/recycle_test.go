package proxy

import (
	"errors"
	"io"
	"net/http"
	"reflect"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

// recycled makes an exchange with w's origin, and returns its response's body,
// read to the end and closed, and the exchange.
func recycled(t *testing.T, w *world, p *exchanges) (io.ReadCloser, *Exchange) {
	t.Helper()
	x := p.take()
	x.p, x.row.Host, x.grpc = w.plane, "api.good.example", true
	x.request, _ = http.NewRequest(http.MethodGet, "https://api.good.example/v1/items", nil)
	x.came = outcome{src: http.NoBody, ended: true, last: true}
	return &outcomeBody{x}, x
}

// An exchange begins with nothing of the one that had its memory before.
func TestARecycledExchangeIsEmpty(t *testing.T) {
	w := newWorld(t, hello)
	w.plane.exchanges.poison = false
	body, x := recycled(t, w, &w.plane.exchanges)
	must.Do(t, body.Close())
	want := &Exchange{kept: x.kept}
	if !reflect.DeepEqual(x, want) {
		t.Errorf("it has %+v", x)
	}
	if x.packed.Method != "" || x.packed.Found() != "" {
		t.Errorf("it judges %+v", &x.packed)
	}
}

// A body that is closed is its exchange's no more: a late Read or Close must not
// reach an exchange that another request has by now.
func TestALateCallFindsNoExchange(t *testing.T) {
	w := newWorld(t, hello)
	body, x := recycled(t, w, &w.plane.exchanges)
	must.Do(t, body.Close())
	if x.p != nil || x.kept != nil {
		t.Error("an exchange that has ended is not overwritten")
	}
	if _, err := body.Read(make([]byte, 1)); !errors.Is(err, http.ErrBodyReadAfterClose) {
		t.Errorf("a late Read returns %v", err)
	}
	must.Do(t, body.Close())
}

// A relay outlives the body of the response that began it.
func TestTheExchangeOfARelayIsNotRecycled(t *testing.T) {
	for status, want := range map[int]bool{200: true, 204: true, 101: false} {
		if got := endsWithBody(&http.Response{StatusCode: status}); got != want {
			t.Errorf("%d: recycled is %v, want %v", status, got, want)
		}
	}
}
