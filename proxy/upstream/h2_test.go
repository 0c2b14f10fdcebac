package upstream

import (
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/proxy/budget"
)

// A window is what a stream moves in one round trip. A few streams have a large
// one, so that a download from far away is quick; the others have so little that
// a client which reads none of them fills no memory.
func TestOnlyAFewStreamsHaveTheLargerWindow(t *testing.T) {
	var sent [wideStreams + 2]atomic.Int64
	origin := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		stream, _ := strconv.Atoi(r.URL.Query().Get("stream"))
		for piece := make([]byte, 8<<10); ; sent[stream].Add(int64(len(piece))) {
			if _, err := w.Write(piece); err != nil {
				return
			}
		}
	}))
	origin.EnableHTTP2 = true
	origin.StartTLS()
	t.Cleanup(origin.Close)
	roots := x509.NewCertPool()
	roots.AddCert(origin.Certificate())
	b := budget.New(0)
	u, err := New(Options{Memory: b, Roots: roots, Resolve: map[string]netip.AddrPort{
		"example.com:443": netip.MustParseAddrPort(origin.Listener.Addr().String())}})
	must.Do(t, err)
	t.Cleanup(u.Close)
	if got, want := b.Size(), int64(budget.Default-wideStreams*(wideWindow-streamWindow)); got != want {
		t.Errorf("%d bytes of the budget are left, want %d", got, want)
	}

	p := u.pool(Key{})
	open := func(stream int) *http.Response {
		target := &url.URL{Scheme: "https", Host: "example.com:443", Path: "/", RawQuery: "stream=" + strconv.Itoa(stream)}
		r := newRequest(t, http.MethodGet, "/", nil)
		r.URL = target
		res, err := u.send(r, p, &attempt{}, true)
		must.Do(t, err)
		return res
	}
	awaitSent := func(stream int, least int64) {
		t.Helper()
		if !eventually(func() bool { return sent[stream].Load() >= least }) {
			t.Fatalf("stream %d: %d bytes were sent ahead, want %d", stream, sent[stream].Load(), least)
		}
	}
	var unread []*http.Response
	for i := range sent {
		unread = append(unread, open(i))
		if i < wideStreams {
			awaitSent(i, wideWindow-streamWindow)
		} else {
			awaitSent(i, streamWindow/2)
		}
	}
	for i := wideStreams; i < len(sent); i++ {
		if n := sent[i].Load(); n > 2*streamWindow {
			t.Errorf("stream %d: %d bytes were sent ahead, want %d at most", i, n, 2*streamWindow)
		}
	}
	hold := b.Conn().Hold(nil)
	hold.Take(b.Size()/4 + 1)
	if got, wide := p.widest(); got != p.narrow || wide || got.HTTP2.MaxReceiveBufferPerStream != narrowWindow {
		t.Error("a stream has no narrow window while the budget is tight")
	}
	hold.Release()
	if got, wide := p.widest(); got != p.h2 || wide {
		t.Error("a stream has no usual window when the budget is not tight any more")
	}
	for _, res := range unread {
		must.Do(t, res.Body.Close())
	}
	sent[0].Store(0)
	again := open(0) // what was given back is there for the next one
	awaitSent(0, wideWindow-streamWindow)
	must.Do(t, again.Body.Close())
}

// A caller may use the memory of a request for another one as soon as its response
// is there, whatever net/http still does with the request.
func TestARequestIsTheCallersAgain(t *testing.T) {
	origin := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNoContent)
	}))
	origin.EnableHTTP2 = true
	origin.StartTLS()
	t.Cleanup(origin.Close)
	roots := x509.NewCertPool()
	roots.AddCert(origin.Certificate())
	u, err := New(Options{Roots: roots, Resolve: map[string]netip.AddrPort{
		"example.com:443": netip.MustParseAddrPort(origin.Listener.Addr().String())}})
	must.Do(t, err)
	t.Cleanup(u.Close)
	for _, h2 := range []bool{false, true} {
		r := newRequest(t, http.MethodGet, "/", nil)
		r.URL = &url.URL{Scheme: "https", Host: "example.com:443", Path: "/"}
		res, err := u.RoundTrip(r, Route{HTTP2: h2})
		must.Do(t, err)
		if (res.ProtoMajor == 2) != h2 {
			t.Fatalf("it is HTTP/%d", res.ProtoMajor)
		}
		if kept := res.Request; kept != nil && (kept == r || kept.URL == r.URL) {
			t.Errorf("HTTP/%d: the caller's request is still referred to", res.ProtoMajor)
		}
		must.Do(t, res.Body.Close())
	}
}
