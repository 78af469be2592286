package registration

import (
	"context"

	"belfry/pkg/account/method/mails"
	"belfry/pkg/account/once"
	"belfry/pkg/account/post"
	"belfry/pkg/account/record"
	"belfry/pkg/account/secret"
	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
)

// followLogin handles the link of a mail if it is that of a login. It uses nothing up.
func (s *Flow) followLogin(ctx context.Context, id record.Identity, token string, from sessions.Client) (to post.Outcome, found bool, err error) {
	if _, link := s.Mails.Logins(); !link {
		return 0, false, nil
	}
	mailbox, err := s.DB.Mailboxes.Read(record.AsService(ctx, ""), post.MailboxUUID(id.ID, mails.LoginMailbox))
	if err != nil {
		return 0, false, record.IgnoreNotFound(err)
	}
	if r := s.Uses.RepeatedLogin(mailbox, secret.Digest(from.Binding), token, from); r != nil && r.Act == once.ActLoggedIn {
		return 0, true, once.ErrRepeated(*r, errs.Denied)
	}
	for _, l := range mailbox.Logins {
		if l.Method != record.MethodLink || !s.Mails.IsValid(l) || !mails.MatchesCode(l, token) {
			continue
		}
		if secret.Matches(from.Binding, l.Binding) {
			return post.OpenLogin, true, nil
		}
		return post.OpenLoginElsewhere, true, nil
	}
	return 0, false, nil
}
