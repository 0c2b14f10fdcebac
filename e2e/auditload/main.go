// Command auditload measures the audit log as a session sees it: how long a row takes until it is durable, and how
// evenly the sessions of a home share the log.
//
//	go run ./e2e/auditload -sessions 20 -span 5s -rate 100
//
// Each session is a process of its own. A client of it appends an intent, which is timed, and its outcome, over and
// over: rate times a second, or without a pause if rate is 0. One line of JSON on standard output has the figures.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/audit"
)

// Result is what one run measured.
type Result struct {
	Sessions int     `json:"sessions"`
	Rows     int     `json:"rows"` // intents and outcomes
	P50      float64 `json:"p50_us"`
	P99      float64 `json:"p99_us"`
	Worst    float64 `json:"worst_us"`
	Share    float64 `json:"share"`      // the rows of the session with most, for one of the session with fewest
	CPU      float64 `json:"cpu_us_row"` // of all processes, for one row
}

type options struct {
	sessions, clients int
	rate              float64
	span              time.Duration
	home              string
	worker            string // the id of a session: this process is one
}

func main() {
	var o options
	flag.IntVar(&o.sessions, "sessions", 20, "how many sessions write to one log")
	flag.IntVar(&o.clients, "clients", 1, "how many clients each has")
	flag.Float64Var(&o.rate, "rate", 0, "intents a second of each client; 0 for as many as it can")
	flag.DurationVar(&o.span, "span", 5*time.Second, "how long they write")
	flag.StringVar(&o.home, "home", "", "the directory of the log; a temporary one if it is empty")
	flag.StringVar(&o.worker, "worker", "", "for its own use")
	flag.Parse()
	run := o.all
	if o.worker != "" {
		run = o.session
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "auditload:", err)
		os.Exit(1)
	}
}

// all runs the sessions, and prints the result.
func (o options) all() (err error) {
	if o.home == "" {
		if o.home, err = os.MkdirTemp("", "auditload-"); err != nil {
			return err
		}
		defer os.RemoveAll(o.home)
	}
	outs := make([]bytes.Buffer, o.sessions)
	fails := make([]error, o.sessions)
	begin := make([]*os.File, o.sessions)
	self, err := os.Executable()
	if err != nil {
		return err
	}
	var ready, running sync.WaitGroup
	for i := range o.sessions {
		cmd := exec.CommandContext(context.Background(), self, "-worker", audit.NewID(), "-home", o.home,
			"-clients", fmt.Sprint(o.clients), "-rate", fmt.Sprint(o.rate), "-span", o.span.String())
		opened, opens, err := os.Pipe()
		if err != nil {
			return err
		}
		wait, start, err := os.Pipe()
		if err != nil {
			return err
		}
		begin[i] = start
		cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = wait, &outs[i], os.Stderr, []*os.File{opens}
		if err := cmd.Start(); err != nil {
			return err
		}
		_, _ = opens.Close(), wait.Close()
		ready.Go(func() { _, _ = opened.Read(make([]byte, 1)) })
		running.Go(func() { fails[i] = cmd.Wait() })
	}
	ready.Wait()
	for _, start := range begin { // all at once
		_ = start.Close()
	}
	running.Wait()
	if err := errors.Join(fails...); err != nil {
		return err
	}
	result, err := o.sum(outs)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(result)
}

// sum makes one result of those of the sessions, and compares their rows with the log.
func (o options) sum(outs []bytes.Buffer) (Result, error) {
	r := Result{Sessions: o.sessions}
	var spans []time.Duration
	fewest, most := 0, 0
	for i := range outs {
		var part []time.Duration
		if err := json.NewDecoder(&outs[i]).Decode(&part); err != nil || len(part) == 0 {
			return r, fmt.Errorf("a session reported %d rows: %w", len(part), err)
		}
		spans = append(spans, part...)
		if most = max(most, len(part)); fewest == 0 || len(part) < fewest {
			fewest = len(part)
		}
	}
	slices.Sort(spans)
	at := func(part float64) float64 { return float64(spans[int(part*float64(len(spans)-1))].Nanoseconds()) / 1e3 }
	r.Rows, r.P50, r.P99, r.Worst = 2*len(spans), at(0.5), at(0.99), at(1)
	r.Share = float64(most) / float64(fewest)
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_CHILDREN, &used); err != nil {
		return r, err
	}
	r.CPU = float64(unix.TimevalToNsec(used.Utime)+unix.TimevalToNsec(used.Stime)) / 1e3 / float64(r.Rows)
	log, err := audit.OpenReader(filepath.Join(o.home, "audit.db"))
	if err != nil {
		return r, err
	}
	defer log.Close()
	report, err := log.Verify(context.Background())
	if err == nil && (!report.OK || report.Rows < int64(r.Rows) || report.Open > 0) {
		err = fmt.Errorf("%d rows were written, and the log is %+v", r.Rows, report)
	}
	return r, err
}

// session writes rows as one session, and prints how long each intent took.
func (o options) session() error {
	log, err := audit.Open(filepath.Join(o.home, "audit.db"), audit.Options{Session: o.worker})
	if err != nil {
		return err
	}
	_ = os.NewFile(3, "opened").Close()
	_, _ = os.Stdin.Read(make([]byte, 1)) // until all have opened it
	spans := make([][]time.Duration, o.clients)
	fails := make([]error, o.clients)
	end := time.Now().Add(o.span)
	var running sync.WaitGroup
	for c := range o.clients {
		running.Go(func() { spans[c], fails[c] = o.client(log, end) })
	}
	running.Wait()
	if err := errors.Join(append(fails, log.Close())...); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(slices.Concat(spans...))
}

// client appends intents and outcomes until end, and returns how long the intents took.
func (o options) client(log *audit.Log, end time.Time) (spans []time.Duration, err error) {
	var tick <-chan time.Time
	if o.rate > 0 {
		ticker := time.NewTicker(time.Duration(float64(time.Second) / o.rate))
		defer ticker.Stop()
		tick = ticker.C
	}
	for ctx := context.Background(); time.Now().Before(end); {
		if tick != nil {
			<-tick
		}
		r := intent(o.worker)
		began := time.Now()
		if _, err := log.Append(ctx, r); err != nil {
			return nil, err
		}
		spans = append(spans, time.Since(began))
		r.Event, r.Decision, r.Status, r.ResponseBytes = audit.EventProxyProxied, audit.DecisionProxied, 200, 2048
		r.ID = ""
		if err := log.AppendSoon(ctx, r); err != nil {
			return nil, err
		}
	}
	return spans, nil
}

// intent returns a row as an exchange writes it.
func intent(session string) audit.Row {
	return audit.Row{
		Event: audit.EventProxyStarted, SessionID: session, Source: audit.SourceConnectTLS,
		ConnectorFQN: "github://acme/tracker", ConnectorVersion: "1.2.0", Tool: "tracker", Operation: "issues.get",
		Binding: "api_key/tracker/work", Method: "GET", Scheme: "https", Host: "api.tracker.example", Port: 443,
		Path: "/v1/projects/aileron/issues/1234", HTTPVersion: "HTTP/1.1",
		Fields: map[string]any{"request_id": audit.NewID()},
	}
}
