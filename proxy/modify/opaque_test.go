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

func TestACharsetHasOneReading(t *testing.T) {
	for _, types := range [][]string{
		nil, {"application/json"}, {"application/json", "application/json"}, {"text/html; charset=utf-8"},
		{"text/html;charset=UTF-8", "text/html;charset=UTF-8"}, {"application/json; charset=utf-8; charset=UTF-8"},
		{`text/plain; charset="utf-8"; charset=utf-8`}, {"text/plain; charset="}, {`text/plain; charset=""`},
		{"text/plain; charset"}, {"text/plain; charset = latin1 ; q=1"}, {"charset=utf-8"},
		{`multipart/mixed; boundary="a;b"; charset=us-ascii`},
	} {
		if !hasSearchableCharset(types) {
			t.Errorf("%q is refused", types)
		}
	}
	for _, types := range [][]string{
		{"text/html; charset=utf-16le"}, {"text/html; charset=utf-8; charset=utf-16"}, {"text/html; charset=; charset=utf-7"},
		{"text/html; charset=utf-7; charset="}, {"text/html", "text/plain"}, {"text/html", "text/html; charset=utf-16"},
		{`text/html; x="; charset=utf-8"; charset=utf-16`}, {`text/html; x="; charset=utf-16"; charset=utf-8`},
		{`text/html; charset="utf-\16"`}, {"text/html; charset*=utf-8''utf-16"}, {"text/html; charset*0=utf; charset*1=-16"},
		{"text/html, text/html; charset=utf-16"}, {"text/html; charset=utf-8, text/html; charset=utf-16"},
		{"text/html charset=utf-16"}, {"text/html; xcharset=utf-8"}, {"text/html; charset=utf-8 utf-16"},
		{`text/html; charset='utf-8'`}, {"text/html; charset==utf-8"},
	} {
		if hasSearchableCharset(types) {
			t.Errorf("%q passes", types)
		}
	}
}

func TestACodingThatIsNone(t *testing.T) {
	for _, coding := range []string{"", "identity", "UTF-8", "none", "aws-chunked", "aws-chunked, identity", "binary"} {
		res := &http.Response{Header: http.Header{"Content-Encoding": {coding}, "Etag": {"x"}}}
		if err := (RejectOpaque{}).ModifyResponse(res); err != nil || len(res.Header) != 1 {
			t.Errorf("%q: %v, %v is left", coding, err, res.Header)
		}
	}
	for _, coding := range []string{"gzip", "none, gzip", "utf-8,br", "utf-16", "aws-chunked;x", "x-utf-8"} {
		res := &http.Response{Header: http.Header{"Content-Encoding": {coding}}}
		if failed, ok := (RejectOpaque{}).ModifyResponse(res).(*Error); !ok || failed.Kind != ContentCoding {
			t.Errorf("%q passes", coding)
		}
	}
}
