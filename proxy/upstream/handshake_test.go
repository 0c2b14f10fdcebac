package upstream

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/ALRubinger/aileron/e2e/must"
)

// A host that demands a certificate says so in TLS 1.2 during the handshake, and in TLS 1.3 when it is over for the
// client; hosts differ in the alert.
func TestADemandForAClientCertificateIsNamed(t *testing.T) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		for _, clientH2 := range []bool{false, true} {
			o := newOrigin(t, "http/1.1", func(int64, *tls.Conn) {})
			o.config.ClientAuth, o.config.MaxVersion = tls.RequireAnyClientCert, version
			_, _, err := roundTrip(o.client(t), newRequest(t, "GET", "/", nil), Route{HTTP2: clientH2})
			if errorKind(t, err) != ClientCertificate {
				t.Errorf("TLS %x, h2 client %t: %v", version, clientH2, err)
			}
		}
	}
}

func TestEachAlertOfAHostHasItsKind(t *testing.T) {
	for _, c := range []struct {
		alert tls.AlertError
		asked bool
		kind  Kind
		text  string
		sent  Kind // when the request was on the connection
	}{
		{certificateRequired, false, ClientCertificate, "", ClientCertificate},
		{badCertificate, true, ClientCertificate, "", ClientCertificate},
		{handshakeFailed, true, ClientCertificate, "", ClientCertificate},
		{handshakeFailed, false, HandshakeRefused, "handshake failure", Closed},
		{internalError, true, HandshakeFailed, "", Closed},
		{112, true, HandshakeRefused, "unrecognized name", Closed},
	} {
		err := &net.OpError{Op: "remote error", Err: c.alert}
		kind, text := kindOf(t.Context(), &handshakeError{err, c.asked}, nil)
		if kind != c.kind || text != c.text {
			t.Errorf("%v, asked %t: %v (%s), want %v (%s)", c.alert, c.asked, kind, text, c.kind, c.text)
		}
		// A host that fails with a request in hand may have carried it out.
		a := &attempt{conn: &countedConn{}}
		a.conn.written.Store(1)
		if kind, _ := kindOf(t.Context(), &handshakeError{err, c.asked}, a); kind != c.sent {
			t.Errorf("%v, asked %t, behind a request: %v, want %v", c.alert, c.asked, kind, c.sent)
		}
	}
}

// A connection that broke is no host that cannot be trusted.
func TestABrokenConnectionIsNoFailedHandshake(t *testing.T) {
	for _, c := range []struct {
		err    error
		failed bool
	}{
		{&net.OpError{Op: "read", Err: syscall.ECONNRESET}, false},
		{&net.OpError{Op: "write", Err: syscall.EPIPE}, false},
		{fmt.Errorf("tls: %w", io.ErrUnexpectedEOF), false},
		{context.DeadlineExceeded, false},
		{&net.OpError{Op: "remote error", Err: internalError}, true},
		{errors.New("tls: the server's key is not the certificate's"), true},
	} {
		var failure *handshakeError
		got := handshakeFailure(c.err, true)
		if failed := errors.As(got, &failure); failed != c.failed || !errors.Is(got, c.err) {
			t.Errorf("%v: a failed handshake: %v, want %v", c.err, failed, c.failed)
		}
	}
}

// An alert that comes when the request has left is the end of a connection, and the request may have taken effect.
func TestAnAlertAfterTheRequestIsTheEndOfAConnection(t *testing.T) {
	a := &attempt{conn: &countedConn{}}
	a.conn.written.Store(1)
	if kind, _ := kindOf(t.Context(), &net.OpError{Op: "remote error", Err: internalError}, a); kind != Closed {
		t.Errorf("got %v, want %v", kind, Closed)
	}
}

// OpenSSL accepts such a certificate, so that the host works without aileron.
func TestACertificateThatCannotBeParsedIsNamed(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must.Do(t, err)
	template := x509.Certificate{SerialNumber: big.NewInt(5), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"x"}}
	raw, err := x509.CreateCertificate(rand.Reader, &template, &template, key.Public(), key)
	must.Do(t, err)
	const serial = 15 // its place in this certificate: 30 82 LL LL 30 82 LL LL a0 03 02 01 02 02 01 05
	if raw[serial] != 5 {
		t.Skipf("the serial number is elsewhere: % x", raw[:serial+1])
	}
	raw[serial] = 0xfb
	o := newOrigin(t, "http/1.1", func(int64, *tls.Conn) {})
	o.config.Certificates = []tls.Certificate{{Certificate: [][]byte{raw}, PrivateKey: key}}
	_, _, err = roundTrip(o.client(t), newRequest(t, "GET", "/", nil), Route{})
	var e *Error
	if !errors.As(err, &e) || e.Kind != CertificateUnreadable || e.Detail != "negative serial number" || e.Sent {
		t.Errorf("got %#v", e)
	}
}

func TestWhatIsWrongWithACertificateIsNamed(t *testing.T) {
	o := newOrigin(t, "http/1.1", respond(func(*http.Request) string { return "" }))
	for host, want := range map[string]Error{
		"other.test:443": {Kind: NotVerified, Detail: "its certificate is for other names"},
		originHost:       {Kind: UntrustedAuthority},
	} {
		u := o.client(t, func(opts *Options) {
			opts.Resolve = map[string]netip.AddrPort{host: opts.Resolve[originHost]}
			if host == originHost {
				opts.Roots = x509.NewCertPool()
			}
		})
		r := newRequest(t, "GET", "/", nil)
		r.URL.Host = host
		_, _, err := roundTrip(u, r, Route{})
		var e *Error
		if !errors.As(err, &e) || e.Kind != want.Kind || e.Detail != want.Detail {
			t.Errorf("got %#v, want %#v", e, want)
		}
	}
}

func TestWordsEndBeforeWhatAHostSent(t *testing.T) {
	for text, want := range map[string]string{
		"negative serial number":         "negative serial number",
		`cannot parse URI "http://h": x`: "cannot parse URI",
		"handshake failure":              "handshake failure", "alert(200)": "alert", "é": "",
	} {
		if got := words(text); got != want {
			t.Errorf("words(%q) = %q, want %q", text, got, want)
		}
	}
}

// Over HTTP/2 a status is any number for net/http. A client that takes three digits would read the rest as a head.
func TestAStatusOfMoreThanThreeDigitsIsNone(t *testing.T) {
	for status, want := range map[string]Kind{"999": -1, "1000": InvalidStatus, "20099": InvalidStatus} {
		o := newOrigin(t, "h2", func(_ int64, c *tls.Conn) { respondWithStatus(c, status) })
		got, _, err := roundTrip(o.client(t), newRequest(t, "GET", "/", nil), Route{HTTP2: true})
		if want < 0 {
			must.Do(t, err)
			if got != 999 {
				t.Errorf("%s is passed on as %d", status, got)
			}
		} else if errorKind(t, err) != want {
			t.Errorf("%s: %d, %v", status, got, err)
		}
	}
}

// respondWithStatus responds over HTTP/2 to the first request.
func respondWithStatus(c *tls.Conn, status string) {
	if _, err := io.ReadFull(c, make([]byte, len(http2.ClientPreface))); err != nil {
		return
	}
	framer := http2.NewFramer(c, c)
	_ = framer.WriteSettings()
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			return
		}
		if head, ok := frame.(*http2.HeadersFrame); ok {
			var block bytes.Buffer
			_ = hpack.NewEncoder(&block).WriteField(hpack.HeaderField{Name: ":status", Value: status})
			_ = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: head.StreamID, BlockFragment: block.Bytes(),
				EndHeaders: true, EndStream: true})
		}
	}
}
