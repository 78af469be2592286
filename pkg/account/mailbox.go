package account

import (
	"context"
	"slices"
	"time"

	"belfry/pkg/store"
	"belfry/pkg/store/object"
)

// One mailbox is one factor. A password that was set by a mail, or in a session that began by one, proves no more than the mail
// did: whoever reads the mailbox can set it. It counts as known to the user once another factor has come with it.

// markByMail marks a user whose password proves the mailbox alone.
const markByMail = "_passwordByMail"

// provesMailbox reports whether a login by some methods began with a mailbox of a user: codes of mails add nothing to it. A code that
// was its second factor may be asked for again.
func provesMailbox(methods []string, user store.Stored) bool {
	return slices.ContainsFunc(methods, func(method string) bool { return method != FactorEmail && isMailbox(method, user) })
}

// provesMailboxAlone reports whether it has proven nothing else.
func provesMailboxAlone(methods []string, user store.Stored) bool {
	return len(methods) > 0 && !slices.ContainsFunc(methods, func(method string) bool { return !isMailbox(method, user) })
}

func isMailbox(method string, user store.Stored) bool {
	switch method {
	case MethodLink, MethodCode, FactorEmail:
		return true
	case MethodPassword:
		return string(object.Field(user.Body, markByMail)) == "true"
	}
	return false
}

// passwordKnown records that a password which was set by a mail came with another factor.
func (s *Service) passwordKnown(ctx context.Context, user store.Stored, methods []string) error {
	if !slices.Contains(methods, MethodPassword) || !provesMailbox([]string{MethodPassword}, user) || provesMailboxAlone(methods, user) {
		return nil
	}
	_, err := s.users.Mutate(asService(ctx, user.UUID), user.UUID, func(now store.Stored) (store.Mutation, error) {
		if !sameEpoch(now, user) {
			return store.Mutation{}, errSessionEnded()
		}
		return store.Mutation{Fields: object.Object{markByMail: nil}}, nil
	})
	return err
}

// A login whose user has a second factor that can't be asked for begins a limited session, which is of use for one thing: adding
// another second factor, with a notice. That one counts after EnrollDelay, so that whoever reads the mailbox has to keep it, unseen,
// for that long. Codes of mails can't be asked for after a login by a mail; a recovery code, or an admin, opens the way at once.

// EnrollDelay is how long it takes until a second factor counts that was added without one.
const EnrollDelay = 24 * time.Hour

// fieldLimited marks a limited session.
const fieldLimited = "_limited"
