package proxy

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/must"
)

// The connections of a session that drains are cut when nothing is under way any
// more: an exchange is, until its last piece is written.
func TestAnExchangeIsUnderWayUntilItsBodyIsClosed(t *testing.T) {
	for name, res := range map[string]*http.Response{
		"a length": {StatusCode: http.StatusOK, ContentLength: 2, Body: io.NopCloser(strings.NewReader("ok"))},
		"chunks":   {StatusCode: http.StatusOK, ContentLength: -1, Body: io.NopCloser(strings.NewReader("ok"))},
		"no body":  {StatusCode: http.StatusNoContent, Body: http.NoBody},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, hello)
			_, x := recycled(t, w, &w.plane.exchanges)
			x.row.Source, x.row.RequestID = audit.SourceConnectTLS, audit.NewID()
			if d := x.enter(); d != nil {
				t.Fatal(d)
			}
			out := x.recordAtEnd(res)
			if _, err := io.ReadAll(out.Body); err != nil {
				t.Fatal(err)
			}
			idle := w.plane.inflight.close()
			select {
			case <-idle:
				t.Error("the session may cut its connections before the last piece is written")
			default:
			}
			must.Do(t, out.Body.Close())
			ctx, cancel := context.WithTimeout(t.Context(), testPatience)
			defer cancel()
			select {
			case <-idle:
			case <-ctx.Done():
				t.Error("an exchange whose body is closed is still under way")
			}
			must.Do(t, out.Body.Close())
		})
	}
}
