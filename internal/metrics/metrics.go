// Package metrics counts what a session records, and writes it in the text format of OpenMetrics 1.0, which Prometheus
// scrapes:
//
//	counts := metrics.New(version, granted)
//	s, err := session.Open(ctx, session.Options{Observe: counts.Observe, …})
//	counts.Write(w, metrics.State{Ready: true})
//
// The names and the values of labels are bounded, whatever a sandbox requests: no host, path or operation is among
// them, and a connector only if it is granted.
package metrics

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/ALRubinger/aileron/audit"
)

// ContentType is that of what [Counts.Write] writes.
const ContentType = "application/openmetrics-text; version=1.0.0; charset=utf-8"

// bounds are those of the histogram of durations, in seconds: from what a local service takes to a model's answer.
var bounds = [...]float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300}

// The most values that a label has. What comes later is counted as "other".
const (
	maxConnectors = 256
	maxReasons    = 128
	other         = "other"
)

// Counts counts the requests of one session. Its methods are safe for concurrent use.
type Counts struct {
	version string
	granted func(fqn string) bool

	mu         sync.Mutex
	requests   map[requestKey]uint64
	refusals   map[string]uint64 // by reason
	durations  map[audit.Decision]*histogram
	connectors map[string]bool // that requests has
	redactions uint64
	received   uint64 // bytes of requests
	sent       uint64 // bytes of responses
	renewals   map[bool]uint64
}

type requestKey struct {
	decision  audit.Decision
	connector string
}

// histogram counts durations by bounds, and those beyond the last one.
type histogram struct {
	counts [len(bounds) + 1]uint64
	sum    float64
}

// New returns counts of nothing. granted reports whether a connector is granted: the names of others are a sandbox's
// own.
func New(version string, granted func(fqn string) bool) *Counts {
	return &Counts{version: version, granted: granted, requests: map[requestKey]uint64{}, refusals: map[string]uint64{},
		durations: map[audit.Decision]*histogram{}, connectors: map[string]bool{}, renewals: map[bool]uint64{}}
}

