package post

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
	"belfry/pkg/object"
	"belfry/pkg/store"
)

// Deliver sends the mail that an event of the store of tokens requests,
// unless it has been sent already. Events of other changes, such as a consumed
// token, request none. The token is made here: only its hash is stored, and no
// event contains it.
//
// After a crash between sending and recording, the mail is sent again, with another token and the same Message-ID; both
// tokens are valid. errs.Invalid is a permanent error.
func (s *Post) Deliver(ctx context.Context, e *event.Envelope) error {
	var request record.MailRequest
	if value := object.Field(e.Object, "mail"); value == nil || s.Email == nil ||
		json.Unmarshal(value, &request) != nil || request.ID == "" {
		return nil //nolint:nilerr // an event that requests no mail
	}
	if _, changed := e.Previous["mail"]; e.Event == event.StoreUpdated && !changed {
		return nil
	}
	ctx = store.WithCall(ctx, store.Call{Origin: event.OriginMail, Actor: e.Actor, Ctx: e.Ctx})
	mailbox, err := s.DB.Mailboxes.Read(ctx, e.UUID)
	if err != nil {
		return record.IgnoreNotFound(err)
	}
	if mailbox.Request.ID != request.ID || mailbox.Sent == request.ID {
		return nil // a later request has an event of its own
	}
	m, send, err := s.prepareMail(ctx, mailbox, request)
	if err == nil && send {
		err = s.Email.Sender.Send(ctx, m)
	}
	if err != nil {
		return err
	}
	return s.markSent(ctx, e.UUID, request)
}

// Composer makes the mail of a request. send is false if no mail has to be sent.
type Composer func(ctx context.Context, mailbox record.Mailbox,
	request record.MailRequest) (m mail.Message, send bool, err error)

// ComposeBy sets the composer of the mails of some purposes. The composer of record.NoticePurpose makes all notices.
func (s *Post) ComposeBy(c Composer, purposes ...record.Purpose) {
	for _, p := range purposes {
		s.composers[p] = c
	}
}

func (s *Post) prepareMail(ctx context.Context, mailbox record.Mailbox,
	request record.MailRequest) (m mail.Message, send bool, err error) {
	compose := s.composers[request.For]
	if strings.HasPrefix(string(request.For), record.NoticePurpose) {
		compose = s.composers[record.NoticePurpose]
	}
	if compose == nil {
		return m, false, nil
	}
	return compose(ctx, mailbox, request)
}

// WithToken returns a composer of mails with a token, whose hash is stored before. bind binds it to its purpose; nil:
// to nothing.
func (s *Post) WithToken(texts *mail.Templates, ttl time.Duration,
	bind func(ctx context.Context, t *record.MailedToken, mailbox record.Mailbox) error) Composer {
	return func(ctx context.Context, mailbox record.Mailbox,
		request record.MailRequest) (m mail.Message, send bool, err error) {
		token := secret.New()
		mailed := record.MailedToken{Hash: secret.Digest(token), For: request.For, Mail: request.ID}
		if bind != nil {
			if err := bind(ctx, &mailed, mailbox); err != nil {
				return m, false, err
			}
		}
		if err := s.storeToken(ctx, s.DB.Mailboxes, mailbox.UUID, mailed, ttl); err != nil {
			return m, false, err
		}
		m, err = s.Render(texts.In(mailbox.Language), request.ID,
			mail.Data{Login: mailbox.Address, Link: s.MailLink(mailbox.Address, token), Token: token})
		return m, err == nil, err
	}
}

// WithoutToken returns a composer of mails without a token.
func (s *Post) WithoutToken(texts *mail.Templates) Composer {
	return func(_ context.Context, mailbox record.Mailbox,
		request record.MailRequest) (m mail.Message, send bool, err error) {
		m, err = s.Render(texts.In(mailbox.Language), request.ID,
			mail.Data{Login: mailbox.Address, Link: s.Base.String()})
		return m, err == nil, err
	}
}

