// Package proxy mediates one session: it terminates the sandbox's TLS, matches
// each request against the connector specs, injects the credential that the
// sandbox must never see, streams the response back with every occurrence
// redacted, and records audit events.
//
// [New] makes a [Plane], [Plane.SetGrants] sets what it allows, and package
// front serves the clients of a listener:
//
//	plane, err := proxy.New(proxy.Config{Session: id, Token: token, CA: ca, Audit: log})
//	if err != nil {
//		return err
//	}
//	plane.SetGrants(&proxy.Grants{Index: index, Bound: bound, Scrub: secrets})
//	err = front.New(plane).Serve(ctx, listener, front.Listener{Sealed: true})
//
// Open [Plane.Do] first, which reads as the steps of an exchange; then
// decide.go, judge.go, steps.go and outcome.go.
//
// [Decide] returns the decision about a request, and [Plane.Do] carries it out,
// for a request in a tunnel and one in absolute form, whether it is allowed or
// passed through. Only Do sends a request upstream, with one exception: the
// tunnel to a host of [Config].TLSPassthrough is spliced to that host undecrypted
// and without a credential. A request that is not allowed, cannot be decided, or
// cannot be recorded, is not sent: it gets a [Denial] for a [Reason].
package proxy

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/ca"
	"github.com/ALRubinger/aileron/proxy/approval"
	"github.com/ALRubinger/aileron/proxy/budget"
	"github.com/ALRubinger/aileron/proxy/capture"
	"github.com/ALRubinger/aileron/proxy/fair"
	"github.com/ALRubinger/aileron/proxy/internal/summary"
	"github.com/ALRubinger/aileron/proxy/meter"
	"github.com/ALRubinger/aileron/proxy/upstream"
	"github.com/ALRubinger/aileron/proxy/wire"
	"github.com/ALRubinger/aileron/spec"
)

// Config is what a [Plane] is made of. Session, Token, CA and Audit are
// required.
type Config struct {
	Session     string
	Agent       string // what runs in the sandbox, for GET /v1/session
	Token       string
	CA          *ca.Session
	Audit       Recorder
	Passthrough bool // forward requests to hosts that no connector names, unmodified and audited
	// TLSPassthrough are the hosts, as "host:port", whose tunnels are not
	// decrypted: their clients pin certificates.
	TLSPassthrough []string
	Upstream       upstream.Options // Clients, Descriptors and Memory are the plane's
	Limits         Limits
	Log            *slog.Logger // nil: nothing is logged
	// Capture records exchanges with headers and bodies. Nil records none. The caller closes it, after the plane has
	// drained.
	Capture *capture.File
	Started time.Time
	// Poison overwrites the memory of an exchange that has ended, which is not used again then: tests find a late use.
	Poison bool

	// Approvals has the requests that wait for a person. Nil means that none can decide: operations that require an
	// approval are denied.
	Approvals  *approval.Queue
	Hold       time.Duration // how long a request is held for an approval; default DefaultHold
	Ledger     *meter.Ledger // what the session may use up; nil: no bound, and nothing is counted
	AskAtLimit bool          // a request that exceeds a limit waits for an approval; otherwise it is denied
	// AskFirst reports whether a request needs an approval that its operation, nil for passthrough, does not require.
	// Nil: none does.
	AskFirst func(Asked) bool

	// Note, if not nil, is called with the target of each request that is about to be sent, and the Content-Type of its
	// body, "" if it has none.
	Note func(t spec.Target, contentType string)
}

// Recorder writes audit rows. Append returns when the row is committed;
// AppendSoon may return a moment before. Flush, where a Recorder has it, waits
// for that moment.
type Recorder interface {
	Append(ctx context.Context, r audit.Row) (audit.Row, error)
	AppendSoon(ctx context.Context, r audit.Row) error
}

// Limits bounds a session. The zero value of a field means its default.
type Limits struct {
	Wire        wire.Limits
	Connections int           // open connections of clients; default 1024
	Requests    int           // in flight upstream; default 2048
	Rate        int           // requests and CONNECTs per second; default 100000
	Descriptors int           // of files and connections, in the process; default its limit
	Memory      int64         // bytes held on behalf of clients; default budget.Default
	CPUs        float64       // that the process may use while bodies wait for it; default: no bound
	Handshake   time.Duration // of TLS with the client; default 60 s
	Idle        time.Duration // of a tunnel that is not decrypted; default 10 min
	Drain       time.Duration // for requests in flight at the end; default 30 s
}

// withDefaults returns l with the defaults in place of zero values.
func (l Limits) withDefaults() Limits {
	l.Connections = cmp.Or(l.Connections, 1024)
	l.Requests = cmp.Or(l.Requests, 2048)
	l.Rate = cmp.Or(l.Rate, 100000)
	l.Descriptors = cmp.Or(l.Descriptors, budget.DescriptorLimit())
	l.Handshake = cmp.Or(l.Handshake, time.Minute)
	l.Idle = cmp.Or(l.Idle, 10*time.Minute)
	l.Drain = cmp.Or(l.Drain, 30*time.Second)
	return l
}