// Observe counts a row, for [session.Options].Observe.
func (c *Counts) Observe(r *audit.Row) {
	switch r.Event {
	case audit.EventBindingRefreshed, audit.EventBindingRefreshFailed:
		c.mu.Lock()
		c.renewals[r.Event == audit.EventBindingRefreshed]++
		c.mu.Unlock()
		return
	}
	if r.Decision == "" || r.Decision == audit.DecisionDisabled {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	key := requestKey{decision: r.Decision}
	if r.ConnectorFQN != "" && (c.connectors[r.ConnectorFQN] || c.granted(r.ConnectorFQN)) {
		key.connector = bounded(c.connectors, r.ConnectorFQN, maxConnectors)
		c.connectors[key.connector] = true
	}
	c.requests[key]++
	if r.Decision == audit.DecisionRejected {
		c.refusals[bounded(c.refusals, cmp.Or(r.Reason, other), maxReasons)]++
	}
	h := c.durations[r.Decision]
	if h == nil {
		h = &histogram{}
		c.durations[r.Decision] = h
	}
	seconds := float64(r.DurationUS) / 1e6
	at, _ := slices.BinarySearch(bounds[:], seconds) // a duration equal to a bound is within it
	h.counts[at]++
	h.sum += seconds
	c.redactions += uint64(max(r.Redactions, 0))
	c.received += uint64(max(r.RequestBytes, 0))
	c.sent += uint64(max(r.ResponseBytes, 0))
}

// bounded returns the value of a label, or "other" if there are too many.
func bounded[V any](have map[string]V, value string, most int) string {
	if _, ok := have[value]; !ok && len(have) >= most {
		return other
	}
	return value
}

// State is what a session is at the moment of a scrape.
type State struct {
	Ready       bool
	Writable    bool // the audit log is
	Connectors  int  // that are granted
	Credentials int  // that are bound
	Queue       int64
}

// Write writes all metrics. The error is that of w.
func (c *Counts) Write(w io.Writer, s State) error {
	var out bytes.Buffer
	c.write(&page{&out}, s)
	_, err := w.Write(out.Bytes())
	return err
}

func (c *Counts) write(p *page, s State) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p.family("aileron_build", "info", "", "What this program was built from.")
	p.sample("aileron_build_info", 1, "version", c.version)
	p.family("aileron_ready", "gauge", "", "Whether requests are served: 1 or 0.")
	p.sample("aileron_ready", number(s.Ready))
	p.family("aileron_connectors", "gauge", "", "Connectors that are granted.")
	p.sample("aileron_connectors", float64(s.Connectors))
	p.family("aileron_credentials", "gauge", "", "Connectors whose credential is there.")
	p.sample("aileron_credentials", float64(s.Credentials))

	p.family("aileron_requests", "counter", "", "Requests by what became of them, and by connector.")
	for _, k := range slices.SortedFunc(maps.Keys(c.requests), func(a, b requestKey) int {
		return cmp.Or(cmp.Compare(a.decision, b.decision), cmp.Compare(a.connector, b.connector))
	}) {
		p.sample("aileron_requests_total", float64(c.requests[k]), "decision", string(k.decision), "connector", k.connector)
	}
	p.family("aileron_refusals", "counter", "", "Refused requests by reason.")
	for _, reason := range slices.Sorted(maps.Keys(c.refusals)) {
		p.sample("aileron_refusals_total", float64(c.refusals[reason]), "reason", reason)
	}
	p.family("aileron_request_duration_seconds", "histogram", "seconds",
		"Time from the head of a request to the end of its response.")
	for _, d := range slices.Sorted(maps.Keys(c.durations)) {
		p.histogram("aileron_request_duration_seconds", c.durations[d], "decision", string(d))
	}
	p.family("aileron_redactions", "counter", "", "Occurrences of secrets that were redacted from responses.")
	p.sample("aileron_redactions_total", float64(c.redactions))
	p.family("aileron_request_bytes", "counter", "bytes", "Bytes of the bodies of requests.")
	p.sample("aileron_request_bytes_total", float64(c.received))
	p.family("aileron_response_bytes", "counter", "bytes", "Bytes of the bodies of responses.")
	p.sample("aileron_response_bytes_total", float64(c.sent))
	p.family("aileron_credential_renewals", "counter", "", "Renewals of credentials by their result.")
	for _, ok := range []bool{false, true} {
		p.sample("aileron_credential_renewals_total", float64(c.renewals[ok]), "result", map[bool]string{true: "ok",
			false: "failed"}[ok])
	}
	p.family("aileron_audit_writable", "gauge", "", "Whether the audit log can be written: 1 or 0.")
	p.sample("aileron_audit_writable", number(s.Writable))
	p.family("aileron_audit_queue_bytes", "gauge", "bytes", "Durable audit rows that are not in audit.db yet.")
	p.sample("aileron_audit_queue_bytes", float64(s.Queue))
	p.out.WriteString("# EOF\n")
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// page is a text in the format of OpenMetrics.
type page struct{ out *bytes.Buffer }

func (p *page) family(name, kind, unit, help string) {
	fmt.Fprintf(p.out, "# TYPE %s %s\n", name, kind)
	if unit != "" {
		fmt.Fprintf(p.out, "# UNIT %s %s\n", name, unit)
	}
	fmt.Fprintf(p.out, "# HELP %s %s\n", name, help)
}

// sample writes one sample with its labels, as names and values.
func (p *page) sample(name string, value float64, labels ...string) {
	p.out.WriteString(name)
	for i := 0; i+1 < len(labels); i += 2 {
		p.out.WriteByte("{,"[min(i, 1)])
		fmt.Fprintf(p.out, `%s="%s"`, labels[i], escapeLabel.Replace(strings.ToValidUTF8(labels[i+1], "\ufffd")))
	}
	if len(labels) > 0 {
		p.out.WriteByte('}')
	}
	p.out.WriteString(" " + strconv.FormatFloat(value, 'g', -1, 64) + "\n")
}

// escapeLabel is that of the values of labels, of which no other character is special.
var escapeLabel = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

func (p *page) histogram(name string, h *histogram, labels ...string) {
	var count uint64
	for i, n := range h.counts {
		count += n
		bound := "+Inf"
		if i < len(bounds) {
			bound = strconv.FormatFloat(bounds[i], 'f', -1, 64)
			if !strings.Contains(bound, ".") {
				bound += ".0" // the canonical form
			}
		}
		p.sample(name+"_bucket", float64(count), append(slices.Clone(labels), "le", bound)...)
	}
	p.sample(name+"_count", float64(count), labels...)
	p.sample(name+"_sum", h.sum, labels...)
}
