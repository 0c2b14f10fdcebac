package table

import (
	"context"
	"database/sql"
	"errors"
)

// JournalState is a row of the table journals.
type JournalState struct {
	Name   string
	Folded int64 // up to where the journal is in the database
	State  string
}

// journalSchema creates the table of the journals that have rows, or had some when a session last recorded it.
const journalSchema = `

CREATE TABLE IF NOT EXISTS journals (
  name TEXT PRIMARY KEY, folded INTEGER NOT NULL, state TEXT NOT NULL
) STRICT, WITHOUT ROWID`

const (
	SetJournal = "INSERT INTO journals (name, folded, state) VALUES (?, ?, ?) " +
		"ON CONFLICT (name) DO UPDATE SET folded = excluded.folded, state = excluded.state"
	dropJournal   = "DELETE FROM journals WHERE name = ?"
	selectJournal = "SELECT folded, state FROM journals WHERE name = ?"
)

// The states of a journal. The row of a journal that has no rows left is removed.
const (
	JournalOpen    = "open"
	JournalAside   = "aside" // it was changed, and is kept as evidence
	JournalRemoved = ""
)

// OpenJournals returns the names of the journals that the database knows.
func OpenJournals(ctx context.Context, db *sql.DB) (names []string, err error) {
	rows, err := db.QueryContext(ctx, "SELECT name FROM journals WHERE state = ?", JournalOpen)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, rows.Err()
}

// JournalStateOf returns what the database knows about a journal.
func JournalStateOf(ctx context.Context, db *sql.DB, name string) (s JournalState, known bool, err error) {
	s.Name = name
	err = db.QueryRowContext(ctx, selectJournal, name).Scan(&s.Folded, &s.State)
	if errors.Is(err, sql.ErrNoRows) || NoTable(err) { // it is being created
		return s, false, nil
	}
	return s, err == nil, err
}
