// Command oauthserver is an OAuth 2 authorization server, with an API that takes its tokens, for tests:
//
//	oauthserver --cert FILE --key FILE --clients FILE
//
// It prints one line of JSON when it serves, {"address": "127.0.0.1:PORT", "admin": "http://127.0.0.1:PORT"}, and ends
// when its standard input does. At address it speaks TLS and has /authorize, /token, /revoke, /device_authorization,
// /device, /api/me, /api/stream and two of Gmail's paths. At admin are /admin/state, /admin/secrets, /admin/revoke and
// /admin/expire.
//
// github.com/ory/fosite implements RFC 6749, RFC 7009 and RFC 7636. It enforces S256, rotates refresh tokens, and
// revokes all that came of a login when one is used twice. The device grant (RFC 8628), which it does not have, and the
// parameter iss (RFC 9207) are this program's own. What it issues is in memory, and anyone may log in under any name.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"time"
)

// options are the flags.
type options struct {
	address, cert, key, clients string
	ttl, interval, slow         time.Duration
	issuer, iss                 string
}

func main() {
	var o options
	flag.StringVar(&o.address, "address", "127.0.0.1:0", "where the server listens")
	flag.StringVar(&o.cert, "cert", "", "the certificate, a PEM `file`")
	flag.StringVar(&o.key, "key", "", "its key, a PEM `file`")
	flag.StringVar(&o.clients, "clients", "", "JSON `file`: [{\"id\": ..., \"secret\": ...}]; public without a secret")
	flag.DurationVar(&o.ttl, "ttl", time.Hour, "how long access tokens live, in whole seconds")
	flag.DurationVar(&o.interval, "interval", time.Second, "how long a device waits before it asks again")
	flag.DurationVar(&o.slow, "slow", 0, "how long a client waits for its tokens when they are issued")
	flag.StringVar(&o.issuer, "issuer", "", "the `URL` of the server as its clients know it")
	flag.StringVar(&o.iss, "iss", "", "the `issuer` that redirects name (RFC 9207); none by default")
	flag.Parse()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "oauthserver:", err)
		os.Exit(1)
	}
}

func run(o options) error {
	listener, err := net.Listen("tcp", o.address)
	if err != nil {
		return err
	}
	admin, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if o.issuer == "" {
		o.issuer = "https://" + listener.Addr().String()
	}
	s, err := newServer(o)
	if err != nil {
		return err
	}
	ended := make(chan error, 3)
	quiet := log.New(io.Discard, "", 0) // clients that refuse the certificate are part of the tests
	public := &http.Server{Handler: s.routes(), ErrorLog: quiet, ReadHeaderTimeout: time.Minute}
	go func() { ended <- public.ServeTLS(listener, o.cert, o.key) }()
	private := &http.Server{Handler: s.adminRoutes(), ErrorLog: quiet, ReadHeaderTimeout: time.Minute}
	go func() { ended <- private.Serve(admin) }()
	go func() {
		_, err := io.Copy(io.Discard, os.Stdin)
		ended <- err
	}()
	ready := map[string]string{"address": listener.Addr().String(), "admin": "http://" + admin.Addr().String()}
	if err := json.NewEncoder(os.Stdout).Encode(ready); err != nil {
		return err
	}
	return <-ended
}
