package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/ship"
)

// migrations has the statements that bring the schema to each version, in files of these names.
//
//go:embed schema*.sql
var migrations embed.FS

// schemaVersion is the version of the newest file of migrations.
const schemaVersion = 1

// Migrate brings the schema to the version of this program, and creates it if there is none. It returns the version
// that it had, 0 if there was none, and the one that it has. The role must own the schema, or be able to create it.
func (d *Database) Migrate(ctx context.Context) (had, has int, err error) {
	// One process migrates, and others wait for it.
	if err := d.exec(ctx, "BEGIN; "+ownNames+"; SELECT pg_advisory_xact_lock("+lockOf("schema")+")"); err != nil {
		return 0, 0, fmt.Errorf("migrate %s: %w", d, err)
	}
	had, err = d.migrate(ctx)
	if err != nil {
		d.Close() // and roll back
		return had, had, fmt.Errorf("migrate %s: %w", d, err)
	}
	if err := d.exec(ctx, "COMMIT"); err != nil {
		return had, had, fmt.Errorf("migrate %s: %w", d, err)
	}
	return had, schemaVersion, nil
}

func (d *Database) migrate(ctx context.Context) (had int, err error) {
	there, err := d.query(ctx, "SELECT to_regclass('aileron.schema_version') IS NOT NULL")
	if err != nil {
		return 0, err
	}
	if there[0][0] == "t" {
		if had, err = d.version(ctx); err != nil {
			return had, err
		}
	}
	if had > schemaVersion {
		return had, newer(had)
	}
	for v := had + 1; v <= schemaVersion; v++ {
		sql, err := migrations.ReadFile(fmt.Sprintf("schema%d.sql", v))
		if err != nil {
			return had, err
		}
		set := fmt.Sprintf("; DELETE FROM aileron.schema_version; INSERT INTO aileron.schema_version VALUES (%d)", v)
		if err := d.exec(ctx, string(sql)+set); err != nil {
			return had, migrationHint(err)
		}
	}
	return had, nil
}

// migrationHint returns an error of a migration with what can be done about it.
func migrationHint(err error) error {
	switch codeOf(err) {
	case duplicateSchema:
		return hint.New(err, "the schema aileron of this database is another program's: use another database")
	case insufficientPrivilege:
		return hint.New(err, "migrate as the owner of the database, or of the schema aileron")
	}
	return err
}

// version returns the version that the schema has.
func (d *Database) version(ctx context.Context) (int, error) {
	found, err := d.query(ctx, "SELECT version FROM aileron.schema_version")
	if err != nil {
		return 0, err
	}
	if len(found) != 1 {
		return 0, fmt.Errorf("aileron.schema_version has %d rows", len(found))
	}
	return strconv.Atoi(found[0][0])
}

func newer(version int) error {
	return hint.New(fmt.Errorf("the schema is of a newer aileron: its version is %d, and this aileron knows %d", version,
		schemaVersion), "use that aileron, or a newer one")
}

// check returns an error unless the schema is that of this program.
func (d *Database) check(ctx context.Context) error {
	const how = "as the owner of the database, run: aileron audit ship --migrate --to URL"
	version, err := d.version(ctx)
	switch code := codeOf(err); {
	case code == undefinedTable || code == invalidSchemaName:
		return &ship.RefusedError{Err: hint.New(fmt.Errorf("%s has no tables of aileron", d), how)}
	case code == undefinedColumn:
		return &ship.RefusedError{Err: fmt.Errorf("%s has other tables in the schema aileron: %w", d, err)}
	case code == insufficientPrivilege:
		return &ship.RefusedError{Err: hint.New(fmt.Errorf("read %s: %w", d, err),
			"docs/audit-shipping.md has the grants that the role needs")}
	case err != nil:
		return err
	case version > schemaVersion:
		return &ship.RefusedError{Err: newer(version)}
	case version < schemaVersion:
		err := fmt.Errorf("the schema of %s has version %d, and this aileron needs %d", d, version, schemaVersion)
		return &ship.RefusedError{Err: hint.New(err, how)}
	}
	return nil
}

// lockOf returns the key of an advisory lock, as an expression.
func lockOf(name string) string { return "hashtextextended(" + literal("aileron "+name) + ", 0)" }

// literal returns a text as a literal of SQL; standard_conforming_strings is on.
func literal(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

var errNoRow = errors.New("the database returned no row")
