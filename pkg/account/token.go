package account

import (
	"context"
	"errors"
	"slices"
	"time"

	"belfry/pkg/account/record"
	"belfry/pkg/account/secret"
	"belfry/pkg/errs"
	"belfry/pkg/store/object"
)

const (
	// maxMailedTokens is how many tokens of one mailbox are valid at once.
	maxMailedTokens = 8

	// mailRequestTTL is how long a request is kept while mails can't be sent.
	mailRequestTTL = 7 * 24 * time.Hour
)

// Kinds of mailboxes. Requests in one neither delay nor replace those in the
// other: otherwise a stranger who keeps requesting validation mails could keep
// the owner of an account from recovering it.
const (
	validationMailbox = "mail"
	recoveryMailbox   = "recovery"
)

// mailboxUUID is the uuid of an address's mailbox in the store of tokens.
func mailboxUUID(address, kind string) string { return record.IdentUUID(address, kind) }

// ErrMailAsked is the cause of a Limited error about a mail: the same was requested a moment ago, and is on its way.
var ErrMailAsked = errors.New("it was asked for before")

// askedByOthers is an error with the cause ErrMailAsked where the mail is for others.
func askedByOthers(err error) error {
	var limited *errs.Error
	if !errors.As(err, &limited) {
		return err
	}
	other := *limited
	other.Err = nil
	return &other
}

// enqueueMail requests a mail to an address: the listener mail makes the token and
// sends it. errs.Limited within MailInterval of the request before.
func (s *Service) enqueueMail(ctx context.Context, address, kind string, why record.Purpose) error {
	return s.enqueueMailAs(record.AsService(ctx, ""), address, kind, why)
}

// enqueueMailAs is enqueueMail with the context of the writes.
func (s *Service) enqueueMailAs(ctx context.Context, address, kind string, why record.Purpose) error {
	return s.orderMail(ctx, mailOrder{mailbox: mailboxUUID(address, kind), address: address, why: why})
}

// mailOrder is a mail that is to be requested.
type mailOrder struct {
	mailbox, address string
	why              record.Purpose

	// delay is how long the mailbox has to wait; nil for MailInterval since the last request.
	delay func(now record.Mailbox) time.Duration

	// with sets what the mailbox has to have besides the request; nil for nothing.
	with func(now *record.Mailbox)
}

// orderMail requests a mail. errs.Limited within MailInterval of the request before.
func (s *Service) orderMail(ctx context.Context, o mailOrder) error {
	now := s.now()
	request := record.MailRequest{ID: object.NewUUID(), For: o.why, At: record.Timestamp(now)}
	err := s.db.Mailboxes.Put(ctx, o.mailbox, func(m *record.Mailbox) error {
		wait := s.mailDelay(*m, now)
		if o.delay != nil {
			wait = o.delay(*m)
		}
		if m.UUID != "" && wait > 0 {
			return &errs.Error{Kind: errs.Limited, Message: "a mail to this address is being sent already", RetryAfter: wait, Err: ErrMailAsked}
		}
		m.Address, m.Request, m.Expires = o.address, request, now.Add(mailRequestTTL)
		if o.with != nil {
			o.with(m)
		}
		return nil
	})
	if errors.Is(err, errs.Conflict) {
		err = errs.New(errs.Conflict, "others keep requesting mails to this address: try again")
	}
	return err
}

// mailDelay is how long a mailbox has to wait for its next mail.
func (s *Service) mailDelay(mailbox record.Mailbox, now time.Time) time.Duration {
	if mailbox.Request.ID == "" {
		return 0
	}
	at := record.Time(mailbox.Request.At)
	if at.Sub(now) > record.ClockTolerance {
		return 0
	}
	return at.Add(s.email.MailInterval).Sub(now)
}

// ErrToken is the cause of errors of a token of a mail that is of no use.
var ErrToken = errors.New("the token of a mail is not valid")

// errWrongToken does not say what is wrong with the token.
func errWrongToken() error {
	return errs.Wrap(ErrToken, errs.Denied, "the token is wrong, was used, or has expired: request another mail")
}

// verifiedToken is a valid token that has not been consumed.
type verifiedToken struct {
	mailbox string // its uuid
	token   record.MailedToken
}

// verifyToken finds a token that was mailed to an address for one of some
// purposes. Denied when there is none; with a Repetition for one that was used.
func (s *Service) verifyToken(ctx context.Context, address, token string, purposes ...record.Purpose) (verifiedToken, error) {
	kinds := [...]string{validationMailbox, recoveryMailbox}
	if slices.Contains(purposes, record.PurposeUndo) {
		kinds = [...]string{changeMailbox, undoMailbox}
	}
	token = secret.TypedToken(token)
	for _, kind := range kinds {
		mailbox, err := s.db.Mailboxes.Read(record.AsService(ctx, ""), mailboxUUID(address, kind))
		if err != nil && !errors.Is(err, errs.NotFound) {
			return verifiedToken{}, err
		}
		if t, ok := s.validToken(mailbox, token, purposes); ok {
			return verifiedToken{mailbox.UUID, t}, nil
		}
		if r := s.repeatedToken(mailbox, token, purposes); r != nil {
			return verifiedToken{}, errRepeated(*r, errs.Denied)
		}
	}
	return verifiedToken{}, errWrongToken()
}

// validToken returns a token of a mailbox for one of some purposes.
func (s *Service) validToken(mailbox record.Mailbox, token string, purposes []record.Purpose) (record.MailedToken, bool) {
	now := record.Timestamp(s.now())
	i := slices.IndexFunc(mailbox.Tokens, func(t record.MailedToken) bool {
		return secret.Matches(token, t.Hash) && now < t.Until && slices.Contains(purposes, t.For)
	})
	if i < 0 {
		return record.MailedToken{}, false
	}
	return mailbox.Tokens[i], true
}

// consumeToken invalidates a token and all others for the same purpose; of those that undo changes, which may be of other accounts, that
// of the same change alone. Of two concurrent calls one is Denied, as a repetition. All that it invalidates are remembered as used for the act; for none, none is.
func (s *Service) consumeToken(ctx context.Context, v verifiedToken, act Act, from Client) error {
	return s.consumeTokenIn(ctx, s.db.Mailboxes, v, act, from)
}

func (s *Service) consumeTokenIn(ctx context.Context, mailboxes record.Mailboxes, v verifiedToken, act Act, from Client) error {
	_, err := mailboxes.Change(record.AsService(ctx, ""), v.mailbox, func(mailbox *record.Mailbox) error {
		if !slices.ContainsFunc(mailbox.Tokens, func(t record.MailedToken) bool { return t.Hash == v.token.Hash }) {
			for _, u := range s.unexpiredUsed(*mailbox) {
				if u.Hash == v.token.Hash {
					return errRepeated(*repetitionOf(u), errs.Denied)
				}
			}
			return errWrongToken()
		}
		var used []record.UsedSecret
		mailbox.Tokens = slices.DeleteFunc(mailbox.Tokens, func(t record.MailedToken) bool {
			ends := t.For == v.token.For && (t.For != record.PurposeUndo || t.User == v.token.User && t.Change == v.token.Change)
			if ends && act != "" {
				u := record.UsedSecret{Hash: t.Hash, For: t.For, Act: act, Browser: browserDigest(from)}
				if t.For == record.PurposeRecover {
					u.User, u.Epoch = t.User, t.Epoch
				}
				used = append(used, u)
			}
			return ends
		})
		if used != nil {
			s.addUsed(mailbox, used...)
		}
		return nil
	})
	if errors.Is(err, errs.NotFound) {
		return errWrongToken()
	}
	return err
}
