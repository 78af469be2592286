package auth

import (
	"context"
	"time"

	"belfry/pkg/store"
)

// MaxQueueTime is how long a request waits for a slot to hash in, and what its reply
// suggests to wait.
const MaxQueueTime = maxQueueTime

// QueueTime sets how long requests wait for a slot to hash in.
func (s *Service) QueueTime(d time.Duration) { s.hasher.wait = d }

// NewSecret makes the secrets of tokens.
var NewSecret = newSecret

// NewCode makes the codes of mails.
var NewCode = newCode

// Tries of a code.
const MaxTries = maxTries

// SendSecondCode and CheckSecondCode are the codes that are a second factor.
func (s *Service) SendSecondCode(ctx context.Context, user store.Stored, login string) error {
	return s.sendSecondCode(ctx, user, login)
}

func (s *Service) CheckSecondCode(ctx context.Context, user store.Stored, login, code string) (bool, error) {
	return s.checkSecondCode(ctx, user, login, code)
}

// Notify requests a notice.
func (s *Service) Notify(ctx context.Context, user store.Stored, kind Notice) {
	s.notify(ctx, user, kind)
}

// MaxNotices is how many notices of one kind a user gets in NoticePeriod.
const (
	MaxNotices   = maxNotices
	NoticePeriod = noticePeriod
)

// ObserveHashes calls f with the parameters of each hash that the service
// computes from now on.
func (s *Service) ObserveHashes(f func(HashParams)) {
	derive := s.hasher.derive
	s.hasher.derive = func(p HashParams, password string, salt []byte, size int) []byte {
		f(p)
		return derive(p, password, salt, size)
	}
}
