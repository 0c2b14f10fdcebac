package session

import (
	"context"
	"os"

	"github.com/ALRubinger/aileron/proxy/capture"
)

// openCapture creates the file of a session that is to be captured, and tells the user: it holds what the command sends
// and gets.
func (s *Session) openCapture(context.Context) (err error) {
	if s.opts.Capture == "" {
		return nil
	}
	warn := func(err error) { s.opts.Infof("aileron: warning: %v", err) }
	s.capture, err = capture.Open(s.opts.Capture, capture.Options{Version: s.opts.Version, Token: s.token, Warn: warn})
	if err != nil {
		return err
	}
	s.opts.Infof("aileron: headers, queries and bodies of this session are recorded in %s; secrets are redacted",
		s.capture.Path())
	return nil
}

// CapturePath returns the absolute path of the session's capture, "" if there is none.
func (s *Session) CapturePath() string {
	if s.capture == nil {
		return ""
	}
	return s.capture.Path()
}

// closeCapture completes the capture.
func (s *Session) closeCapture() {
	if s.capture == nil {
		return
	}
	if err := s.capture.Close(); err != nil {
		s.opts.Infof("aileron: warning: close the capture: %v", err)
	}
	if s.stop == nil { // nothing was served: the file would be in the way of the next attempt
		_ = os.Remove(s.capture.Path())
	}
}
