// Package oauth obtains access tokens of OAuth 2.0 (RFC 6749), keeps them valid, and ends them.
//
// A [Server] is asked for tokens. A login gives a [Grant]: [Server.Client] for an id and a secret, [Browser.Login] for
// a person with a browser (RFC 8252, RFC 7636), [Server.Device] for one with a browser elsewhere (RFC 8628). A [Source]
// renews the grant of one binding for all exchanges of a session.
//
// No error, and nothing that the package prints, has a byte of a token, a code or a client's secret.
package oauth

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/ALRubinger/aileron/spec/logins"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/vault"
)

// The states of the renewal of a binding, in [vault.Binding].Renewal.
const (
	Automatic   = "automatic"    // the token is renewed before it expires
	Never       = "none"         // the service gave nothing to renew it with
	LoginNeeded = "login_needed" // the service does not renew it any more
)

// askTime bounds one request to an authorization server, with its answer.
const askTime = 30 * time.Second

// Server is an authorization server, as a connector declares it or as it was at the login.
type Server struct {
	spec.OAuth2
	// Transport sends the requests. It follows no redirect.
	Transport http.RoundTripper
	// Now is the clock; nil: time.Now.
	Now func() time.Time
}

// Grant is what a login has given. The parts that are secret, and what a renewal needs, are sealed in the vault.
type Grant struct {
	ID      string        `json:"login"`
	Method  string        `json:"grant"` // one of [logins.Grants]
	Token   string        `json:"-"`
	Refresh string        `json:"refresh_token,omitempty"`
	Keeps   bool          `json:"keeps,omitempty"` // a renewal has left Refresh as it was: sending it twice does no harm
	Renewed bool          `json:"renewed,omitempty"`
	Issued  time.Time     `json:"issued_at"`
	Life    time.Duration `json:"life"` // of Token; 0: the service does not say

	TokenURL  string   `json:"token_url"`
	RevokeURL string   `json:"revoke_url,omitempty"`
	Client    string   `json:"client_id"`
	Secret    string   `json:"client_secret,omitempty"`
	InHeader  bool     `json:"in_header,omitempty"` // the service takes the client's secret in Authorization alone
	Scopes    []string `json:"scopes,omitempty"`
	Granted   []string `json:"granted_scopes,omitempty"` // sorted; nil: the service does not say
}

// Of returns the grant of a credential. It reports false if the credential comes from no login.
func Of(c vault.Credential) (g Grant, ok bool, err error) {
	if c.Grant.IsZero() {
		return g, false, nil
	}
	if json.Unmarshal([]byte(c.Grant.Reveal()), &g) != nil || g.ID == "" || g.TokenURL == "" {
		return g, true, errors.New("the grant of the login is broken")
	}
	g.Token = c.Secret.Reveal()
	return g, true, nil
}

// Credential returns what is sealed of g.
func (g Grant) Credential() (c vault.Credential, err error) {
	c.Kind = string(spec.KindOAuth2)
	if c.Secret, err = vault.NewSecret([]byte(g.Token)); err != nil {
		return c, fmt.Errorf("the access token that the service sent cannot be used: %w", err)
	}
	sealed, err := g.encode()
	if len(sealed) > vault.MaxSecret {
		g.Granted = nil // the longest of what need not be kept
		sealed, err = g.encode()
	}
	if err != nil {
		return c, fmt.Errorf("seal the grant: %w", err)
	}
	if c.Grant, err = vault.NewSecret(sealed); err != nil {
		return c, fmt.Errorf("what the service sent cannot be kept: %w", err)
	}
	return c, nil
}

// encode returns g as JSON in which only quotes and backslashes of a token take more than a byte.
func (g Grant) encode() ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	err := e.Encode(g) //nolint:gosec // it is sealed next
	return bytes.TrimSpace(out.Bytes()), err
}

// Facts puts what is not secret of g into b.
func (g Grant) Facts(b vault.Binding) vault.Binding {
	b.Login, b.Client, b.Expires = g.ID, g.Client, g.expires().UTC().Truncate(time.Second)
	b.Scopes = vault.Scopes(strings.Join(g.Scopes, " "))
	b.Granted = vault.Scopes(strings.Join(g.others(), " "))
	b.Renewal = Never
	if g.renews() {
		b.Renewal = Automatic
	}
	return b
}

