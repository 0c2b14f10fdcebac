// Package auditview is what the commands of aileron audit show, wherever the log is: [Source] is the log of a home, or
// a database that logs of many hosts were shipped to, and has a method for each of these commands.
package auditview

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/auditlog"
	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/destination"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/home"
	"github.com/ALRubinger/aileron/internal/postgres"
	"github.com/ALRubinger/aileron/internal/review"
)

// Source is where events are asked for, and the streams to which they are printed.
type Source struct {
	Console *console.Console
	Dir     *home.Dir
	JSON    *bool  // whether objects are printed
	DB      string // the URL of a database, or @FILE; "": the log of the home
	Origin  string // with DB, the installation whose log it is; "": all
}

// database returns the database of DB.
func (s *Source) database() (*postgres.Database, error) {
	u, err := destination.ParseURL(s.DB, s.Dir.Getenv)
	if err != nil {
		return nil, failure.Usagef("--db: %w", err)
	}
	return destination.Database(u, s.Dir.Getenv)
}

// Read calls f with the log, or prints that there is none yet.
func (s *Source) Read(ctx context.Context, f func(review.Log) error) error {
	if s.DB == "" {
		return s.Dir.ReadAudit(func(l *audit.Log) error { return f(l) })
	}
	l, err := s.Open(ctx)
	if err != nil {
		return err
	}
	defer l.Close()
	return f(l)
}

// Open returns the log, nil if there is none yet.
func (s *Source) Open(ctx context.Context) (review.Log, error) {
	if s.DB == "" {
		l, err := s.Dir.AuditReader()
		if l == nil {
			return nil, err
		}
		return l, err
	}
	d, err := s.database()
	if err != nil {
		return nil, err
	}
	return postgres.OpenReader(ctx, d, s.Origin)
}

// follow calls show for events, and for each new one until ctx ends.
func (s *Source) follow(ctx context.Context, filter audit.Filter, show func(audit.Row) error) error {
	if s.DB == "" {
		home, err := s.Dir.Home()
		if err != nil {
			return err
		}
		return auditlog.Hint(audit.Follow(ctx, filepath.Join(home, "audit.db"), filter, show, Notice(s.Console)))
	}
	d, err := s.database()
	if err != nil {
		return err
	}
	r, err := postgres.OpenReader(ctx, d, s.Origin)
	if err != nil {
		return err
	}
	defer r.Close()
	return r.Follow(ctx, filter, show)
}

// verifyThere prints what the database finds in what was shipped to it.
func (s *Source) verifyThere(ctx context.Context, keys []string, more bool) error {
	if more {
		return failure.Usagef("with --db, a file, --head and --complete cannot be used")
	}
	d, err := s.database()
	if err != nil {
		return err
	}
	defer d.Close()
	verdict, err := d.Verify(ctx, s.Origin, keys)
	switch {
	case err != nil:
		return err
	case *s.JSON:
		return s.printVerdict(verdict, verdict.OK)
	}
	return verdict.Print(s.Console.Stdout)
}

// Notice returns a function that prints what following a log reports besides events.
func Notice(con *console.Console) func(audit.Notice) {
	return func(n audit.Notice) {
		if n.Err == nil {
			con.Infof("aileron: %s", n.Text)
			return
		}
		text := fmt.Sprintf("%s: %v", n.Text, n.Err)
		if h := hint.Of(auditlog.Hint(n.Err)); h != "" {
			text += "; " + h
		}
		con.Infof("aileron: %s", text)
	}
}
