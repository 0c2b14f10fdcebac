package modify

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// The body of a response without one is left alone, whatever its head announces.
func TestOnlyBodiesAreJudged(t *testing.T) {
	body := func() io.ReadCloser { return io.NopCloser(strings.NewReader("x")) }
	for name, c := range map[string]struct {
		method string
		res    http.Response
		judged bool
	}{
		"a body":              {http.MethodGet, http.Response{StatusCode: 200, ContentLength: -1, Body: body()}, true},
		"one of a known size": {http.MethodPost, http.Response{StatusCode: 404, ContentLength: 1, Body: body()}, true},
		"HEAD":                {http.MethodHead, http.Response{StatusCode: 200, ContentLength: 1, Body: body()}, false},
		"no bytes":            {http.MethodGet, http.Response{StatusCode: 200, Body: body()}, false},
		"none":                {http.MethodGet, http.Response{StatusCode: 200, ContentLength: -1, Body: http.NoBody}, false},
		"nil":                 {http.MethodGet, http.Response{StatusCode: 200, ContentLength: -1}, false},
		"204":                 {http.MethodGet, http.Response{StatusCode: 204, ContentLength: -1, Body: body()}, false},
		"304":                 {http.MethodGet, http.Response{StatusCode: 304, ContentLength: 1, Body: body()}, false},
	} {
		m, was := &RejectPacked{Method: c.method}, c.res.Body
		if err := m.ModifyResponse(&c.res); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if judged := c.res.Body != was; judged != c.judged {
			t.Errorf("%s is judged: %v, want %v", name, judged, c.judged)
		}
	}
}
