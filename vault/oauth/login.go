package oauth

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/oauth2"
)

// Browser is a login of a person in a browser of this host, or of another whose answer they paste.
type Browser struct {
	Server *Server
	// Port is that of http://localhost:PORT/callback, which some services must know before; 0: any.
	Port int
	// Show is called once, with the address of the page on which the person logs in.
	Show func(page string)
	// Pasted returns the address at which the browser ended, when a person has given it. Nil: it is not asked for.
	Pasted func(context.Context) (string, error)
	// Refused is called at most once, at the first answer in the browser that is not that of this login, which goes on.
	// Nil: it is not.
	Refused func(error)
}

// attempt is one login: what its answer must have, and what became of it.
type attempt struct {
	*Browser
	config   *oauth2.Config
	state    string
	verifier string

	answers chan url.Values // of the first answer that is one
	taken   chan struct{}   // holds a value once there was one
	refused sync.Once       // Refused was called
	done    chan struct{}   // closed when the grant is there, or is known not to come
	failed  error
}

// Login returns the grant of a person who logs in within five minutes (RFC 6749 section 4.1, with RFC 7636, RFC 8252
// section 7.3 and RFC 9207).
func (b *Browser) Login(ctx context.Context) (Grant, error) {
	ctx, cancel := context.WithTimeout(ctx, loginTime)
	defer cancel()
	l := &attempt{Browser: b, config: b.Server.config(false), state: oauth2.GenerateVerifier(),
		verifier: oauth2.GenerateVerifier(), answers: make(chan url.Values, 1), taken: make(chan struct{}, 1),
		done: make(chan struct{})}
	stop, err := l.listen()
	if err != nil {
		return Grant{}, err
	}
	defer stop()
	defer close(l.done) // before stop, which waits for the page that the browser gets
	b.Show(l.page())
	if b.Pasted != nil {
		go l.readPasted(ctx)
	}
	select {
	case answer := <-l.answers:
		g, err := l.redeem(ctx, answer)
		l.failed = err
		return g, err
	case <-ctx.Done():
		l.failed = ctx.Err()
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			l.failed = fmt.Errorf("%s: there was no answer within %v", hostOf(b.Server.AuthorizeURL), loginTime)
		}
		return Grant{}, l.failed
	}
}

// page returns the address of the page on which the person logs in.
func (l *attempt) page() string {
	params := []oauth2.AuthCodeOption{oauth2.S256ChallengeOption(l.verifier)}
	for name, value := range l.Server.AuthParams {
		params = append(params, oauth2.SetAuthURLParam(name, value))
	}
	return l.config.AuthCodeURL(l.state, params...)
}

// listen serves the address to which the browser is sent, on both loopback addresses: a browser may take either for
// localhost. It returns what ends that.
func (l *attempt) listen() (stop func(), err error) {
	var loopback net.ListenConfig
	ctx := context.Background() // it is not resolved
	first, err := loopback.Listen(ctx, "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(l.Port)))
	if err != nil {
		return nil, fmt.Errorf("listen for the answer of the login: %w; another --callback-port may be free", err)
	}
	port := first.Addr().(*net.TCPAddr).Port
	l.config.RedirectURL = "http://localhost:" + strconv.Itoa(port) + "/callback"
	server := &http.Server{Handler: l, ReadTimeout: 10 * time.Second, MaxHeaderBytes: 32 << 10}
	server.SetKeepAlivesEnabled(false)
	go func() { _ = server.Serve(first) }()
	if second, err := loopback.Listen(ctx, "tcp6", net.JoinHostPort("::1", strconv.Itoa(port))); err == nil {
		go func() { _ = server.Serve(second) }()
	} else if errors.Is(err, syscall.EADDRINUSE) { // a host without IPv6 has other errors
		_ = server.Close()
		return nil, fmt.Errorf("listen for the answer of the login: another program listens at [::1]:%d, and localhost "+
			"may lead there; choose another --callback-port", port)
	}
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		if server.Shutdown(ctx) != nil {
			_ = server.Close()
		}
	}, nil
}

