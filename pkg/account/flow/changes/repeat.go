package changes

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"belfry/pkg/account/once"
	"belfry/pkg/account/post"
	"belfry/pkg/account/record"
	"belfry/pkg/account/sessions"
)

// RepeatedChange is recognize for a change of address, whose attempt it gives back.
func (s *Changes) RepeatedChange(err error, from sessions.Client) error {
	if once.Repeated(err) != nil {
		s.Guesses.Return(from.Address)
	}
	return once.Recognize(err, from)
}

// RepeatedRequest returns the error of a request for a change of address, whose mails may be on their way for another one. Of two
// requests at once the second one may find a mail before the change.
func (s *Changes) RepeatedRequest(ctx context.Context, user string, c record.AddressChange, err error) error {
	if !errors.Is(err, post.ErrMailAsked) {
		return err
	}
	since := record.Timestamp(s.DB.Now().Add(-once.UsedTTL))
	same, failed := s.Uses.Await(ctx, s.DB.Now(), func() (bool, bool, error) {
		now, err := s.DB.Users.Read(ctx, user)
		return slices.ContainsFunc(s.ChangesOf(now), func(other record.AddressChange) bool {
			return other.Ident == c.Ident && other.To == c.To && other.At > since
		}), false, err
	})
	switch {
	case failed != nil:
		return failed
	case !same:
		return post.AskedByOthers(err)
	}
	return err
}

// UndoneAtOnce returns the error of an undoing whose change has ended: by another use of the same token, at the same time, which uses the
// token up last.
func (s *Changes) UndoneAtOnce(ctx context.Context, id record.Identity, token string, wrong error, from sessions.Client) error {
	var repeated error
	_, err := s.Uses.Await(ctx, s.DB.Now(), func() (bool, bool, error) {
		_, err := s.Post.Verify(ctx, id.ID, token, record.PurposeUndo)
		if once.Repeated(err) != nil {
			repeated = s.RepeatedChange(err, from)
		}
		return repeated != nil, err != nil, nil
	})
	return cmp.Or(err, repeated, wrong)
}