// Describe returns what becomes of the token of a login, for a person.
func Describe(b vault.Binding) string {
	switch {
	case NeedsLogin(b, time.Now()):
		return "ended: log in again with aileron binding rebind " + b.Name
	case b.Renewal == Automatic:
		return "renewed automatically"
	case b.Login == "":
		return "printed by a command"
	case b.Expires.IsZero():
		return "not renewed: the service does not say when it expires"
	}
	return "not renewed: it expires " + b.Expires.Format(time.RFC3339)
}

// NeedsLogin reports whether only another login makes the credential of a binding usable.
func NeedsLogin(b vault.Binding, now time.Time) bool {
	return b.Renewal == LoginNeeded || b.Renewal == Never && !b.Expires.IsZero() && now.After(b.Expires)
}

func (g Grant) renews() bool { return g.Refresh != "" || g.Method == logins.GrantClient }

// expires returns when the token expires; the zero time: it does not say.
func (g Grant) expires() time.Time {
	if g.Life == 0 {
		return time.Time{}
	}
	return g.Issued.Add(g.Life)
}

// leastUse is how long a token is used at least: no service is asked more often.
const leastUse = time.Second

// margin is how long before its end a token is renewed.
const margin = time.Minute

// due returns when the token is to be renewed. One that a renewal brought is used for half of its life at least: a
// service whose tokens live shorter than the margin would be asked before each request.
func (g Grant) due() time.Time {
	before := margin
	if !g.Renewed {
		return g.Issued.Add(g.Life - before)
	}
	return g.Issued.Add(max(g.Life-min(before, g.Life/2), leastUse))
}

// config is what package oauth2 needs of s.
func (s *Server) config(inHeader bool) *oauth2.Config {
	style := oauth2.AuthStyleInParams
	if inHeader {
		style = oauth2.AuthStyleInHeader
	}
	return &oauth2.Config{ClientID: s.ClientID, ClientSecret: s.ClientSecret, Scopes: s.Scopes,
		Endpoint: oauth2.Endpoint{AuthURL: s.AuthorizeURL, TokenURL: s.TokenURL, DeviceAuthURL: s.DeviceURL,
			AuthStyle: style}}
}

func (s *Server) now() time.Time {
	if s.Now != nil {
		return s.Now()
	}
	return time.Now()
}

// ask calls exchange, which asks the token endpoint, and returns the grant in its answer. RFC 6749 section 2.3.1 has
// two places for the secret of a client: most services take it in the body, and the others refuse the client.
func (s *Server) ask(ctx context.Context, limit time.Duration, inHeader bool,
	exchange func(context.Context, *oauth2.Config) (*oauth2.Token, error),
) (Grant, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	a := &answers{transport: s.Transport}
	ctx = a.in(ctx)
	token, err := exchange(ctx, s.config(inHeader))
	if refused := new(RefusedError); s.ClientSecret != "" && !inHeader && errors.As(err, &refused) &&
		refused.Code == "invalid_client" {
		inHeader = true
		token, err = exchange(ctx, s.config(inHeader))
	}
	if err != nil {
		return Grant{Refresh: a.refresh}, explain(ctx, hostOf(s.TokenURL), err)
	}
	g := Grant{ID: rand.Text(), Method: s.Grant, Token: token.AccessToken, Refresh: token.RefreshToken, Issued: s.now(),
		Life: a.life, TokenURL: s.TokenURL, RevokeURL: s.RevokeURL, Client: s.ClientID, Secret: s.ClientSecret,
		InHeader: inHeader, Scopes: s.Scopes, Granted: scopes(a.scope)}
	if g.Life == 0 && g.renews() {
		g.Life = usualLife
	}
	return g, nil
}

