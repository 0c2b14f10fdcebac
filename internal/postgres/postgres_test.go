package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/e2e/pgserver"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/postgres"
	"github.com/ALRubinger/aileron/internal/ship"
)

// server is the server of all tests; nil: PostgreSQL is not installed.
var server *pgserver.Server

func TestMain(m *testing.M) {
	var err error
	if server, err = pgserver.New(); err != nil && !errors.Is(err, pgserver.ErrMissing) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if server != nil {
		server.Remove()
	}
	os.Exit(code)
}

// grants are those of docs/audit-shipping.md for a role that ships and one that reads.
const grants = `
GRANT USAGE ON SCHEMA aileron TO shipper;
GRANT SELECT ON aileron.schema_version, aileron.origins TO shipper;
GRANT SELECT (origin, seq, hash) ON aileron.events TO shipper;
GRANT INSERT ON aileron.origins, aileron.events, aileron.gaps, aileron.heads TO shipper;
GRANT USAGE ON SCHEMA aileron TO auditor;
GRANT SELECT ON ALL TABLES IN SCHEMA aileron TO auditor;
`

var roles = sync.OnceFunc(func() {
	for _, role := range []string{"shipper", "other", "auditor"} {
		_, _ = server.Psql("owner", "postgres", "CREATE ROLE "+role+" LOGIN")
	}
})

// database returns the name of a new database with the tables and the grants of the documentation.
func database(t testing.TB) string {
	t.Helper()
	if server == nil {
		t.Skip(pgserver.ErrMissing)
	}
	roles()
	name := "t" + strings.ToLower(audit.NewID())
	server.Database(t, name)
	t.Cleanup(func() { server.SQL(t, "postgres", "DROP DATABASE "+name+" WITH (FORCE)") })
	d := open(t, "owner", name)
	if from, to, err := d.Migrate(t.Context()); err != nil || from != 0 || to != 1 {
		t.Fatalf("Migrate = %d, %d, %v", from, to, err)
	}
	d.Close()
	ships, _, _ := strings.Cut(grants, "GRANT USAGE ON SCHEMA aileron TO auditor")
	server.SQL(t, name, grants+strings.ReplaceAll(ships, "shipper", "other"))
	return name
}

func open(t testing.TB, role, database string) *postgres.Database {
	t.Helper()
	d := must.Get(postgres.Parse(server.URL(role, database), os.Getenv))(t)
	t.Cleanup(d.Close)
	return d
}

func shipper(t testing.TB, home, role, database string) *ship.Shipper {
	t.Helper()
	s := must.Get(ship.Open(home, postgres.NewTarget(open(t, role, database)), ship.Options{Report: t.Logf}))(t)
	t.Cleanup(s.Close)
	return s
}

// write adds a session of n requests to the log of a home, and its end unless it is to look lost.
func write(t testing.TB, home string, n int, end bool) (session string) {
	t.Helper()
	session = audit.NewID()
	l := must.Get(audit.Open(filepath.Join(home, "audit.db"), audit.Options{Session: session}))(t)
	add := func(r audit.Row) {
		r.SessionID, r.Source = session, audit.SourceLauncher
		must.Do(t, l.AppendSoon(t.Context(), r))
	}
	must.Get(l.Append(t.Context(), audit.Row{Event: audit.EventSessionStarted, SessionID: session,
		Source: audit.SourceLauncher, Fields: map[string]any{"agent": "claude"}}))(t)
	for i := range n {
		add(audit.Row{Event: audit.EventProxyProxied, Decision: audit.DecisionProxied, Host: "api.example", Port: 443,
			Method: "GET", Path: fmt.Sprintf("/items/%d", i), Status: 200, RequestID: audit.NewID()})
	}
	if end {
		add(audit.Row{Event: audit.EventSessionEnded})
	}
	must.Do(t, l.Close())
	return session
}

// texts are hard to write as JSON in the same way as Go does.
var texts = []string{
	"plain", `quote " and \ and / and <b>&amp;`, "line\nend\r\ttab\b\f", "\x01\x1f\x7f", "grüße, 世界, \U0001f600",
	"\u2028\u2029 \u00a0\ufeff\ufffd", "' '' $1 %s {}", `\n \u0000 \\`, "", "N", `\N`, `\.`,
}

