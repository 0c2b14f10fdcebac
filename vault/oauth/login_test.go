package oauth_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/spec/logins"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/vault/oauth"
)

// browser logs in at s as visit says, which gets the page and returns what the login's own server answered.
func browser(t *testing.T, s *authServer, visit func(page url.Values)) (oauth.Grant, error) {
	t.Helper()
	server := &oauth.Server{OAuth2: spec.OAuth2{Grant: logins.GrantCode,
		AuthorizeURL: "https://login.example/authorize?tenant=a", TokenURL: s.URL + "/token", ClientID: "client-one",
		Scopes: []string{"read", "write"}, AuthParams: map[string]string{"access_type": "offline"}}, Transport: s.transport()}
	visited := make(chan struct{})
	b := oauth.Browser{Server: server, Show: func(page string) {
		u := must.Get(url.Parse(page))(t)
		go func() {
			defer close(visited)
			visit(u.Query())
		}()
	}}
	g, err := b.Login(t.Context())
	<-visited
	return g, err
}

// get asks the login's own server, and returns the status and the page.
func get(t *testing.T, address string, change func(*http.Request)) (int, string) {
	t.Helper()
	r := must.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil))(t)
	if change != nil {
		change(r)
	}
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return 0, err.Error()
	}
	defer res.Body.Close()
	body := must.Get(io.ReadAll(res.Body))(t)
	if res.Header.Get("Referrer-Policy") != "no-referrer" || res.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("the page may leak its address: %v", res.Header)
	}
	return res.StatusCode, string(body)
}

// callback is the address to which the service sends the browser.
func callback(page url.Values, answer url.Values) string {
	return page.Get("redirect_uri") + "?" + answer.Encode()
}

func TestALoginAsksAndChecksAsTheRFCsSay(t *testing.T) {
	s := newAuthServer(t)
	s.sends(200, token(nil))
	var status int
	var text string
	g, err := browser(t, s, func(page url.Values) {
		for name, want := range map[string]string{"response_type": "code", "client_id": "client-one", "scope": "read write",
			"code_challenge_method": "S256", "access_type": "offline", "tenant": "a"} {
			if page.Get(name) != want {
				t.Errorf("%s is %q, want %q", name, page.Get(name), want)
			}
		}
		if len(page.Get("state")) < 32 || len(page.Get("code_challenge")) != 43 ||
			!strings.HasPrefix(page.Get("redirect_uri"), "http://localhost:") {
			t.Errorf("the page is asked for with %v", page)
		}
		good := url.Values{"state": {page.Get("state")}, "code": {"code-one"}, "iss": {"https://login.example"}}
		// None of these ends the login.
		for name, c := range map[string]struct {
			status  int
			address string
			change  func(*http.Request)
		}{
			"another name": {421, callback(page, good), func(r *http.Request) { r.Host = "rebound.example" }},
			"a script": {403, callback(page, good), func(r *http.Request) {
				r.Header.Set("Origin", "https://evil.example")
			}},
			"a POST":        {405, callback(page, good), func(r *http.Request) { r.Method = http.MethodPost }},
			"an icon":       {404, strings.Replace(page.Get("redirect_uri"), "/callback", "/favicon.ico", 1), nil},
			"no answer":     {400, page.Get("redirect_uri"), nil},
			"another login": {400, callback(page, url.Values{"state": {"another"}, "code": {"code-two"}}), nil},
			"no state":      {400, callback(page, url.Values{"error": {"access_denied"}}), nil},
			"two states":    {400, callback(page, good) + "&state=another", nil},
		} {
			if got, text := get(t, c.address, c.change); got != c.status {
				t.Errorf("%s: %d %s", name, got, text)
			}
		}
		status, text = get(t, strings.Replace(callback(page, good), "localhost", "127.0.0.1", 1),
			func(r *http.Request) { r.Host = must.Get(url.Parse(page.Get("redirect_uri")))(t).Host })
	})
	if err != nil || g.Token != "access-token-two" || g.Refresh != "refresh-token-two" || g.ID == "" {
		t.Fatalf("%v, %+v", err, g.Client)
	}
	if status != 200 || !strings.Contains(text, "go back to the terminal") {
		t.Errorf("the browser got %d %s", status, text)
	}
	form := s.asked()[0]
	if len(s.asked()) != 1 || form.Get("code") != "code-one" || len(form.Get("code_verifier")) != 43 ||
		!strings.HasPrefix(form.Get("redirect_uri"), "http://localhost:") {
		t.Errorf("the code was redeemed with %v", s.asked())
	}
}

