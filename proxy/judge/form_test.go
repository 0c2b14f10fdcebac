package judge

import (
	"net/http"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/spec"
)

// A form that some server reads otherwise than it is judged asks for an approval.
func TestConditionsForAForm(t *testing.T) {
	t.Parallel()
	c := must.Get(spec.Parse([]byte(`{"schema_version":"aileron.connector.v1","connector":{"fqn":"github://acme/pay",
		"version":"1.0.0"},"tools":[{"name":"pay","operations":[{"name":"send","method":"POST","path":"/send",
		"hosts":["api.pay.example"],"body":"form","approval":{"when":{"body.to":["all"],"query.mode":["live"]}},
		"inputs":[{"name":"to","type":"string"},{"name":"mode","in":"query","type":"string"},
		{"name":"tags","type":"array"},{"name":"_method","type":"string"},
		{"name":"meta","type":"object","style":"deepObject"}]}]}]}`)))(t)
	op := c.Tools[0].Operations[0]
	const form = "application/x-www-form-urlencoded"
	for _, w := range []struct {
		query, body, contentType string
		asks                     bool
	}{
		{"mode=live", "to=all", form, true},
		{"mode=live", "to=me", form, false},
		{"mode=live", "meta%5Ba%5D=b&to=me", form + "; charset=UTF-8", false},
		{"mode=test", "to=all", form, false},
		{"mode=test", "to=all&mode=live", form, true}, // some servers take a parameter from either
		{"mode=live&to=all", "to=me", form, true},
		{"mode=live", "to=me&to=all", form, true},
		{"mode=live", "to=me&to[]=all", form, true},
		{"mode=live", "to=me&To=all", form, true},
		{"mode=live", "to=me;to=all", form, true},
		{"mode=live", "to=me%", form, true},
		{"mode=live", "to%=all&to=me", form, true},
		{"mode=live", "to=a%6Cl", form, true},
		{"mode=live", "meta=x", form, true},
		{"mode=live", "to=me&_method=DELETE", form, true},
		{"mode=live", "to=me&_CHARSET_=utf-16", form, true},
		{"mode=live", "\ufeffto=all&to=me", form, true},
		{"mode=live", "to=me\xff", form, true},
		{"mode=live", "to=me&tags=a&tags=b&meta[a][b]=c&", form, false},
		{"mode=live", "to=me&[to]=all", form, true},
		{"mode=live", "to=me&%5Bto%5D=all", form, true},
		{"mode=live", "to=me&to]=all", form, true},
		{"mode=live", "to=me&[[to]=all", form, true},
		{"mode=live", "?to=all&to=me", form, true},
		{"mode=live", "to=me&payment.to=all", form, true},
		{"mode=live", "to=me&=all", form, true},
		{"mode=live", "to=me&meta.a=1", form, true},
		{"mode=live", "to=me&.method=DELETE", form, true},
		{"mode=live", "to=me&+_method=DELETE", form, true},
		{"mode=live", "to=me&_method%00=DELETE", form, true},
		{"mode=live", "to=me&[_method]=DELETE", form, true},
		{"mode=live", "to=me&_method[]=DELETE", form, true},
		{"mode=live", strings.Repeat("tags=1&", 199) + "to=me", form, false},
		{"mode=live", strings.Repeat("tags=1&", 200) + "to=me", form, true},
		{"mode=test", "to=me&" + strings.Repeat("tags=1&", 200), form, true},
		{"mode=live", "to=me\r\n", form, true},
		{"mode=live", `{"to":"me"}`, "application/json", true},
		{"mode=live", "to=me", form + "; charset=utf-7", true},
		{"mode=live", "to=me", "", true},
		{"mode=live", "to=me&x=" + strings.Repeat("x", MaxBody), form, true},
	} {
		h := http.Header{}
		if w.contentType != "" {
			h.Set("Content-Type", w.contentType)
		}
		if got := BodyAsks(op, w.query, h, []byte(w.body)); got != w.asks {
			t.Errorf("%s with %.60q of %s asks: %v", w.query, w.body, w.contentType, got)
		}
	}
	h := http.Header{"Content-Type": {form}, "Content-Encoding": {"gzip"}}
	if !BodyAsks(op, "mode=live", h, []byte("to=me")) {
		t.Error("an encoded form does not ask")
	}
}
