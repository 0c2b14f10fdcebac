package modify

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/vault"
)

const testSecret = "sk-live-0123456789abcdef"

// Fields and query names that a client may not send are gone before the
// credential comes, so its own step is tried by itself.
func TestACredentialReplacesWhatIsInItsSlot(t *testing.T) {
	secret, err := vault.NewSecret([]byte(testSecret))
	must.Do(t, err)
	credential := vault.Credential{Secret: secret, Username: "user"}
	for name, c := range map[string]struct {
		how   spec.Injection
		field string
		want  string
	}{
		"bearer": {spec.Injection{Kind: "bearer", In: "header", Name: "Authorization", Format: "Bearer {secret}"},
			"Authorization", "Bearer " + testSecret},
		"key": {spec.Injection{Kind: "api_key", In: "header", Name: "x-api-key", Format: "{secret}"},
			"X-Api-Key", testSecret},
		"basic": {spec.Injection{Kind: "basic", In: "header", Name: "Authorization", Format: "Basic {secret}"},
			"Authorization", "Basic " + basic("user", testSecret)},
	} {
		r, err := http.NewRequest(http.MethodGet, "https://api.good.example/", nil)
		must.Do(t, err)
		r.Header[c.field] = []string{"Bearer ATTACKER", "Basic ATTACKER"}
		must.Do(t, NewInjectCredential(&spec.Operation{Injection: &c.how}, credential).ModifyRequest(r))
		if got := r.Header[c.field]; len(got) != 1 || got[0] != c.want {
			t.Errorf("%s: %d values of %s, want the credential alone", name, len(got), c.field)
		}
	}
}

func basic(user, password string) string {
	r := &http.Request{Header: http.Header{}}
	r.SetBasicAuth(user, password)
	return r.Header.Get("Authorization")[len("Basic "):]
}

func TestTheNameOfAQueryCredentialIsTheCredentialsAlone(t *testing.T) {
	op := &spec.Operation{Injection: &spec.Injection{
		Kind: "api_key", In: "query", Name: "Sig_Nature", Format: "{secret}",
	}}
	for query, want := range map[string]string{
		"x=1&Sig_Nature=A": "x=1", "sig_nature=A&x=1": "x=1", "SIG_NATURE=A": "", "sig%5Fnature=A": "",
		"Sig_Nature[]=A&x=1": "x=1", "Sig_Nature[a]=A": "",
		"sig.nature=A": "", "sig+nature=A": "", "sig-nature=A": "",
		"Sig_Nature%00x=A": "", "+Sig_Nature=A": "", "Sig_Nature": "",
		"signature=A": "signature=A", "x=Sig_Nature": "x=Sig_Nature",
	} {
		r := &http.Request{URL: &url.URL{RawQuery: query}}
		must.Do(t, StripQueryCredentials{Operation: op}.ModifyRequest(r))
		if r.URL.RawQuery != want {
			t.Errorf("of %q %q is left, want %q", query, r.URL.RawQuery, want)
		}
	}
}