func TestAnAnswerThatIsNotOfThisLoginEndsIt(t *testing.T) {
	s := newAuthServer(t)
	s.sends(200, token(nil))
	for name, c := range map[string]struct {
		change func(url.Values)
		want   string
	}{
		"two codes": {func(v url.Values) { v.Add("code", "code-two") }, "has code twice"},
		"issuer":    {func(v url.Values) { v.Set("iss", "https://evil.example") }, "names another server as its issuer"},
		"denied": {func(v url.Values) {
			v.Del("code")
			v.Set("error", "access_denied\x1b[31m")
		}, "it answered with an error of its own"},
		"refused": {func(v url.Values) { v.Set("error", "access_denied") }, "it answered with access_denied"},
		"no code": {func(v url.Values) { v.Del("code") }, "no code that can be used"},
	} {
		t.Run(name, func(t *testing.T) {
			var status int
			var text string
			_, err := browser(t, s, func(page url.Values) {
				answer := url.Values{"state": {page.Get("state")}, "code": {"code-one"}}
				c.change(answer)
				status, text = get(t, callback(page, answer), nil)
			})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("%v, want %q", err, c.want)
			}
			noSecret(t, err.Error())
			if status != 400 || !strings.Contains(text, "The login failed") {
				t.Errorf("the browser got %d %s", status, text)
			}
		})
	}
	if len(s.asked()) != 0 {
		t.Errorf("a code was redeemed: %v", s.asked())
	}
}

// A browser that opens the address twice, or a second one, changes nothing.
func TestALoginIsAnsweredOnce(t *testing.T) {
	s := newAuthServer(t)
	release := make(chan struct{})
	s.answer = func(url.Values) (int, http.Header, string) {
		<-release
		return 200, jsonType, `{"access_token":"access-token-two","token_type":"bearer"}`
	}
	g, err := browser(t, s, func(page url.Values) {
		address := callback(page, url.Values{"state": {page.Get("state")}, "code": {"code-one"}})
		first := make(chan int)
		go func() {
			status, _ := get(t, address, nil)
			first <- status
		}()
		for len(s.asked()) == 0 && t.Context().Err() == nil {
			if status, _ := get(t, page.Get("redirect_uri"), nil); status != 400 { // the server lives
				t.Errorf("%d", status)
			}
		}
		second, text := get(t, callback(page, url.Values{"state": {page.Get("state")}, "error": {"access_denied"}}), nil)
		if second != 409 || !strings.Contains(text, "answered before") {
			t.Errorf("the second answer: %d %s", second, text)
		}
		close(release)
		if status := <-first; status != 200 {
			t.Errorf("the first answer: %d", status)
		}
	})
	if err != nil || g.Refresh != "" || len(s.asked()) != 1 {
		t.Errorf("%v, asked %d times", err, len(s.asked()))
	}
}

// A person whose browser is elsewhere pastes the address at which it ended.
func TestTheAddressOfABrowserElsewhereIsPasted(t *testing.T) {
	s := newAuthServer(t)
	s.sends(200, token(nil))
	paste := func(address func(page url.Values) string) error {
		page := make(chan url.Values, 1)
		b := oauth.Browser{
			Server: &oauth.Server{OAuth2: spec.OAuth2{Grant: logins.GrantCode, AuthorizeURL: "https://login.example/authorize",
				TokenURL: s.URL, ClientID: "client-one"}, Transport: s.transport()},
			Show:   func(address string) { page <- must.Get(url.Parse(address))(t).Query() },
			Pasted: func(context.Context) (string, error) { return address(<-page), nil },
		}
		_, err := b.Login(t.Context())
		return err
	}
	must.Do(t, paste(func(page url.Values) string {
		return callback(page, url.Values{"state": {page.Get("state")}, "code": {"code-one"}})
	}))
	if err := paste(func(page url.Values) string {
		return callback(page, url.Values{"state": {"another"}, "code": {"code-one"}})
	}); err == nil || !strings.Contains(err.Error(), "the state of the answer is not that of this login") {
		t.Errorf("the address of another login: %v", err)
	}
	if err := paste(func(url.Values) string { return "code-one" }); err == nil ||
		!strings.Contains(err.Error(), "what was pasted is not the address") {
		t.Errorf("a code alone: %v", err)
	}
}

// Ctrl-C ends a login: its context does.
func TestALoginEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var address string
	server := &oauth.Server{OAuth2: spec.OAuth2{AuthorizeURL: "https://login.example/a", ClientID: "client-one"}}
	b := oauth.Browser{Server: server, Show: func(page string) {
		address = must.Get(url.Parse(page))(t).Query().Get("redirect_uri")
		cancel()
	}}
	if _, err := b.Login(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if status, _ := get(t, address, nil); status != 0 {
		t.Errorf("its server answers still: %d", status)
	}
}
