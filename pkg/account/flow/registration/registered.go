package registration

import (
	"context"
	"errors"

	"belfry/pkg/account/once"
	"belfry/pkg/account/record"
	"belfry/pkg/account/secret"
	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
)

// A registration without a token uses up no secret, but its form can still be sent twice. So for a browser with a
// cookie there is a record, which is found by the cookie and the address.

func registrationUUID(id record.Identity, from sessions.Client) string {
	return record.KindRegistration + secret.Hex(from.Browser+"\n"+id.UUID())
}

// beginRegistration records that a browser is registering an address, and returns a function that records the outcome.
// Of two concurrent calls, the first one does both.
func (s *Flow) beginRegistration(ctx context.Context, id record.Identity, token string,
	from sessions.Client) (ended func(done bool), err error) {
	ended = func(bool) {}
	if token != "" || from.Browser == "" {
		return ended, nil
	}
	uuid := registrationUUID(id, from)
	switch _, err := s.DB.Tokens.Create(record.AsService(ctx, ""), uuid, record.Token{
		Use:     &record.Use{Act: record.ActRegistered, Browser: once.BrowserDigest(from)},
		Expires: s.DB.Now().Add(once.UsedTTL),
	}); {
	case errors.Is(err, errs.Exists):
		return ended, nil
	case err != nil:
		return ended, err
	}
	return func(done bool) { s.Uses.Settle(ctx, uuid, done) }, nil
}

// registeredBefore returns a Repetition if this browser has registered an address; taken otherwise.
func (s *Flow) registeredBefore(ctx context.Context, id record.Identity, taken error, from sessions.Client) error {
	if from.Browser == "" || from.Session != nil {
		return taken
	}
	u, err := s.Uses.AwaitUse(ctx, registrationUUID(id, from), once.NoneElse)
	switch {
	case err != nil:
		return err
	case u == nil:
		return taken
	}
	return once.UsedBefore(*u, errs.Exists)
}
