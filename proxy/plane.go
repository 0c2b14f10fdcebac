// Package proxy mediates one session: it terminates the sandbox's TLS, matches
// each request against the connector specs, injects the credential that the
// sandbox must never see, streams the response back with every occurrence
// redacted, and records audit events.
//
// [New] makes a [Plane], [Plane.SetGrants] sets what it allows, and
// [Plane.Serve] serves the clients of a listener:
//
//	plane, err := proxy.New(proxy.Config{Session: id, Token: token, CA: ca, Audit: log})
//	if err != nil {
//		return err
//	}
//	plane.SetGrants(&proxy.Grants{Index: index, Bound: bound, Scrub: secrets})
//	err = plane.Serve(ctx, listener, proxy.Door{Sealed: true})
//
// [Decide] returns the decision about a request, and [Plane.Do] carries it out,
// for a request in a tunnel (tunnel.go) and one in absolute form (front.go),
// whether it is allowed or passed through. Only Do reaches an upstream, with one
// exception: a host that the owner of the session has tunnelled undecrypted
// ([Config].Tunnel) is joined to its client by bypass.go, without a credential.
// A request that is not allowed, cannot be decided, or cannot be recorded, is
// not sent.
package proxy

import (
	"context"
	"crypto/tls"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/ca"
	"github.com/ALRubinger/aileron/proxy/budget"
	"github.com/ALRubinger/aileron/proxy/scrub"
	"github.com/ALRubinger/aileron/proxy/upstream"
	"github.com/ALRubinger/aileron/proxy/wire"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/vault"
)

// Config is what a plane is made of. Session, Token, CA and Audit are
// required.
type Config struct {
	Session     string
	Agent       string // what runs in the box, for GET /v1/session
	Token       string
	CA          *ca.Session
	Audit       Recorder
	Passthrough bool             // forward what no operation names, unmodified and audited
	Tunnel      []string         // "host:port": tunnelled as they are, see bypass.go
	Upstream    upstream.Options // Descriptors and Memory are the plane's
	Limits      Limits
	Log         *slog.Logger // nil: nothing is logged
	Started     time.Time
}

// Recorder writes audit rows. Append returns when the row is committed;
// AppendSoon may return a moment before. Settle, where a Recorder has it, waits
// for that moment.
type Recorder interface {
	Append(ctx context.Context, r audit.Row) (audit.Row, error)
	AppendSoon(ctx context.Context, r audit.Row) error
}

// Limits bounds a session. The zero value of a field means its default.
type Limits struct {
	Wire        wire.Limits
	Connections int           // open connections of the box; default 1024
	Requests    int           // under way upstream; default 2048
	Rate        int           // requests and CONNECTs in a second; default 100000
	Memory      int64         // bytes held on behalf of clients; default budget.Default
	Handshake   time.Duration // of TLS with the client; default 10 s
	Idle        time.Duration // of a tunnel that is not decrypted; default 10 min
	Drain       time.Duration // for requests under way at the end; default 30 s
}

// Grants is what the plane may do at one moment: the verified operations,
// the credentials bound to them, and the set that redacts those. A plane's
// grants are replaced as a whole; an exchange keeps those that it began with.
type Grants struct {
	Index  *spec.Index
	Bound  map[spec.FQN]Bound
	Scrub  *scrub.Set // of every secret that this session ever held
	Locked bool       // the vault is locked: Bound is empty and may fill again

	// Unreadable holds the connectors that could not be read again, each with
	// its reason: ReasonConnectorUnreadable, ReasonStoreUnreadable or
	// ReasonHomeMissing. What they grant now is not known, so their operations are
	// denied.
	Unreadable map[spec.FQN]Reason
	// VaultUnreadable is a vault that could not be read: Bound is empty and may
	// fill again.
	VaultUnreadable bool

	current context.Context //nolint:containedctx // ends when other grants take their place
	retire  context.CancelFunc
	keys    map[spec.FQN]upstream.Key // of the upstream connections of Bound's credentials
}

// Bound is a connector's credential and the name of its binding.
type Bound struct {
	Binding    string
	Credential vault.Credential
}

