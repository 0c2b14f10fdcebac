package session

import (
	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/otlp"
)

// openExport starts the export of rows, if one is asked for, and returns what the log calls with each. It is off the
// path of requests: the log calls it when it moves rows from the journal to the database.
func (s *Session) openExport() func(audit.Row, string) {
	if !s.opts.Export.Enabled() {
		return nil
	}
	s.export = otlp.Open(s.opts.Export, otlp.Options{
		Session: s.id, Version: s.opts.Version,
		Warn: func(text string) { s.opts.Infof("aileron: warning: %s", text) },
	})
	return s.export.Add
}
