package mails

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math/big"
	"slices"

	"belfry/pkg/account/guess"
	"belfry/pkg/account/once"
	"belfry/pkg/account/post"
	"belfry/pkg/account/record"
	"belfry/pkg/account/secret"
	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/mail"
)

const (
	// MaxTries is the maximum number of wrong codes for one mailed code, and for one login whose second factor is
	// missing.
	MaxTries = 5

	// maxMailLogins is how many logins by mail of one address can be in progress.
	maxMailLogins = 16
)

// mailLoginFor returns the login whose mail a request is for.
func mailLoginFor(mailbox record.Mailbox, request string) (record.MailLogin, bool) {
	i := slices.IndexFunc(mailbox.Logins, func(l record.MailLogin) bool { return l.Mail == request })
	if i < 0 {
		return record.MailLogin{}, false
	}
	return mailbox.Logins[i], true
}

// IsValid reports whether a login by mail can be tried.
func (s *Method) IsValid(l record.MailLogin) bool {
	return record.Timestamp(s.DB.Now()) < l.Until && l.Tries < MaxTries
}

// hashOfCode is the stored form of a code.
func hashOfCode(l record.MailLogin, code string) string { return secret.Digest(l.Binding + ":" + code) }

// MatchesCode reports whether a code, or the token of a link, is that of a login.
func MatchesCode(l record.MailLogin, code string) bool {
	if l.Method == record.MethodLink {
		code = secret.TypedToken(code)
	} else {
		code = secret.TypedCode(code)
	}
	return l.User != "" && secret.Matches(l.Binding+":"+code, l.Hash)
}

// addMailLogin adds a login to a mailbox. It replaces the login with the binding replaced, so that a client has one
// login in progress for an address.
func (s *Method) addMailLogin(l record.MailLogin, replaced string) func(*record.Mailbox) {
	return func(m *record.Mailbox) {
		l.Mail = m.Request.ID
		all := slices.DeleteFunc(m.Logins, func(other record.MailLogin) bool {
			return other.Binding == replaced || !s.IsValid(other)
		})
		all = append(all, l)
		m.Logins = all[max(0, len(all)-maxMailLogins):]
	}
}

// orderLogin requests the mail of a login. ErrMailAsked is the cause of its error only if the pending mail belongs to
// the client with the binding replaced, because other clients can't use it.
func (s *Method) orderLogin(ctx context.Context, o post.Order, asked record.MailLogin, replaced string) error {
	o.With = s.addMailLogin(asked, replaced)
	err := s.Post.Order(ctx, o)
	if !errors.Is(err, post.ErrMailAsked) {
		return err
	}
	mailbox, failed := s.DB.Mailboxes.Read(ctx, o.Mailbox)
	if failed != nil {
		return failed
	}
	if l, ok := mailLoginFor(mailbox, mailbox.Request.ID); ok && l.Binding == replaced && l.Method == asked.Method &&
		s.IsValid(l) {
		return err
	}
	return post.AskedByOthers(err)
}

