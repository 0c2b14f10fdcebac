// Package jetstream sends the rows of an audit log to a stream of NATS JetStream: a message a batch, in the form of
// audit export, so that a consumer has what aileron audit verify reads. [Parse] reads where, [Target.Migrate] creates
// the stream, and a [Target] is what a shipper sends to.
//
// The stream refuses a message that does not follow the one before it on its subject, which is that of the origin. So
// no row is left out and none is there twice, whatever is killed when, and however many shippers there are.
package jetstream

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/ship"
)

// Schemes are the schemes of the URLs that Parse reads.
var Schemes = []string{"nats", "tls"}

// The header fields of a message.
const (
	headerOrigin = "Aileron-Origin"
	headerKey    = "Aileron-Key"  // the public key of the origin
	headerSeq    = "Aileron-Seq"  // the number of the last row
	headerHash   = "Aileron-Hash" // its hash
	headerGap    = "Aileron-Gap"  // rows that the log did not have: FIRST-LAST REASON
	headerNote   = "Aileron-Head" // the signed head, in base64
)

// Bounds of what waits for the server.
const (
	connectTimeout = 10 * time.Second
	sendTimeout    = 30 * time.Second
)

// subjects is the beginning of the subjects of all origins.
const subjects = "aileron.audit."

// Target is a stream.
type Target struct {
	url    *url.URL
	name   string
	creds  string // a file of credentials; "": none
	conn   *nats.Conn
	server js.JetStream
	stream js.Stream
	last   uint64 // the number of the newest message of the origin
	worked bool   // it was reached before: a refusal may pass by itself
}

var _ ship.Target = (*Target)(nil)

// Parse reads nats://HOST:PORT/STREAM, or tls://…, with ?creds=FILE for credentials of NATS.
func Parse(u *url.URL) (*Target, error) {
	t := &Target{url: u, name: strings.TrimPrefix(u.Path, "/"), creds: u.Query().Get("creds")}
	if u.Host == "" || t.name == "" || strings.ContainsAny(t.name, "/.*> ") {
		return nil, errors.New("it is not a URL of a stream: nats://HOST:PORT/STREAM")
	}
	if host := u.Hostname(); u.Scheme != "tls" && u.User != nil && !isLocal(host) {
		return nil, hint.New(errors.New("its credentials would be sent in the clear"), "write tls:// in place of nats://")
	}
	return t, nil
}

func isLocal(host string) bool {
	addr := net.ParseIP(host)
	return host == "localhost" || addr != nil && addr.IsLoopback()
}

// String returns the host and the stream.
func (t *Target) String() string { return t.url.Scheme + " " + t.url.Host + " " + t.name }

// MaxBytes returns how many bytes of rows a message has at most: the server's own default is 1 MiB.
func (t *Target) MaxBytes() int { return 512 << 10 }

// Close implements [ship.Target].
func (t *Target) Close() {
	if t.conn != nil {
		t.conn.Close()
	}
	t.conn, t.stream = nil, nil
}

// connect connects, unless there is a connection. It is not renewed by itself: Head asks again for where to go on.
func (t *Target) connect(ctx context.Context) (err error) {
	if t.conn != nil && t.conn.IsConnected() {
		return nil
	}
	t.Close()
	options := []nats.Option{nats.Name("aileron"), nats.NoReconnect(), nats.Timeout(connectTimeout),
		nats.IgnoreDiscoveredServers()}
	if t.creds != "" {
		options = append(options, nats.UserCredentials(t.creds))
	}
	at := url.URL{Scheme: t.url.Scheme, Host: t.url.Host, User: t.url.User}
	if t.conn, err = nats.Connect(at.String(), options...); err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	t.server, err = js.New(t.conn)
	return err
}

