package account

import (
	"context"
	"errors"

	"belfry/pkg/account/record"
	"belfry/pkg/account/secret"
	"belfry/pkg/errs"
)

// A registration without a token uses up no secret. So that its form can be sent twice all the same, a browser that has a cookie before
// it sends it leaves a record, which is found by that cookie and the address.

func registrationUUID(id record.Identity, from Client) string {
	return record.KindRegistration + secret.Hex(from.Browser+"\n"+id.UUID())
}

// beginRegistration records that a browser is registering an address, and returns what records how that has ended. Of two at once
// the first one does both.
func (s *Service) beginRegistration(ctx context.Context, id record.Identity, token string, from Client) (ended func(done bool), err error) {
	ended = func(bool) {}
	if token != "" || from.Browser == "" {
		return ended, nil
	}
	uuid := registrationUUID(id, from)
	switch _, err := s.db.Tokens.Create(record.AsService(ctx, ""), uuid, record.Token{
		Use: &record.Use{Act: ActRegistered, Browser: browserDigest(from)}, Expires: s.now().Add(UsedTTL),
	}); {
	case errors.Is(err, errs.Exists):
		return ended, nil
	case err != nil:
		return ended, err
	}
	return func(done bool) { s.settle(ctx, uuid, done) }, nil
}

// registeredBefore returns a Repetition if it was this browser that has taken an address; taken otherwise.
func (s *Service) registeredBefore(ctx context.Context, id record.Identity, taken error, from Client) error {
	if from.Browser == "" || from.Session != nil {
		return taken
	}
	u, err := s.awaitUse(ctx, registrationUUID(id, from), noneElse)
	switch {
	case err != nil:
		return err
	case u == nil:
		return taken
	}
	return usedBefore(*u, errs.Exists)
}
