package auth

import (
	"context"
	"net/url"
	"slices"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/mail"
	"belfry/pkg/store"
	"belfry/pkg/store/object"
)

// Deliver sends the mail that an event of the store of tokens asks for, if it
// is still to be sent. An event of another change, such as a token that was
// used, asks for none. The token is made here: only its hash is ever written
// down, and no event carries it.
//
// A crash after the mail was handed over and before that was noted sends it a
// second time, with another token and the same Message-ID; both tokens are
// good. errs.Invalid is a mail that no further attempt gets through.
func (s *Service) DeliverMail(ctx context.Context, e *event.Envelope) error {
	asked, ok := requestOf(object.Field(e.Object, fieldMail))
	if _, changed := e.Previous[fieldMail]; e.Event == event.StoreUpdated && !changed {
		ok = false
	}
	if !ok || s.email == nil {
		return nil
	}
	ctx = store.WithCall(ctx, store.Call{Origin: event.OriginMail, Actor: e.Actor, Ctx: e.Ctx})
	box, err := s.tokens.Get(ctx, e.UUID)
	if err != nil {
		return unlessMissing(err)
	}
	now, _ := requestOf(object.Field(box.Body, fieldMail))
	if sent, _ := object.Text(object.Field(box.Body, fieldSent)); now.ID != asked.ID || sent == asked.ID {
		return nil // a later request has an event of its own
	}
	if asked.For != nothing {
		m, err := s.write(ctx, box, asked)
		if err != nil {
			return err
		}
		if err := s.email.Sender.Send(ctx, m); err != nil {
			return err
		}
	}
	return s.sent(ctx, e.UUID, asked)
}

// write writes a mail, and notes the hash of its token first.
func (s *Service) write(ctx context.Context, box store.Stored, asked request) (mail.Message, error) {
	login, _ := object.Text(object.Field(box.Body, fieldLogin))
	data := mail.Data{Login: login, Link: s.baseURL}
	texts := s.email.Taken
	if asked.For != taken {
		token := newSecret()
		lasting := s.email.TokenTTL
		texts = s.email.Validation
		if asked.For == recovery {
			lasting, texts = s.email.RecoveryTTL, s.email.Recovery
		}
		data.Token = token
		data.Link = s.baseURL + "/auth/email/callback?" + url.Values{"login": {login}, "token": {token}}.Encode()
		if err := s.note(ctx, box.UUID, asked, token, lasting); err != nil {
			return mail.Message{}, err
		}
	}
	subject, html, text, err := texts.Render(data)
	if err != nil {
		return mail.Message{}, errs.Wrap(err, errs.Invalid, "the mail can't be written")
	}
	return mail.Message{
		ID: asked.ID, From: s.email.From, To: login, Subject: subject, Text: text, HTML: html, Date: s.now(),
	}, nil
}

// note keeps the hash of a token that is about to be mailed.
func (s *Service) note(ctx context.Context, uuid string, asked request, token string, lasting time.Duration) error {
	_, err := s.tokens.Revise(ctx, uuid, func(box store.Stored) (store.Revision, error) {
		now := s.now()
		until := now.Add(lasting)
		all := slices.DeleteFunc(mailedTokensOf(box.Body), func(i mailedToken) bool { return i.Until <= timestamp(now) })
		all = append(all, mailedToken{Hash: digest(token), For: asked.For, Until: timestamp(until), Mail: asked.ID})
		if len(all) > maxMailedTokens {
			// Attempts at a mail take each other's place before they take that
			// of the token of another mail, which may have arrived.
			old := slices.IndexFunc(all[:maxMailedTokens], func(i mailedToken) bool { return i.Mail == asked.ID })
			all = slices.Delete(all, max(0, old), max(0, old)+1)
		}
		fields := object.Object{}
		fields.Set(fieldMailedTokens, all)
		if o, err := box.Object(); err != nil {
			return store.Revision{}, err
		} else if moment(o, fieldExpires).Before(until) {
			fields.Set(fieldExpires, timestamp(until))
		}
		return store.Revision{Fields: fields}, nil
	})
	return err
}

// sent notes that a mail is out.
func (s *Service) sent(ctx context.Context, uuid string, asked request) error {
	_, err := s.tokens.Revise(ctx, uuid, func(store.Stored) (store.Revision, error) {
		fields := object.Object{}
		fields.Set(fieldSent, asked.ID)
		return store.Revision{Fields: fields}, nil
	})
	return unlessMissing(err)
}
