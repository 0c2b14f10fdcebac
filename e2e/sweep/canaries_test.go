package sweep

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"strings"
	"sync"

	"github.com/ALRubinger/aileron/e2e/harness"
)

// canaries are what must not be found. Each is random, so that a finding is no coincidence.
type canaries struct {
	secrets map[string]string // in no output at all
	texts   map[string]string // in no output but a capture

	mu      sync.Mutex
	tokens  map[string]string // of sessions: their own clients have them
	nowhere *harness.Leaks    // secrets
	capture *harness.Leaks    // texts
	session *harness.Leaks    // tokens
}

// The canaries, by what they are. A name that begins with "a " is a text.
var canaryNames = []string{
	"bearer", "query", "basic", "path", "passphrase", "next passphrase", "wrong passphrase", "rebound", "refused secret",
	"access token", "next access token", "client secret", "forge",
	"a query", "a request field", "a request cookie", "a request body", "a form field", "a request trailer",
	"a response field", "a response cookie", "a response body", "a response trailer", "a redacted audit value",
	"a reason phrase", "an early hint", "a WebSocket message", "a gRPC message", "gRPC metadata", "a userinfo",
	"a fragment", "a variable's value", "a wrong token",
}

func newCanaries() *canaries {
	c := &canaries{secrets: map[string]string{}, texts: map[string]string{}, tokens: map[string]string{},
		nowhere: &harness.Leaks{}, capture: &harness.Leaks{}, session: &harness.Leaks{}}
	for _, name := range canaryNames {
		if strings.HasPrefix(name, "a ") || strings.HasPrefix(name, "an ") || strings.HasPrefix(name, "gRPC") {
			c.texts[name] = "canary" + plain(name) + hex.EncodeToString([]byte(harness.NewSecret()[:12]))
			c.capture.Add(name, c.texts[name])
			continue
		}
		c.secrets[name] = harness.NewSecret()
		c.nowhere.Add(name, c.secrets[name])
	}
	c.nowhere.Add("basic", "user:"+c.secrets["basic"])
	c.nowhere.Add("a private key", "-----BEGIN PRIVATE KEY-----")
	c.nowhere.Add("a private key", "-----BEGIN EC PRIVATE KEY-----")
	return c
}

// plain returns the letters of a name.
func plain(name string) string { return strings.NewReplacer(" ", "", "'", "").Replace(name) }

func (c *canaries) secret(name string) string { return known(c.secrets, name) }

func (c *canaries) text(name string) string { return known(c.texts, name) }

func known(all map[string]string, name string) string {
	value, ok := all[name]
	if !ok {
		panic("there is no canary " + name)
	}
	return value
}

// token adds the token of a session.
func (c *canaries) token(session, token string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tokens[session] = token
	c.session.Add("the token of session "+session, token)
}

// forms are a secret as an origin may repeat it.
func forms(s string) []string {
	quoted, _ := json.Marshal(s)
	var percent, escaped, entities, printable strings.Builder
	for _, b := range []byte(s) {
		fmt.Fprintf(&percent, "%%%02x", b)
		fmt.Fprintf(&escaped, `\u%04X`, b)
		fmt.Fprintf(&entities, "&#x%x;", b)
		fmt.Fprintf(&printable, "=%02X", b)
	}
	in64 := base64.StdEncoding.EncodeToString([]byte(s))
	return []string{s, "Bearer " + s, string(quoted), url.QueryEscape(s), url.PathEscape(s), percent.String(),
		url.QueryEscape(percent.String()), escaped.String(), html.EscapeString(s), entities.String(), printable.String(),
		hex.EncodeToString([]byte(s)), fmt.Sprintf("% X", s), in64, base64.RawURLEncoding.EncodeToString([]byte(s)),
		base64.StdEncoding.EncodeToString([]byte("x" + s + "yy")), base64.StdEncoding.EncodeToString([]byte("xx" + s)),
		in64[:20] + "\n" + in64[20:], s[8:30], strings.ToUpper(hex.EncodeToString([]byte(s)))}
}