// ServeHTTP answers the browser. The first answer that the login can be about is taken, and gets its page when it is
// known what came of it.
func (l *attempt) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	redirect, _ := url.Parse(l.config.RedirectURL)
	switch {
	case r.Host != redirect.Host && r.Host+":80" != redirect.Host: // a page of another name that resolves to this host
		l.answer(w, http.StatusMisdirectedRequest, "This is not the address of the login.")
	case r.Header.Get("Origin") != "": // a script of another page
		l.answer(w, http.StatusForbidden, "Only a browser that was sent here by the login page may come here.")
	case r.URL.Path != redirect.Path:
		l.answer(w, http.StatusNotFound, "There is nothing here.")
	case r.Method != http.MethodGet:
		l.answer(w, http.StatusMethodNotAllowed, "This is not how a login ends.")
	case !isAnswer(r.URL.Query()):
		l.answer(w, http.StatusBadRequest, "This is not the answer of a login.")
	case !l.isOurs(r.URL.Query()): // any page can send a browser here: it must not end the login
		l.answer(w, http.StatusBadRequest, "This is the answer of another login, or forged. The one that the terminal "+
			"shows goes on.")
		l.refuse()
	case !l.take(r.URL.Query()):
		l.answer(w, http.StatusConflict, "This login was answered before. You can close this page.")
	default:
		<-l.done
		if l.failed != nil {
			l.answer(w, http.StatusBadRequest, "The login failed, and nothing was stored. The terminal says why.")
			return
		}
		l.answer(w, http.StatusOK, "You are logged in at the service. Close this page and go back to the terminal.")
	}
}

func (l *attempt) answer(w http.ResponseWriter, status int, text string) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer") // the address has the code
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, "<!doctype html><title>aileron</title><p>"+text+"</p>\n")
}

// isOurs reports whether an answer has the state of this login, once. The comparison need not take constant time for
// what is used once; it costs nothing.
func (l *attempt) isOurs(q url.Values) bool {
	return len(q["state"]) == 1 && subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(l.state)) == 1
}

// refuse calls Refused, once.
func (l *attempt) refuse() {
	l.refused.Do(func() {
		if l.Refused != nil {
			l.Refused(fmt.Errorf("%s: %w", hostOf(l.Server.AuthorizeURL), errState))
		}
	})
}

// errState is the error of an answer that is not that of the login.
var errState = errors.New("the state of the answer is not that of this login, so it may be of another one, or forged")

// isAnswer reports whether a query can be the answer of a login.
func isAnswer(q url.Values) bool { return q.Has("state") || q.Has("code") || q.Has("error") }

// take takes the answer unless there was one. It reports whether it did.
func (l *attempt) take(answer url.Values) bool {
	select {
	case l.taken <- struct{}{}:
		l.answers <- answer
		return true
	default:
		return false
	}
}

// readPasted takes the address that a person pastes. One that is none ends the login.
func (l *attempt) readPasted(ctx context.Context) {
	text, err := l.Pasted(ctx)
	if err != nil {
		return // the browser may answer still
	}
	u, err := url.Parse(text)
	if err != nil || u.Path != "/callback" {
		l.take(url.Values{"pasted": {"broken"}})
		return
	}
	l.take(u.Query())
}

// redeem returns the grant for the answer of a login.
func (l *attempt) redeem(ctx context.Context, q url.Values) (Grant, error) {
	fail := func(format string, args ...any) (Grant, error) {
		return Grant{}, fmt.Errorf("%s: "+format, append([]any{hostOf(l.Server.AuthorizeURL)}, args...)...)
	}
	if q.Has("pasted") {
		return fail("what was pasted is not the address at which the browser ended, %s?…", l.config.RedirectURL)
	}
	if !l.isOurs(q) {
		return fail("%w", errState)
	}
	for _, name := range []string{"code", "error", "iss"} {
		if len(q[name]) > 1 {
			return fail("the answer has %s twice", name)
		}
	}
	if iss := q.Get("iss"); q.Has("iss") && !isIssuer(iss, l.Server.AuthorizeURL) {
		return fail("the answer names another server as its issuer (RFC 9207)")
	}
	if code := q.Get("error"); code != "" {
		return fail("it answered with %s", knownCode(code))
	}
	code := q.Get("code")
	if code == "" || len(code) > 4096 {
		return fail("the answer has no code that can be used")
	}
	return l.Server.ask(ctx, askTime, false, func(ctx context.Context, c *oauth2.Config) (*oauth2.Token, error) {
		c.RedirectURL = l.config.RedirectURL
		return c.Exchange(ctx, code, oauth2.VerifierOption(l.verifier))
	})
}

// isIssuer reports whether an issuer can be that of the server: an https URL of the host that the person was sent to.
// The manifest names no issuer, and the paths of the two differ.
func isIssuer(iss, authorizeURL string) bool {
	u, err := url.Parse(iss)
	return err == nil && u.Scheme == "https" && u.Host == hostOf(authorizeURL) && u.User == nil
}
