package account

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/go-webauthn/webauthn/protocol"

	"belfry/pkg/account/record"
	"belfry/pkg/account/secret"
	"belfry/pkg/store"
)

// MaxQueueTime is how long a request waits for a slot to hash in, and what its reply
// suggests to wait.
const MaxQueueTime = maxQueueTime

// QueueTime sets how long requests wait for a slot to hash in.
func (s *Service) QueueTime(d time.Duration) { s.hasher.wait = d }

// OccupySlots takes all slots to hash in, until release is called.
func (s *Service) OccupySlots() (release func()) {
	for range cap(s.hasher.slots) {
		s.hasher.slots <- struct{}{}
	}
	return func() {
		for range cap(s.hasher.slots) {
			<-s.hasher.slots
		}
	}
}

// NewSecret makes the secrets of tokens.
var NewSecret = secret.New

// NewCode makes the codes of mails.
var NewCode = newCode

// Tries of a code.
const MaxTries = maxTries

// SendSecondCode and CheckSecondCode are the codes that are a second factor.
func (s *Service) SendSecondCode(ctx context.Context, user record.User, login string) error {
	return s.sendSecondCode(ctx, user, login)
}

func (s *Service) CheckSecondCode(ctx context.Context, user record.User, login, code string) (bool, error) {
	_, ok, err := s.checkSecondCode(ctx, user, login, code)
	if Repeated(err) != nil { // the code was used: it is right no more
		err = nil
	}
	return ok, err
}

// UserOf reads a stored user.
func (s *Service) UserOf(stored store.Stored) (record.User, error) { return s.db.Users.Of(stored) }

// Notify requests a notice.
func (s *Service) Notify(ctx context.Context, user record.User, kind Notice) {
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

// HashOf is a hash of a password as it is, which earlier releases made.
func HashOf(p HashParams, password string) string {
	salt := make([]byte, saltSize)
	return encodeHash(p, salt, p.key(password, salt, keySize))
}

// What the second step of a login and a step-up use.

// SecondFactorOptions makes the challenge of a second factor.
func (s *Service) SecondFactorOptions(ctx context.Context, user record.User, pending string) (PasskeyChallenge, error) {
	return s.passkeyOptions(ctx, &user, passkeySecondFactor(pending))
}

// VerifySecondFactor verifies the answer to SecondFactorOptions.
func (s *Service) VerifySecondFactor(ctx context.Context, a PasskeyAnswer, user record.User, pending string) (by record.User, ident record.Ident, err error) {
	return s.verifyPasskey(ctx, a, &user, passkeySecondFactor(pending), ActProven)
}

// StepUpOptions makes the challenge of a step-up.
func (s *Service) StepUpOptions(ctx context.Context, me *Session) (PasskeyChallenge, error) {
	return s.passkeyOptions(ctx, &me.User, passkeySecondFactor(sessionFlow(me)))
}

// VerifyStepUp verifies the answer to StepUpOptions.
func (s *Service) VerifyStepUp(ctx context.Context, a PasskeyAnswer, me *Session) error {
	_, _, err := s.verifyPasskey(ctx, a, &me.User, passkeySecondFactor(sessionFlow(me)), ActProven)
	return err
}

// VerifyVector verifies a registration and a login with given challenges, and returns the public key.
func (s *Service) VerifyVector(registration, assertion json.RawMessage, first, second, user string) (registered, loggedIn error) {
	created, err := protocol.ParseCredentialCreationResponseBytes(registration)
	if err != nil {
		return err, nil
	}
	p, err := s.verifyRegistration(created, first)
	if err != nil {
		return err, nil
	}
	got, err := protocol.ParseCredentialRequestResponseBytes(assertion)
	if err != nil {
		return nil, err
	}
	return nil, s.verifyAssertion(got, p, user, second, true)
}

// LeftOfUsers returns what becomes of the fields of a user by an act: recovery, firstProof, undoing or reset.
func LeftOfUsers(act string) map[string]string {
	all, at := map[string]string{}, slices.Index([]string{"recovery", "firstProof", "undoing", "reset"}, act)
	for _, f := range reflect.VisibleFields(reflect.TypeFor[record.User]()) {
		if name, stored := f.Tag.Lookup("record"); stored {
			all[name] = strings.Split(f.Tag.Get("left"), ", ")[at]
		}
	}
	return all
}
