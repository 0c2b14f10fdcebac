package mcpserver_test

import (
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/mcpserver"
)

// A repository may configure the server, and its variables: the token of a session stays on this host.
func TestTheTokenOfASessionGoesToThisHostOnly(t *testing.T) {
	for url, want := range map[string]string{
		"http://127.0.0.1:8080/v1": "", "http://[::1]:8080/v1": "",
		"http://192.0.2.1:8080/v1": "is no loopback address", "http://evil.example/v1": "evil.example",
		"http://127.0.0.1@evil.example/v1": "evil.example", "http://localhost.evil.example/v1": "evil.example", "::": "::",
	} {
		_, inherited, err := mcpserver.SessionOf(func(name string) string {
			return map[string]string{"AILERON_API_URL": url, "AILERON_TOKEN": "token-of-a-session"}[name]
		})
		if !inherited || (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) ||
			hint.Of(err) == "" || strings.Contains(err.Error(), "token-of-a-session")) {
			t.Errorf("%s: %v, want %q", url, err, want)
		}
	}
	if _, inherited, err := mcpserver.SessionOf(func(string) string { return "" }); inherited || err != nil {
		t.Errorf("without variables: %v, %v", inherited, err)
	}
}
