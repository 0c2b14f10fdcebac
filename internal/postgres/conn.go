// Package postgres keeps the rows of audit logs in PostgreSQL: [Parse] reads where, [Database.Migrate] creates the
// tables, [NewTarget] sends rows to them, [Database.Verify] checks them there, and [OpenReader] asks for them.
//
// Each row has its origin, the installation whose log it is, and the number that it has there. The database
// refuses a row whose content does not have its hash, one that is not chained to the row before it, and one of an
// origin that another role registered; schema1.sql has how.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ALRubinger/aileron/internal/hint"
)

// Schemes are the schemes of the URLs that Parse reads.
var Schemes = []string{"postgres", "postgresql"}

// keys are the parameters that a URL may have.
var keys = []string{"host", "port", "database", "user", "password", "passfile", "sslmode", "sslrootcert", "sslcert",
	"sslkey", "sslnegotiation", "connect_timeout", "application_name", "target_session_attrs"}

// Bounds of what waits for the server.
const (
	connectTimeout = 10 * time.Second
	batchTimeout   = 2 * time.Minute // of a transaction
)

// Database is where rows are kept. It connects when it is first asked for something.
type Database struct {
	config *pgconn.Config
	conn   *pgconn.PgConn // nil: it is not connected
}

// Parse reads a URL as libpq does, with the variables of the environment and the password file that libpq reads. A
// connection to another host is encrypted, and its certificate verified, unless the URL says otherwise. No error has a
// part of the URL that may be secret.
func Parse(text string, env func(string) string) (*Database, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != Schemes[0] && u.Scheme != Schemes[1] {
		return nil, errors.New("it is not a URL of PostgreSQL: postgres://USER@HOST:PORT/DATABASE")
	}
	q := u.Query()
	config, err := parse(u)
	if err == nil && q.Get("sslmode") == "" && env("PGSSLMODE") == "" && !staysHere(config) {
		q.Set("sslmode", "verify-full")
		u.RawQuery = q.Encode()
		config, err = parse(u)
	}
	if err != nil {
		if _, secret := u.User.Password(); secret || q.Has("password") {
			return nil, errors.New("it is not a valid URL of PostgreSQL")
		}
		return nil, fmt.Errorf("it is not a valid URL of PostgreSQL: %w", err)
	}
	if config.ConnectTimeout == 0 || config.ConnectTimeout > connectTimeout {
		config.ConnectTimeout = connectTimeout
	}
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "aileron"
	}
	return &Database{config: config}, nil
}

func parse(u *url.URL) (*pgconn.Config, error) {
	return pgconn.ParseConfigWithOptions(u.String(), pgconn.ParseConfigOptions{ConnStringAllowedKeys: keys})
}

// staysHere reports whether each connection that may be tried stays on this machine. Besides the URL, the environment
// and a service file of libpq's name hosts, and each may name several.
func staysHere(config *pgconn.Config) bool {
	return isLocal(config.Host) && !slices.ContainsFunc(config.Fallbacks, func(f *pgconn.FallbackConfig) bool {
		return !isLocal(f.Host)
	})
}

// isLocal reports whether a connection to the host stays on this machine.
func isLocal(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || strings.HasPrefix(host, "/") || err == nil && addr.IsLoopback()
}

// String returns the host and the name of the database.
func (d *Database) String() string {
	host := d.config.Host
	if !strings.HasPrefix(host, "/") {
		host = net.JoinHostPort(host, strconv.Itoa(int(d.config.Port)))
	}
	return "postgres " + host + " " + d.config.Database
}

// connect connects, unless there is a connection. What is asked for later is written in SQL that names the schema.
func (d *Database) connect(ctx context.Context) error {
	if d.conn != nil && !d.conn.IsClosed() {
		return nil
	}
	conn, err := pgconn.ConnectConfig(ctx, d.config)
	if err != nil {
		return fmt.Errorf("connect: %w", oneLine(err))
	}
	d.conn = conn
	if is := conn.ParameterStatus("server_encoding"); is != "UTF8" {
		d.Close()
		return hint.New(fmt.Errorf("its encoding is %s", is),
			"create the database with: createdb --encoding UTF8 --template template0 NAME")
	}
	return nil
}

// oneLine returns the last error of a connection attempt that tried several addresses, or else the error.
func oneLine(err error) error {
	var refused *pgconn.PgError
	if errors.As(err, &refused) {
		return refused
	}
	var failed *pgconn.ConnectError
	if !errors.As(err, &failed) {
		return err
	}
	if several, ok := failed.Unwrap().(interface{ Unwrap() []error }); ok && len(several.Unwrap()) > 0 {
		return several.Unwrap()[0]
	}
	return failed.Unwrap()
}

// Close ends the connection. What is asked for later connects again.
func (d *Database) Close() {
	if d.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = d.conn.Close(ctx)
	d.conn = nil
}

// rows are the results of a query, as texts.
type rows [][]string

// query returns the results of one statement, with texts as arguments. A NULL is an empty text.
func (d *Database) query(ctx context.Context, sql string, args ...string) (all rows, err error) {
	if err := d.connect(ctx); err != nil {
		return nil, err
	}
	values := make([][]byte, len(args))
	for i, a := range args {
		values[i] = []byte(a)
	}
	result := d.conn.ExecParams(ctx, sql, values, nil, nil, nil)
	for result.NextRow() {
		row := make([]string, len(result.Values()))
		for i, v := range result.Values() {
			row[i] = string(v)
		}
		all = append(all, row)
	}
	_, err = result.Close()
	return all, err
}

// ownNames makes names without a schema those of PostgreSQL itself for a transaction. Where roles may create objects in
// the schema public, a function or an operator there that fits the types better would run with the rights of who asks.
const ownNames = "SET LOCAL search_path = pg_catalog, pg_temp"

// beginReading begins a transaction that reads the database as it is now.
const beginReading = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; " + ownNames

// exec executes statements without arguments.
func (d *Database) exec(ctx context.Context, sql string) error {
	if err := d.connect(ctx); err != nil {
		return err
	}
	_, err := d.conn.Exec(ctx, sql).ReadAll()
	return err
}

// Codes of PostgreSQL, by the names of its manual.
const (
	undefinedTable        = "42P01"
	invalidSchemaName     = "3F000"
	undefinedColumn       = "42703"
	undefinedFunction     = "42883"
	insufficientPrivilege = "42501"
	duplicateSchema       = "42P06"
)

// codeOf returns the code of an error that the server sent, "" for any other error.
func codeOf(err error) string {
	var refused *pgconn.PgError
	if errors.As(err, &refused) {
		return refused.Code
	}
	return ""
}

// constraintOf returns the constraint that an error names.
func constraintOf(err error) string {
	var refused *pgconn.PgError
	if errors.As(err, &refused) {
		return refused.ConstraintName
	}
	return ""
}
