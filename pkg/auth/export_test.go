package auth

import "time"

// MaxQueueTime is how long a request waits for a slot to hash in, and what its reply
// suggests to wait.
const MaxQueueTime = maxQueueTime

// QueueTime sets how long requests wait for a slot to hash in.
func (s *Service) QueueTime(d time.Duration) { s.hasher.wait = d }

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
