package auditpage

import (
	"net/http"
	"time"

	"github.com/ALRubinger/aileron/audit"
)

// heartbeat is how often a stream sends an unchanged state. The write fails when the page was closed.
const heartbeat = 10 * time.Second

// state responds with the state of the log and the values that a filter can have.
func (p *Page) state(w http.ResponseWriter, _ *http.Request) error {
	state, _ := p.watch.state()
	return writeJSON(w, map[string]any{"now": state, "events": audit.Events(), "decisions": audit.Decisions(),
		"exports": p.exportNames(), "decides": p.opts.Desk != nil})
}

// live streams the state of the log whenever it changes, at most once in watchEvery. The page then requests the rows
// that it shows, so a stream never has more than one line to send, however fast rows are written.
func (p *Page) live(w http.ResponseWriter, r *http.Request) error {
	p.streams.Add(1)
	defer p.streams.Add(-1)
	out := newStream(w)
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		state, changed := p.watch.state()
		if err := out.send(state); err != nil {
			return err
		}
		select {
		case <-r.Context().Done():
			return nil
		case <-changed:
		case <-beat.C:
		}
	}
}
