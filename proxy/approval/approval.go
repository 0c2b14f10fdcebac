// Package approval keeps the requests of one session that wait for a person's decision.
//
// [New] makes a [Queue]. A request that needs an approval asks, waits, and uses what was decided:
//
//	ticket, err := queue.Ask(ctx, request)
//	if err != nil {
//		return err // ErrFull, or its row could not be recorded
//	}
//	defer ticket.Leave()
//	if ticket.Wait(ctx, deadline) == approval.Approved && ticket.Use() {
//		// it may be sent, once
//	}
//
// Equal requests are one [Question]. Silence leaves it pending, and never decides it. [Queue.Decide] is for the owner
// of the session alone: nothing in this package is reached from a sandbox, except that it may ask, and learn the state
// of a question ([Queue.State]).
package approval

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"
)

// State is what has become of a question.
type State string

// The states. Only the first is left again.
const (
	Pending  State = "pending"
	Approved State = "approved" // until it was used, revoked, or ten minutes have passed
	Denied   State = "denied"
	Expired  State = "expired" // it was not decided in time, or what was approved was not used in time
)

// Scope is how far a decision goes.
type Scope string

// The scopes. A decision for a session or for always is about a [Subject].
const (
	Once    Scope = "once"
	Session Scope = "session"
	Always  Scope = "always"
)

// Scopes returns all scopes.
func Scopes() []Scope { return []Scope{Once, Session, Always} }

// Subject is an operation of certain bytes of a connector, under a certain credential: another version of the
// connector, or another binding, is another subject.
type Subject struct {
	Connector string `json:"connector_fqn"`
	Hash      string `json:"connector_hash"` // of the connector's content; "": no connector allows the request
	Tool      string `json:"tool"`
	Operation string `json:"operation"`
	Binding   string `json:"binding"` // the name of the credential; "": none is sent
	// BindingID differs after each change of the credential but a renewal of its login.
	BindingID string `json:"binding_id,omitempty"`
	WebSocket bool   `json:"websocket,omitempty"` // the request opens a connection, on which more follows
}

// IsOperation reports whether a decision can be kept for the subject.
func (s Subject) IsOperation() bool { return s.Hash != "" && s.Operation != "" }

// The bounds of a request that a person can judge: of its path and query, of its header fields, in bytes, and of its
// inputs. One that exceeds them cannot be asked about.
const (
	MaxTarget = 8 << 10
	MaxFields = 8 << 10
	MaxInputs = 64
)

// Value is a name of a request with its value: an input, or a header field. The sandbox chose the value.
type Value struct {
	Name  string `json:"name"`
	In    string `json:"in,omitempty"` // path or query; "" for a header field
	Value string `json:"value"`
}

// MaxShown bounds what is kept of a body for a person to see, in bytes.
const MaxShown = 64 << 10

// Request is a request that is asked about, as it is to be sent. What identifies it is its subject, method, target,
// fields and body.
type Request struct {
	Subject
	Version string  `json:"connector_version"`
	Covers  string  `json:"covers,omitempty"`   // what a decision about the subject is for, in words of the connector
	AnyPath bool    `json:"any_path,omitempty"` // that is every path of its hosts
	Method  string  `json:"method"`
	Scheme  string  `json:"scheme"`
	Host    string  `json:"host"`
	Port    int     `json:"port"`
	Path    string  `json:"path"`
	Query   string  `json:"query,omitempty"`
	Inputs  []Value `json:"inputs"`
	Fields  []Value `json:"headers,omitempty"` // those that are sent and may change what the request means, sorted

	Body       []byte `json:"body,omitempty"` // the first MaxShown bytes
	BodyBytes  int64  `json:"body_bytes"`     // -1: not known
	BodySHA256 string `json:"body_sha256,omitempty"`
	// Compared is the digest by which the body is compared with that of another request; "" is BodySHA256.
	Compared string `json:"-"`
	// Asks is what the body asks for, where the operation decides by that: plain words in one line.
	Asks string `json:"asks,omitempty"`
	// Budget is the limit that the request exceeds, if that is what is asked about: a sentence of ours.
	Budget string `json:"budget,omitempty"`
	// Streams is whether the body is too long to be read before it is sent. Such a request has a question of its own,
	// which ends with it.
	Streams bool `json:"streams,omitempty"`

	HTTPVersion string `json:"-"` // for the row
	Source      string `json:"-"` // for the row
	RequestID   string `json:"-"`
}