func TestEveryRowArrivesOnceAndItsHashIsRecomputed(t *testing.T) {
	name, home := database(t), t.TempDir()
	write(t, home, 20, true)
	l := must.Get(audit.Open(filepath.Join(home, "audit.db"), audit.Options{Wrote: true}))(t)
	for _, text := range texts {
		row := audit.Row{Event: audit.EventProxyProxied, Source: audit.SourceCLI, Path: text, Tool: text, Reason: text,
			Fields: map[string]any{text + "x": text, "list": []string{text, "b"}, "n": 1.5, "nul": "a\x00b",
				"deep": map[string]any{"z": text, "a": nil}}}
		must.Get(l.Append(t.Context(), row))(t)
	}
	must.Do(t, l.Close())
	s := shipper(t, home, "shipper", name)
	sent, err := s.Once(t.Context())
	want := int64(1 + 20 + 1 + 1 + len(texts)) // with the signed head
	if err != nil || sent.Rows != want || sent.Newest != want {
		t.Fatalf("Once = %+v, %v; want %d rows", sent, err, want)
	}
	if again, err := shipper(t, home, "shipper", name).Once(t.Context()); err != nil || again.Rows != 0 {
		t.Errorf("a second shipper sent %d rows (%v)", again.Rows, err)
	}
	write(t, home, 5, true)
	if sent, err = s.Once(t.Context()); err != nil || sent.Rows != want+8 {
		t.Errorf("Once = %+v, %v; want %d rows", sent, err, want+8)
	}
	verifies(t, name, want+8)
}

// verifies fails unless the only origin verifies with this number of rows, each once.
func verifies(t testing.TB, name string, rows int64) postgres.OriginVerdict {
	t.Helper()
	v := must.Get(open(t, "auditor", name).Verify(t.Context(), "", nil))(t)
	if !v.OK || len(v.Origins) != 1 || v.Origins[0].Rows != rows || v.Origins[0].Last != rows {
		t.Fatalf("Verify = %+v, want %d rows", v, rows)
	}
	return v.Origins[0]
}

func TestALostHostIsASessionWithoutAnEnd(t *testing.T) {
	name, home := database(t), t.TempDir()
	write(t, home, 3, true)
	lost := write(t, home, 4, false)
	must.Get(shipper(t, home, "shipper", name).Once(t.Context()))(t)
	v := must.Get(open(t, "auditor", name).Verify(t.Context(), "", nil))(t)
	if open := v.Origins[0].Open; len(open) != 1 || open[0].ID != lost || open[0].Last == 0 || !v.OK {
		t.Errorf("Verify = %+v, want session %s without an end", v.Origins[0], lost)
	}
}

