package auth

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

// purpose is what a mail is for, and with that what its token is good for.
type purpose string

const (
	purposeValidate purpose = "validate" // proves an address
	purposeRecover  purpose = "recover"  // lets a new password be set
	purposeTaken    purpose = "taken"    // tells the owner of an address of an attempt to register it; no token
	purposeNone     purpose = "nothing"  // no mail at all: looks the same from outside
)

// request is the mail that was asked for last. It is in events, so it holds
// nothing that is secret.
type mailRequest struct {
	ID  string  `json:"id"`
	For purpose `json:"for"`
	At  string  `json:"at"`
}

// issued is what is kept of a token that was mailed.
type mailedToken struct {
	Hash  string  `json:"hash"`
	For   purpose `json:"for"`
	Until string  `json:"until"`
	Mail  string  `json:"mail"` // id of the request that it answers
}

// Fields of the object that the store of tokens holds for an address.
const (
	fieldLogin        = "login"
	fieldMail         = "mail"
	fieldMailedTokens = "_issued"
	fieldSent         = "_sent" // id of the request that has been answered
)

const (
	// maxIssued is how many tokens of one address are good at once.
	maxMailedTokens = 8

	// mailPatience is for how long a request is kept while mails can't be sent.
	mailRequestTTL = 7 * 24 * time.Hour
)

// Kinds of mailboxes. What is asked for in one neither delays nor replaces what
// is asked for in the other: no stranger keeps the owner of an account from
// recovering it by asking for mails that nobody is sent.
const (
	validationMailbox = "mail"
	recoveryMailbox   = "recovery"
)

// mailbox is the uuid of what the store of tokens holds for an address.
func mailboxUUID(address, kind string) string { return identUUID(address, kind) }

// ask asks for a mail to an address: the listener mail makes the token and
// sends it. errs.Limited while the one before is too fresh.
func (s *Service) enqueueMail(ctx context.Context, address, kind string, why purpose) error {
	ctx = asService(ctx, "")
	mailbox := mailboxUUID(address, kind)
	now := s.now()
	fields := object.Object{}
	fields.Set(fieldLogin, address)
	fields.Set(fieldMail, mailRequest{ID: object.NewUUID(), For: why, At: timestamp(now)})
	fields.Set(fieldExpires, timestamp(now.Add(mailRequestTTL)))
	for range maxAttempts {
		stored, err := s.tokens.Get(ctx, mailbox)
		if errors.Is(err, errs.NotFound) {
			_, err := s.tokens.Save(ctx, fields, mailbox)
			if errors.Is(err, errs.Exists) {
				continue
			}
			return err
		}
		if err != nil {
			return err
		}
		if wait := s.mailDelay(stored, now); wait > 0 {
			return errLimited("a mail to this address is on its way already", wait)
		}
		_, err = s.tokens.Update(ctx, fields, store.UpdateOptions{UUID: stored.UUID, If: stored.Revision})
		if err == nil || ignoreStale(err) != nil {
			return err
		}
	}
	return errs.New(errs.Conflict, "others keep asking for mails to this address: try again")
}

func (s *Service) mailDelay(stored store.Stored, now time.Time) time.Duration {
	last, ok := mailRequestOf(object.Field(stored.Body, fieldMail))
	if !ok {
		return 0
	}
	at, _ := time.Parse(timeFormat, last.At)
	return at.Add(s.email.MailInterval).Sub(now)
}

func mailRequestOf(value []byte) (r mailRequest, ok bool) {
	return r, value != nil && json.Unmarshal(value, &r) == nil && r.ID != ""
}

func mailedTokensOf(body []byte) (all []mailedToken) {
	_ = json.Unmarshal(object.Field(body, fieldMailedTokens), &all)
	return all
}

// wrongToken says no more than that.
func errWrongToken() error {
	return errs.New(errs.Denied, "the token is wrong, was used, or is too old: ask for another mail")
}

// proof is a token that was found to be right and has not been used up.
type verifiedToken struct {
	mailbox store.Stored
	token   mailedToken
}

// prove finds the token that was mailed to an address, for one of some
// purposes. Denied when there is none.
func (s *Service) verifyToken(ctx context.Context, address, token string, purposes ...purpose) (verifiedToken, error) {
	now := timestamp(s.now())
	for _, kind := range [...]string{validationMailbox, recoveryMailbox} {
		mailbox, err := s.tokens.Get(asService(ctx, ""), mailboxUUID(address, kind))
		if err != nil && !errors.Is(err, errs.NotFound) {
			return verifiedToken{}, err
		}
		for _, i := range mailedTokensOf(mailbox.Body) {
			if secretMatches(token, i.Hash) && now < i.Until && slices.Contains(purposes, i.For) {
				return verifiedToken{mailbox, i}, nil
			}
		}
	}
	return verifiedToken{}, errWrongToken()
}

// spend uses a token up, and with it all that were mailed for the same
// purpose. Of two who spend one at once, one is Denied.
func (s *Service) consumeToken(ctx context.Context, p verifiedToken) error {
	_, err := s.tokens.Mutate(asService(ctx, ""), p.mailbox.UUID, func(mailbox store.Stored) (store.Mutation, error) {
		all := mailedTokensOf(mailbox.Body)
		left := slices.DeleteFunc(slices.Clone(all), func(i mailedToken) bool { return i.For == p.token.For })
		if !slices.ContainsFunc(all, func(i mailedToken) bool { return i.Hash == p.token.Hash }) {
			return store.Mutation{}, errWrongToken()
		}
		fields := object.Object{}
		fields.Set(fieldMailedTokens, left)
		return store.Mutation{Fields: fields}, nil
	})
	if errors.Is(err, errs.NotFound) {
		return errWrongToken()
	}
	return err
}