// Migrate creates the stream, on disk, without a limit, and so that no message can be removed. There is one version
// of it.
func (t *Target) Migrate(ctx context.Context) (from, to int, err error) {
	if err = t.connect(ctx); err != nil {
		return 0, 0, fmt.Errorf("create %s: %w", t, err)
	}
	if _, err = t.server.Stream(ctx, t.name); err == nil {
		return 1, 1, nil
	}
	_, err = t.server.CreateStream(ctx, js.StreamConfig{Name: t.name, Subjects: []string{subjects + "*"},
		Storage: js.FileStorage, DenyDelete: true, DenyPurge: true, Discard: js.DiscardNew})
	if err != nil {
		return 0, 0, fmt.Errorf("create %s: %w", t, err)
	}
	return 0, 1, nil
}

// Head implements [ship.Target].
func (t *Target) Head(ctx context.Context, o ship.Origin) (head audit.Head, err error) {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	if err := t.connect(ctx); err != nil {
		return head, t.refusal(err)
	}
	if t.stream, err = t.server.Stream(ctx, t.name); err != nil {
		return head, t.refusal(err)
	}
	t.last = 0
	m, err := t.stream.GetLastMsgForSubject(ctx, subjects+o.ID)
	t.worked = t.worked || err == nil || errors.Is(err, js.ErrMsgNotFound)
	switch {
	case errors.Is(err, js.ErrMsgNotFound):
		return head, nil
	case err != nil:
		return head, t.refusal(err)
	case m.Header.Get(headerKey) != o.Key:
		return head, ship.Refusef("%s has the origin %s with another key: a log that is not this one was shipped under its "+
			"name", t, o.ID)
	}
	t.last, head.Hash = m.Sequence, m.Header.Get(headerHash)
	if head.Seq, err = strconv.ParseInt(m.Header.Get(headerSeq), 10, 64); err != nil {
		return head, ship.Refusef("the newest message of %s has no number of a row", t)
	}
	return head, nil
}

// Send implements [ship.Target].
func (t *Target) Send(ctx context.Context, b *ship.Batch) error {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	head := b.Head()
	m := &nats.Msg{Subject: subjects + b.Origin.ID, Header: nats.Header{headerOrigin: {b.Origin.ID},
		headerKey: {b.Origin.Key}, headerSeq: {strconv.FormatInt(head.Seq, 10)}, headerHash: {head.Hash}}}
	if b.Note != "" {
		m.Header.Set(headerNote, base64.StdEncoding.EncodeToString([]byte(b.Note)))
	}
	if g := b.Gap; g != nil {
		m.Header.Set(headerGap, fmt.Sprintf("%d-%d %s", g.First, g.Last, g.Reason))
	}
	for i := range b.Rows {
		m.Data = append(b.Rows[i].AppendLine(m.Data), '\n')
	}
	if len(m.Data) > int(t.conn.MaxPayload()) {
		return ship.Refusef("a message of rows %d to %d has %d bytes, and %s accepts %d", b.Rows[0].Seq, head.Seq,
			len(m.Data), t, t.conn.MaxPayload())
	}
	ack, err := t.server.PublishMsg(ctx, m, js.WithExpectStream(t.name),
		js.WithExpectLastSequencePerSubject(t.last),
		js.WithMsgID(fmt.Sprintf("%s/%d-%d", b.Origin.ID, b.Rows[0].Seq, head.Seq)))
	var refused *js.APIError
	if errors.As(err, &refused) && (refused.ErrorCode == js.JSErrCodeStreamWrongLastSequence ||
		refused.ErrorCode == js.JSErrCodeStreamWrongLastSequenceConstant) {
		return ship.ErrMoved
	}
	if err != nil {
		return t.refusal(err)
	}
	t.last = ack.Sequence
	return nil
}

// refusal returns a final error for one that trying again cannot help. What worked once may work again.
func (t *Target) refusal(err error) error {
	named := fmt.Errorf("send rows to %s: %w", t, err)
	switch {
	case errors.Is(err, js.ErrStreamNotFound):
		return &ship.RefusedError{Err: hint.New(named, "create it with: aileron audit ship --migrate --to URL")}
	case !t.worked && (errors.Is(err, nats.ErrAuthorization) || errors.Is(err, js.ErrJetStreamNotEnabled)):
		return &ship.RefusedError{Err: named}
	}
	return named
}
