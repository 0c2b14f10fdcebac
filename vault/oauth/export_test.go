package oauth

// Renews reports whether a renewal is under way.
func (s *Source) Renews() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.flight != nil
}
