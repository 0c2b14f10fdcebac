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

// The encodings of a long secret at the beginning of a document are those of the secret alone, and those of most
// secrets are the same in both alphabets of base64. A short one is found as a whole only: each is needed.
func TestNoEncodingIsPreparedTwice(t *testing.T) {
	for secret, want := range map[string][2]int{
		"ghp 16C7e42F292c6912E7710c838347Ae178B4a": {3, 10},
		"~~~?>>~~?~>>~~?>~~~?>>~~?~>>~~?>":         {6, 10},
		"eleven-byte":                              {4, 12},
	} {
		b64, b32 := base64Encodings([]byte(secret), nil), base32Encodings([]byte(secret))
		if got := [2]int{len(b64), len(b32)}; got != want {
			t.Errorf("%q: %d encodings in base64 and base32, want %d", secret, got, want)
		}
	}
}
