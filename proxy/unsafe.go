package proxy

import (
	"mime"
	"net/http"
	"strings"

	"github.com/ALRubinger/aileron/proxy/wire"
)

// refuseUnsearchable refuses an answer in which a secret could hide: E2 of
// the manual's page on scrubbing.
func (x *Exchange) refuseUnsearchable(res *http.Response) error {
	op := x.match.Operation
	if res.StatusCode == http.StatusPartialContent && !op.Ranges {
		return deny(reasonPartial, "the upstream sent a part that was not asked for")
	}
	if err := refuseOddNames(res.Header); err != nil {
		return err
	}
	return refuseCoded(res.Header)
}

// refuseCoded refuses a coding or a character set in which a search finds
// nothing.
func refuseCoded(h http.Header) error {
	for _, name := range []string{"Content-Encoding", "Grpc-Encoding", "Connect-Content-Encoding"} {
		for _, coding := range h[name] {
			if c := strings.TrimSpace(coding); c != "" && !strings.EqualFold(c, "identity") {
				return deny(reasonEncoding, "the upstream compressed its response although it was asked not to")
			}
		}
	}
	if !searchableCharset(h["Content-Type"]) {
		return deny(reasonCharset, "the upstream's response is in a character set that is not searched")
	}
	return nil
}

// refuseOddNames refuses a field that is no framing, coding or length field by
// its name and may be one to a lenient client: "Content-Encoding " with a
// blank in front of the colon, Content_Encoding. Other odd names are dropped.
func refuseOddNames(h http.Header) error {
	for name := range h {
		if wire.ResemblesFraming(name) {
			return deny(reasonFieldName, "the upstream sent a field whose name can be taken for one of framing or coding")
		}
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
