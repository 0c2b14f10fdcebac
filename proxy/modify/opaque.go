package modify

import (
	"net/http"
	"strings"

	"github.com/ALRubinger/aileron/proxy/wire"
)

// RejectOpaque rejects, by its head, a response in which a secret could hide:
// docs/scrubbing.md lists them.
//
// Response: one that is compressed, in a character set that is not searched, or
// has a field whose name can be taken for one of framing, fails; so does a 206,
// unless the operation takes ranges. A Content-Encoding that names no coding goes.
type RejectOpaque struct {
	Ranges bool // the operation takes ranges
}

// ModifyResponse implements martian.ResponseModifier.
func (m RejectOpaque) ModifyResponse(res *http.Response) error {
	if res.StatusCode == http.StatusPartialContent && !m.Ranges {
		return fail(PartialContent, "the upstream sent a part that was not asked for")
	}
	if err := rejectOpaqueHeader(res.Header); err != nil {
		return err
	}
	strip(res.Header, "Content-Encoding")
	return nil
}

// rejectOpaqueHeader holds the header of a response, or of a part of one,
// against the rules for both.
func rejectOpaqueHeader(h http.Header) error {
	if err := rejectAmbiguousNames(h); err != nil {
		return err
	}
	return rejectCoded(h)
}

// rejectCoded rejects a coding or a character set in which a search finds
// nothing.
func rejectCoded(h http.Header) error {
	for _, name := range []string{"Content-Encoding", "Grpc-Encoding", "Connect-Content-Encoding"} {
		for _, codings := range h[name] {
			for coding := range strings.SplitSeq(codings, ",") {
				if !isNoCoding(strings.ToLower(strings.TrimSpace(coding))) {
					return fail(ContentCoding, "the upstream compressed its response although it was asked not to")
				}
			}
		}
	}
	if !hasSearchableCharset(h["Content-Type"]) {
		return fail(Charset, "the upstream's response is in a character set that is not searched")
	}
	return nil
}

// isNoCoding reports whether no client decodes a body because of this name: servers write a character set or a transfer
// encoding of mail where the coding belongs, and stores return the name by which a file was uploaded in signed chunks.
func isNoCoding(name string) bool {
	switch name {
	case "", "identity", "none", "utf-8", "utf8", "7bit", "8bit", "binary", "aws-chunked":
		return true
	}
	return false
}

// rejectAmbiguousNames rejects a field that is no framing, coding or length
// field by its name and may be one to a lenient client. Other odd names are
// dropped.
func rejectAmbiguousNames(h http.Header) error {
	for name := range h {
		if wire.ResemblesFraming(name) {
			return fail(AmbiguousFieldName, "the upstream sent a field whose name can be taken for one of framing or coding")
		}
	}
	return nil
}

// isMediaType reports whether s is a type and a subtype, without parameters.
func isMediaType(s string) bool {
	kind, sub, _ := strings.Cut(s, "/")
	return wire.IsToken(kind) && wire.IsToken(sub)
}

// hasSearchableCharset reports whether types, the values of Content-Type, name no
// charset, or a superset of ASCII in which the scrubber's encodings are written.
// What two readers could take for different character sets is not searchable; what
// is there twice with one value is understood in one way.
func hasSearchableCharset(types []string) bool {
	if len(types) == 0 {
		return true
	}
	for _, other := range types[1:] {
		if other != types[0] {
			return false
		}
	}
	lower := strings.ToLower(types[0])
	if !strings.Contains(lower, "charset") {
		return true
	}
	if media, ok := strings.CutSuffix(lower, "; charset=utf-8"); ok && isMediaType(media) {
		return true // as nearly all are
	}
	first, named := true, ""
	for part := range strings.SplitSeq(lower, ";") {
		if !strings.Contains(part, "charset") {
			continue
		}
		name, value, _ := strings.Cut(part, "=")
		value = strings.TrimSpace(value)
		if inner, ok := strings.CutPrefix(value, `"`); ok {
			value, _ = strings.CutSuffix(inner, `"`)
		}
		if strings.TrimSpace(name) != "charset" || !first && value != named {
			return false
		}
		first, named = false, value
	}
	switch named {
	case "", "utf-8", "utf8", "us-ascii", "ascii", "iso-8859-1", "latin1", "windows-1252":
		return true
	}
	return false
}
