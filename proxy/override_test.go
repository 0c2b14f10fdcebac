package proxy

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// A request of a form does not become one of another method at its server, in a parameter, the query or a field.
func TestAFormDoesNotBecomeAnotherMethod(t *testing.T) {
	const form, parts = "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"
	long := "email=" + strings.Repeat("x", 200_000) + "&_method=DELETE"
	for _, c := range []struct{ path, kind, body, want string }{
		{"orders", form, "email=a&_method=DELETE", `"content_not_allowed"`},
		{"orders", form, long, `"content_not_allowed"`},
		{"things", form, "_method=DELETE", `"content_not_allowed"`}, // an operation whose body is JSON
		{"things", "application/json", `{"title":"a","_method":"DELETE"}`, `"content_not_allowed"`},
		{"things", parts, "--x\r\nContent-Disposition: form-data; name=\"_method\"\r\n\r\nDELETE\r\n--x--\r\n",
			`"content_not_allowed"`},
		{"orders?_method=DELETE", form, "email=a", `"query_not_declared"`},
	} {
		whole := 0
		w := newCalls(t, func(*Config) {}, func(_ http.ResponseWriter, r *http.Request) {
			if _, err := io.Copy(io.Discard, r.Body); err == nil {
				whole++
			}
		})
		w.unread = true
		res, text := w.do("POST", "https://api.good.example/v1/"+c.path, c.body, "Content-Type", c.kind)
		if res.StatusCode != 403 || !strings.Contains(text, c.want) || whole != 0 {
			t.Errorf("%s %s %.40q: %d %s; the upstream received %d whole requests", c.path, c.kind, c.body, res.StatusCode,
				text, whole)
		}
	}
	w := newCalls(t, func(*Config) {}, func(http.ResponseWriter, *http.Request) {})
	body := "email=a&metadata[_method_]=x&note=_method%3DDELETE"
	res, text := w.do("POST", "https://api.good.example/v1/orders", body, "Content-Type", form,
		"X-HTTP-Method-Override", "DELETE", "X-Method-Override", "DELETE", "X-HTTP-Method", "DELETE")
	if res.StatusCode != 200 || w.bodies[0] != body {
		t.Errorf("%d %s: the upstream received %q", res.StatusCode, text, w.bodies)
	}
	for name := range w.requests()[0].Header {
		if strings.Contains(strings.ToLower(name), "method") {
			t.Errorf("the upstream received %s", name)
		}
	}
}
