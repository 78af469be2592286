package auth

// NewSecret makes the secrets of tokens.
var NewSecret = newSecret

// ObserveHashes calls f with the parameters of each hash that the service
// computes from now on.
func (s *Service) ObserveHashes(f func(HashParams)) {
	derive := s.hasher.derive
	s.hasher.derive = func(p HashParams, password string, salt []byte, size int) []byte {
		f(p)
		return derive(p, password, salt, size)
	}
}
