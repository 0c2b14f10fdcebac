package console

import (
	"fmt"
	"time"
)

// waitLine prints the waits for an engine: on a terminal one line that is updated and cleared; else a line for the
// first wait, and for each later one that takes longer than laterWaits.
type waitLine struct {
	console *Console
	printed bool // the present wait
	any     bool // any wait
}

const laterWaits = 10 * time.Second

func (c *Console) NewWaitLine() *waitLine { return &waitLine{console: c} }

// Report prints that something has been waited for so long, one wait at a time.
func (l *waitLine) Report(what string, waited time.Duration, over bool) {
	text := fmt.Sprintf("aileron: waiting for %s (%v; Ctrl-C ends it)", what, waited.Truncate(time.Second))
	switch {
	case over:
		l.console.ShowStatus("")
		l.printed = false
	case l.console.ShowStatus(text):
	case l.printed, l.any && waited < laterWaits:
	default:
		l.console.Infof("%s", text)
		l.printed, l.any = true, true
	}
}
