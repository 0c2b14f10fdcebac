package modify

import (
	"net/http"
	"testing"
)

func TestAFieldNameThatMayBeReadAsFramingIsRefused(t *testing.T) {
	for _, name := range []string{"Content-Encoding ", "Content-Encoding\t", "content_encoding",
		"Content Encoding", "Content-Encoding\u00a0",
		"Content.Encoding", "Transfer_Encoding", "Content-Length ", "Content_Type",
		"Grpc-Encoding ", "Content-Range ", "Content-\x00Encoding",
		"\x0bContent-Encoding", "$Content-Type"} {
		err := rejectAmbiguousNames(http.Header{name: {"gzip"}})
		if failed, ok := err.(*Error); !ok || failed.Kind != AmbiguousFieldName {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{"Content-Encoding", "Content-Type", "X_Other",
		"X-Content-Type-Options", "Content-Encoded ", "", "X Y", "P3p"} {
		if err := rejectAmbiguousNames(http.Header{name: {"x"}}); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
}
