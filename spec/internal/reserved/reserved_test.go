package reserved_test

import (
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/spec/internal/reserved"
)

func TestFieldsThatChangeARequestAreReserved(t *testing.T) {
	for name, want := range map[string]string{
		"transfer-encoding": "framing", "Range": "slices", "x_real_ip": "the client's address", "x-user-jwt": "credential",
		"x-http-method-override": "another host", "aileron-x": "aileron", "x-goog-iap-jwt": "credential",
	} {
		if got := reserved.Field(name); !strings.Contains(got, want) {
			t.Errorf("Field(%q) = %q, want one with %q", name, got, want)
		}
	}
	if got := reserved.Field("x-request-id"); got != "" {
		t.Errorf("an ordinary field is reserved: it %s", got)
	}
	if got := reserved.Prefix("x-"); !strings.Contains(got, "too wide") {
		t.Errorf("Prefix = %q, want that it is too wide", got)
	}
}
