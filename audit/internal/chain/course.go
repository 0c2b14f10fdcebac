package chain

import (
	"encoding/json"
	"fmt"
)

// signedLate is how far behind a multiple of SignedEvery the signed head of an earlier version may be, which signed
// behind a whole transaction.
const signedLate = 4096

// EveryField is the name of the field of EventCheckpoint that has SignedEvery: each head since is directly behind its
// row.
const EveryField = "every"

// Course checks what the order of rows must be beside their hashes: that a signed head is behind each row whose number
// is a multiple of SignedEvery, once a log has signed heads, and that no session does anything behind its end.
type Course struct {
	Signs   bool            // the log has signed heads
	pending int64           // a row that has no signed head yet; 0: none
	before  int64           // the row before
	ended   map[string]bool // sessions
	Added   bool            // an audit.broken reports added rows, and no signed head follows
}

// Fault is a row that does not fit the course.
type Fault struct {
	Seq    int64
	Reason string
	Found  string // of audit.broken, behind the row before
	Why    string
}

// Row checks the next row, and returns what does not fit. reason and fields matter to few events.
func (c *Course) Row(seq int64, event Event, session, reason, fields string) *Fault {
	if seq != c.before+1 {
		c.pending = 0 // its signed head may be among the rows that are missing
	}
	c.before = seq
	switch event {
	case EventCheckpoint:
		c.Signs, c.Added = true, false
		late := c.pending
		if c.pending = 0; late > 0 && (seq > late+signedLate || seq > late+1 && isExact(fields)) {
			return unsigned(late)
		}
		return nil
	case EventBroken:
		c.Added = c.Added || isAddition(reason)
	case EventSessionEnded:
		if c.ended == nil {
			c.ended = map[string]bool{}
		}
		c.ended[session] = true
	default:
		if session != "" && c.ended[session] && actsInSession(event) {
			return &Fault{seq, ReasonRowAdded, "a row of a session that had ended behind it",
				fmt.Sprintf("its session %s had ended before it", session)}
		}
	}
	if seq%SignedEvery == 0 && c.Signs && c.pending == 0 {
		c.pending = seq
	}
	return nil
}

// End returns what the last row lacks: a signed head is committed together with its row.
func (c *Course) End() *Fault {
	if c.pending == 0 {
		return nil
	}
	return unsigned(c.pending)
}

func unsigned(seq int64) *Fault {
	why := fmt.Sprintf("no signed head follows row %d, as one follows every row whose number is a multiple of %d: "+
		"another program added it, or the head could not be signed", seq, SignedEvery)
	return &Fault{seq, ReasonUnsigned, "no signed head behind it", why}
}

// isExact reports whether a signed head is of a version that signs directly behind the row.
func isExact(fields string) bool {
	var x struct{ Every int }
	return json.Unmarshal([]byte(fields), &x) == nil && x.Every == SignedEvery
}

// actsInSession reports whether an event is what only a session that runs does. Others follow its end too: what a
// later process finds out about it, and the removal of its root.
func actsInSession(e Event) bool {
	switch e {
	case EventProxyStarted, "connector.proxy.proxied", "connector.proxy.rejected", "sandbox.proxy.passthrough",
		"sandbox.proxy.rejected", "sandbox.proxy.disabled", "sandbox.port.connected", "connector.operation.rejected",
		EventSessionStarted, "session.grants_changed":
		return true
	}
	return false
}

// isAddition reports whether a reason of EventBroken means that rows were added.
func isAddition(reason string) bool { return reason == ReasonRowAdded || reason == ReasonUnsigned }
