package harness

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"testing"
)

func TestLeaksAreFoundInEveryForm(t *testing.T) {
	const s = `aB3d+fG7h/Jk9L=mN2pQ%rS5tU&vW8xY"zA1bC\\dE`
	leaks := NewLeaks(map[string]string{"S": s})
	percent := ""
	escaped, entities := "", ""
	for _, c := range []byte(s) {
		percent += fmt.Sprintf("%%%02x", c)
		escaped += fmt.Sprintf(`\u%04X`, c)
		entities += fmt.Sprintf("&#%d;", c)
	}
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = io.WriteString(z, "x"+s)
	_ = z.Close()
	for name, text := range map[string]string{
		"raw": s, "a fragment": s[7 : 7+Fragment], "hex": hex.EncodeToString([]byte(s)),
		"upper hex": strings.ToUpper(hex.EncodeToString([]byte(s))),
		"hex dump":  fmt.Sprintf("% x", s), "base64": base64.StdEncoding.EncodeToString([]byte(s)),
		"base64 shifted": base64.URLEncoding.EncodeToString([]byte("xx" + s + "y")),
		"base64 in lines": base64.StdEncoding.EncodeToString([]byte(s))[:20] + "\r\n" +
			base64.StdEncoding.EncodeToString([]byte(s))[20:],
		"percent": percent, "JSON": escaped, "HTML": entities,
		"double percent": strings.ReplaceAll(percent, "%", "%25"), "gzip": zipped.String(),
	} {
		if leaks.Find([]byte("before "+text+" after")) == "" {
			t.Errorf("%s was not found", name)
		}
	}
	if got := leaks.Find([]byte(s[:Fragment-1] + " | and nothing more")); got != "" {
		t.Errorf("%d bytes were taken for a leak: %s", Fragment-1, got)
	}
}
