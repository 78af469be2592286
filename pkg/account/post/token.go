package post

import (
	"context"
	"errors"
	"slices"
	"time"

	"belfry/pkg/account/once"
	"belfry/pkg/account/record"
	"belfry/pkg/account/secret"
	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/texts"
)

const (
	// MaxMailedTokens is how many tokens of one mailbox are valid at once.
	MaxMailedTokens = 8

	// mailRequestTTL is how long a request is kept while mails can't be sent.
	mailRequestTTL = 7 * 24 * time.Hour
)

// Kinds of mailboxes. Requests in one neither delay nor replace those in the
// other: otherwise a stranger who keeps requesting validation mails could keep
// the owner of an account from recovering it.
const (
	ValidationMailbox = "mail"
	RecoveryMailbox   = "recovery"
)

// MailboxUUID is the uuid of an address's mailbox in the store of tokens.
func MailboxUUID(address, kind string) string { return record.IdentUUID(address, kind) }

// ErrMailAsked is the cause of a Limited error about a mail: the same mail was just requested, and will be sent.
var ErrMailAsked = errors.New("it was requested before")

// AskedByOthers returns an error without the cause ErrMailAsked if the mail is for others.
func AskedByOthers(err error) error {
	var limited *errs.Error
	if !errors.As(err, &limited) {
		return err
	}
	other := *limited
	other.Err = nil
	return &other
}

// Enqueue requests a mail to an address: the listener mail makes the token and
// sends it. errs.Limited within MailInterval of the request before.
func (s *Post) Enqueue(ctx context.Context, address, kind string, why record.Purpose) error {
	return s.EnqueueAs(record.AsService(ctx, ""), address, kind, why)
}

// EnqueueAs is Enqueue with the context of the writes.
func (s *Post) EnqueueAs(ctx context.Context, address, kind string, why record.Purpose) error {
	return s.Order(ctx, Order{Mailbox: MailboxUUID(address, kind), Address: address, Why: why})
}

// Order is a request for a mail.
type Order struct {
	Mailbox, Address string
	Why              record.Purpose

	// Delay is how long the mailbox has to wait; nil for MailInterval since the last request.
	Delay func(now record.Mailbox) time.Duration

	// With sets further data of the mailbox besides the request; may be nil.
	With func(now *record.Mailbox)

	Language *string // of the person who gets the mail; nil: of the person who asks for it
}

// Order requests a mail. errs.Limited within MailInterval of the request before.
func (s *Post) Order(ctx context.Context, o Order) error {
	now := s.DB.Now()
	request := record.MailRequest{ID: object.NewUUID(), For: o.Why, At: record.Timestamp(now)}
	err := s.DB.Mailboxes.Put(ctx, o.Mailbox, func(m *record.Mailbox) error {
		wait := s.MailDelay(*m, now)
		if o.Delay != nil {
			wait = o.Delay(*m)
		}
		if m.UUID != "" && wait > 0 {
			return &errs.Error{Kind: errs.Limited, Message: "a mail to this address is already being sent",
				RetryAfter: wait, Err: ErrMailAsked}
		}
		m.Address, m.Request, m.Expires = o.Address, request, now.Add(mailRequestTTL)
		m.Language = texts.Asked(ctx)
		if o.Language != nil {
			m.Language = *o.Language
		}
		if o.With != nil {
			o.With(m)
		}
		return nil
	})
	if errors.Is(err, errs.Conflict) {
		err = errs.New(errs.Conflict, "others keep requesting mails to this address: try again")
	}
	return err
}

// MailDelay is how long a mailbox has to wait for its next mail.
func (s *Post) MailDelay(mailbox record.Mailbox, now time.Time) time.Duration {
	if mailbox.Request.ID == "" {
		return 0
	}
	at := record.Time(mailbox.Request.At)
	if at.Sub(now) > record.ClockTolerance {
		return 0
	}
	return at.Add(s.Email.MailInterval).Sub(now)
}

// ErrToken is the cause of errors of an invalid token of a mail.
var ErrToken = errors.New("the token of a mail is not valid")

