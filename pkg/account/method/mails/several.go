package mails

import (
	"context"
	"slices"

	"belfry/pkg/account/post"
	"belfry/pkg/account/record"
	"belfry/pkg/account/secret"
)

// BindingSecret returns the secret of a login by mail to an address.
func (s *Method) BindingSecret(ctx context.Context, login string, secrets []string) string {
	return secret.FirstValid(secrets, func() func(string) bool {
		mailbox, err := s.DB.Mailboxes.Read(record.AsService(ctx, ""), post.MailboxUUID(record.AddressIdentity(login).ID, LoginMailbox))
		if err != nil {
			return nil
		}
		return func(text string) bool {
			return slices.ContainsFunc(mailbox.Logins, func(l record.MailLogin) bool { return secret.Matches(text, l.Binding) }) ||
				slices.ContainsFunc(mailbox.Used, func(u record.UsedSecret) bool { return secret.Matches(text, u.Binding) })
		}
	})
}