// scopes returns those in the scope of an answer, sorted. Some services put commas between them. Nil: there are none
// that can be, so they are those that were asked for (RFC 6749 section 5.1), or those of before.
func scopes(text string) []string {
	found := strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == ',' })
	found = slices.DeleteFunc(found, func(s string) bool { return !isPlain(s) || strings.ContainsAny(s, `"\`) })
	slices.Sort(found)
	if len(found) == 0 {
		return nil
	}
	return slices.Compact(found)
}

// others returns the scopes that the service granted if they are others than those that were asked for.
func (g Grant) others() []string {
	if slices.Equal(g.Granted, scopes(strings.Join(g.Scopes, " "))) {
		return nil
	}
	return g.Granted
}

// Client returns the grant of a client that is its own owner (RFC 6749 section 4.4).
func (s *Server) Client(ctx context.Context) (Grant, error) { return s.client(ctx, false) }

func (s *Server) client(ctx context.Context, inHeader bool) (Grant, error) {
	return s.ask(ctx, askTime, inHeader, func(ctx context.Context, c *oauth2.Config) (*oauth2.Token, error) {
		cc := clientcredentials.Config{ClientID: c.ClientID, ClientSecret: c.ClientSecret, TokenURL: s.TokenURL,
			Scopes: s.Scopes, AuthStyle: c.Endpoint.AuthStyle}
		return cc.Token(ctx)
	})
}

// loginTime bounds a login, from its page to the answer.
const loginTime = 5 * time.Minute

// Device returns the grant of a person who enters a code in a browser elsewhere (RFC 8628). show is called with the
// code and the page for it.
func (s *Server) Device(ctx context.Context, show func(code, page string)) (Grant, error) {
	short, cancel := context.WithTimeout((&answers{transport: s.Transport, device: true}).in(ctx), askTime)
	defer cancel()
	var params []oauth2.AuthCodeOption
	for name, value := range s.AuthParams {
		params = append(params, oauth2.SetAuthURLParam(name, value))
	}
	d, err := s.config(false).DeviceAuth(short, params...)
	if err != nil {
		return Grant{}, explain(short, hostOf(s.DeviceURL), err)
	}
	show(d.UserCode, d.VerificationURI)
	return s.ask(ctx, loginTime, false, func(ctx context.Context, c *oauth2.Config) (*oauth2.Token, error) {
		return c.DeviceAccessToken(ctx, d)
	})
}

// Renew returns the grant that takes the place of g. It asks where the login was, whatever the connector declares now:
// the refresh token belongs there. With an error it returns g, or g with the refresh token that the service has sent in
// an answer that is of no other use.
func (g Grant) Renew(ctx context.Context, transport http.RoundTripper, now func() time.Time) (Grant, error) {
	s := g.server(transport)
	s.Now = now
	var next Grant
	var err error
	if g.Method == logins.GrantClient {
		next, err = s.client(ctx, g.InHeader)
	} else {
		next, err = s.ask(ctx, askTime, g.InHeader, func(ctx context.Context, c *oauth2.Config) (*oauth2.Token, error) {
			return c.TokenSource(ctx, &oauth2.Token{RefreshToken: g.Refresh}).Token()
		})
	}
	if err != nil {
		g.Refresh = cmp.Or(next.Refresh, g.Refresh)
		return g, err
	}
	next.ID, next.Method, next.Renewed = g.ID, g.Method, true
	next.Keeps = next.Refresh == g.Refresh // package oauth2 keeps it if the answer has none
	if next.Granted == nil {
		next.Granted = g.Granted
	}
	return next, nil
}

func (g Grant) server(transport http.RoundTripper) *Server {
	return &Server{OAuth2: spec.OAuth2{Grant: g.Method, TokenURL: g.TokenURL, RevokeURL: g.RevokeURL,
		ClientID: g.Client, ClientSecret: g.Secret, Scopes: g.Scopes}, Transport: transport}
}

// Revoke ends g at the service (RFC 7009). It reports false if the service has no place for that.
func (g Grant) Revoke(ctx context.Context, transport http.RoundTripper) (bool, error) {
	if g.RevokeURL == "" {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	form := url.Values{"token": {g.Token}, "token_type_hint": {"access_token"}, "client_id": {g.Client}}
	if g.Refresh != "" { // its end is that of its access tokens: RFC 7009 section 2.1
		form.Set("token", g.Refresh)
		form.Set("token_type_hint", "refresh_token")
	}
	if g.Secret != "" && !g.InHeader {
		form.Set("client_secret", g.Secret)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, g.RevokeURL, strings.NewReader(form.Encode()))
	if err != nil {
		return false, errors.New("the revocation URL is broken")
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if g.InHeader {
		r.SetBasicAuth(url.QueryEscape(g.Client), url.QueryEscape(g.Secret))
	}
	res, err := transport.RoundTrip(r)
	if err != nil {
		return false, explain(ctx, hostOf(g.RevokeURL), err)
	}
	_ = res.Body.Close()
	if res.StatusCode/100 != 2 {
		return false, fmt.Errorf("%s answered with %d", hostOf(g.RevokeURL), res.StatusCode)
	}
	return true, nil
}

// hostOf returns the host of a URL.
func hostOf(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "the service"
	}
	return u.Host
}
