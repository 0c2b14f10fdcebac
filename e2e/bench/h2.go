package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
)

// overH2 makes 64 requests at a time on one connection of HTTP/2.
func overH2(ctx context.Context, s *subject, t turn) (figures, error) {
	get, end, err := s.openH2(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	for range 5 {
		if err := get(); err != nil {
			return nil, err
		}
	}
	return drive(s, t, slices.Repeat([]worker{repeat(get)}, 64))
}

func checkH2(ctx context.Context, s *subject) error {
	get, end, err := s.openH2(ctx)
	if err != nil {
		return err
	}
	defer end()
	return get()
}

// openH2 opens a tunnel to a client of HTTP/2, and returns a function that
// makes one request in it.
func (s *subject) openH2(ctx context.Context) (get func() error, end func(), err error) {
	authority := apiHost + ":443"
	if s.name == "martian" {
		// Its HTTP/2 dials by itself, by the host's resolver.
		_, port, _ := net.SplitHostPort(s.origin)
		authority = net.JoinHostPort("localhost", port)
	}
	c, err := s.open(ctx, authority, "h2", nil)
	if err != nil {
		return nil, nil, err
	}
	if c.ConnectionState().NegotiatedProtocol != "h2" {
		c.Close()
		return nil, nil, errNoH2
	}
	conns := make(chan net.Conn, 1)
	conns <- c.Conn
	transport := &http.Transport{ForceAttemptHTTP2: true, DisableCompression: true, HTTP2: &http.HTTP2Config{},
		DialTLSContext: func(context.Context, string, string) (net.Conn, error) {
			select {
			case c := <-conns:
				return c, nil
			default:
				return nil, errors.New("the one connection of HTTP/2 broke off")
			}
		}}
	get = func() error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+authority+"/v1/items", nil)
		if err != nil {
			return err
		}
		for _, f := range requestFields {
			req.Header.Set(f[0], f[1])
		}
		s.sent.Add(1)
		res, err := transport.RoundTrip(req)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		got, err := io.ReadAll(res.Body)
		if err == nil && (res.StatusCode != http.StatusOK || res.ProtoMajor != 2 || string(got) != string(item)) {
			return fmt.Errorf("%s responded %s %s: %.200s", s.name, res.Proto, res.Status, got)
		}
		return errors.Join(err, s.checkHead(res.Header))
	}
	return get, func() { transport.CloseIdleConnections(); _ = c.Close() }, nil
}
