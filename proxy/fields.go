package proxy

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/ALRubinger/aileron/proxy/budget"
	"github.com/ALRubinger/aileron/spec"
)

// maxFieldBody is how much of a JSON response is kept to read declared audit
// fields from. A longer one has none, and fields.body_fields in its row.
const maxFieldBody = 1 << 20

// maxField is the longest value of one declared field in an audit row.
const maxField = 1 << 10

// pathFields puts the declared path parameters into the row.
func (x *Exchange) pathFields() {
	for _, f := range x.match.Operation.Audit {
		name, ok := strings.CutPrefix(f.Source, "path.")
		if !ok {
			continue
		}
		if in := x.match.Operation.Injection; in != nil && in.In == "path" && in.Name == name {
			continue // the credential's own slot
		}
		if v, ok := x.match.Param(name); ok {
			x.SetField(f.Name, x.fieldValue(f, v))
		}
	}
}

func (x *Exchange) fieldValue(f spec.AuditField, v string) string {
	if f.Redact {
		// Salted by the session, so that equal values are seen to be equal within it
		// and cannot be looked up in a table.
		sum := sha256.Sum256([]byte(x.p.cfg.Token + "\x00" + f.Name + "\x00" + v))
		return "sha256:" + hex.EncodeToString(sum[:])
	}
	return strings.ToValidUTF8(v[:min(len(v), maxField)], "\ufffd")
}

// watchFields keeps a copy of the scrubbed JSON response when the operation
// declares fields of it.
func (x *Exchange) watchFields(res *http.Response) error {
	declared := false
	for _, f := range x.match.Operation.Audit {
		declared = declared || strings.HasPrefix(f.Source, "response.body.")
	}
	media, _, _ := strings.Cut(res.Header.Get("Content-Type"), ";")
	media = strings.TrimSpace(strings.ToLower(media))
	if declared && (media == "application/json" || strings.HasSuffix(media, "+json")) {
		x.fields = &fieldReader{ReadCloser: res.Body, hold: x.p.budget.Conn().Hold(nil)}
		res.Body = x.fields
	}
	return nil
}

// fieldReader keeps a copy of a body as it is read. Where the budget is short it
// keeps none: waiting for room would hold up the exchange, which may be the one
// that has to make room.
type fieldReader struct {
	io.ReadCloser
	hold *budget.Hold // of seen
	seen []byte
	over bool
}

func (r *fieldReader) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	if !r.over {
		if r.over = len(r.seen)+n > maxFieldBody || !r.hold.TryTake(int64(n)); r.over {
			r.drop()
		} else {
			r.seen = append(r.seen, p[:n]...)
		}
	}
	return n, err
}

// drop forgets what was kept.
func (r *fieldReader) drop() {
	r.seen = nil
	r.hold.Release()
}

// bodyFields puts the declared fields of the response into the row. gjson requires
// valid input, and takes part in no decision.
func (x *Exchange) bodyFields() {
	if x.fields == nil {
		return
	}
	defer x.fields.drop()
	if x.fields.over || !gjson.ValidBytes(x.fields.seen) {
		x.SetField("body_fields", "unread")
		return
	}
	for _, f := range x.match.Operation.Audit {
		path, ok := strings.CutPrefix(f.Source, "response.body.")
		if !ok {
			continue
		}
		if v := gjson.GetBytes(x.fields.seen, path); v.Exists() {
			x.SetField(f.Name, x.fieldValue(f, v.String()))
		}
	}
}
