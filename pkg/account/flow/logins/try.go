package logins

import (
	"context"
	"errors"
	"time"

	"belfry/pkg/account/guess"
	"belfry/pkg/account/method/mails"
	"belfry/pkg/account/once"
	"belfry/pkg/account/record"
	"belfry/pkg/errs"
)

// errInFlight ends a try whose answer is already being verified.
var errInFlight = errors.New("auth: the same second factor is being verified")

// tryTimeout is longer than a try takes. An older try has ended with its process.
const tryTimeout = 10 * time.Second

// beginTry returns a pending login after it has counted a try of its second factor. The same answer, sent again while
// the first one is being verified, is not a separate try: it waits for the result.
func (s *Flow) beginTry(ctx context.Context, pending, answer string) (login record.Token, err error) {
	if pending == "" {
		return login, errPending()
	}
	uuid := pendingUUID(pending)
	login, err = s.countTry(ctx, uuid, answer)
	if !errors.Is(err, errInFlight) {
		return login, err
	}
	u, err := s.Uses.AwaitUse(ctx, uuid, func(t record.Token) bool { return s.inFlight(t)[answer] != "" })
	switch {
	case err != nil:
		return login, err
	case u != nil && u.Answer == answer:
		return login, once.UsedBefore(*u, errs.Unauthenticated)
	}
	return login, guess.ErrWrongCode() // as the first was, or will be
}

// inFlight returns the times since when answers of a pending login are being verified.
func (s *Flow) inFlight(login record.Token) map[string]string {
	all := map[string]string{}
	begun := record.Timestamp(s.DB.Now().Add(-tryTimeout))
	for answer, at := range login.InFlight {
		if at >= begun {
			all[answer] = at
		}
	}
	return all
}

func (s *Flow) countTry(ctx context.Context, uuid, answer string) (login record.Token, err error) {
	_, err = s.DB.Tokens.Change(ctx, uuid, func(t *record.Token) error {
		if u := t.Use; u != nil {
			if u.Answer == answer {
				return once.UsedBefore(*u, errs.Unauthenticated)
			}
			return errPending()
		}
		inFlight := s.inFlight(*t)
		switch {
		case !s.DB.Now().Before(t.Expires):
			return errPending()
		case inFlight[answer] != "":
			return errInFlight
		case t.Tries >= mails.MaxTries:
			return errPending()
		}
		login = *t
		inFlight[answer] = record.Timestamp(s.DB.Now())
		t.Tries++
		t.InFlight = inFlight
		return nil
	})
	if errors.Is(err, errs.NotFound) {
		err = errPending()
	}
	return login, err
}

// endTry records that a try has failed. If it fails, a repetition waits for tryTimeout at most.
func (s *Flow) endTry(ctx context.Context, uuid, answer string) {
	_, err := s.DB.Tokens.Change(context.WithoutCancel(ctx), uuid, func(t *record.Token) error {
		if t.Use != nil {
			return record.ErrUnchanged
		}
		t.InFlight = s.inFlight(*t)
		delete(t.InFlight, answer)
		return nil
	})
	if record.IgnoreNotFound(err) != nil {
		s.Log.WarnContext(ctx, "auth: the end of a try of a second factor was not recorded", "error", err)
	}
}
