package auditpage

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
)

// keyHeader is the request field that has the page's key. A page of another origin cannot send it without a preflight,
// which this server refuses.
const keyHeader = "Aileron-Page-Key"

// cookieName is the name of the cookie without the port, which is appended: a browser sends the cookies of an address
// to all of its ports, and the cookie of one page would replace that of another.
const cookieName = "aileron-audit-"

// maxTickets bounds the exports that were asked for and have not begun.
const maxTickets = 16

// access is what opens the page: a token that can be used once, and what it is exchanged for.
type access struct {
	mu      sync.Mutex
	token   string
	used    bool
	cookie  string
	key     string
	tickets map[string]exportJob // of exports that were asked for and have not begun
}

func newAccess() *access {
	return &access{token: rand.Text(), cookie: rand.Text() + rand.Text(), key: rand.Text() + rand.Text(),
		tickets: map[string]exportJob{}}
}

// redeem reports whether the token is the one of the link, and was not used before.
func (a *access) redeem(token string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.used || !same(token, a.token) {
		return false
	}
	a.used = true
	return true
}

// issue returns a ticket for an export. Where maxTickets were never used, it makes them all invalid first.
func (a *access) issue(job exportJob) (ticket string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.tickets) >= maxTickets {
		clear(a.tickets)
	}
	ticket = rand.Text()
	a.tickets[ticket] = job
	return ticket
}

// redeemTicket returns the export of a ticket, and false if there is none. A ticket can be redeemed once.
func (a *access) redeemTicket(ticket string) (exportJob, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	job, ok := a.tickets[ticket]
	delete(a.tickets, ticket)
	return job, ok
}

// same compares two secrets in constant time.
func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// port returns the port of the listener.
func (p *Page) port() string {
	address := p.listener.Addr().String()
	return address[strings.LastIndexByte(address, ':')+1:]
}

const linkUsed = "this link was used already, or is not of this server: end aileron audit serve (Ctrl-C), start it " +
	"again, and open the new link"

// exchangeToken responds to a valid token, once, with the cookie and the key.
func (p *Page) exchangeToken(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 256))
	if err != nil || !p.access.redeem(string(body)) {
		p.reports.once("refused a link that was used already, or is of another server")
		refuse(w, http.StatusForbidden, linkUsed)
		return
	}
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // Secure needs TLS, and the address is a loopback one
		Name: cookieName + p.port(), Value: p.access.cookie, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode,
	})
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]string{"key": p.access.key})
}

// hasCookie reports whether the request has the cookie.
func (p *Page) hasCookie(r *http.Request) bool {
	c, err := r.Cookie(cookieName + p.port())
	return err == nil && same(c.Value, p.access.cookie)
}

// private returns the handler for requests that have the cookie and the key.
func (p *Page) private(handle func(http.ResponseWriter, *http.Request) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !p.hasCookie(r) || !same(r.Header.Get(keyHeader), p.access.key) {
			refuse(w, http.StatusForbidden, linkUsed)
			return
		}
		p.respond(w, r, handle)
	})
}
