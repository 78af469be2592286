package changes

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"belfry/pkg/account/guess"
	"belfry/pkg/account/notices"
	"belfry/pkg/account/once"
	"belfry/pkg/account/post"
	"belfry/pkg/account/record"
	"belfry/pkg/account/sessions"
	"belfry/pkg/object"
)

// ChangesOf returns the changes of a user that can still be confirmed or undone.
func (s *Changes) ChangesOf(user record.User) []record.AddressChange {
	before := record.Timestamp(s.DB.Now().Add(-s.Post.UndoTTL()))
	return slices.DeleteFunc(slices.Clone(user.Changes), func(c record.AddressChange) bool { return c.At <= before })
}

// New returns a change of the address of an ident, with the address that may undo it.
func (s *Changes) New(ctx context.Context, user record.User, ident, to string) (record.AddressChange, error) {
	found, err := s.DB.StandingsOf(ctx, user)
	c := record.AddressChange{ID: object.NewUUID(), Ident: ident, To: to, At: record.Timestamp(s.DB.Now()),
		Holder: found.Owner()}
	c.Proven = found.Since(c.Holder) != ""
	for _, a := range found.All {
		if record.AddressIdentity(a.Address).UUID() == ident {
			c.From, c.Since = a.Address, a.Since
		}
	}
	return c, err
}

// AboutChange sets in a mailbox the change that its mail is about.
func AboutChange(user record.User, c record.AddressChange) func(*record.Mailbox) {
	return func(m *record.Mailbox) {
		m.Change = &record.PendingChange{Mail: m.Request.ID, User: user.UUID, Epoch: user.Epoch, Change: c.ID,
			Proven: c.Proven}
	}
}

// OfferUndo requests the mail by which a change can be undone, before the change is recorded. If no address may undo
// it, the user gets a notice instead. Limited until the mail of the previous change was sent: a mail never replaces
// another one.
func (s *Changes) OfferUndo(ctx context.Context, user record.User, c record.AddressChange) error {
	if c.Holder == "" {
		return s.Notices.Announce(ctx, user, notices.Announcement{Kind: notices.NoticeAddress, About: c.To})
	}
	language := s.Notices.LanguageOf(ctx, user) // not that of a thief
	return s.Post.Order(ctx, post.Order{Mailbox: post.MailboxUUID(c.Holder, post.UndoMailbox), Address: c.Holder,
		Language: &language, Why: record.PurposeUndo, With: AboutChange(user, c),
		Delay: func(mailbox record.Mailbox) time.Duration {
			wait := s.Post.MailDelay(mailbox, s.DB.Now())
			if _, unsent := s.Post.UnsentIn(mailbox); unsent {
				wait = max(wait, unsentDelay)
			}
			return max(wait, s.undoDelay(mailbox, user.UUID, c))
		},
	})
}

// undoDelay is how long a change has to wait because the mailbox of its holder is full of tokens that undo changes of
// other users. A thief who has freed the owner's address can register it in many accounts without proving it. So
// earlier tokens stay, except that the token of a proven address replaces that of an unproven one.
func (s *Changes) undoDelay(mailbox record.Mailbox, user string, c record.AddressChange) time.Duration {
	now, first := s.DB.Now(), ""
	own, others := 0, 0
	for _, t := range mailbox.Tokens {
		switch {
		case t.For != record.PurposeUndo || t.Until <= record.Timestamp(now):
		case t.User == user:
			own++
		case !t.Proven && c.Proven:
			return 0
		default:
			others++
			if first == "" || t.Until < first {
				first = t.Until
			}
		}
	}
	// Further tokens of the user are for changes that have ended.
	if min(own, post.MaxChanges-1)+others < post.MaxMailedTokens {
		return 0
	}
	return record.Time(first).Sub(now)
}

const (
	// unsentDelay is the interval of a client's retries.
	unsentDelay = 10 * time.Second
)

// CheckChanges reports Limited for a user who has requested too many changes.
func (s *Changes) CheckChanges(user record.User) error {
	all := s.ChangesOf(user)
	if len(all) < post.MaxChanges {
		return nil
	}
	return guess.Limited("too many changes of address", record.Time(all[0].At).Add(s.Post.UndoTTL()).Sub(s.DB.Now()))
}

// The right to undo a change ends in two ways:
//
//   - The address that has the right proves itself again: by a login by mail, a recovery, or an undoing. Unconfirmed
//     changes can no longer be confirmed then, because nobody could undo them.
//   - The owner of the address, or an admin, confirms that the changes are right. Unconfirmed changes can still be
//     confirmed.

// WithoutRightsOf returns changes without those that an address can undo.
func WithoutRightsOf(all []record.AddressChange, address record.Identity) []record.AddressChange {
	return slices.DeleteFunc(slices.Clone(all),
		func(c record.AddressChange) bool { return !c.Kept && c.HeldBy(address) })
}

// EndRights ends the rights of an address of a user, which has proven itself again.
func (s *Changes) EndRights(ctx context.Context, user record.User, address record.Identity) (record.User, error) {
	if len(s.ChangesOf(user)) == 0 {
		return user, nil
	}
	return s.DB.Users.Change(record.AsService(ctx, user.UUID), user.UUID, func(now *record.User) error {
		now.Changes = WithoutRightsOf(s.ChangesOf(*now), address)
		return nil
	})
}

// Undoable is a change of address that can be undone, as admins see it.
type Undoable struct {
	At   string `json:"at"`
	By   string `json:"by"`           // the address that can undo it
	From string `json:"from"`         // restored by an undoing
	To   string `json:"to,omitempty"` // absent for a removal
}

// Undoable returns the changes of a user that can still be undone.
func (s *Changes) Undoable(user record.User) (all []Undoable) {
	for _, c := range s.ChangesOf(user) {
		if c.Holder != "" && !c.Kept {
			all = append(all, Undoable{c.At, c.Holder, c.From, c.To})
		}
	}
	return all
}

// RepeatedChange is recognize for a change of address, whose attempt it gives back.
func (s *Changes) RepeatedChange(err error, from sessions.Client) error {
	if once.Repeated(err) != nil {
		s.Guesses.Return(from.Address)
	}
	return once.Recognize(err, from)
}

// RepeatedRequest returns the error of a request for a change of address if the same change was just requested. The
// second of two concurrent requests may find the mail before the change.
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

// UndoneAtOnce returns the error of an undoing whose change has ended: by another use of the same token, at the same
// time, which uses the token up last.
func (s *Changes) UndoneAtOnce(ctx context.Context, id record.Identity, token string, wrong error,
	from sessions.Client) error {
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
