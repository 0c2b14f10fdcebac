package source

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/spec"
)

// client returns a client that connects to nothing.
func client(t *testing.T, opts Options) *Client {
	t.Helper()
	opts.Dial = func(context.Context, string) (net.Conn, error) { return nil, errors.New("there is no network") }
	c := must.Get(New(opts))(t)
	t.Cleanup(c.Close)
	return c
}

func TestAssetsHaveTheAddressesOfTheirForges(t *testing.T) {
	c := client(t, Options{Hub: "https://hub.example:8443/base/", GitLab: "https://gitlab.corp.example/git"})
	for ref, want := range map[string]string{
		"github://acme/tracker@1.2.0":   "https://github.com/acme/tracker/releases/download/v1.2.0/aileron.tar.gz",
		"github://acme/mono/a/b@1.2.0":  "https://github.com/acme/mono/releases/download/a%2Fb%2Fv1.2.0/aileron.tar.gz",
		"github://acme/tracker@1.2.0+a": "https://github.com/acme/tracker/releases/download/v1.2.0%2Ba/aileron.tar.gz",
		"gitlab://acme/mono/a@2.0.0-rc1": "https://gitlab.corp.example/git/acme/mono/-/releases/a%2Fv2.0.0-rc1/downloads/" +
			Asset,
		"hub://acme/a/tracker@1.2.0+a": "https://hub.example:8443/base/api/v1/acme/a/tracker/1.2.0%2Ba/aileron.tar.gz",
	} {
		r := must.Get(ParseRef(ref))(t)
		at := must.Get(c.place(r.FQN))(t)
		if got := at.asset(r.Version, Asset).String(); got != want {
			t.Errorf("%s is at %s, want %s", ref, got, want)
		}
	}
}

func TestRefsNameOneVersion(t *testing.T) {
	for text, want := range map[string]string{
		"github://acme/tracker":         "name its version",
		"github://acme/tracker@":        "is not MAJOR.MINOR.PATCH",
		"github://acme/tracker@latest":  "is not MAJOR.MINOR.PATCH",
		"github://acme/tracker@v1.2.0":  "is not MAJOR.MINOR.PATCH",
		"github://acme/tracker@1.2":     "is not MAJOR.MINOR.PATCH",
		"github://acme/../x@1.2.0":      "is not a plain name",
		"https://github.com/acme@1.2.0": "does not begin with github://",
	} {
		if _, err := ParseRef(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseRef(%s) = %v, want %q", text, err, want)
		}
	}
}

func TestBaseURLsAreHTTPS(t *testing.T) {
	for text, want := range map[string]string{
		"http://github.com":          "is not https://HOST",
		"github.com":                 "is not https://HOST",
		"https://":                   "is not https://HOST",
		"https://:443":               "is not https://HOST",
		"file:///etc":                "is not https://HOST",
		"https://user:pw@github.com": "https://github.com has more than",
		"https://github.com/?x=1":    "has more than a host and a path",
		"https://github.com/#x":      "has more than a host and a path",
	} {
		_, err := New(Options{GitHub: text})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "pw") {
			t.Errorf("New with %s = %v, want %q", text, err, want)
		}
	}
}

func TestWhatIsPublishedNowhere(t *testing.T) {
	c := client(t, Options{})
	for fqn, want := range map[spec.FQN]string{
		"hub://acme/tracker":      "no hub is configured",
		"local://allowed/tracker": "are not published anywhere",
	} {
		var failed *Error
		if _, err := c.Versions(t.Context(), fqn); !errors.As(err, &failed) || failed.Kind != UnknownScheme ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("Versions(%s) = %v, want %q", fqn, err, want)
		}
	}
}

func TestAListOfRefsIsReadStrictly(t *testing.T) {
	const prefix = "refs/tags/a/v"
	line := pktLine
	oid := strings.Repeat("0", 40) + " "
	whole := line(oid+"refs/tags/a/v1.0.0\n") + line(oid+"refs/tags/a/v2.0.0 peeled:"+oid+"\n") +
		line(oid+"refs/tags/v3.0.0\n") + "0000"
	got, err := readRefs(strings.NewReader(whole), prefix)
	if err != nil || !slices.Equal(got, []string{"1.0.0", "2.0.0"}) {
		t.Errorf("readRefs = %v, %v", got, err)
	}
	for text, want := range map[string]string{
		"":                            "it ends early",
		"00":                          "it ends early",
		whole[:len(whole)-4]:          "it ends early",
		"0040" + oid:                  "it ends early",
		"<htm":                        "not a list of git's protocol",
		"0001":                        "not a list of git's protocol",
		"0003":                        "not a list of git's protocol",
		line("ERR access denied\n"):   `the server reports "access denied"`,
		line("ERR \x1b[31mred\x07\n"): `the server reports "\x1b[31mred\a"`,
		line("ERR " + strings.Repeat("x", 60000)): `the server reports "` + strings.Repeat("x", maxReported) + `"`,
	} {
		if _, err := readRefs(strings.NewReader(text), prefix); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("readRefs(%q) = %v, want %q", text, err, want)
		}
	}
}

func TestAListOfAHub(t *testing.T) {
	got, err := readHubVersions(strings.NewReader(`{"versions": [{"version": "1.0.0", "hash": "x"}, "2.0.0"], "more": 1}`))
	if err != nil || !slices.Equal(got, []string{"1.0.0", "2.0.0"}) {
		t.Errorf("readHubVersions = %v, %v", got, err)
	}
	for _, text := range []string{"", "[]", `{"versions": [7]}`, `{"versions": "1.0.0"}`} {
		if got, err := readHubVersions(strings.NewReader(text)); err == nil {
			t.Errorf("readHubVersions(%s) = %v", text, got)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"": 0, "7": 7 * time.Second, "-1": 0, "soon": 0, "99999999999999999999": 0, "Mon, 01 Jan 2001 00:00:00 GMT": 0,
	} {
		if got := retryAfter(text); got != want {
			t.Errorf("retryAfter(%q) = %v, want %v", text, got, want)
		}
	}
}

// FuzzRefs reads any bytes as a list of refs.
func FuzzRefs(f *testing.F) {
	f.Add("003d" + strings.Repeat("0", 40) + " refs/tags/v1.0.0\n0000")
	f.Add("0000")
	f.Add("0009ERR x")
	f.Fuzz(func(t *testing.T, text string) {
		found, err := readRefs(strings.NewReader(text), "refs/tags/v")
		if err != nil && found != nil {
			t.Errorf("readRefs = %v, %v", found, err)
		}
	})
}
