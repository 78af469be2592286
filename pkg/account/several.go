package account

import (
	"context"
	"net/url"
	"slices"

	"belfry/pkg/account/record"
	"belfry/pkg/account/secret"
)

// Browsers send several cookies of one name, which were set for other paths or hosts: the first one that is valid counts. The functions
// here return which of some secrets that is: the one of what the request is about. If none is, they return the first, whose use fails as
// that of one alone does; "" of none.

// FlowSecret returns the secret of the flow of a callback.
func (s *Service) FlowSecret(ctx context.Context, query url.Values, secrets []string) string {
	return secret.FirstValid(secrets, func() func(string) bool {
		flow, err := s.db.Tokens.Read(record.AsService(ctx, ""), flowUUID(flowKey(query)))
		if err != nil {
			return nil
		}
		browser := flow.Browser
		if flow.Use != nil {
			browser = flow.Use.Secret
		}
		return func(text string) bool { return secret.Matches(text, browser) }
	})
}

// PendingSecret returns the secret of a login that waits for its second factor, or has been completed.
func (s *Service) PendingSecret(ctx context.Context, secrets []string) string {
	return secret.FirstValid(secrets, func() func(string) bool {
		return func(secret string) bool {
			_, err := s.db.Tokens.Get(record.AsService(ctx, ""), pendingUUID(secret))
			return err == nil
		}
	})
}

// BindingSecret returns the secret of a login by mail to an address.
func (s *Service) BindingSecret(ctx context.Context, login string, secrets []string) string {
	return secret.FirstValid(secrets, func() func(string) bool {
		mailbox, err := s.db.Mailboxes.Read(record.AsService(ctx, ""), mailboxUUID(record.AddressIdentity(login).ID, loginMailbox))
		if err != nil {
			return nil
		}
		return func(text string) bool {
			return slices.ContainsFunc(mailbox.Logins, func(l record.MailLogin) bool { return secret.Matches(text, l.Binding) }) ||
				slices.ContainsFunc(mailbox.Used, func(u record.UsedSecret) bool { return secret.Matches(text, u.Binding) })
		}
	})
}

// ChallengeSecret returns the secret of the challenge with a name.
func ChallengeSecret(name string, secrets []string) string {
	return secret.FirstValid(secrets, func() func(string) bool {
		return func(secret string) bool { return challengeName(passkeyChallenge(secret)) == name }
	})
}

// deviceSecret returns the secret of a device that is known, of those of a client.
func deviceSecret(from Client, user string, known []record.Device) string {
	secrets := slices.DeleteFunc(append([]string{from.Device}, from.Devices...), func(secret string) bool { return secret == "" })
	return secret.FirstValid(secrets, func() func(string) bool {
		return func(secret string) bool {
			hash := deviceHash(user, secret)
			return slices.ContainsFunc(known, func(d record.Device) bool { return d.Hash == hash })
		}
	})
}
