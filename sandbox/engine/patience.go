package engine

import (
	"cmp"
	"fmt"
	"time"
)

// Patience is how long an engine is waited for. A call to it has no time-out
// while the engine shows that it lives: it answers a ping, its process gets
// processor time, or bytes of the response arrive. The zero value has the
// defaults.
type Patience struct {
	// Limit bounds one call to an engine that lives; 0 is DefaultLimit. The
	// build of an image has none.
	Limit time.Duration
	// Silent bounds the time without a sign of life; 0 is one minute.
	Silent time.Duration
	// Report, when set, is called each second for a wait that has taken more
	// than two seconds, and once at its end.
	Report func(Wait)
}

// DefaultLimit is the default of Patience.Limit.
const DefaultLimit = 2 * time.Minute

const (
	defaultSilent = time.Minute

	// noticeAfter is when a wait is reported for the first time.
	noticeAfter = 2 * time.Second
	// stoppedTime is how long the engine's process may be stopped (SIGSTOP).
	stoppedTime = 10 * time.Second
	// lostTime replaces Patience.Silent once an engine has been given up, until
	// it answers again: what follows is the removal of a run's containers.
	lostTime = callTime
)

func (p Patience) limit() time.Duration  { return cmp.Or(p.Limit, DefaultLimit) }
func (p Patience) silent() time.Duration { return cmp.Or(p.Silent, defaultSilent) }

// Wait is a wait for an engine that takes longer than usual.
type Wait struct {
	Engine string        // podman or docker
	Step   string        // what the engine is to do: "make a container"
	For    time.Duration // until now
	Over   bool          // the last report of this wait
}

// WaitError is returned when an engine is not waited for any longer.
type WaitError struct {
	Engine string
	Step   string // what the engine was to do
	Waited time.Duration
	Why    string // why it was given up
	Last   string // the last error of the engine; "" for none
	Lives  bool   // the engine responds, and exceeded Patience.Limit
}

// ErrorClass and ErrorReason are for --json.
func (*WaitError) ErrorClass() string  { return "unavailable" }
func (*WaitError) ErrorReason() string { return "engine_not_responding" }

// Is reports that a WaitError is an ErrEngine.
func (*WaitError) Is(target error) bool { return target == ErrEngine }

func (e *WaitError) Error() string {
	what := e.Engine + " does not respond"
	if e.Lives {
		what = e.Engine + " responds, but makes no progress"
	}
	text := fmt.Sprintf("%s: waited %v for it to %s, and %s", what, e.Waited.Round(time.Second), e.Step, e.Why)
	if e.Last != "" {
		text += "; its last error: " + e.Last
	}
	return text
}