// Plane mediates one session. All its methods are safe for concurrent use.
type Plane struct {
	cfg      Config
	grants   atomic.Pointer[Grants]
	upstream *upstream.Client
	tls      *tls.Config   // what every client's handshake starts from
	slots    chan struct{} // connections
	lobby    lobby         // connections over a limit, which are refused
	files    *descriptors
	waiters  chan struct{} // refusals whose answer waits
	budget   *budget.Budget

	draining  context.Context //nolint:containedctx // ends when the plane begins to drain
	stopDrain context.CancelFunc
	serving   atomic.Int32  // calls of Serve
	under     inflight      // exchanges that reach upstream
	rate      *rate.Limiter // of requests
	refusing  *rate.Limiter
	silence   *rate.Limiter // of rows for connections without a request
	unasked   summary[silences]
	flooding  *rate.Limiter // of rows for refusals beyond those that may wait
	flood     summary[flood]

	peek, peekStream time.Duration // peekWait and peekWaitStream, but in tests that wait for what comes

	outsideCA sync.Once // the clock has left the CA's lifetime, and the log has a line about it
}

// New makes a plane that grants nothing yet.
func New(cfg Config) (*Plane, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Limits.Connections == 0 {
		cfg.Limits.Connections = 1024
	}
	if cfg.Limits.Requests == 0 {
		cfg.Limits.Requests = 2048
	}
	if cfg.Limits.Rate == 0 {
		cfg.Limits.Rate = 100000
	}
	if cfg.Limits.Handshake == 0 {
		cfg.Limits.Handshake = 10 * time.Second
	}
	if cfg.Limits.Idle == 0 {
		cfg.Limits.Idle = 10 * time.Minute
	}
	if cfg.Limits.Drain == 0 {
		cfg.Limits.Drain = 30 * time.Second
	}
	p := &Plane{cfg: cfg, tls: clientTLS(), slots: make(chan struct{}, cfg.Limits.Connections), files: newDescriptors(descriptorLimit()),
		waiters: make(chan struct{}, maxWaiters), budget: budget.New(cfg.Limits.Memory)}
	cfg.Upstream.Descriptors, cfg.Upstream.Memory = p.files, p.budget
	var err error
	if p.upstream, err = upstream.New(cfg.Upstream); err != nil {
		return nil, err
	}
	p.files.giveUp = p.upstream.CloseOldestIdle
	p.lobby.places = make(chan struct{}, p.files.lobbySize())
	p.under.most = cfg.Limits.Requests
	p.peek, p.peekStream = peekWait, peekWaitStream
	p.refusing = rate.NewLimiter(refusalsASecond, refusalsAtOnce)
	p.silence = rate.NewLimiter(silencesASecond, silencesAtOnce)
	p.flooding = rate.NewLimiter(floodsASecond, floodsAtOnce)
	p.rate = rate.NewLimiter(rate.Limit(cfg.Limits.Rate), cfg.Limits.Rate)
	p.draining, p.stopDrain = context.WithCancel(context.Background())
	index, err := spec.NewIndex(nil)
	if err != nil {
		return nil, err
	}
	p.SetGrants(&Grants{Index: index})
	return p, nil
}

// SetGrants replaces what the plane may do from the next request on, on
// connections that are already open too. Those of them that are idle end.
func (p *Plane) SetGrants(g *Grants) {
	g.current, g.retire = context.WithCancel(context.Background())
	g.keys = p.upstreamKeys(g.Bound)
	p.upstream.Keep(slices.Collect(maps.Values(g.keys))...) // before an exchange asks for one of them
	if old := p.grants.Swap(g); old != nil {
		old.retire()
	}
}

// Drain refuses new requests, ends idle connections, and waits for the
// requests under way until ctx or the drain limit ends.
func (p *Plane) Drain(ctx context.Context) {
	p.stopDrain()
	ctx, cancel := context.WithTimeout(ctx, p.cfg.Limits.Drain)
	defer cancel()
	select {
	case <-p.under.close():
	case <-ctx.Done():
	}
	p.upstream.Close()
	p.files.close()
}

// Do carries out the decision about one exchange and returns the response for
// the client: resolve the credential, record the intent, run the steps, reach
// upstream, scrub. A denial has been recorded when it is returned.
func (p *Plane) Do(x *Exchange) (*http.Response, *Denial) {
	if d := x.admit(); d != nil {
		return nil, x.reject(d)
	}
	if d := x.enter(); d != nil {
		return nil, x.reject(d)
	}
	bound, d := x.credential()
	if d != nil {
		return nil, x.reject(d)
	}
	x.recordDropped()
	if d := x.intend(); d != nil {
		return nil, x.reject(d)
	}
	out, d := x.outbound(bound)
	if d != nil {
		return nil, x.reject(d)
	}
	res, err := p.upstream.RoundTrip(out, x.route())
	if err != nil {
		return nil, x.failed(upstreamDenial(out.Host, err))
	}
	if d := x.inbound(res); d != nil {
		_ = res.Body.Close()
		return nil, x.reject(d)
	}
	if res.StatusCode == http.StatusSwitchingProtocols {
		return x.switched(res), nil
	}
	return x.recordAtEnd(res), nil
}
