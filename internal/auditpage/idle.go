package auditpage

import (
	"sync"
	"time"
)

// idle is a timer that runs while no request is under way.
type idle struct {
	mu    sync.Mutex
	span  time.Duration
	open  int // requests under way; each page has one, its stream
	timer *time.Timer
	ended chan struct{}
}

func newIdle(span time.Duration) *idle {
	i := &idle{span: span, ended: make(chan struct{})}
	i.timer = time.AfterFunc(span, func() { close(i.ended) })
	return i
}

// passed is closed when the time has passed.
func (i *idle) passed() <-chan struct{} { return i.ended }

// begin starts a request. The function that it returns ends it.
func (i *idle) begin() (end func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.open++; i.open == 1 && !i.timer.Stop() {
		return func() {} // it has passed
	}
	return func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		if i.open--; i.open == 0 {
			i.timer.Reset(i.span)
		}
	}
}

// maxReports bounds the messages of one server.
const maxReports = 50

// reports passes on each message once.
type reports struct {
	mu   sync.Mutex
	to   func(string)
	seen map[string]bool
}

func (r *reports) once(message string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.to == nil || r.seen[message] || len(r.seen) >= maxReports {
		return
	}
	if r.seen == nil {
		r.seen = map[string]bool{}
	}
	r.seen[message] = true
	r.to(message)
}
