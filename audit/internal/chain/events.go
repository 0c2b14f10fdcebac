package chain

// Event is what a row records. The package audit lists them all.
type Event string

// The events that have a meaning to the chain, or to what reads it.
const (
	EventProxyStarted   Event = "connector.proxy.started"
	EventProxyUnknown   Event = "connector.proxy.unknown"
	EventSessionStarted Event = "session.started"
	EventSessionEnded   Event = "session.ended"
	EventBroken         Event = "audit.broken"
	EventCheckpoint     Event = "audit.checkpoint"
	EventPruned         Event = "audit.pruned"
)

// Source is where a row came from.
type Source string

// Decision is what became of a request. An intent row has none.
type Decision string

// DecisionRejected is that of a denial: its row may stand for several.
const DecisionRejected Decision = "rejected"
