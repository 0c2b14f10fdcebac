package audit

import (
	"io"
	"time"

	"github.com/ALRubinger/aileron/audit/internal/chain"
	"github.com/ALRubinger/aileron/audit/internal/follow"
	"github.com/ALRubinger/aileron/audit/internal/table"
)

// What the packages inside have of the contract.
type (
	// Row is one event. Its fields are the columns of the table, in their order.
	Row = chain.Row
	// Event is what a row records. [Events] lists them all.
	Event = chain.Event
	// Source is where a row came from.
	Source = chain.Source
	// Decision is what became of a request. An intent row has none.
	Decision = chain.Decision

	// Filter selects rows. An empty field selects all.
	Filter = table.Filter
	// Group counts the rows that have these columns in common.
	Group = table.Group
	// GroupBy is what [Log.Groups] reads besides what every Group has.
	GroupBy = table.GroupBy

	// Report is the result of Verify.
	Report = chain.Report
	// Finding is one thing that is wrong with the log or with what is kept beside it.
	Finding = chain.Finding
	// Evidence is what Verify compares the log with, beside what is kept in the home.
	Evidence = chain.Evidence
	// ExportReport is the result of VerifyExport.
	ExportReport = chain.ExportReport
	// PrunedRows is what a row of EventPruned stands for.
	PrunedRows = chain.PrunedRows

	// Notice is what Follow reports besides rows: the log was replaced, or cannot be read.
	Notice = follow.Notice

	// SchemaError is returned for a database of another version of aileron. Such a database is never written.
	SchemaError = table.SchemaError
	// DamageError is returned when a row cannot be read because the database is damaged.
	DamageError = table.DamageError
	// Shrunk is the size of the database in bytes, before and after [Log.Shrink].
	Shrunk = table.Shrunk
)

// OtherHosts is the Host of a Group of the hosts that are too many to be counted one by one.
const OtherHosts = table.OtherHosts

// Errors of the packages inside.
var (
	// ErrNotFound is returned by Get if no row has the id.
	ErrNotFound = table.ErrNotFound
	// ErrNoTurn is passed to Options.OnTurn if another process does not end its turn.
	ErrNoTurn = table.ErrNoTurn
	// ErrNotShrunk is returned by Shrink if the database has free space and keeps it: for new rows.
	ErrNotShrunk = table.ErrNotShrunk
	// ErrPlanOutdated is returned by Prune if the log is not the one for which the plan was made.
	ErrPlanOutdated = table.ErrPlanOutdated
	// ErrNoExport is returned for an export without a row.
	ErrNoExport = chain.ErrNoExport
	// ErrNoSignedHead is returned for a text that is no signed head of an audit log.
	ErrNoSignedHead = chain.ErrNoSignedHead
)

// NewID returns a ULID. The ids that one process creates in one millisecond are not ordered: rows are ordered by seq.
func NewID() string { return chain.NewID() }

// IsID reports whether text has the form of an id of [NewID].
func IsID(text string) bool { return chain.IsID(text) }

// PrefixTimes returns the times of the first id that begins with prefix, and of the one after the last. It returns
// false if no id of [NewID] begins so.
func PrefixTimes(prefix string) (from, until time.Time, ok bool) { return table.PrefixTimes(prefix) }

// IsDamaged reports whether err means that the database is damaged, so that some of its rows cannot be read.
func IsDamaged(err error) bool { return table.IsDamaged(err) }

// IsLocked reports whether err means that another process holds a lock.
func IsLocked(err error) bool { return table.IsLocked(err) }

// VerifyExport verifies rows that were exported as JSON Lines, without the log that they are of. Rows that a filter
// left out are counted as gaps, and what they were cannot be known. Without e.Keys, signatures are not verified, and
// the report has the names of their keys. Kept heads must be of rows that the export has.
func VerifyExport(from io.Reader, e Evidence) (ExportReport, error) {
	return chain.VerifyExport(from, e)
}
