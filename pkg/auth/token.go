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
	validate purpose = "validate" // proves an address
	recovery purpose = "recover"  // lets a new password be set
	taken    purpose = "taken"    // tells the owner of an address of an attempt to register it; no token
	nothing  purpose = "nothing"  // no mail at all: looks the same from outside
)

// request is the mail that was asked for last. It is in events, so it holds
// nothing that is secret.
type request struct {
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
	mailPatience = 7 * 24 * time.Hour
)

// Kinds of mailboxes. What is asked for in one neither delays nor replaces what
// is asked for in the other: no stranger keeps the owner of an account from
// recovering it by asking for mails that nobody is sent.
const (
	validations = "mail"
	recoveries  = "recovery"
)

// mailbox is the uuid of what the store of tokens holds for an address.
func mailbox(address, kind string) string { return identUUID(address, kind) }

// ask asks for a mail to an address: the listener mail makes the token and
// sends it. errs.Limited while the one before is too fresh.
func (s *Service) ask(ctx context.Context, address, kind string, why purpose) error {
	ctx = own(ctx, "")
	box := mailbox(address, kind)
	now := s.now()
	fields := object.Object{}
	fields.Set(fieldLogin, address)
	fields.Set(fieldMail, request{ID: object.NewUUID(), For: why, At: timestamp(now)})
	fields.Set(fieldExpires, timestamp(now.Add(mailPatience)))
	for range maxClaims {
		there, err := s.tokens.Get(ctx, box)
		if errors.Is(err, errs.NotFound) {
			_, err := s.tokens.Save(ctx, fields, box)
			if errors.Is(err, errs.Exists) {
				continue
			}
			return err
		}
		if err != nil {
			return err
		}
		if wait := s.tooSoon(there, now); wait > 0 {
			return limited("a mail to this address is on its way already", wait)
		}
		_, err = s.tokens.Update(ctx, fields, store.UpdateOptions{UUID: there.UUID, If: there.Revision})
		if err == nil || unlessStale(err) != nil {
			return err
		}
	}
	return errs.New(errs.Conflict, "others keep asking for mails to this address: try again")
}

func (s *Service) tooSoon(there store.Stored, now time.Time) time.Duration {
	last, ok := requestOf(object.Field(there.Body, fieldMail))
	if !ok {
		return 0
	}
	at, _ := time.Parse(timeFormat, last.At)
	return at.Add(s.email.MailInterval).Sub(now)
}

func requestOf(value []byte) (r request, ok bool) {
	return r, value != nil && json.Unmarshal(value, &r) == nil && r.ID != ""
}

func mailedTokensOf(body []byte) (all []mailedToken) {
	_ = json.Unmarshal(object.Field(body, fieldMailedTokens), &all)
	return all
}

// wrongToken says no more than that.
func wrongToken() error {
	return errs.New(errs.Denied, "the token is wrong, was used, or is too old: ask for another mail")
}

// proof is a token that was found to be right and has not been used up.
type proof struct {
	box    store.Stored
	issued mailedToken
}

// prove finds the token that was mailed to an address, for one of some
// purposes. Denied when there is none.
func (s *Service) prove(ctx context.Context, address, token string, purposes ...purpose) (proof, error) {
	now := timestamp(s.now())
	for _, kind := range [...]string{validations, recoveries} {
		box, err := s.tokens.Get(own(ctx, ""), mailbox(address, kind))
		if err != nil && !errors.Is(err, errs.NotFound) {
			return proof{}, err
		}
		for _, i := range mailedTokensOf(box.Body) {
			if isSecret(token, i.Hash) && now < i.Until && slices.Contains(purposes, i.For) {
				return proof{box, i}, nil
			}
		}
	}
	return proof{}, wrongToken()
}

// spend uses a token up, and with it all that were mailed for the same
// purpose. Of two who spend one at once, one is Denied.
func (s *Service) spend(ctx context.Context, p proof) error {
	_, err := s.tokens.Revise(own(ctx, ""), p.box.UUID, func(box store.Stored) (store.Revision, error) {
		all := mailedTokensOf(box.Body)
		left := slices.DeleteFunc(slices.Clone(all), func(i mailedToken) bool { return i.For == p.issued.For })
		if !slices.ContainsFunc(all, func(i mailedToken) bool { return i.Hash == p.issued.Hash }) {
			return store.Revision{}, wrongToken()
		}
		fields := object.Object{}
		fields.Set(fieldMailedTokens, left)
		return store.Revision{Fields: fields}, nil
	})
	if errors.Is(err, errs.NotFound) {
		return wrongToken()
	}
	return err
}
