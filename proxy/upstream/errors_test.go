package upstream

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
)

func TestEveryKindHasAText(t *testing.T) {
	texts := map[string]Kind{}
	for k := range Kinds {
		if twin, ok := texts[k.String()]; ok || k.String() == "" {
			t.Errorf("kinds %d and %d have the text %q", twin, k, k)
		}
		texts[k.String()] = k
	}
}

// The errors below hold addresses, URLs and what a host sends.
func TestAnErrorQuotesNothing(t *testing.T) {
	const secret = "10.11.12.13"
	for _, err := range []error{
		&net.OpError{Op: "dial", Addr: &net.TCPAddr{IP: net.ParseIP(secret)}, Err: syscall.ECONNREFUSED},
		&net.DNSError{Name: secret, Err: secret},
		&handshakeError{error: errors.New(secret)},
		errors.New(secret), io.ErrUnexpectedEOF,
	} {
		e := new(Client).classify(context.Background(), "example.com:443", err, nil)
		if text := e.Error(); strings.Contains(text, secret) || !strings.HasPrefix(text, "reach example.com:443: ") {
			t.Errorf("%T: %s", err, text)
		}
		if e.Unwrap() != nil {
			t.Errorf("%T: the error wraps %v", err, e.Unwrap())
		}
	}
}
