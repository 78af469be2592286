package account

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/mail"
	"belfry/pkg/store"
	"belfry/pkg/store/object"
)

// DeliverMail sends the mail that an event of the store of tokens requests,
// unless it has been sent already. Events of other changes, such as a consumed
// token, request none. The token is made here: only its hash is stored, and no
// event contains it.
//
// A crash between sending the mail and recording that sends it again, with
// another token and the same Message-ID; both tokens are valid. errs.Invalid is a
// permanent error.
func (s *Service) DeliverMail(ctx context.Context, e *event.Envelope) error {
	request, ok := mailRequestOf(object.Field(e.Object, fieldMail))
	if !ok || s.email == nil {
		return nil
	}
	if _, changed := e.Previous[fieldMail]; e.Event == event.StoreUpdated && !changed {
		return nil
	}
	ctx = store.WithCall(ctx, store.Call{Origin: event.OriginMail, Actor: e.Actor, Ctx: e.Ctx})
	mailbox, err := s.tokens.Get(ctx, e.UUID)
	if err != nil {
		return ignoreNotFound(err)
	}
	latest, _ := mailRequestOf(object.Field(mailbox.Body, fieldMail))
	if sent, _ := object.Text(object.Field(mailbox.Body, fieldSent)); latest.ID != request.ID || sent == request.ID {
		return nil // a later request has an event of its own
	}
	m, send, err := s.prepareMail(ctx, mailbox, request)
	if err == nil && send {
		err = s.email.Sender.Send(ctx, m)
	}
	if err != nil {
		return err
	}
	return s.markSent(ctx, e.UUID, request)
}

// prepareMail composes the mail of a request. send is false where there is none to send.
func (s *Service) prepareMail(ctx context.Context, mailbox store.Stored, request mailRequest) (m mail.Message, send bool, err error) {
	if login, ok := mailLoginFor(mailbox.Body, request.ID); ok {
		return s.composeLogin(ctx, mailbox, login)
	}
	if strings.HasPrefix(string(request.For), noticePurpose) {
		return s.composeNotice(ctx, mailbox, request)
	}
	switch request.For {
	case purposeNone, purposeCode, purposeLink:
		return m, false, nil
	}
	m, err = s.composeMail(ctx, mailbox, request)
	return m, err == nil, err
}

// composeMail renders a mail, after storing the hash of its token.
func (s *Service) composeMail(ctx context.Context, mailbox store.Stored, request mailRequest) (mail.Message, error) {
	login, _ := object.Text(object.Field(mailbox.Body, fieldLogin))
	data := mail.Data{Login: login, Link: s.BaseURL()}
	texts := s.email.Taken
	if request.For != purposeTaken {
		token := newSecret()
		record := mailedToken{Hash: digest(token), For: request.For, Mail: request.ID}
		ttl := s.email.TokenTTL
		texts = s.email.Validation
		switch request.For {
		case purposeChange:
			texts = s.email.Change
			record.bindChange(mailbox)
		case purposeUndo:
			ttl, texts = s.undoTTL(), s.email.Undo
			record.bindChange(mailbox)
		case purposeRecover:
			ttl, texts = s.email.RecoveryTTL, s.email.Recovery
			user, _, err := s.findOwner(ctx, emailIdentity(login))
			if err != nil {
				return mail.Message{}, err
			}
			if user.UUID != "" && !IsDisabled(user) { // else the token is of no use: the account was deleted or disabled since
				err = record.bind(user)
			}
			if err != nil {
				return mail.Message{}, err
			}
		}
		data.Token = token
		data.Link = s.mailLink(login, token)
		if err := s.storeToken(ctx, mailbox.UUID, record, ttl); err != nil {
			return mail.Message{}, err
		}
	}
	return s.render(texts, request.ID, data)
}

// render renders the mail of a request to the address in its data.
func (s *Service) render(texts *mail.Templates, request string, data mail.Data) (mail.Message, error) {
	subject, html, text, err := texts.Render(data)
	if err != nil {
		return mail.Message{}, errs.Wrap(err, errs.Invalid, "the mail can't be rendered")
	}
	return mail.Message{
		ID: request, From: s.email.From, To: data.Login, Subject: subject, Text: text, HTML: html, Date: s.now(), Link: data.Link, Token: data.Token,
	}, nil
}

// mailLink is the link of a mail with a token.
func (s *Service) mailLink(address, token string) string {
	return s.base.At("/auth/email/callback?") + url.Values{"login": {address}, "token": {token}}.Encode()
}

// storeToken stores the record of a token that is about to be mailed.
func (s *Service) storeToken(ctx context.Context, uuid string, record mailedToken, ttl time.Duration) error {
	return s.storeTokenIn(ctx, s.tokens, uuid, record, ttl)
}

func (s *Service) storeTokenIn(ctx context.Context, tokens *store.Store, uuid string, record mailedToken, ttl time.Duration) error {
	_, err := tokens.Mutate(ctx, uuid, func(mailbox store.Stored) (store.Mutation, error) {
		now := s.now()
		until := now.Add(ttl)
		all := slices.DeleteFunc(mailedTokensOf(mailbox.Body), func(t mailedToken) bool { return t.Until <= timestamp(now) })
		record.Until = timestamp(until)
		all = append(all, record)
		if len(all) > maxMailedTokens {
			// Prefer to drop the token of an earlier attempt at the same mail: that
			// of another mail may have arrived.
			old := slices.IndexFunc(all[:maxMailedTokens], func(t mailedToken) bool { return t.Mail == record.Mail })
			if old < 0 && record.For == purposeUndo {
				old = leastUndo(all[:maxMailedTokens], record.User)
			}
			all = slices.Delete(all, max(0, old), max(0, old)+1)
		}
		fields := object.Object{}
		fields.Set(fieldMailedTokens, all)
		if o, err := mailbox.Object(); err != nil {
			return store.Mutation{}, err
		} else if timeField(o, fieldExpires).Before(until) {
			fields.Set(fieldExpires, timestamp(until))
		}
		return store.Mutation{Fields: fields}, nil
	})
	return err
}

// leastUndo returns the index of the token that gives way to one which undoes a change of a user: of a change of the same user that
// has ended, as they can have so many; or of an address that nobody had proven. See undoDelay.
func leastUndo(all []mailedToken, user string) int {
	own := func(t mailedToken) bool { return t.User == user }
	n := 0
	for _, t := range all {
		if own(t) {
			n++
		}
	}
	if n >= maxChanges {
		return slices.IndexFunc(all, own)
	}
	return slices.IndexFunc(all, func(t mailedToken) bool { return !t.Proven })
}

// markSent records that a mail was sent.
func (s *Service) markSent(ctx context.Context, uuid string, request mailRequest) error {
	_, err := s.tokens.Mutate(ctx, uuid, func(store.Stored) (store.Mutation, error) {
		fields := object.Object{}
		fields.Set(fieldSent, request.ID)
		return store.Mutation{Fields: fields}, nil
	})
	return ignoreNotFound(err)
}
