package modify

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/ALRubinger/aileron/spec"
)

// credentialNames are query names that authenticate a client at well-known
// APIs, folded.
var credentialNames = map[string]bool{
	"access_token": true, "api_key": true, "apikey": true, "key": true, "oauth_token": true,
	"auth_token": true, "token": true, "id_token": true, "refresh_token": true, "client_secret": true,
	"password": true, "private_token": true, "bearer_token": true,
}

// StripQueryCredentials removes the sandbox's own credentials from the query.
//
// Request: pairs with the injected name go, and those with a well-known name
// that the operation does not declare. Other pairs keep their bytes and order.
type StripQueryCredentials struct {
	Operation *spec.Operation // has an Injection
}

// ModifyRequest implements martian.RequestModifier.
func (m StripQueryCredentials) ModifyRequest(r *http.Request) error {
	if r.URL.RawQuery == "" {
		return nil
	}
	injected := ""
	if m.Operation.Injection.In == "query" {
		injected = foldQueryName(m.Operation.Injection.Name)
	}
	kept := ""
	for pair := range strings.SplitSeq(r.URL.RawQuery, "&") {
		raw, _, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(raw)
		if err != nil {
			return fail(QueryMalformed, "the query has a broken escape")
		}
		base := foldQueryName(name)
		if injected != "" && base == injected || credentialNames[base] && !m.Operation.DeclaresQuery(name) {
			continue
		}
		if len(kept) > 0 {
			kept += "&"
		}
		kept += pair
	}
	r.URL.RawQuery = kept
	return nil
}

// foldQueryName returns a query name as the loosest of servers read it: in one
// case, PHP and Rack take "a[]" for "a", and PHP cuts at a NUL, skips leading
// spaces and takes dots, spaces and open brackets for underscores.
func foldQueryName(name string) string {
	name, _, _ = strings.Cut(strings.ToLower(name), "\x00")
	name, _, _ = strings.Cut(strings.TrimLeft(name, " "), "[")
	return underscores.Replace(name)
}

var underscores = strings.NewReplacer(".", "_", " ", "_", "-", "_")
