// Package serve runs the session of agents that an operator starts herself: the same proxy as behind aileron launch,
// without an engine, a command, a question or a vault.
//
//	err := serve.Run(ctx, serve.Options{Session: session.Options{Home: home, Log: log}, Dir: sockets, Grants: grants})
//
// [Run] opens the two sockets of a sealed sandbox in a directory. The operator starts aileron gateway where that
// directory is mounted, and the agent in the gateway's network namespace. What the agent has to read, namely the
// session's CA and the variables that lead to it, is in another directory, Public: the sockets are for the gateway
// alone.
//
// place.go has these directories, health.go the listener for probes and metrics. What is granted comes from package
// grants.
package serve

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/ALRubinger/aileron/internal/grants"
	"github.com/ALRubinger/aileron/internal/metrics"
	"github.com/ALRubinger/aileron/internal/session"
	"github.com/ALRubinger/aileron/internal/uplink"
	"github.com/ALRubinger/aileron/spec"
)

// Options are the options of [Run].
type Options struct {
	// Session describes the session. Its Mode, Stop, Grants, Observe and callbacks are set by Run.
	Session session.Options
	Dir     string // gets the sockets; "": there are none, and an uplink
	Public  string // gets what the agent reads; "" is public in Dir, if there is one
	Grants  string // is read for what is granted, and followed; it need not exist
	Health  string // HOST:PORT, or unix:PATH, of probes and metrics; "" is none
	Relay   Relay  // beside a sandbox elsewhere; its zero value is none

	Log *slog.Logger // what happens; required
}

// Run serves until ctx ends, the process gets SIGTERM or SIGINT, or the session is asked to stop. It drains then: new
// requests are refused, those under way end, and the audit log is complete when it returns. A second signal ends the
// drain. SIGHUP reads the grants again.
func Run(ctx context.Context, o Options) error {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)

	s := &server{Options: o, stop: session.NewStopRequest()}
	if err := s.open(ctx); err != nil {
		s.close()
		return err
	}
	cause := s.await(ctx, signals)
	o.Log.Info("draining", "cause", cause)
	drain, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	go func() {
		for {
			select {
			case sig := <-signals:
				if sig != syscall.SIGHUP {
					cancel()
				}
			case <-drain.Done():
				return
			}
		}
	}()
	began := time.Now()
	s.session.Drain(drain) // probes see it meanwhile
	s.sweep.Wait()
	s.close()
	err := s.session.Close(drain, 0, cause)
	if err == nil {
		o.Log.Info("ended", "cause", cause, "seconds", time.Since(began).Seconds())
	}
	return err
}

// server is one run.
type server struct {
	Options
	stop *session.StopRequest

	place   *place
	session *session.Session
	counts  *metrics.Counts
	sweep   sync.WaitGroup // of what killed processes left
	health  *probes        // nil: there is none
	uplink  *uplink.Uplink // to the relay; nil: there is none
}

// open opens everything in an order in which a client finds either nothing or all of it.
func (s *server) open(ctx context.Context) (err error) {
	if s.place, err = takePlace(s.Dir, s.Public, s.Session.Locks); err != nil {
		return err
	}
	warnings := newWarnings(s.Log)
	source, err := grants.Open(s.Grants, grants.Options{Warn: warnings.warn})
	if err != nil {
		return err
	}
	so := s.Session
	so.Mode, so.Stop, so.Grants, so.Log = "serve", s.stop, source, s.Log
	so.Infof = func(format string, args ...any) {
		s.Log.Info(strings.TrimPrefix(fmt.Sprintf(format, args...), "aileron: "))
	}
	so.Report = func(err error) { s.Log.Error("the session did not end well", "error", err) }
	s.counts = metrics.New(so.Version, s.isGranted)
	so.Observe = s.counts.Observe
	if s.session, err = session.Open(ctx, so); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			s.session.Abandon(context.WithoutCancel(ctx))
		}
	}()
	if err = s.session.Serve(ctx, true); err != nil {
		return err
	}
	s.session.Reload(ctx)
	surface := s.session.Surface()
	files := publicFiles(s.session)
	if err = s.place.publish(files); err != nil {
		return err
	}
	if s.Health != "" {
		if s.health, err = s.serveHealth(ctx); err != nil {
			return err
		}
	}
	if err = s.listen(ctx, files); err != nil {
		return err
	}
	// Connectors that come later have placeholders of their own.
	s.session.Follow(ctx, surface, func(context.Context, session.Surface) error {
		files := publicFiles(s.session)
		if s.uplink != nil {
			if err := s.uplink.Publish(files); err != nil {
				return err
			}
		}
		return s.place.publish(files)
	})
	h := s.session.Health()
	s.Log.Info("ready", "session_id", s.session.ID(), "dir", s.place.dir, "public", s.place.public, "grants", s.Grants,
		"connectors", h.Connectors, "credentials", h.Credentials)
	s.sweep.Go(func() { s.session.Sweep(context.WithoutCancel(ctx)) })
	return nil
}

