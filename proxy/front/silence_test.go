package front

import (
	"context"
	"fmt"
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