// TryMailLogin compares a code with that of the login that has a binding, and uses the login up if the code is right. A
// used code is not a try: its error has a Repetition. A login for an unknown address causes as many reads and writes.
//
// The write of the mailbox's record counts a wrong code, for all processes together. It counts against the login, which
// ends after MaxTries of them, and against the mailbox. After Limits.Account of them the mailbox has to wait, longer
// after each further one. So requesting mail after mail does not help an attacker.
func (s *Method) TryMailLogin(ctx context.Context, mailbox, binding, code string, act record.Act,
	from sessions.Client) (login record.MailLogin, right bool, err error) {
	_, err = s.DB.Mailboxes.Change(ctx, mailbox, func(m *record.Mailbox) error {
		login, right = record.MailLogin{}, false
		at := slices.IndexFunc(m.Logins, func(l record.MailLogin) bool { return l.Binding == binding && s.IsValid(l) })
		if at < 0 || !MatchesCode(m.Logins[at], code) {
			if r := s.Uses.RepeatedLogin(*m, binding, code, from); r != nil {
				return once.ErrRepeated(*r, errs.Denied)
			}
		}
		if at < 0 {
			return record.ErrUnchanged
		}
		now, free := s.DB.Now(), s.Guesses.Limits().Account
		if wait := guess.Wait(m.Failures, free, now); wait > 0 && free > 0 {
			return guess.Limited("too many wrong codes", wait)
		}
		login, right = m.Logins[at], MatchesCode(m.Logins[at], code)
		if right {
			m.Logins, m.Failures = slices.Delete(m.Logins, at, at+1), record.Failures{At: now}
			s.Uses.AddUsed(m, record.UsedSecret{Hash: login.Hash, For: record.Purpose(login.Method), Act: act,
				Browser: once.BrowserDigest(from), Binding: login.Binding})
			return nil
		}
		m.Logins[at].Tries++
		m.Failures = record.Failures{Count: guess.Current(m.Failures, now).Count + 1, At: now}
		if login.User != "" {
			m.Publish(s.DB.Audit(event.AuthLoginFailed, login.User,
				event.AuthDetails{Method: login.Method, Reason: "code"}))
		}
		return nil
	})
	return login, right, record.IgnoreNotFound(err)
}

// NewCode returns six random digits.
func NewCode() string {
	n, err := rand.Int(rand.Reader, big.NewInt(1_000_000))
	if err != nil {
		panic(err) // rand.Reader never fails
	}
	return fmt.Sprintf("%06d", n)
}

// errNoLogin ends the change of a mailbox whose login has ended since it was read.
var errNoLogin = errors.New("auth: the login by mail has ended")

// ComposeLogin makes the code of a login by mail, or the token of its link, stores its hash, and renders the mail. No
// mail is sent for a login without a user, or for an expired one. A mail that is sent again has another code.
func (s *Method) ComposeLogin(ctx context.Context, mailbox record.Mailbox,
	request record.MailRequest) (m mail.Message, send bool, err error) {
	login, ok := mailLoginFor(mailbox, request.ID)
	if !ok {
		return m, false, nil
	}
	code := NewCode()
	if login.Method == record.MethodLink {
		code = secret.New()
	}
	_, err = s.DB.Mailboxes.Change(ctx, mailbox.UUID, func(now *record.Mailbox) error {
		at := slices.IndexFunc(now.Logins, func(l record.MailLogin) bool {
			return l.Mail == login.Mail &&
				s.IsValid(l)
		})
		if at < 0 {
			return errNoLogin
		}
		now.Logins[at].Hash = hashOfCode(now.Logins[at], code)
		return nil
	})
	if errors.Is(err, errNoLogin) || errors.Is(err, errs.NotFound) {
		return m, false, nil
	}
	if err != nil || login.User == "" {
		return m, false, err
	}
	data, texts := mail.Data{Login: mailbox.Address, Token: code, Link: s.Base.String()}, s.Email.Login.CodeMail
	if login.Method == record.MethodLink {
		data.Link, texts = s.Post.MailLink(mailbox.Address, code), s.Email.Login.LinkMail
	}
	m, err = s.Post.Render(texts.In(mailbox.Language), login.Mail, data)
	return m, err == nil, err
}

// BindingSecret returns the secret of a login by mail to an address.
func (s *Method) BindingSecret(ctx context.Context, login string, secrets []string) string {
	return secret.FirstValid(secrets, func() func(string) bool {
		mailbox, err := s.DB.Mailboxes.Read(record.AsService(ctx, ""),
			post.MailboxUUID(record.AddressIdentity(login).ID, LoginMailbox))
		if err != nil {
			return nil
		}
		return func(text string) bool {
			return slices.ContainsFunc(mailbox.Logins, func(l record.MailLogin) bool {
				return secret.Matches(text,
					l.Binding)
			}) ||
				slices.ContainsFunc(mailbox.Used, func(u record.UsedSecret) bool {
					return secret.Matches(text,
						u.Binding)
				})
		}
	})
}
