package account

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/store"
	"belfry/pkg/store/object"
)

// purpose is the purpose of a mail and of the token in it.
type purpose string

const (
	purposeValidate purpose = "validate" // proves an address
	purposeRecover  purpose = "recover"  // lets a new password be set
	purposeTaken    purpose = "taken"    // informs the owner of an address of an attempt to register it; no token
	purposeCode     purpose = "code"     // logs in, by a code
	purposeLink     purpose = "link"     // logs in, by a link
	purposeChange   purpose = "change"   // confirms a new address
	purposeUndo     purpose = "undo"     // undoes the change of an address
	purposeNone     purpose = "nothing"  // no mail is sent; the reply is the same
)

// mailRequest is the last mail that was requested. Events contain it, so it holds
// no secret.
type mailRequest struct {
	ID  string  `json:"id"`
	For purpose `json:"for"`
	At  string  `json:"at"`
}

// mailedToken is the record of a token that was mailed.
type mailedToken struct {
	Hash  string  `json:"hash"`
	For   purpose `json:"for"`
	Until string  `json:"until"`
	Mail  string  `json:"mail"` // id of the mailRequest

	// The account that a token for recovery was made for. It is of no use once the
	// address has another user, or the user another epoch, that is another password.
	User  string `json:"user,omitempty"`
	Epoch uint64 `json:"epoch,omitempty"`

	Change string `json:"change,omitempty"` // the id of an addressChange of the user
	Proven bool   `json:"proven,omitempty"` // of a token that undoes it: the address was proven when it was requested
}

// bind binds a token to an account as it is now.
func (t *mailedToken) bind(user store.Stored) error {
	o, err := user.Object()
	if err != nil {
		return err
	}
	t.User, t.Epoch = user.UUID, epoch(o)
	return nil
}

// recovers reports whether a token was made for an account and its current password.
func (t mailedToken) recovers(user store.Stored) bool {
	o, err := user.Object()
	return err == nil && user.UUID != "" && t.User == user.UUID && t.Epoch == epoch(o)
}

