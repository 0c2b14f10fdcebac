package proxy

import (
	"strings"
	"testing"
)

func TestTheReasonPhraseOfADenialIsOneShortPrintableLine(t *testing.T) {
	for message, want := range map[string]string{
		"no installed connector names it; allowed are a.example": "Forbidden (aileron: host_not_allowed: no installed " +
			"connector names it)",
		"the path /\r\nSet-Cookie: a=b/\x1b[2J/é is odd": "Forbidden (aileron: host_not_allowed: the path " +
			"/??Set-Cookie: a=b/?[2J/? is odd)",
	} {
		if got := ReasonHost.Deny("%s", message).phrase(); got != want {
			t.Errorf("%q: got %q, want %q", message, got, want)
		}
	}
	long := ReasonHost.Deny("%s", strings.Repeat("long ", 100)).phrase()
	if len(long) != maxPhrase || !strings.HasSuffix(long, ")") {
		t.Errorf("%d bytes: %q", len(long), long)
	}
}