// Render renders the mail of a request to the address in its data.
func (s *Post) Render(texts *mail.Templates, request string, data mail.Data) (mail.Message, error) {
	data.Name = s.Email.Name
	subject, html, text, err := texts.Render(data)
	if err != nil {
		return mail.Message{}, errs.Wrap(err, errs.Invalid, "the mail can't be rendered")
	}
	return mail.Message{
		ID: request, From: s.Email.From, To: data.Login, Subject: subject, Text: text, HTML: html, Date: s.DB.Now(),
		Link: data.Link, Token: data.Token,
	}, nil
}

// MailLink is the link of a mail with a token.
func (s *Post) MailLink(address, token string) string {
	return s.Base.At("/auth/email/callback?") + url.Values{"login": {address}, "token": {token}}.Encode()
}

// storeToken stores the record of a token that is about to be mailed.
func (s *Post) storeToken(ctx context.Context, in record.Mailboxes, uuid string, token record.MailedToken,
	ttl time.Duration) error {
	_, err := in.Change(ctx, uuid, func(mailbox *record.Mailbox) error {
		s.AddToken(mailbox, token, ttl)
		return nil
	})
	return err
}

// AddToken adds a token to a mailbox.
func (s *Post) AddToken(mailbox *record.Mailbox, token record.MailedToken, ttl time.Duration) {
	now := s.DB.Now()
	until := now.Add(ttl)
	all := slices.DeleteFunc(mailbox.Tokens,
		func(t record.MailedToken) bool { return t.Until <= record.Timestamp(now) })
	token.Until = record.Timestamp(until)
	all = append(all, token)
	if len(all) > MaxMailedTokens {
		// Prefer to drop the token of an earlier attempt at the same mail, because another mail may have arrived.
		old := slices.IndexFunc(all[:MaxMailedTokens], func(t record.MailedToken) bool { return t.Mail == token.Mail })
		if old < 0 && token.For == record.PurposeUndo {
			old = leastUndo(all[:MaxMailedTokens], token.User)
		}
		all = slices.Delete(all, max(0, old), max(0, old)+1)
	}
	mailbox.Tokens = all
	if mailbox.Expires.Before(until) {
		mailbox.Expires = until
	}
}

// leastUndo returns the index of the token that is replaced by a new one to undo a change of a user. If the user has
// the most possible tokens, it is one of their own, whose change has ended; otherwise it is one of an unproven address.
// See package changes.
func leastUndo(all []record.MailedToken, user string) int {
	own := func(t record.MailedToken) bool { return t.User == user }
	n := 0
	for _, t := range all {
		if own(t) {
			n++
		}
	}
	if n >= MaxChanges {
		return slices.IndexFunc(all, own)
	}
	return slices.IndexFunc(all, func(t record.MailedToken) bool { return !t.Proven })
}

// markSent records that a mail was sent.
func (s *Post) markSent(ctx context.Context, uuid string, request record.MailRequest) error {
	_, err := s.DB.Mailboxes.Change(ctx, uuid, func(m *record.Mailbox) error {
		m.Sent = request.ID
		return nil
	})
	return record.IgnoreNotFound(err)
}

// Email configures registration and login by e-mail.
type Email struct {
	PostValidation bool // users are created before their address is validated
	SkipValidation bool // no validation mail is sent at all
	UniformErrors  bool // an unknown login is reported like a wrong password

	TokenTTL     time.Duration // of the token in a validation mail
	RecoveryTTL  time.Duration // of the token in a recovery mail
	MailInterval time.Duration // minimum between two mails to one address

	From                        string
	Name                        string // of the application; "" if none is configured
	Sender                      mail.Sender
	Validation, Recovery, Taken *mail.Templates
	Invitation                  *mail.Templates // of a user who sets the first password

	Change, Undo *mail.Templates // of a change of address: to the new one, and to the old one

	Login   MailLogin // without a password
	Notices map[Notice]*mail.Templates
}

// Notice is a kind of mail about an event of the user's account. It has no token.
type Notice string
