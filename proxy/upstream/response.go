package upstream

import (
	"net/http"
	"net/textproto"
	"strconv"
	"strings"

	"github.com/ALRubinger/aileron/proxy/wire"
)

// parseResponse returns the response to a request with method whose validated head
// is given, with the meaning that net/http gives it: a test holds the two against
// each other. All its strings are parts of head. It does not refer to the request.
func (pc *persistConn) parseResponse(head string, h *headValidator, method string) (*http.Response, error) {
	line, fields, _ := strings.Cut(head, "\r\n")
	version, status, _ := strings.Cut(line, " ")
	code, err := strconv.Atoi(h.status)
	if err != nil {
		return nil, &headError{rule: notHTTP}
	}
	header := wire.ParseFields(fields, h.fields)
	if pragma := header["Pragma"]; len(pragma) > 0 && pragma[0] == "no-cache" && header["Cache-Control"] == nil {
		header["Cache-Control"] = []string{"no-cache"} // RFC 9111 section 5.4
	}
	res := &http.Response{Status: status, StatusCode: code, Proto: version, ProtoMajor: 1, ProtoMinor: h.minor,
		Header: header, Close: wire.HasToken(header, "Connection", "close"), Body: http.NoBody}
	switch {
	case h.minor == 0:
		res.Close = res.Close || !wire.HasToken(header, "Connection", "keep-alive")
	case res.Close:
		delete(header, "Connection")
	}
	return res, pc.frame(res, h, method)
}

// frame sets the body of res and what announces it: RFC 9112 section 6.3.
func (pc *persistConn) frame(res *http.Response, h *headValidator, method string) error {
	length := int64(-1)
	if h.length != "" {
		length, _ = strconv.ParseInt(h.length, 10, 64) // isLength
		if lengths := res.Header["Content-Length"]; len(lengths) > 1 {
			res.Header["Content-Length"] = lengths[:1] // all are equal
		}
		res.Header["Content-Length"][0] = h.length // not a list of equal ones
	}
	if h.chunked {
		delete(res.Header, "Transfer-Encoding")
		res.TransferEncoding = []string{"chunked"}
		if err := announceTrailer(res); err != nil {
			return err
		}
	}
	switch {
	case method == http.MethodHead:
		res.ContentLength = length
		return nil
	case res.StatusCode/100 == 1:
		return nil
	case res.StatusCode == http.StatusNoContent, res.StatusCode == http.StatusNotModified:
		// It has no body, whatever it announces. What comes of that is not taken for the next response.
		res.Close = res.Close || h.chunked || res.StatusCode == http.StatusNoContent && length > 0
		return nil
	case h.chunked:
		res.ContentLength = -1
		res.Body = &h1Body{pc: pc, res: res, chunks: &chunkedReader{r: pc.r}, left: -1}
	case length < 0:
		res.ContentLength, res.Close = -1, true // the body ends with the connection
		res.Body = &h1Body{pc: pc, res: res, left: -1}
	case length > 0:
		res.ContentLength = length
		res.Body = &h1Body{pc: pc, res: res, left: length}
	}
	return nil
}

// announceTrailer moves the names of the Trailer field to res.Trailer. One that
// would change how the message is framed is rejected (RFC 9110 section 6.5.1).
func announceTrailer(res *http.Response) error {
	lines, ok := res.Header["Trailer"]
	if !ok {
		return nil
	}
	delete(res.Header, "Trailer")
	for _, line := range lines {
		for name := range strings.SplitSeq(line, ",") {
			name = textproto.CanonicalMIMEHeaderKey(strings.Trim(name, " \t"))
			switch name {
			case "":
				continue
			case "Transfer-Encoding", "Trailer", "Content-Length":
				return &headError{rule: "announces a trailer that would frame the body"}
			}
			if res.Trailer == nil {
				res.Trailer = http.Header{}
			}
			res.Trailer[name] = nil
		}
	}
	return nil
}