// Fields of a mailbox in the store of tokens.
const (
	fieldLogin        = "login"
	fieldMail         = "mail"
	fieldMailedTokens = "_issued"
	fieldSent         = "_sent" // id of the last mailRequest whose mail was sent
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
func mailboxUUID(address, kind string) string { return identUUID(address, kind) }

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
func (s *Service) enqueueMail(ctx context.Context, address, kind string, why purpose) error {
	return s.enqueueMailAs(asService(ctx, ""), address, kind, why)
}

// enqueueMailAs is enqueueMail with the context of the writes.
func (s *Service) enqueueMailAs(ctx context.Context, address, kind string, why purpose) error {
	return s.orderMail(ctx, mailOrder{mailbox: mailboxUUID(address, kind), address: address, why: why})
}

// mailOrder is a mail that is to be requested.
type mailOrder struct {
	mailbox, address string
	why              purpose

	// delay is how long the mailbox has to wait; nil for MailInterval since the last request.
	delay func(now store.Stored) time.Duration

	// with returns what the mailbox has to have besides the request; nil for nothing. now is the mailbox as it is
	// stored, empty before the first request.
	with func(now []byte, request mailRequest) object.Object
}

// orderMail requests a mail. errs.Limited within MailInterval of the request before.
func (s *Service) orderMail(ctx context.Context, o mailOrder) error {
	now := s.now()
	request := mailRequest{ID: object.NewUUID(), For: o.why, At: timestamp(now)}
	fieldsFor := func(body []byte) object.Object {
		fields := object.Object{}
		if o.with != nil {
			fields = o.with(body, request)
		}
		fields.Set(fieldLogin, o.address)
		fields.Set(fieldMail, request)
		fields.Set(fieldExpires, timestamp(now.Add(mailRequestTTL)))
		return fields
	}
	for range maxAttempts {
		stored, err := s.tokens.Get(ctx, o.mailbox)
		if errors.Is(err, errs.NotFound) {
			_, err := s.tokens.Save(ctx, fieldsFor(nil), o.mailbox)
			if errors.Is(err, errs.Exists) {
				continue
			}
			return err
		}
		if err != nil {
			return err
		}
		wait := s.mailDelay(stored, now)
		if o.delay != nil {
			wait = o.delay(stored)
		}
		if wait > 0 {
			return &errs.Error{Kind: errs.Limited, Message: "a mail to this address is being sent already", RetryAfter: wait, Err: ErrMailAsked}
		}
		_, err = s.tokens.Update(ctx, fieldsFor(stored.Body), store.UpdateOptions{UUID: stored.UUID, If: stored.Revision})
		if err == nil || ignoreStale(err) != nil {
			return err
		}
	}
	return errs.New(errs.Conflict, "others keep requesting mails to this address: try again")
}

// mailDelay is how long a mailbox has to wait for its next mail.
func (s *Service) mailDelay(stored store.Stored, now time.Time) time.Duration {
	last, ok := mailRequestOf(object.Field(stored.Body, fieldMail))
	if !ok {
		return 0
	}
	at, _ := time.Parse(timeFormat, last.At)
	if at.Sub(now) > clockTolerance {
		return 0
	}
	return at.Add(s.email.MailInterval).Sub(now)
}

func mailRequestOf(value []byte) (r mailRequest, ok bool) {
	return r, value != nil && json.Unmarshal(value, &r) == nil && r.ID != ""
}

func mailedTokensOf(body []byte) (all []mailedToken) {
	_ = json.Unmarshal(object.Field(body, fieldMailedTokens), &all)
	return all
}

// ErrToken is the cause of errors of a token of a mail that is of no use.
var ErrToken = errors.New("the token of a mail is not valid")

// errWrongToken does not say what is wrong with the token.
func errWrongToken() error {
	return errs.Wrap(ErrToken, errs.Denied, "the token is wrong, was used, or has expired: request another mail")
}

// verifiedToken is a valid token that has not been consumed.
type verifiedToken struct {
	mailbox store.Stored
	token   mailedToken
}

// verifyToken finds a token that was mailed to an address for one of some
// purposes. Denied when there is none; with a Repetition for one that was used.
func (s *Service) verifyToken(ctx context.Context, address, token string, purposes ...purpose) (verifiedToken, error) {
	now, token := timestamp(s.now()), typedToken(token)
	kinds := [...]string{validationMailbox, recoveryMailbox}
	if slices.Contains(purposes, purposeUndo) {
		kinds = [...]string{changeMailbox, undoMailbox}
	}
	for _, kind := range kinds {
		mailbox, err := s.tokens.Get(asService(ctx, ""), mailboxUUID(address, kind))
		if err != nil && !errors.Is(err, errs.NotFound) {
			return verifiedToken{}, err
		}
		for _, t := range mailedTokensOf(mailbox.Body) {
			if secretMatches(token, t.Hash) && now < t.Until && slices.Contains(purposes, t.For) {
				return verifiedToken{mailbox, t}, nil
			}
		}
		if r := s.repeatedToken(mailbox.Body, token, purposes); r != nil {
			return verifiedToken{}, errRepeated(*r, errs.Denied)
		}
	}
	return verifiedToken{}, errWrongToken()
}

// consumeToken invalidates a token and all others for the same purpose; of those that undo changes, which may be of other accounts, that
// of the same change alone. Of two concurrent calls one is Denied, as a repetition. All that it invalidates are remembered as used for the act; for none, none is.
func (s *Service) consumeToken(ctx context.Context, v verifiedToken, act Act, from Client) error {
	return s.consumeTokenIn(ctx, s.tokens, v, act, from)
}

func (s *Service) consumeTokenIn(ctx context.Context, tokens *store.Store, v verifiedToken, act Act, from Client) error {
	_, err := tokens.Mutate(asService(ctx, ""), v.mailbox.UUID, func(mailbox store.Stored) (store.Mutation, error) {
		all := mailedTokensOf(mailbox.Body)
		var used []usedSecret
		left := slices.DeleteFunc(slices.Clone(all), func(t mailedToken) bool {
			ends := t.For == v.token.For && (t.For != purposeUndo || t.User == v.token.User && t.Change == v.token.Change)
			if ends && act != "" {
				u := usedSecret{Hash: t.Hash, For: t.For, Act: act, Browser: browserDigest(from)}
				if t.For == purposeRecover {
					u.User, u.Epoch = t.User, t.Epoch
				}
				used = append(used, u)
			}
			return ends
		})
		if !slices.ContainsFunc(all, func(t mailedToken) bool { return t.Hash == v.token.Hash }) {
			for _, u := range s.unexpiredUsed(mailbox.Body) {
				if u.Hash == v.token.Hash {
					return store.Mutation{}, errRepeated(*u.repetition(), errs.Denied)
				}
			}
			return store.Mutation{}, errWrongToken()
		}
		fields := object.Object{}
		fields.Set(fieldMailedTokens, left)
		if used != nil {
			s.setUsed(fields, mailbox.Body, used...)
		}
		return store.Mutation{Fields: fields}, nil
	})
	if errors.Is(err, errs.NotFound) {
		return errWrongToken()
	}
	return err
}
