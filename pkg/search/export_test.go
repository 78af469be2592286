package search

// Scored returns how many documents were scored by searches of what a caller may list.
func (s *Service) Scored() (n int64) {
	for _, x := range s.indexes {
		if current := x.current.Load(); current != nil {
			n += current.scored.Load()
		}
	}
	return n
}
