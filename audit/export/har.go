// Package export writes rows of the audit log in formats that other programs read: [WriteHAR] as HAR 1.2, and [CSV]. A
// line of JSON Lines is a row as encoding/json writes it.
package export

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/ALRubinger/aileron/audit"
)

// HARWriter writes a log in the format HAR 1.2, entry by entry, so that a log of any length needs no more memory than
// its largest entry. Add encodes an entry, and End completes the document.
type HARWriter struct {
	to    *bufio.Writer
	enc   *json.Encoder
	count int
}

// NewHARWriter returns a writer of a log that aileron of this version made. If w fails, a later Add does, and End.
func NewHARWriter(w io.Writer, version string) *HARWriter {
	h := &HARWriter{to: bufio.NewWriterSize(w, 64<<10)}
	h.enc = json.NewEncoder(h.to)
	h.enc.SetEscapeHTML(false)
	_, _ = h.to.Write(HARHead(version)) // a bufio.Writer returns its first error from then on
	return h
}

// Add writes one entry.
func (h *HARWriter) Add(e *HAREntry) error {
	if h.count++; h.count > 1 {
		if err := h.to.WriteByte(','); err != nil {
			return err
		}
	}
	return h.enc.Encode(e)
}

// End writes the end of the document.
func (h *HARWriter) End() error {
	if _, err := h.to.WriteString(HARTail); err != nil {
		return err
	}
	return h.to.Flush()
}

// HARHead returns what precedes the entries of a log that aileron of this version made.
func HARHead(version string) []byte {
	name, _ := json.Marshal(version) // a string never fails
	return fmt.Appendf(nil, `{"log":{"version":"1.2","creator":{"name":"aileron","version":%s},"entries":[`+"\n", name)
}

// HARTail follows the entries.
const HARTail = "]}}\n"

// WriteEmptyHAR writes a HAR log without an entry.
func WriteEmptyHAR(w io.Writer, version string) error {
	return NewHARWriter(w, version).End()
}

// maxUnpaired bounds the intents for which WriteHAR remembers that no outcome was found yet.
const maxUnpaired = 1 << 17

// Rows are the rows of an [audit.Log], or of another place that has its method.
type Rows interface {
	Each(ctx context.Context, filter audit.Filter, f func(audit.Row) error) error
}

// WriteHAR writes the exchanges among the selected rows as a HAR log: an entry each, in the order of their outcomes,
// then those of which only the intent was selected. It reads rows alone, so there are no headers, queries or bodies.
//
// Other rows are not in it. Of an exchange beyond maxUnpaired that are open at once, the intent is an entry of its
// own.
func WriteHAR(ctx context.Context, l Rows, w io.Writer, version string, filter audit.Filter) error {
	out := NewHARWriter(w, version)
	open := unpairedIntents{seqs: map[string]int64{}}
	err := l.Each(ctx, filter, func(r audit.Row) error {
		request := requestID(&r)
		if r.Event == audit.EventProxyStarted {
			if filter.Event != audit.EventProxyStarted && open.add(request, r.Seq) {
				return nil
			}
			return out.Add(NewHAREntry(r))
		}
		if !isExchange(r.Event) {
			return nil
		}
		e := NewHAREntry(r)
		e.Aileron.IntentSeq = open.take(request)
		return out.Add(e)
	})
	if err == nil && len(open.seqs) > 0 {
		err = eachOpen(ctx, l, filter, open, func(r audit.Row) error { return out.Add(NewHAREntry(r)) })
	}
	if err != nil {
		return err
	}
	return out.End()
}

// eachOpen calls f for the intents that are still open. They are read a second time, because only their numbers were
// kept.
func eachOpen(
	ctx context.Context, l Rows, filter audit.Filter, open unpairedIntents, f func(audit.Row) error,
) error {
	first, last := int64(math.MaxInt64), int64(0)
	for _, seq := range open.seqs {
		first, last = min(first, seq), max(last, seq)
	}
	filter.Event, filter.AfterSeq, filter.ThroughSeq = audit.EventProxyStarted, first-1, last
	filter.Limit = 0
	return l.Each(ctx, filter, func(r audit.Row) error {
		if open.seqs[requestID(&r)] != r.Seq {
			return nil
		}
		return f(r)
	})
}

// unpairedIntents are intents without an outcome: the number of the row by its request_id.
type unpairedIntents struct{ seqs map[string]int64 }

// add remembers an intent, and returns false if that is not possible.
func (o unpairedIntents) add(request string, seq int64) bool {
	if request == "" || len(o.seqs) >= maxUnpaired || len(request) > 64 {
		return false
	}
	if _, twice := o.seqs[request]; twice {
		return false
	}
	o.seqs[request] = seq
	return true
}

// take returns the number of the intent and forgets it. It returns 0 for an outcome without one.
func (o unpairedIntents) take(request string) int64 {
	seq := o.seqs[request]
	delete(o.seqs, request)
	return seq
}

// requestID returns what ties the rows of an exchange together, "" if the row has none.
func requestID(r *audit.Row) string {
	if r.RequestID != "" {
		return r.RequestID
	}
	id, _ := r.Fields["request_id"].(string)
	return id
}

// isExchange reports whether a row of the event is the outcome of a request.
func isExchange(e audit.Event) bool {
	switch e {
	case audit.EventProxyProxied, audit.EventProxyRejected, audit.EventProxyUnknown, audit.EventSandboxPassthrough,
		audit.EventSandboxRejected, audit.EventOperationRejected:
		return true
	}
	return false
}

// harDuration returns the duration of a row, within what a log can state of a request.
func harDuration(r *audit.Row) time.Duration {
	const longest = 366 * 24 * time.Hour
	return time.Duration(min(max(0, r.DurationUS), longest.Microseconds())) * time.Microsecond
}
