package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/e2e/pgserver"
)

// url returns a file with the URL of a database, as a person keeps it.
func url(t *testing.T, s *pgserver.Server, role string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "url")
	must.Do(t, os.WriteFile(path, []byte(s.URL(role, "fleet")+"\n"), 0o600))
	return "@" + path
}

// Every command that takes --db prints of a database what it prints of the log that was shipped there.
func TestShippedEventsAreAskedForAsThoseOfTheLog(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts a PostgreSQL")
	}
	server := pgserver.Start(t)
	server.Database(t, "fleet")
	at := url(t, server, "owner")
	c := newRunner(t)
	if out, errs, code := c.run("audit", "ship", "--to", at); code != 0 || !strings.Contains(errs, "0 rows shipped") {
		t.Errorf("without a log: %q %q %d", out, errs, code)
	}
	c.write(oldRows()...)
	_, errs, code := c.run("audit", "ship", "--to", at)
	if code != 1 || !strings.Contains(errs, "has no tables of aileron") {
		t.Errorf("without tables: %q %d", errs, code)
	}
	if out := c.ok("audit", "ship", "--migrate", "--to", at); out != "version 1, was 0\n" {
		t.Errorf("--migrate prints %q", out)
	}
	c.ok("audit", "ship", "--to", at, "--once")
	for _, args := range [][]string{{"list"}, {"list", "--rows"}, {"list", "--json"}, {"tail", "-n", "3"}, {"summary"},
		{"summary", "--json"}, {"stats", "--by", "host"}, {"used"}, {"export"}, {"export", "--format", "csv"},
		{"export", "--format", "har"}, {"list", "--session", oldSession[:20]}, {"list", "--decision", "rejected", "--since",
			"1h"}} {
		args = append([]string{"audit"}, args...)
		want, got := c.ok(args...), c.ok(append(args, "--db", at)...)
		if got != want {
			t.Errorf("%q prints of the database\n%s\nand of the log\n%s", args, got, want)
		}
	}
	first, _, _ := strings.Cut(c.ok("audit", "list", "--json"), "\n")
	id := decode[struct{ ID string }](t, first).ID
	if got, want := c.ok("audit", "show", id, "--db", at), c.ok("audit", "show", id); got != want {
		t.Errorf("show prints of the database\n%s\nand of the log\n%s", got, want)
	}
	if out := c.ok("audit", "verify", "--db", at); !strings.Contains(out, "rows, 1 to 10") {
		t.Errorf("verify prints %q", out)
	}
	server.SQL(t, "fleet", "DELETE FROM aileron.events WHERE seq = 4")
	if out, errs, code := c.run("audit", "verify", "--db", at); code != 1 || !strings.Contains(out, "row 4 is missing") {
		t.Errorf("verify of what was changed prints %q %q, and exits with %d", out, errs, code)
	}
}

func TestAPasswordIsNoArgumentAndWhatIsOfThisHostHasNoDatabase(t *testing.T) {
	c := newRunner(t)
	for _, w := range []struct{ args, want string }{
		{"ship --to postgres://u:canary@h/db", "other users of this host can read arguments"},
		{"ship --to postgres://h/db?password=canary", "other users of this host can read arguments"},
		{"list --db postgres://u:canary@h/db", "other users of this host can read arguments"},
		{"ship --to @/nowhere", "no such file"},
		{"ship", "there is no URL"},
		{"ship --to postgres://h/db --once --follow", "only one of"},
		{"ship --to ftp://h/db", "a URL of ftp"},
		{"list --db nats://h/db", "not a URL of a database that can be asked"},
		{"prune --before 90d --db postgres://h/db", "aileron audit prune is about the log of this host"},
		{"head --db postgres://h/db", "aileron audit head is about the log of this host"},
		{"serve --db postgres://h/db", "aileron audit serve is about the log of this host"},
		{"recover --db postgres://h/db", "aileron audit recover is about the log of this host"},
	} {
		out, errs, code := c.run(append([]string{"audit"}, strings.Fields(w.args)...)...)
		if code == 0 || !strings.Contains(errs, w.want) || strings.Contains(out+errs, "canary") {
			t.Errorf("audit %s: %q %q %d, want %q", w.args, out, errs, code, w.want)
		}
	}
}
