package table

import (
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// schemaVersion is the user_version of a database whose table events is the one of this package; 0 means the same.
// Later schemas have higher numbers.
const schemaVersion = 1

// SchemaError is returned for a database of another version of aileron. Such a database is never written.
type SchemaError struct {
	Version int64    // its user_version
	Lacks   []string // missing columns: it cannot be read either
}

func (e *SchemaError) Error() string {
	switch {
	case len(e.Lacks) > 0:
		return fmt.Sprintf("audit.db is of another version of aileron: it lacks the columns %s",
			strings.Join(e.Lacks, ", "))
	case e.Version > schemaVersion:
		return fmt.Sprintf("audit.db is of a newer aileron: its schema is %d, and this aileron knows %d",
			e.Version, schemaVersion)
	}
	return "audit.db is of another version of aileron: it has columns that this one does not know"
}

// CheckSchema returns a *SchemaError for a database that this package must not write. Errors of reading it are left
// to the code that opens it.
func CheckSchema(path string) error {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	db, err := sql.Open("sqlite", Dsn(path)+"?mode=ro&_pragma=busy_timeout(2000)")
	if err != nil {
		return err
	}
	defer db.Close()
	var found SchemaError
	var list sql.NullString
	const query = "SELECT (SELECT user_version FROM pragma_user_version), " +
		"(SELECT group_concat(name) FROM pragma_table_info('events'))"
	if db.QueryRow(query).Scan(&found.Version, &list) != nil {
		return nil
	}
	names := strings.Split(list.String, ",")
	known := strings.Split(strings.ReplaceAll(strings.ReplaceAll(Columns, " ", ""), "\n", ""), ",")
	for _, name := range known {
		if list.Valid && !slices.Contains(names, name) {
			found.Lacks = append(found.Lacks, name)
		}
	}
	if found.Version > schemaVersion || list.Valid && (len(found.Lacks) > 0 || len(names) != len(known)) {
		return &found
	}
	return nil
}

// There is no index but that of seq: each would double the pages that a commit writes, and every request waits for
// one. Get finds an id by its time.
const Schema = `
CREATE TABLE IF NOT EXISTS events (
  seq INTEGER PRIMARY KEY, id TEXT NOT NULL, ts TEXT NOT NULL, event TEXT NOT NULL, session_id TEXT NOT NULL,
  source TEXT NOT NULL, decision TEXT NOT NULL, reason TEXT NOT NULL,
  connector_fqn TEXT NOT NULL, connector_version TEXT NOT NULL, tool TEXT NOT NULL, operation TEXT NOT NULL,
  binding TEXT NOT NULL, method TEXT NOT NULL, scheme TEXT NOT NULL, host TEXT NOT NULL, port INTEGER NOT NULL,
  path TEXT NOT NULL, http_version TEXT NOT NULL, status INTEGER NOT NULL, request_bytes INTEGER NOT NULL,
  response_bytes INTEGER NOT NULL, redactions INTEGER NOT NULL, duration_us INTEGER NOT NULL, fields TEXT NOT NULL,
  prev_hash TEXT NOT NULL, hash TEXT NOT NULL
) STRICT`

const Columns = `seq, id, ts, event, session_id, source, decision, reason, connector_fqn, connector_version,
  tool, operation, binding, method, scheme, host, port, path, http_version, status, request_bytes, response_bytes,
  redactions, duration_us, fields, prev_hash, hash`

const ColumnCount = 27

const Placeholders = `(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)`

const InsertRow = `INSERT INTO events (` + Columns + `) VALUES ` + Placeholders

const SelectHash = `SELECT hash FROM events WHERE seq = ?`

const SelectHead = `SELECT seq, ts, hash FROM events ORDER BY seq DESC LIMIT 1`
