package spec

import (
	"os"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

func TestEachKindComposesItsValue(t *testing.T) {
	for kind, want := range map[Kind]string{
		KindOAuth2: "open sesame", KindAPIKey: "open sesame", KindBearer: "open sesame",
		KindBasic: "QWxhZGRpbjpvcGVuIHNlc2FtZQ==", // the example of RFC 7617 section 2
	} {
		if got := kind.Compose("Aladdin", "open sesame"); got != want {
			t.Errorf("%s.Compose = %q, want %q", kind, got, want)
		}
		if !kind.isKnown() || kind.HasUsername() != (kind == KindBasic) || kind.NeedsLogin() != (kind == KindOAuth2) {
			t.Errorf("the row of %s is %+v", kind, kind.row())
		}
	}
	if unknown := Kind("Bearer"); unknown.isKnown() {
		t.Errorf("%q is a kind", unknown)
	}
}

func TestEachKindIsDocumented(t *testing.T) {
	page := must.Get(os.ReadFile("../docs/connectors.md"))(t)
	for _, kind := range Kinds() {
		if !strings.Contains(string(page), "`"+string(kind)+"`") {
			t.Errorf("docs/connectors.md does not name the kind `%s`", kind)
		}
	}
}