// A role adds rows of its own origins only, and changes none; the owner cannot add one that does not fit either.
func TestTheDatabaseRefusesRowsThatAreNotTheOrigins(t *testing.T) {
	name, home := database(t), t.TempDir()
	write(t, home, 3, true)
	must.Get(shipper(t, home, "shipper", name).Once(t.Context()))(t)
	const copyRow = "INSERT INTO aileron.events SELECT origin, seq + 1, id, event, session_id, source, decision, " +
		"reason, connector_fqn, connector_version, tool, operation, binding, method, scheme, host, port, path, " +
		"http_version, status, request_bytes, response_bytes, redactions, duration_us, ts, fields, %s, %s " +
		"FROM aileron.events ORDER BY seq DESC LIMIT 1"
	const fits = "aileron.row_hash(%s, seq + 1, id, event, session_id, source, decision, reason, connector_fqn, " +
		"connector_version, tool, operation, binding, method, scheme, host, port, path, http_version, status, " +
		"request_bytes, response_bytes, redactions, duration_us, ts, fields)"
	for what, try := range map[string]struct{ role, sql, want string }{
		"a row without its hash": {"owner", fmt.Sprintf(copyRow, "hash", "hash"), "events_hash"},
		"a row that is not chained": {"owner", fmt.Sprintf(copyRow, "prev_hash", fmt.Sprintf(fits, "prev_hash")),
			"is not chained to the row before it"},
		"a row of another role's origin": {"other", "INSERT INTO aileron.heads SELECT origin, 9, 'x', '' " +
			"FROM aileron.origins", "violates row-level security policy"},
		"a role that is another's": {"other", "INSERT INTO aileron.origins (origin, key, role) " +
			"VALUES ('x', 'y', 'shipper')", "violates row-level security policy"},
		"a key of another origin": {"other", "INSERT INTO aileron.origins (origin, key) SELECT " +
			"'01ARZ3NDEKTSV4RRFFQ69G5FAV', key FROM aileron.origins", "origins_key"},
		"a function in the place of another": {"owner", "CREATE SCHEMA mine; CREATE FUNCTION mine.sha256(bytea) " +
			"RETURNS bytea LANGUAGE sql AS $$SELECT '\\x00'::bytea$$; SET search_path = mine, pg_catalog; " +
			fmt.Sprintf(copyRow, "hash", "'00'"), "events_hash"},
		"a change":           {"shipper", "UPDATE aileron.events SET path = '/'", "permission denied"},
		"a removal":          {"shipper", "DELETE FROM aileron.heads", "permission denied"},
		"reading what is in": {"shipper", "SELECT path FROM aileron.events", "permission denied"},
	} {
		out, err := server.Psql(try.role, name, try.sql)
		if err == nil || !strings.Contains(out, try.want) {
			t.Errorf("%s: %q (%v), want %q", what, out, err, try.want)
		}
	}
	if out, err := server.Psql("owner", name, fmt.Sprintf(copyRow, "hash", fmt.Sprintf(fits, "hash"))); err != nil {
		t.Errorf("a row that fits is refused, so the others prove nothing: %s", out)
	}
	home2 := t.TempDir()
	must.Do(t, os.CopyFS(home2, os.DirFS(home)))
	refused(t, shipper(t, home2, "other", name), "as one of the role shipper")
}

// refused fails unless rows are refused with the reason, once and for good.
func refused(t testing.TB, s *ship.Shipper, why string) {
	t.Helper()
	_, err := s.Once(t.Context())
	if !errors.As(err, new(*ship.RefusedError)) || !strings.Contains(err.Error(), why) {
		t.Errorf("Once: %v, want a refusal: %s", err, why)
	}
}

func TestVerifyFindsWhatTheOwnerOfTheDatabaseChanged(t *testing.T) {
	name, home := database(t), t.TempDir()
	write(t, home, 30, true)
	must.Get(shipper(t, home, "shipper", name).Once(t.Context()))(t)
	verifies(t, name, 33)
	for _, try := range []struct{ sql, want string }{
		{"ALTER TABLE aileron.events DROP CONSTRAINT events_hash; UPDATE aileron.events SET path = '/other' WHERE seq = 7",
			"its content does not have its hash"},
		{"DELETE FROM aileron.events WHERE seq = 9", "row 9 is missing before it"},
		{"DELETE FROM aileron.events WHERE seq BETWEEN 11 AND 13", "rows 11 to 13 are missing before it"},
		{"UPDATE aileron.events SET prev_hash = repeat('0', 64) WHERE seq = 20",
			"its prev_hash is not the hash of the row before it"},
		{"DELETE FROM aileron.events WHERE seq = 33", "it is the head of a batch, and missing"},
		{"UPDATE aileron.heads SET seq = 30, hash = (SELECT hash FROM aileron.events WHERE seq = 30)",
			"its head is signed for another row"},
		{"DELETE FROM aileron.origins", "its origin is not registered"},
	} {
		server.SQL(t, name, try.sql)
		v := must.Get(open(t, "auditor", name).Verify(t.Context(), "", nil))(t)
		found := fmt.Sprint(v.Origins[0].Findings)
		if v.OK || !strings.Contains(found, try.want) {
			t.Errorf("after %s: %s, want %q", try.sql, found, try.want)
		}
	}
}

