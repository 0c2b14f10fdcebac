// Package audit is the session's memory: one append-only table of events in
// SQLite, each row chained to the one before it by a hash.
//
// A row is in the log when Append returns, and stays there when the process
// is killed the next moment. Rows are never changed. The package refuses
// nothing and interprets nothing; what may stand in a row (never a
// credential's byte, a header's value, a query or a body) is its callers'
// promise, kept by what they put into the columns.
package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/oklog/ulid/v2"
)

// Events are the values of Row.Event.
const (
	EventProxyStarted          = "connector.proxy.started"
	EventProxyProxied          = "connector.proxy.proxied"
	EventProxyRejected         = "connector.proxy.rejected"
	EventSandboxPassthrough    = "sandbox.proxy.passthrough"
	EventSandboxRejected       = "sandbox.proxy.rejected"
	EventSandboxDisabled       = "sandbox.proxy.disabled"
	EventOperationRejected     = "connector.operation.rejected"
	EventSessionStarted        = "session.started"
	EventSessionEnded          = "session.ended"
	EventBindingCreated        = "binding.created"
	EventBindingRebound        = "binding.rebound"
	EventBindingRevoked        = "binding.revoked"
	EventVaultUnlocked         = "vault.unlocked"
	EventVaultLocked           = "vault.locked"
	EventConnectorInstalled    = "connector.installed"
	EventConnectorRemoved      = "connector.removed"
	EventConnectorVerifyFailed = "connector.verify_failed"
)

// Sources are the values of Row.Source: the way by which a request came.
const (
	SourceConnectTLS      = "transparent_connect_tls"
	SourceConnectHTTP     = "connect_http"
	SourceForwardHTTP     = "forward_http"
	SourceConnectorShim   = "generated_connector_shim"
	SourceRequestBoundary = "daemon_request_boundary"
	SourceLauncher        = "launcher"
	SourceCLI             = "cli"
)

// Decisions are the values of Row.Decision. An intent row has none.
const (
	DecisionProxied     = "proxied"
	DecisionPassthrough = "passthrough"
	DecisionRejected    = "rejected"
	DecisionUpgrade     = "upgrade"
	DecisionDisabled    = "disabled"
)

// Row is one event. Its fields are the columns of the table events, in their
// order.
type Row struct {
	Seq              int64          `json:"seq"`
	ID               string         `json:"id"` // a ULID
	TS               time.Time      `json:"ts"` // UTC
	Event            string         `json:"event"`
	SessionID        string         `json:"session_id"`
	Source           string         `json:"source"`
	Decision         string         `json:"decision"`
	Reason           string         `json:"reason"`
	ConnectorFQN     string         `json:"connector_fqn"`
	ConnectorVersion string         `json:"connector_version"`
	Tool             string         `json:"tool"`
	Operation        string         `json:"operation"`
	Binding          string         `json:"binding"`
	Method           string         `json:"method"`
	Scheme           string         `json:"scheme"`
	Host             string         `json:"host"`
	Port             int            `json:"port"`
	Path             string         `json:"path"`
	HTTPVersion      string         `json:"http_version"`
	Status           int            `json:"status"`
	RequestBytes     int64          `json:"request_bytes"`
	ResponseBytes    int64          `json:"response_bytes"`
	Redactions       int            `json:"redactions"`
	DurationUS       int64          `json:"duration_us"`
	Fields           map[string]any `json:"fields"`
	PrevHash         string         `json:"prev_hash"`
	Hash             string         `json:"hash"`
}

// NewID gives a ULID; those of one process in one millisecond are random, not
// ordered: seq is what orders rows.
func NewID() string { return ulid.Make().String() }

// zeroHash stands before the first row.
const zeroHash = "0000000000000000000000000000000000000000000000000000000000000000"

const timeFormat = "2006-01-02T15:04:05.000000000Z"

// canonical is the row as it is hashed: one JSON object without white space,
// every column but ts, fields, prev_hash and hash in the table's order, then
// ts (RFC 3339, nine digits, UTC) and fields (keys sorted). Strings are
// escaped as encoding/json does: <, > and & as \u003c, \u003e and \u0026.
func (r *Row) canonical(fields []byte) ([]byte, error) {
	type plain Row // no methods
	c := struct {
		plain
		TS       string          `json:"ts"`
		Fields   json.RawMessage `json:"fields"`
		PrevHash *string         `json:"prev_hash,omitempty"`
		Hash     *string         `json:"hash,omitempty"`
	}{plain: plain(*r), TS: r.TS.UTC().Format(timeFormat), Fields: fields}
	return json.Marshal(c)
}

// chain sets the row's hashes after prev: SHA-256 of the 64 hexadecimal
// digits of prev and the canonical row. fields is the stored JSON.
func (r *Row) chain(prev string, fields []byte) error {
	body, err := r.canonical(fields)
	if err != nil {
		return fmt.Errorf("hash an audit row: %w", err)
	}
	h := sha256.New()
	h.Write([]byte(prev))
	h.Write(body)
	r.PrevHash, r.Hash = prev, hex.EncodeToString(h.Sum(nil))
	return nil
}
