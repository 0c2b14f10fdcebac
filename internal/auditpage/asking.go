package auditpage

import (
	"context"
	"hash/fnv"
	"io"
	"strconv"
	"time"

	"github.com/ALRubinger/aileron/internal/approvals"
	"github.com/ALRubinger/aileron/proxy/approval"
)

// askEvery is the interval at which sessions are asked what waits, while a page is open.
const askEvery = 500 * time.Millisecond

// followAsked notes changes of what waits, for the open pages, until ctx ends.
func (p *Page) followAsked(ctx context.Context) {
	if p.opts.Desk == nil {
		return
	}
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	for {
		if p.streams.Load() > 0 {
			all, err := p.opts.Desk.List(ctx)
			if ctx.Err() == nil {
				p.watch.note(summed(all, err))
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// summed returns how many questions wait, and a number that changes with what is listed.
func summed(all []approval.Question, err error) (waiting int, sum uint32) {
	h := fnv.New32a()
	for _, q := range approvals.InForce(all) {
		if q.State == approval.Pending {
			waiting++
		}
		_, _ = io.WriteString(h, q.ID+string(q.State)+string(q.For)+strconv.Itoa(q.Waiting))
	}
	if err != nil {
		_, _ = io.WriteString(h, err.Error())
	}
	return waiting, h.Sum32()
}