// A key that was not the origin's is found although the chain is whole.
func TestHeadsAreHeldToAKey(t *testing.T) {
	name, home := database(t), t.TempDir()
	write(t, home, 3, true)
	must.Get(shipper(t, home, "shipper", name).Once(t.Context()))(t)
	key := must.Get(audit.PublicKey(filepath.Join(t.TempDir(), "audit.db")))(t)
	v := must.Get(open(t, "auditor", name).Verify(t.Context(), "", []string{key}))(t)
	if v.OK || !strings.Contains(fmt.Sprint(v.Origins[0].Findings), "signed by another key") {
		t.Errorf("Verify with another key = %+v", v)
	}
}

// Every row is there once, although the server is killed while rows are written and sent.
func TestAServerThatIsKilledUnderLoad(t *testing.T) {
	name, home := database(t), t.TempDir()
	d := open(t, "shipper", name)
	s := must.Get(ship.Open(home, postgres.NewTarget(d), ship.Options{Report: t.Logf, Every: time.Millisecond}))(t)
	defer s.Close()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Follow(ctx) }()
	for range 4 {
		write(t, home, 2000, true)
		server.Kill()
		write(t, home, 50, true)
		must.Do(t, server.Run())
	}
	stop()
	must.Do(t, <-ended)
	l := must.Get(audit.OpenReader(filepath.Join(home, "audit.db")))(t)
	defer l.Close()
	_, newest, err := l.Ends(t.Context())
	must.Do(t, err)
	v := must.Get(open(t, "auditor", name).Verify(t.Context(), "", nil))(t)
	if o := v.Origins[0]; !v.OK || o.Rows != newest.Seq || o.Head != newest.Hash || len(o.Gaps) > 0 {
		t.Errorf("Verify = %+v; the log ends with row %d", o, newest.Seq)
	}
}

func TestTwoShippersOfOneLogSendEachRowOnce(t *testing.T) {
	name, home := database(t), t.TempDir()
	ctx, stop := context.WithCancel(t.Context())
	var both sync.WaitGroup
	for range 2 {
		s := must.Get(ship.Open(home, postgres.NewTarget(open(t, "shipper", name)),
			ship.Options{Report: t.Logf, Every: time.Millisecond}))(t)
		both.Go(func() {
			if err := s.Follow(ctx); err != nil {
				t.Errorf("Follow: %v", err)
			}
			s.Close()
		})
	}
	for range 20 {
		write(t, home, 30, true)
	}
	stop()
	both.Wait()
	verifies(t, name, 20*33)
}

func TestRowsThatWerePrunedBeforeTheyWereShippedAreAStatedGap(t *testing.T) {
	name, home := database(t), t.TempDir()
	write(t, home, 10, true)
	must.Get(shipper(t, home, "shipper", name).Once(t.Context()))(t)
	write(t, home, 10, true)
	prune(t, home)
	write(t, home, 10, true)
	sent, err := shipper(t, home, "shipper", name).Once(t.Context())
	if err != nil || sent.Gaps != 1 {
		t.Fatalf("Once = %+v, %v, want one gap", sent, err)
	}
	v := must.Get(open(t, "auditor", name).Verify(t.Context(), "", nil))(t)
	o := v.Origins[0]
	if !v.OK || len(o.Gaps) != 1 || o.Gaps[0].First != 14 || o.Gaps[0].Last != 26 || o.Gaps[0].Reason != ship.GapPruned {
		t.Errorf("Verify = %+v, want a gap of rows 14 to 26", o)
	}
	server.SQL(t, name, "DELETE FROM aileron.gaps")
	v = must.Get(open(t, "auditor", name).Verify(t.Context(), "", nil))(t)
	if found := fmt.Sprint(v.Origins[0].Findings); !strings.Contains(found, "rows 14 to 26 are missing before it") {
		t.Errorf("a gap that is not stated: %s", found)
	}
}

// prune removes the rows of all sessions that have ended.
func prune(t testing.TB, home string) {
	t.Helper()
	l := must.Get(audit.Open(filepath.Join(home, "audit.db"), audit.Options{Wrote: true}))(t)
	plan := must.Get(l.PlanPrune(t.Context(), audit.PruneQuery{Before: time.Now().Add(time.Hour)}))(t)
	must.Get(l.Prune(t.Context(), plan, nil))(t)
	must.Do(t, l.Close())
}

