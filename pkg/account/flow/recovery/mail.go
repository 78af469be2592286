package recovery

import (
	"context"

	"belfry/pkg/account/post"
	"belfry/pkg/account/record"
	"belfry/pkg/mail"
)

// Composer makes the mails of recoveries. An invited user who has not logged in yet gets an invitation, whose link is
// valid for as long as that of a registration: nobody waits for it.
func (s *Flow) Composer() post.Composer {
	e := s.Post.Email
	recovers := s.Post.WithToken(e.Recovery, e.RecoveryTTL, s.BindRecovery)
	invites := s.Post.WithToken(e.Invitation, e.TokenTTL, s.BindRecovery)
	return func(ctx context.Context, mailbox record.Mailbox,
		request record.MailRequest) (m mail.Message, send bool, err error) {
		user, ident, err := s.DB.FindOwner(ctx, record.AddressIdentity(mailbox.Address))
		switch {
		case err != nil:
			return m, false, err
		case ident.AwaitsFirst(user):
			return invites(ctx, mailbox, request)
		}
		return recovers(ctx, mailbox, request)
	}
}
