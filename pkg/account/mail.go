package account

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"time"

	"belfry/pkg/account/record"
	"belfry/pkg/account/secret"
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
	var request record.MailRequest
	if json.Unmarshal(object.Field(e.Object, "mail"), &request) != nil || request.ID == "" || s.email == nil {
		return nil
	}
	if _, changed := e.Previous["mail"]; e.Event == event.StoreUpdated && !changed {
		return nil
	}
	ctx = store.WithCall(ctx, store.Call{Origin: event.OriginMail, Actor: e.Actor, Ctx: e.Ctx})
	mailbox, err := s.db.Mailboxes.Read(ctx, e.UUID)
	if err != nil {
		return record.IgnoreNotFound(err)
	}
	if mailbox.Request.ID != request.ID || mailbox.Sent == request.ID {
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

// A composer makes the mail of a request. send is false where there is none to send.
type composer func(ctx context.Context, mailbox record.Mailbox, request record.MailRequest) (m mail.Message, send bool, err error)

// composeBy says which composer makes the mails of some purposes. That of record.NoticePurpose makes all notices.
func (s *Service) composeBy(c composer, purposes ...record.Purpose) {
	for _, p := range purposes {
		s.composers[p] = c
	}
}

func (s *Service) prepareMail(ctx context.Context, mailbox record.Mailbox, request record.MailRequest) (m mail.Message, send bool, err error) {
	compose := s.composers[request.For]
	if strings.HasPrefix(string(request.For), record.NoticePurpose) {
		compose = s.composers[record.NoticePurpose]
	}
	if compose == nil {
		return m, false, nil
	}
	return compose(ctx, mailbox, request)
}

// withToken returns a composer of mails with a token, which is stored before: its hash alone. bind binds it to what it is for; nil: to
// nothing.
func (s *Service) withToken(texts *mail.Templates, ttl time.Duration, bind func(ctx context.Context, t *record.MailedToken, mailbox record.Mailbox) error) composer {
	return func(ctx context.Context, mailbox record.Mailbox, request record.MailRequest) (m mail.Message, send bool, err error) {
		token := secret.New()
		mailed := record.MailedToken{Hash: secret.Digest(token), For: request.For, Mail: request.ID}
		if bind != nil {
			if err := bind(ctx, &mailed, mailbox); err != nil {
				return m, false, err
			}
		}
		if err := s.storeToken(ctx, s.db.Mailboxes, mailbox.UUID, mailed, ttl); err != nil {
			return m, false, err
		}
		m, err = s.render(texts, request.ID, mail.Data{Login: mailbox.Address, Link: s.mailLink(mailbox.Address, token), Token: token})
		return m, err == nil, err
	}
}

// withoutToken returns a composer of mails without a token.
func (s *Service) withoutToken(texts *mail.Templates) composer {
	return func(_ context.Context, mailbox record.Mailbox, request record.MailRequest) (m mail.Message, send bool, err error) {
		m, err = s.render(texts, request.ID, mail.Data{Login: mailbox.Address, Link: s.base.String()})
		return m, err == nil, err
	}
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
func (s *Service) storeToken(ctx context.Context, in record.Mailboxes, uuid string, token record.MailedToken, ttl time.Duration) error {
	_, err := in.Change(ctx, uuid, func(mailbox *record.Mailbox) error {
		s.addToken(mailbox, token, ttl)
		return nil
	})
	return err
}

func (s *Service) addToken(mailbox *record.Mailbox, token record.MailedToken, ttl time.Duration) {
	now := s.now()
	until := now.Add(ttl)
	all := slices.DeleteFunc(mailbox.Tokens, func(t record.MailedToken) bool { return t.Until <= record.Timestamp(now) })
	token.Until = record.Timestamp(until)
	all = append(all, token)
	if len(all) > maxMailedTokens {
		// Prefer to drop the token of an earlier attempt at the same mail: that
		// of another mail may have arrived.
		old := slices.IndexFunc(all[:maxMailedTokens], func(t record.MailedToken) bool { return t.Mail == token.Mail })
		if old < 0 && token.For == record.PurposeUndo {
			old = leastUndo(all[:maxMailedTokens], token.User)
		}
		all = slices.Delete(all, max(0, old), max(0, old)+1)
	}
	mailbox.Tokens = all
	if mailbox.Expires.Before(until) {
		mailbox.Expires = until
	}
}

// leastUndo returns the index of the token that gives way to one which undoes a change of a user: of a change of the same user that
// has ended, as they can have so many; or of an address that nobody had proven. See undoDelay.
func leastUndo(all []record.MailedToken, user string) int {
	own := func(t record.MailedToken) bool { return t.User == user }
	n := 0
	for _, t := range all {
		if own(t) {
			n++
		}
	}
	if n >= maxChanges {
		return slices.IndexFunc(all, own)
	}
	return slices.IndexFunc(all, func(t record.MailedToken) bool { return !t.Proven })
}

// markSent records that a mail was sent.
func (s *Service) markSent(ctx context.Context, uuid string, request record.MailRequest) error {
	_, err := s.db.Mailboxes.Change(ctx, uuid, func(m *record.Mailbox) error {
		m.Sent = request.ID
		return nil
	})
	return record.IgnoreNotFound(err)
}
