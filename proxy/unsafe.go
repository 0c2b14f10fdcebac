package proxy

import (
	"mime"
	"net/http"
	"strings"
)

// refuseUnsearchable refuses an answer in which a secret could hide: E2 of
// the manual's page on scrubbing.
func (x *Exchange) refuseUnsearchable(res *http.Response) error {
	op := x.match.Operation
	if res.StatusCode == http.StatusPartialContent && !op.Ranges {
		return deny(reasonPartial, "the upstream sent a part that was not asked for")
	}
	for _, name := range []string{"Content-Encoding", "Grpc-Encoding"} {
		for _, coding := range res.Header[name] {
			if c := strings.TrimSpace(coding); c != "" && !strings.EqualFold(c, "identity") {
				return deny(reasonEncoding, "the upstream compressed its answer although it was asked not to")
			}
		}
	}
	if !searchableCharset(res.Header["Content-Type"]) {
		return deny(reasonCharset, "the upstream's answer is in a character set that is not searched")
	}
	return nil
}

// searchableCharset accepts the supersets of ASCII that the scrubber's forms
// are written in, and a type without charset. What two readers could take for
// different character sets is not accepted.
func searchableCharset(types []string) bool {
	if len(types) != 1 {
		return len(types) == 0
	}
	lower := strings.ToLower(types[0])
	if !strings.Contains(lower, "charset") {
		return true
	}
	_, params, err := mime.ParseMediaType(types[0])
	if err != nil || strings.Count(lower, "charset") != 1 {
		return false
	}
	switch strings.ToLower(params["charset"]) {
	case "utf-8", "utf8", "us-ascii", "ascii", "iso-8859-1", "latin1", "windows-1252":
		return true
	}
	return false
}
