package sessions

import (
	"context"
	"slices"
	"time"

	"belfry/pkg/account/record"
)

// ProofBy is a proof by one method, now.
func (s *Sessions) ProofBy(provider, method string, aal int) record.Proof {
	return record.Proof{Provider: provider, Methods: []string{method}, AAL: aal, At: s.DB.Now()}
}

// Proof is the proof of identity of a session's user, for a session that replaces it.
func (me *Session) Proof() record.Proof {
	return record.Proof{Provider: me.Type, Methods: me.Methods, AAL: me.AAL, At: me.AuthenticatedAt,
		Limited: me.Limited}
}

// One mailbox is one factor. A password that was set by a mail, or in a session that began by one, proves no more than
// the mail did: anyone who reads the mailbox can set it. It counts as known to the user once the user has used another
// factor with it.

// ProvesMailbox reports whether a login by some methods began with a mailbox of a user, so that codes by mail would not
// be a second factor. A code that was its second factor may be requested again.
func ProvesMailbox(methods []string, user record.User) bool {
	return slices.ContainsFunc(methods,
		func(method string) bool { return method != record.FactorEmail && isMailbox(method, user) })
}

// ProvesMailboxAlone reports whether the login has proven only the mailbox.
func ProvesMailboxAlone(methods []string, user record.User) bool {
	return len(methods) > 0 &&
		!slices.ContainsFunc(methods, func(method string) bool { return !isMailbox(method, user) })
}

func isMailbox(method string, user record.User) bool {
	switch method {
	case record.MethodLink, record.MethodCode, record.FactorEmail:
		return true
	case record.MethodPassword:
		return user.PasswordByMail
	}
	return false
}

// PasswordKnown records that a password that was set by a mail was used with another factor.
func (s *Sessions) PasswordKnown(ctx context.Context, user record.User, methods []string) error {
	if !slices.Contains(methods, record.MethodPassword) || !ProvesMailbox([]string{record.MethodPassword}, user) ||
		ProvesMailboxAlone(methods, user) {
		return nil
	}
	_, err := s.DB.Users.Change(record.AsService(ctx, user.UUID), user.UUID, func(now *record.User) error {
		if !now.SameEpoch(user) {
			return EndedError()
		}
		now.PasswordByMail = false
		return nil
	})
	return err
}

// A login whose user has a second factor that can't be requested begins a limited session. Such a session can only add
// another second factor, with a notice. That factor counts after EnrollDelay: a thief of the mailbox would have to keep
// access to it, undetected, for that long. Codes of mails can't be requested after a login by mail. A recovery code, or
// an admin, gives access at once.

// EnrollDelay is the time after which a second factor counts that was added without proof of another one.
const EnrollDelay = 24 * time.Hour

// SessionFlow identifies the flow of a second factor that raises a session.
func SessionFlow(me *Session) string { return "session-" + me.ID }