// TokenError does not reveal the error of the token.
func TokenError() error {
	return errs.Wrap(ErrToken, errs.Denied, "the token is wrong, was used, or has expired: request another mail")
}

// VerifiedToken is a valid token that has not been consumed.
type VerifiedToken struct {
	Mailbox string // its uuid
	Token   record.MailedToken
}

// Verify finds a token that was mailed to an address for one of some
// purposes. Denied without such a token; with a Repetition for one that was used.
func (s *Post) Verify(ctx context.Context, address, token string, purposes ...record.Purpose) (VerifiedToken, error) {
	kinds := [...]string{ValidationMailbox, RecoveryMailbox}
	if slices.Contains(purposes, record.PurposeUndo) {
		kinds = [...]string{ChangeMailbox, UndoMailbox}
	}
	token = secret.TypedToken(token)
	for _, kind := range kinds {
		mailbox, err := s.DB.Mailboxes.Read(record.AsService(ctx, ""), MailboxUUID(address, kind))
		if err != nil && !errors.Is(err, errs.NotFound) {
			return VerifiedToken{}, err
		}
		if t, ok := s.ValidToken(mailbox, token, purposes); ok {
			return VerifiedToken{Mailbox: mailbox.UUID, Token: t}, nil
		}
		if r := s.Uses.RepeatedToken(mailbox, token, purposes); r != nil {
			return VerifiedToken{}, once.ErrRepeated(*r, errs.Denied)
		}
	}
	return VerifiedToken{}, TokenError()
}

// ValidToken returns a token of a mailbox for one of some purposes.
func (s *Post) ValidToken(mailbox record.Mailbox, token string, purposes []record.Purpose) (record.MailedToken, bool) {
	now := record.Timestamp(s.DB.Now())
	i := slices.IndexFunc(mailbox.Tokens, func(t record.MailedToken) bool {
		return secret.Matches(token, t.Hash) && now < t.Until && slices.Contains(purposes, t.For)
	})
	if i < 0 {
		return record.MailedToken{}, false
	}
	return mailbox.Tokens[i], true
}

// Consume invalidates a token and all others for the same purpose. Tokens that undo changes may be of other accounts,
// so it invalidates only the token of the same change. Of two concurrent calls one is Denied, as a repetition. All
// invalidated tokens are remembered as used for the act, if there is an act.
func (s *Post) Consume(ctx context.Context, v VerifiedToken, act record.Act, from sessions.Client) error {
	return s.ConsumeIn(ctx, s.DB.Mailboxes, v, act, from)
}

// ConsumeIn is Consume of a token in other mailboxes.
func (s *Post) ConsumeIn(ctx context.Context, mailboxes record.Mailboxes, v VerifiedToken, act record.Act,
	from sessions.Client) error {
	_, err := mailboxes.Change(record.AsService(ctx, ""), v.Mailbox, func(mailbox *record.Mailbox) error {
		if !slices.ContainsFunc(mailbox.Tokens, func(t record.MailedToken) bool { return t.Hash == v.Token.Hash }) {
			for _, u := range s.Uses.UnexpiredUsed(*mailbox) {
				if u.Hash == v.Token.Hash {
					return once.ErrRepeated(*once.RepetitionOf(u), errs.Denied)
				}
			}
			return TokenError()
		}
		var used []record.UsedSecret
		mailbox.Tokens = slices.DeleteFunc(mailbox.Tokens, func(t record.MailedToken) bool {
			ends := t.For == v.Token.For &&
				(t.For != record.PurposeUndo || t.User == v.Token.User && t.Change == v.Token.Change)
			if ends && act != "" {
				u := record.UsedSecret{Hash: t.Hash, For: t.For, Act: act, Browser: once.BrowserDigest(from)}
				if t.For == record.PurposeRecover {
					u.User, u.Epoch = t.User, t.Epoch
				}
				used = append(used, u)
			}
			return ends
		})
		if used != nil {
			s.Uses.AddUsed(mailbox, used...)
		}
		return nil
	})
	if errors.Is(err, errs.NotFound) {
		return TokenError()
	}
	return err
}
