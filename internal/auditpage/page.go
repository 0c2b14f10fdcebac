package auditpage

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/netutil"

	"github.com/ALRubinger/aileron/internal/config"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/review"
	"github.com/ALRubinger/aileron/internal/termsafe"
)

// Bounds of the server. A browser opens six connections to one origin.
const (
	maxConnections = 64
	maxHeaderBytes = 16 << 10
	headerTimeout  = 5 * time.Second
	bodyTimeout    = 5 * time.Second
	writeTimeout   = 30 * time.Second // for one piece of a response
)

// Options configure a page.
type Options struct {
	// Log is the path of audit.db. It need not exist yet.
	Log string
	// Address is a loopback address and a port; "" means any free port, of 127.0.0.1, or of an address of this run's
	// own where there is a Desk. With a Desk, 127.0.0.1 and ::1 with a port of one's choice are refused.
	Address string
	// Idle is how long the server runs without a page and without a request; 0 means 30 minutes.
	Idle time.Duration
	// Report, if not nil, is called with each message for the person who started the server. It may be called from
	// several goroutines.
	Report func(message string)
	// Connector, if not nil, returns the FQN of a connector's short name.
	Connector func(name string) (string, error)
	// Explain, if not nil, adds to a story what the log does not have: the slot of its credential, and the reason of a
	// denial in words.
	Explain func(*review.Story)
	// Exports are the formats in which the rows can be saved, by name.
	Exports []Export
	// Prices, if not nil, returns what requests cost.
	Prices func() (config.Prices, error)
	// Desk, if not nil, makes the page one on which a person also decides what waits.
	Desk Desk
}

// Page is an open port at which the page is served.
type Page struct {
	opts     Options
	listener net.Listener
	origin   string // http://address:port
	host     string // what Host must be
	access   *access
	logs     *logs
	watch    *watch
	agents   agents
	idle     *idle
	reports  reports
	turns    chan struct{} // held while rows are searched
	streams  atomic.Int32  // open pages
}

// Listen opens the port. The error has a hint if the address cannot be used.
func Listen(ctx context.Context, opts Options) (*Page, error) {
	own := opts.Address == "" && opts.Desk != nil
	if opts.Address == "" {
		opts.Address = "127.0.0.1:0"
	}
	if opts.Idle == 0 {
		opts.Idle = 30 * time.Minute
	}
	address, err := netip.ParseAddrPort(opts.Address)
	if err != nil || !address.Addr().IsLoopback() || address.Addr().Zone() != "" {
		return nil, failure.Usage(hint.New(fmt.Errorf("serve the audit log: %q is not a loopback address with a port",
			termsafe.Line(opts.Address)), "the page is for a browser on this machine: --listen 127.0.0.1:8080, or [::1]:8080"))
	}
	if opts.Desk != nil && isShared(address) {
		return nil, failure.Usage(hint.New(fmt.Errorf("serve the audit log: with --decide, %s is no address for the page: "+
			"a browser may still run there what another server of this machine has left, and that could decide", address),
			"leave --listen out: the page then has an address of its own; or name one that nothing else uses, such as "+
				"--listen 127.77.1.2:8080"))
	}
	listener, err := listen(ctx, address, own)
	if err != nil {
		return nil, hint.New(fmt.Errorf("serve the audit log: %w", err),
			"another program may have the port: pass another one with --listen, or port 0 for any that is free")
	}
	p := &Page{
		opts: opts, listener: netutil.LimitListener(listener, maxConnections),
		host: authority(listener.Addr()), access: newAccess(), logs: &logs{path: opts.Log},
		turns: make(chan struct{}, maxSearches), reports: reports{to: opts.Report},
	}
	p.origin = "http://" + p.host
	p.watch = newWatch(p.logs)
	p.idle = newIdle(opts.Idle)
	return p, nil
}

// isShared reports whether an address, with a port that is chosen, is one at which servers of a machine usually listen.
// With port 0 the port is another one in each run.
func isShared(a netip.AddrPort) bool {
	usual := a.Addr().Unmap() == netip.AddrFrom4([4]byte{127, 0, 0, 1}) || a.Addr() == netip.IPv6Loopback()
	return usual && a.Port() != 0
}

// listen opens a port of an address, or, for a page of its own, of a random loopback address if the system has those. A
// browser keeps service workers and storage by address and port: what another server of this machine has left there,
// such as one whose port a sandbox has published, could take the link of the page.
func listen(ctx context.Context, address netip.AddrPort, own bool) (l net.Listener, err error) {
	if own {
		var b [3]byte
		_, _ = rand.Read(b[:])
		random := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 1 | b[0], b[1], 1 + b[2]%254}), address.Port())
		if l, err = (&net.ListenConfig{}).Listen(ctx, "tcp", random.String()); err == nil {
			return l, nil
		}
	}
	return (&net.ListenConfig{}).Listen(ctx, "tcp", address.String())
}

// authority returns what a browser sends as Host to an address: without the port, if that is the scheme's.
func authority(address net.Addr) string { return strings.TrimSuffix(address.String(), ":80") }

// URL returns the link to the page. It can be used once.
func (p *Page) URL() string { return p.origin + "/#" + p.access.token }

// Serve serves requests until ctx ends, or until no page has been open for [Options.Idle], and returns nil in both
// cases. It closes the port, and waits a second for the requests under way.
func (p *Page) Serve(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	server := &http.Server{
		Handler: p.guard(p.routes()), MaxHeaderBytes: maxHeaderBytes, ReadHeaderTimeout: headerTimeout,
		ReadTimeout: bodyTimeout, WriteTimeout: writeTimeout, IdleTimeout: time.Minute,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog:    quiet(),
	}
	var watching sync.WaitGroup
	watching.Go(func() { p.watch.run(ctx, p.reports.once) })
	watching.Go(func() { p.followAsked(ctx) })
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(p.listener) }()
	var err error
	select {
	case <-ctx.Done():
	case <-p.idle.passed():
		p.reports.once(fmt.Sprintf("no page was open for %s: the server ends", p.opts.Idle))
	case err = <-ended:
		ended <- err
	}
	stop() // ends streams, which Shutdown waits for
	brief, done := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer done()
	if server.Shutdown(brief) != nil {
		_ = server.Close()
	}
	watching.Wait()
	if serveErr := <-ended; !errors.Is(serveErr, http.ErrServerClosed) {
		err = serveErr
	}
	p.logs.drop()
	if err != nil {
		return fmt.Errorf("serve the audit log: %w", err)
	}
	return nil
}

// routes returns the handler of requests that passed the guard.
func (p *Page) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /session", p.exchangeToken)
	routes := map[string]func(http.ResponseWriter, *http.Request) error{
		"GET /api/state":   p.state,
		"GET /api/rows":    p.rows,
		"GET /api/chunks":  p.chunks,
		"GET /api/waiting": p.waiting,
		"GET /api/live":    p.live,
		"GET /api/event":   p.event,
		"GET /api/find":    p.find,
		"GET /api/ticket":  p.ticket,
		"GET /api/counts":  p.counts,
		"GET /api/used":    p.used,
		"GET /api/started": p.started,
		"GET /api/verify":  p.verify,
	}
	if p.opts.Desk != nil {
		routes["GET /api/approvals"], routes["GET /api/approval"] = p.asked, p.question
		routes["POST /api/decide"] = p.decide
	}
	for pattern, handle := range routes {
		mux.Handle(pattern, p.private(handle))
	}
	mux.HandleFunc("GET /export/{ticket}", p.export)
	mux.Handle("GET /", p.files())
	return mux
}