// The database is a witness: what it has is not replaced by what a log has now.
func TestALogThatIsNotTheOneThatWasShippedIsRefused(t *testing.T) {
	name, home, old := database(t), t.TempDir(), t.TempDir()
	write(t, home, 5, true)
	must.Do(t, os.CopyFS(old, os.DirFS(home)))
	write(t, home, 5, true)
	must.Get(shipper(t, home, "shipper", name).Once(t.Context()))(t)
	refused(t, shipper(t, old, "shipper", name), "which ends at row 8: the log was cut, restored or begun again")
	write(t, old, 20, true)
	refused(t, shipper(t, old, "shipper", name), "has another row 16 of this log")
	verifies(t, name, 16)
}

// Rows of a newer aileron may be hashed differently: none is sent.
func TestALogOfANewerAileronIsNotShipped(t *testing.T) {
	name, home := database(t), t.TempDir()
	write(t, home, 1, true)
	sqlite, err := exec.LookPath("sqlite3")
	if err != nil {
		t.Skip(err)
	}
	out, err := exec.Command(sqlite, filepath.Join(home, "audit.db"), "PRAGMA user_version = 9").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	refused(t, shipper(t, home, "shipper", name), "audit.db is of a newer aileron")
}

func TestASchemaThatIsMissingNewerOrAnothersIsNamed(t *testing.T) {
	name, home := database(t), t.TempDir()
	write(t, home, 1, true)
	for _, try := range []struct{ sql, why, hint string }{
		{"UPDATE aileron.schema_version SET version = 9", "its version is 9, and this aileron knows 1", "use that aileron"},
		{"ALTER TABLE aileron.schema_version RENAME version TO v", "has other tables in the schema aileron", ""},
		{"ALTER TABLE aileron.schema_version RENAME v TO version; " +
			"REVOKE SELECT ON aileron.schema_version FROM shipper", "permission denied", "grants"},
		{"DROP SCHEMA aileron CASCADE", "has no tables of aileron", "audit ship --migrate"},
	} {
		server.SQL(t, name, try.sql)
		_, err := shipper(t, home, "shipper", name).Once(t.Context())
		if !errors.As(err, new(*ship.RefusedError)) || !strings.Contains(err.Error(), try.why) ||
			!strings.Contains(hint.Of(err), try.hint) {
			t.Errorf("after %s: %v (%s)", try.sql, err, hint.Of(err))
		}
	}
	server.SQL(t, name, "CREATE SCHEMA aileron")
	_, _, err := open(t, "owner", name).Migrate(t.Context())
	if !strings.Contains(hint.Of(err), "another program's") {
		t.Errorf("Migrate over another schema: %v (%s)", err, hint.Of(err))
	}
	if _, _, err := open(t, "shipper", name).Migrate(t.Context()); err == nil {
		t.Error("a role that ships may migrate")
	}
}

// A server that does not respond is waited for in the background, and holds up neither the log nor the end.
func TestAServerThatDoesNotRespond(t *testing.T) {
	name, home := database(t), t.TempDir()
	d := open(t, "shipper", name)
	s := must.Get(ship.Open(home, postgres.NewTarget(d), ship.Options{Every: time.Millisecond,
		Drain: 100 * time.Millisecond}))(t)
	defer s.Close()
	write(t, home, 5, true)
	must.Get(s.Once(t.Context()))(t)
	thaw := server.Freeze()
	defer thaw()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	write(t, home, 5, true)
	go func() { ended <- s.Follow(ctx) }()
	stop()
	select {
	case err := <-ended:
		if err == nil || !strings.Contains(err.Error(), "ship the last rows") {
			t.Errorf("Follow = %v", err)
		}
	case <-time.After(must.Patience(30 * time.Second)):
		t.Fatal("Follow does not end while the server does not respond")
	}
	thaw()
	must.Get(s.Once(t.Context()))(t)
}
