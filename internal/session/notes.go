package session

import (
	"context"
	"os"
	"time"

	"github.com/ALRubinger/aileron/internal/learn"
	"github.com/ALRubinger/aileron/spec"
)

// openNotes creates the file of a session that learns, and tells the user what passes.
func (s *Session) openNotes(context.Context) (err error) {
	if !s.opts.Learn {
		return nil
	}
	if _, err := PruneNotes(s.opts.Home, time.Now().Add(-learn.KeptAge)); err != nil {
		s.opts.Infof("aileron: warning: %v", err)
	}
	if s.notes, err = learn.CreateNotes(learn.NotesPath(s.opts.Home, s.id)); err != nil {
		return err
	}
	s.opts.Infof("aileron: LEARNING: requests to every public host that no connector names pass, without credentials; "+
		"paths are in the audit log, names in queries and types of bodies in %s", s.notesPath())
	return nil
}

// PruneNotes removes the notes of learning sessions that have ended, those from before a time and what is too much of
// the rest. removed is of how many sessions.
func PruneNotes(home string, before time.Time) (removed int, err error) {
	return learn.PruneNotes(home, before, func(id string) bool { return HasDir(home, id) })
}

func (s *Session) notesPath() string { return learn.NotesPath(s.opts.Home, s.id) }

// noteRequest returns what notes a request that is about to be sent, nil if the session does not learn.
func (s *Session) noteRequest() func(spec.Target, string) {
	if s.notes == nil {
		return nil
	}
	return func(t spec.Target, contentType string) {
		s.notes.Add(t.Method, t.Host, int(t.Port), t.Path, t.Query, contentType)
	}
}

// closeNotes completes the file of a session that learns, and tells the user what to do with it.
func (s *Session) closeNotes() {
	if s.notes == nil {
		return
	}
	if err := s.notes.Close(); err != nil {
		s.opts.Infof("aileron: warning: the notes of what was learnt are incomplete, so that a proposal accepts every name "+
			"in queries: %v", err)
	}
	if s.stop == nil { // nothing was served
		_ = os.Remove(s.notesPath())
		return
	}
	s.opts.Infof("aileron: LEARNING has ended: requests to every public host passed; see what a connector would allow: "+
		"aileron learn %s", s.id)
}
