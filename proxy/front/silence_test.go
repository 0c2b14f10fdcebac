package front

import (
	"context"
	"fmt"
	"io"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/proxy"
)

// A scan is visible with its size, in a bounded number of rows.
func TestAPortScanIsCountedInFewRows(t *testing.T) {
	s := newSession(t, Listener{Sealed: true, Redirected: true}, unchanged)
	// A scan may take its time on a busy machine.
	s.front.silenceRate = rate.NewLimiter(rate.Every(time.Hour), silencesAtOnce)
	const ports = 1000
	began := time.Now()
	for port := 1; port <= ports; port++ {
		_ = s.connect(fmt.Sprintf("198.51.100.7:%d", port)).Close()
	}
	s.end()
	most := int(time.Since(began)/time.Second) + 1 // rows that count
	seen, counting := 0, 0
	for _, r := range s.list() {
		if proxy.Reason(r.Reason) != proxy.ReasonNoRequest || r.Fields["redirected"] != true || r.Host != "198.51.100.7" {
			t.Fatalf("row %+v", r)
		}
		n, counted := r.Fields["connections"].(int)
		if !counted {
			seen++
			continue
		}
		seen += n
		counting++
		if hosts := fmt.Sprint(r.Fields["hosts"]); hosts != "[198.51.100.7]" || r.Fields["ports"] == "" {
			t.Errorf("a counting row names %s, ports %v", hosts, r.Fields["ports"])
		}
	}
	if rows := len(s.list()); seen != ports || counting == 0 || rows-counting != silencesAtOnce || counting > most {
		t.Errorf("%d of %d connections are visible, in %d rows, %d of which count", seen, ports, rows, counting)
	}
}

// What connects to the listener itself and sends nothing is counted, those of them included for which there is no room.
func TestConnectionsWithoutAByteAreCountedInFewRows(t *testing.T) {
	s := newSession(t, Listener{}, func(c *proxy.Config) { c.Limits.Connections = 8 })
	s.front.lobby.places, s.front.lobby.evicts = make(chan struct{}, 2), time.Nanosecond
	began := time.Now()
	res, body := s.say("GET /v1/session HTTP/1.1\r\nHost: x.example\r\nConnection: close\r\n\r\n") // it is not counted
	s.denied("a request", res, body, proxy.ReasonAuthority)
	_ = s.dial("").Close()
	s.until(2)
	const silent = 60
	for range silent - 1 {
		s.dial("")
	}
	_, _ = io.ReadAll(s.dial("")) // there is no room for all of them
	s.end()
	seen, counting := 0, 0
	for _, r := range s.list() {
		n, counted := r.Fields["connections"].(int)
		if !counted {
			continue
		}
		if proxy.Reason(r.Reason) != proxy.ReasonNoRequest || r.Source != audit.SourceRequestBoundary ||
			r.Decision != audit.DecisionRejected || r.Fields["redirected"] != nil || r.Method+r.Host != "" {
			t.Errorf("row %+v", r)
		}
		seen += n
		counting++
	}
	if most := int(time.Since(began)/time.Second) + 1; seen != silent+1 || counting > most {
		t.Errorf("%d of %d connections are visible, in %d rows of %d at most", seen, silent, counting, most)
	}
}

// slowLog is a log one of whose rows waits until the test lets it go.
type slowLog struct {
	proxy.Recorder
	waits, release chan struct{}
}

func (s slowLog) AppendSoon(ctx context.Context, r audit.Row) error {
	if r.Fields["connections"] != nil {
		s.waits <- struct{}{}
		<-s.release
	}
	return s.Recorder.AppendSoon(ctx, r)
}

// A count that waits for the log keeps no connection waiting, and none is lost.
func TestACountIsRecordedWithoutHoldingUpConnections(t *testing.T) {
	log := slowLog{waits: make(chan struct{}, 8), release: make(chan struct{})}
	s := newFront(t, func(c *proxy.Config) { log.Recorder = c.Audit; c.Audit = log })
	s.front.silenceRate = rate.NewLimiter(rate.Every(time.Hour), 1)
	s.front.silenceRate.Reserve()
	at := proxy.Arrival{Redirected: true, Authority: proxy.Authority{Host: "198.51.100.7", Port: 22}}
	s.front.recordSilent(at)
	<-log.waits // the timer's count
	another := make(chan struct{})
	go func() { defer close(another); s.front.recordSilent(at) }()
	select {
	case <-another:
	case <-time.After(testPatience):
		t.Error("a connection waits for the audit log")
	}
	close(log.release)
	<-another
	s.front.countSilence()
	for _, r := range s.until(2) {
		if r.Fields["connections"] != 1 {
			t.Errorf("row %+v", r)
		}
	}
}
