package capture

import (
	"bytes"
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/proxy/scrub"
)

func TestAQueryIsSearchedBeforeItIsDecoded(t *testing.T) {
	const secret = "abcdefg+hijklmn+opqrstu"
	path := filepath.Join(t.TempDir(), "x.har")
	f := must.Get(Open(path, Options{Version: "test"}))(t)
	r, _ := http.NewRequest(http.MethodGet, "https://x.example/", http.NoBody)
	r.RequestURI = "/?q=" + secret
	f.Begin(r).End(Outcome{Row: audit.Row{Event: audit.EventProxyProxied, Host: "x.example"},
		Secrets: scrub.NewSet([]scrub.Credential{{Secret: []byte(secret)}})})
	must.Do(t, f.Close())
	got := read(t, path).Log.Entries[0].Request
	if v := got.QueryString[0].Value; v != strings.Repeat("*", len(secret)) || strings.Contains(got.URL, "abcdefg") {
		t.Errorf("a plus sign is a space: %q in %s", v, got.URL)
	}
}

// FuzzText holds the text of a body to what package json reads.
func FuzzText(f *testing.F) {
	all := make([]byte, 0, 256)
	for c := range 256 {
		all = append(all, byte(c))
	}
	for _, seed := range []string{"", "plain", "\x00", "\xff\xfe", "\xc3", string(all), string(all[1:128]),
		"ümlaut \u2028 \u202e", "0123456\"", "01234567\\", strings.Repeat("12345678\n", 9), "\x80\x1f\x20\x21\x22\x7f"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		out := append(appendText([]byte("{"), data), '}')
		var text struct{ Text, Encoding string }
		if err := json.Unmarshal(out, &text); err != nil {
			t.Fatalf("%v in %q", err, out)
		}
		if isText(data) != (text.Encoding == "") || isText(data) && text.Text != string(data) {
			t.Errorf("%q is read as %q, %q", data, text.Text, text.Encoding)
		}
		var binary struct{ Text []byte }
		if text.Encoding != "" && (json.Unmarshal(out, &binary) != nil || !bytes.Equal(binary.Text, data)) {
			t.Errorf("%q is read as %q", data, binary.Text)
		}
	})
}
