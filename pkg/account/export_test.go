package account

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/go-webauthn/webauthn/protocol"
	"golang.org/x/crypto/argon2"

	"belfry/pkg/account/method"
	"belfry/pkg/account/method/mails"
	"belfry/pkg/account/method/passkeys"
	"belfry/pkg/account/method/passwords"
	"belfry/pkg/account/notices"
	"belfry/pkg/account/once"
	"belfry/pkg/account/post"
	"belfry/pkg/account/record"
	"belfry/pkg/account/secret"
	"belfry/pkg/account/sessions"
	"belfry/pkg/store"
)

// MaxQueueTime is how long a request waits for a slot to hash in, and what its reply
// suggests to wait.
const MaxQueueTime = passwords.MaxQueueTime

// QueueTime sets how long requests wait for a slot to hash in.
func (s *Service) QueueTime(d time.Duration) { s.Passwords.Hasher.Wait = d }

// OccupySlots takes all slots to hash in, until release is called.
func (s *Service) OccupySlots() (release func()) {
	slots := s.Passwords.Hasher.Slots
	for range cap(slots) {
		slots <- struct{}{}
	}
	return func() {
		for range cap(slots) {
			<-slots
		}
	}
}

// NewSecret makes the secrets of tokens.
var NewSecret = secret.New

// NewCode makes the codes of mails.
var NewCode = mails.NewCode

// Tries of a code.
const MaxTries = mails.MaxTries

// SendSecondCode and CheckSecondCode are the codes that are a second factor.
func (s *Service) SendSecondCode(ctx context.Context, user record.User, login string) error {
	return s.Mails.SendSecondCode(ctx, user, login)
}

func (s *Service) CheckSecondCode(ctx context.Context, user record.User, login, code string) (bool, error) {
	_, ok, err := s.Mails.CheckSecondCode(ctx, user, login, code)
	if once.Repeated(err) != nil { // the code was used: it is right no more
		err = nil
	}
	return ok, err
}

// UserOf reads a stored user.
func (s *Service) UserOf(stored store.Stored) (record.User, error) { return s.db.Users.Of(stored) }

// Notify requests a notice.
func (s *Service) Notify(ctx context.Context, user record.User, kind post.Notice) {
	s.Notices.Notify(ctx, user, kind)
}

// MaxNotices is how many notices of one kind a user gets in NoticePeriod.
const (
	MaxNotices   = notices.MaxNotices
	NoticePeriod = notices.NoticePeriod
)

// ObserveHashes calls f with the parameters of each hash that the service
// computes from now on.
func (s *Service) ObserveHashes(f func(passwords.HashParams)) {
	derive := s.Passwords.Hasher.Derive
	s.Passwords.Hasher.Derive = func(p passwords.HashParams, password string, salt []byte, size int) []byte {
		f(p)
		return derive(p, password, salt, size)
	}
}

// HashOf is a hash of a password as it is, which earlier releases made.
func HashOf(p passwords.HashParams, password string) string {
	b64, salt := base64.RawStdEncoding, make([]byte, 16)
	key := argon2.IDKey([]byte(password), salt, p.Time, p.Memory, p.Threads, 32)
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, p.Memory, p.Time, p.Threads,
		b64.EncodeToString(salt), b64.EncodeToString(key))
}

// What the second step of a login and a step-up use.

// SecondFactorOptions makes the challenge of a second factor.
func (s *Service) SecondFactorOptions(ctx context.Context, user record.User, pending string) (method.Challenge, error) {
	return s.Passkeys.Options(ctx, &user, passkeys.ForSecondFactor(pending))
}

// VerifySecondFactor verifies the answer to SecondFactorOptions.
func (s *Service) VerifySecondFactor(ctx context.Context, a method.Signed, user record.User,
	pending string) (by record.User, ident record.Ident, err error) {
	return s.Passkeys.Verify(ctx, a, &user, passkeys.ForSecondFactor(pending), record.ActProven)
}

// StepUpOptions makes the challenge of a step-up.
func (s *Service) StepUpOptions(ctx context.Context, me *sessions.Session) (method.Challenge, error) {
	return s.Passkeys.Options(ctx, &me.User, passkeys.ForSecondFactor(sessions.SessionFlow(me)))
}

// VerifyStepUp verifies the answer to StepUpOptions.
func (s *Service) VerifyStepUp(ctx context.Context, a method.Signed, me *sessions.Session) error {
	_, _, err := s.Passkeys.Verify(ctx, a, &me.User, passkeys.ForSecondFactor(sessions.SessionFlow(me)),
		record.ActProven)
	return err
}

// VerifyVector verifies a registration and a login with given challenges, and returns the public key.
func (s *Service) VerifyVector(registration, assertion json.RawMessage,
	first, second, user string) (registered, loggedIn error) {
	created, err := protocol.ParseCredentialCreationResponseBytes(registration)
	if err != nil {
		return err, nil
	}
	p, err := s.Passkeys.VerifyRegistration(created, first)
	if err != nil {
		return err, nil
	}
	got, err := protocol.ParseCredentialRequestResponseBytes(assertion)
	if err != nil {
		return nil, err
	}
	return nil, s.Passkeys.VerifyAssertion(got, p, user, second, true)
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

// BeginMailFactor begins to add codes of mails.
func (s *Service) BeginMailFactor(ctx context.Context, me *sessions.Session) error {
	_, err := s.Enrollment.Begin(ctx, me, record.FactorEmail)
	return err
}

// AddPasskeyFactor makes passkeys a second factor.
func (s *Service) AddPasskeyFactor(ctx context.Context, me *sessions.Session) ([]string, error) {
	_, codes, err := s.Enrollment.Confirm(ctx, record.FactorPasskey, "", sessions.Client{Session: me})
	return codes, err
}

// MailSecondCode asks for the mail with the code of a second factor.
func (s *Service) MailSecondCode(ctx context.Context, pending string, from sessions.Client) error {
	_, err := s.Login.Ask(ctx, record.FactorEmail, pending, from)
	return err
}

// LoginByPasskey logs in by a passkey.
func (s *Service) LoginByPasskey(ctx context.Context, a method.Signed, from sessions.Client) (sessions.Issued, error) {
	return s.Login.LoginBy(ctx, record.MethodPasskey, "", method.Answer{Signed: a}, from)
}