// key returns what equal requests have in common.
func (r *Request) key() [sha256.Size]byte {
	h := sha256.New()
	add := func(texts ...string) {
		for _, text := range texts {
			var n [8]byte
			binary.BigEndian.PutUint64(n[:], uint64(len(text)))
			h.Write(n[:])
			_, _ = h.Write([]byte(text))
		}
	}
	add(r.Connector, r.Hash, r.Tool, r.Operation, r.Binding, r.BindingID, strconv.FormatBool(r.WebSocket), r.Method)
	add(r.Scheme, r.Host, r.Path, r.Query, cmp.Or(r.Compared, r.BodySHA256))
	for _, f := range r.Fields {
		add(f.Name, f.Value)
	}
	var port [8]byte
	binary.BigEndian.PutUint64(port[:], uint64(r.Port)) //nolint:gosec // it is a port
	h.Write(port[:])
	if r.Streams {
		add(r.RequestID)
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// digest returns what a person's decision about the request is for, when it is asked about with an id.
func (r *Request) digest(id string, key [sha256.Size]byte) string {
	return Digest(slices.Concat(key[:], []byte(id), r.Body))
}

// Digest returns the SHA-256 of a body, "" for an empty one.
func Digest(body []byte) string {
	if len(body) == 0 {
		return ""
	}
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

// Question is what a person is asked, and what has become of it.
type Question struct {
	ID        string    `json:"id"`
	SessionID string    `json:"session_id"`
	Agent     string    `json:"agent"`
	State     State     `json:"state"`
	Requested time.Time `json:"requested_at"`
	Waiting   int       `json:"waiting"` // requests that are held for it
	Digest    string    `json:"digest"`  // of the id and of all that identifies the request, body included
	Request

	// Preview is what the service says of it, to the person who is asked; nil: that was not fetched, or there is none.
	Preview *Preview `json:"preview,omitempty"`

	Decided *time.Time `json:"decided_at,omitempty"`
	Surface string     `json:"surface,omitempty"` // where it was decided
	For     Scope      `json:"for,omitempty"`
	Used    bool       `json:"used,omitempty"` // an approval for once let its request pass
}

// MaxPreview bounds what is read of the response to a preview, in bytes.
const MaxPreview = 64 << 10

// Preview is the response of a service to another operation of the same connector, for the person who is asked about a
// request. The service chose every value of it, and may repeat what the sandbox wrote.
type Preview struct {
	Tool      string  `json:"tool"`
	Operation string  `json:"operation"`
	Status    int     `json:"status,omitempty"`
	Values    []Value `json:"values,omitempty"` // by the paths that the connector names, or one without a name
	Cut       bool    `json:"cut,omitempty"`    // there is more than is shown
	SHA256    string  `json:"sha256,omitempty"` // of Values
	// Differs is what of the request is not what the response has, in words of the connector's; "": all that is compared
	// is the same.
	Differs string `json:"differs,omitempty"`
	// Problem is why there is no response to show, in words of aileron's; "": there is one.
	Problem string `json:"problem,omitempty"`
}

// Bounds of a preview in a list.
const (
	maxBriefValues = 8
	maxBriefValue  = 200 // bytes
)

// Brief returns a preview for a list: the beginnings of its first values. Its SHA256 is that of all of them.
func (p Preview) Brief() *Preview {
	all := p.Values
	p.Values = nil
	for i, v := range all {
		if i == maxBriefValues {
			p.Cut = true
			break
		}
		if len(v.Value) > maxBriefValue {
			v.Value, p.Cut = strings.ToValidUTF8(v.Value[:maxBriefValue], ""), true
		}
		p.Values = append(p.Values, v)
	}
	return &p
}

// Decision is what the owner decides.
type Decision struct {
	Approve bool   `json:"approve"`
	For     Scope  `json:"for"`
	Surface string `json:"surface"` // where: cli, page, decider
	// Shown is the [Question.Digest] of what a person saw. It must be that of the question; "" is not compared.
	Shown string `json:"shown,omitempty"`
	// Reason is why, for the row: one line that is safe on a terminal; "": nothing. Only a decider has one.
	Reason string `json:"-"`
}

// Rule is a decision about a subject, for a session or for always.
type Rule struct {
	ID      string    `json:"id"` // of the question that it was made for
	Approve bool      `json:"approve"`
	For     Scope     `json:"for"`
	Made    time.Time `json:"made_at"`
	Surface string    `json:"surface"`
	Subject
	Version string `json:"connector_version"`
	Host    string `json:"host"` // of the request that it was made for
	Method  string `json:"method"`
	Session string `json:"session_id,omitempty"` // for a rule of one session
}

// The errors of a queue.
var (
	ErrFull     = errors.New("too many questions are open")
	ErrClosed   = errors.New("the session is ending")
	ErrUnknown  = errors.New("there is no such question")
	ErrDecided  = errors.New("it is decided already")
	ErrShown    = errors.New("it is not what was shown")
	ErrNoObject = errors.New("it is no operation of a connector, so it can be decided for once only")
	ErrBudget   = errors.New("a budget cannot be exceeded always: raise its limit")
	ErrAnyPath  = errors.New("its operation is every path of its hosts, so it cannot be approved always")
)