// listen serves the sockets, and the relay.
func (s *server) listen(ctx context.Context, files map[string][]byte) error {
	if s.Relay.isSet() {
		var err error
		if s.uplink, err = s.Relay.open(uplink.Config{Files: files, Ports: s.health.ports(), Log: s.Log}); err != nil {
			return err
		}
		s.session.ListenSealed(ctx, session.Uplink{Proxy: s.uplink.Proxy, Redirect: s.uplink.Redirect})
	}
	if s.Dir == "" {
		return nil
	}
	sockets, err := session.OpenUplink(s.place.dir)
	if err != nil {
		return err
	}
	s.session.ListenSealed(ctx, sockets)
	return nil
}

// isGranted reports whether a connector is among those of the session.
func (s *server) isGranted(fqn string) bool {
	return s.session != nil && s.session.IsGranted(spec.FQN(fqn))
}

// await returns why the session is to end.
func (s *server) await(ctx context.Context, signals <-chan os.Signal) string {
	for {
		select {
		case sig := <-signals:
			if sig != syscall.SIGHUP {
				return sig.String()
			}
			s.session.Reload(ctx)
		case <-s.stop.Done():
			return session.StoppedCause
		case <-ctx.Done():
			return "cancelled"
		}
	}
}

// close closes what is not the session's. What was not opened is left out.
func (s *server) close() {
	if s.health != nil {
		s.health.close()
	}
	if s.uplink != nil {
		s.uplink.Close()
	}
	if s.place != nil {
		s.place.close()
	}
}

// Lines returns a writer that logs each line that is written to it: what the program would tell a person.
func Lines(log *slog.Logger) io.Writer { return &lines{log: log} }

type lines struct {
	log *slog.Logger

	mu   sync.Mutex
	rest []byte
}

// maxLine is where a line without an end is cut.
const maxLine = 16 << 10

// Write implements [io.Writer].
func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rest = append(l.rest, p...)
	for {
		end := bytes.IndexByte(l.rest, '\n')
		if end < 0 && len(l.rest) < maxLine {
			return len(p), nil
		}
		if end < 0 {
			end = len(l.rest) - 1
		}
		if text := strings.TrimSpace(string(l.rest[:end+1])); text != "" {
			l.log.Warn(strings.TrimPrefix(text, "aileron: "))
		}
		l.rest = l.rest[end+1:]
	}
}

// warnings logs what is wrong with credentials, once until it changes.
type warnings struct {
	log *slog.Logger

	mu   sync.Mutex
	last map[string]string // by binding
}

func newWarnings(log *slog.Logger) *warnings { return &warnings{log: log, last: map[string]string{}} }

func (w *warnings) warn(name string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := ""
	if err != nil {
		text = err.Error()
	}
	last, warned := w.last[name]
	if text == last {
		return
	}
	w.last[name] = text
	if err != nil {
		w.log.Warn("a credential cannot be used; requests that need it are refused until it can", "binding", name,
			"error", err)
	} else if warned {
		w.log.Info("a credential can be used again", "binding", name)
	}
}