// Plane mediates one session. All its methods are safe for concurrent use.
type Plane struct {
	cfg      Config
	grants   atomic.Pointer[Grants]
	upstream *upstream.Client
	files    *budget.Descriptors
	waiters  chan struct{} // denials that are delayed
	budget   *budget.Budget
	fair     *fair.Scheduler // of the processor time for bodies

	draining   context.Context //nolint:containedctx // ends when the plane begins to drain
	stopDrain  context.CancelFunc
	inflight   inflight      // exchanges that reach upstream
	exchanges  exchanges     // their memory
	denialRate *rate.Limiter // of denials that are not delayed
	floodRate  *rate.Limiter // of rows for denials beyond those that may wait
	flood      summary.Summary[flood]

	reads sync.WaitGroup // of bodies that are read before they are sent

	peek, peekStream time.Duration // peekWait and peekWaitStream, except in tests that wait for what comes
	judgeWait        time.Duration // judgeWait, except in tests
}

// New returns a plane that grants nothing yet.
func New(cfg Config) (*Plane, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	cfg.Limits, cfg.Hold = cfg.Limits.withDefaults(), cmp.Or(cfg.Hold, DefaultHold)
	p := &Plane{
		cfg: cfg, budget: budget.New(cfg.Limits.Memory), files: budget.NewDescriptors(cfg.Limits.Descriptors),
		fair: fair.New(cfg.Limits.CPUs), waiters: make(chan struct{}, maxWaiters), exchanges: exchanges{poison: cfg.Poison},
	}
	cfg.Upstream.Descriptors, cfg.Upstream.Memory = p.files, p.budget
	cfg.Upstream.Clients = cfg.Limits.Connections
	var err error
	if p.upstream, err = upstream.New(cfg.Upstream); err != nil {
		return nil, err
	}
	p.files.GiveUp = p.upstream.CloseOldestIdle
	p.inflight.most = cfg.Limits.Requests
	p.peek, p.peekStream, p.judgeWait = peekWait, peekWaitStream, judgeWait
	p.denialRate = rate.NewLimiter(denialsPerSecond, denialsAtOnce)
	p.floodRate = rate.NewLimiter(floodsPerSecond, floodsAtOnce)
	p.draining, p.stopDrain = context.WithCancel(context.Background())
	index, err := spec.NewIndex(nil)
	if err != nil {
		return nil, err
	}
	p.SetGrants(&Grants{Index: index})
	return p, nil
}

// Config returns what the plane was made of, with the defaults of its limits.
func (p *Plane) Config() *Config { return &p.cfg }

// Budget returns the memory of the session's clients.
func (p *Plane) Budget() *budget.Budget { return p.budget }

// Descriptors returns the file descriptors of the process.
func (p *Plane) Descriptors() *budget.Descriptors { return p.files }

// Turns returns the scheduler of the processor time for bodies.
func (p *Plane) Turns() *fair.Scheduler { return p.fair }

// Draining ends when the plane begins to drain.
func (p *Plane) Draining() context.Context { return p.draining }

// Asked is what is known of a request that may need an approval.
type Asked struct {
	Operation *spec.Operation // nil: no connector names the host
	Target    spec.Target
	Header    http.Header
	Doubtful  bool // two servers may read the target differently
}

// Settle records what has only been counted so far. At the end of the last listener it also waits for the goroutines
// that send request bodies upstream: they end with their requests, which are over, but a moment later.
func (p *Plane) Settle(last bool) {
	p.countFlood()
	if last {
		p.upstream.Wait()
		p.reads.Wait()
	}
}

// Drain denies new requests, ends idle connections, and waits for the
// requests in flight until ctx or the drain limit ends.
func (p *Plane) Drain(ctx context.Context) {
	p.stopDrain()
	ctx, cancel := context.WithTimeout(ctx, p.cfg.Limits.Drain)
	defer cancel()
	select {
	case <-p.inflight.close():
	case <-ctx.Done():
	}
	p.upstream.Close()
	p.files.Close()
}

// Do carries out the decision about one exchange and returns the response for
// the client. What is allowed and what is passed through take the same
// steps. A denial has been recorded when it is returned.
func (p *Plane) Do(x *Exchange) (*http.Response, *Denial) {
	if d := x.admit(); d != nil {
		return nil, x.Reject(d)
	}
	if d := x.judgeBody(); d != nil {
		return nil, x.Reject(d)
	}
	if d := x.checkBudget(); d != nil {
		return nil, x.Reject(d)
	}
	if d := x.awaitApproval(); d != nil {
		return nil, x.Reject(d)
	}
	if d := x.admitToBudget(); d != nil {
		return nil, x.Reject(d)
	}
	if d := x.bindCredential(); d != nil {
		return nil, x.Reject(d)
	}
	if d := x.recordIntent(); d != nil {
		return nil, x.Reject(d)
	}
	out, d := x.modifyRequest()
	if d != nil {
		return nil, x.Reject(d)
	}
	res, d := x.send(out)
	if d == nil && x.isRefused(res) {
		res, d = x.renewRefused(res)
	}
	if d != nil {
		return nil, x.Reject(d)
	}
	if d := x.modifyResponse(res); d != nil {
		return nil, x.Reject(d)
	}
	return x.recordOutcome(res), nil
}
