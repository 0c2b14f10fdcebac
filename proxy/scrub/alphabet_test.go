package scrub

import (
	"encoding/base64"
	"strings"
	"testing"
)

// A secret whose encodings in the two alphabets of base64 differ in each group, so
// that neither is found by the other's encoding.
func TestBothAlphabetsOfBase64AreFound(t *testing.T) {
	const secret = "~~~?>>~~?~>>~~?>~~~?>>~~?~>>~~?>"
	set := NewSet([]Credential{{Secret: []byte(secret)}})
	for name, enc := range map[string]*base64.Encoding{"standard": base64.StdEncoding, "URL": base64.URLEncoding} {
		for _, prefix := range []string{"", "x", "xx"} {
			form := enc.EncodeToString([]byte(prefix + secret))
			got, hits := set.Text("before " + form + " after")
			if n := runs(got, form); hits == 0 || n > 8 {
				t.Errorf("%s behind %q: %d hits, %d characters of %q are left in %q", name, prefix, hits, n, form, got)
			}
			if !strings.HasPrefix(got, "before ") || !strings.HasSuffix(got, " after") {
				t.Errorf("%s behind %q: the rest was changed: %q", name, prefix, got)
			}
		}
	}
}
