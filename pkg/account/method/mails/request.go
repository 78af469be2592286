package mails

import (
	"context"
	"time"

	"belfry/pkg/account/post"
	"belfry/pkg/account/record"
	"belfry/pkg/account/secret"
	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
)

// Logins returns which logins by mail are configured.
func (s *Method) Logins() (code, link bool) {
	if s.Email == nil {
		return false, false
	}
	return s.Email.Login.Code, s.Email.Login.Link
}

// LoginMailbox is the kind of the mailbox of logins by mail. Second factors have another kind, so that only a client
// with the password can delay their mails.
const LoginMailbox = "login"

// RequestedLogin is the data for a client to continue a login by mail.
type RequestedLogin struct {
	Binding string // a secret that has to be sent with the code or the token of the mail
	Expires time.Time
	TTL     time.Duration // until Expires
}

// RequestLogin requests the mail of a login, with a code or a link, as kind says (MethodCode, MethodLink; "" is the
// configured one). The effect and the reply are the same for an address without a user. Only the latest request of a
// client (by its Binding) for an address is valid.
//
// Errors: Invalid; Limited, with post.ErrMailAsked if the pending mail is for this client.
func (s *Method) RequestLogin(ctx context.Context, login, kind string, from sessions.Client) (RequestedLogin, error) {
	method, err := s.MailMethod(kind)
	if err != nil {
		return RequestedLogin{}, err
	}
	user, _, id, err := s.Post.Addressee(ctx, login, from)
	if err != nil {
		return RequestedLogin{}, err
	}
	pending := RequestedLogin{Binding: secret.New(), Expires: s.DB.Now().Add(s.Email.Login.TTL), TTL: s.Email.Login.TTL}
	asked := record.MailLogin{Binding: secret.Digest(pending.Binding), Method: method,
		Until: record.Timestamp(pending.Expires)}
	why := record.PurposeNone
	if user.UUID != "" && !user.MarkedDisabled {
		why = record.Purpose(method)
		asked.User, asked.Epoch = user.UUID, user.Epoch
	}
	return pending, s.orderLogin(record.AsService(ctx, ""), post.Order{
		Mailbox: post.MailboxUUID(id.ID, LoginMailbox), Address: id.ID, Why: why,
	}, asked, secret.Digest(from.Binding))
}

// MailMethod returns the method of a kind of login by mail. Invalid for one that is not configured.
func (s *Method) MailMethod(kind string) (string, error) {
	code, link := s.Logins()
	switch {
	case !code && !link:
		return "", errs.New(errs.NotFound, "login by a code or a link of a mail is not configured")
	case kind == record.MethodCode && code, kind == "" && code:
		return record.MethodCode, nil
	case kind == record.MethodLink && link, kind == "":
		return record.MethodLink, nil
	}
	return "", &errs.Error{Kind: errs.Invalid, Message: "there is no login of this kind",
		Fields: []errs.Field{{Pointer: "/kind", Message: "expected code or link, one that is configured"}}}
}

// CodeError does not reveal the error of a code.
func CodeError() error {
	return errs.Wrap(post.ErrToken, errs.Denied,
		"the code is wrong, was used, has expired, or was requested by another client: request another mail")
}

// SendSecondCode requests a mail with a code for a user who has logged in with a first factor. The code is bound to the
// login that is pending, and to the user's password. Conflict for a user without an address for the mail; Limited
// within the interval of mails, with post.ErrMailAsked if the pending mail is for the same login.
func (s *Method) SendSecondCode(ctx context.Context, user record.User, login string) error {
	if err := s.Post.RequireEmail(); err != nil {
		return err
	}
	found, err := s.DB.StandingsOf(ctx, user)
	if err != nil {
		return err
	}
	address := found.ForCodes()
	if address == "" {
		return errs.New(errs.Conflict, "the account has no e-mail address that is known to be the user's")
	}
	asked := record.MailLogin{
		Binding: secondBinding(login), Method: record.MethodCode, To: address,
		Until: record.Timestamp(s.DB.Now().Add(s.Email.Login.TTL)), User: user.UUID, Epoch: user.Epoch,
	}
	return s.orderLogin(record.AsService(ctx, user.UUID), post.Order{
		Mailbox: SecondMailbox(user.UUID), Address: address, Why: record.PurposeCode,
	}, asked, asked.Binding)
}

// CheckSecondCode reports whether a code was sent by SendSecondCode for a user and a pending login, returns its
// recipient, and uses it up. Wrong codes count against the code and against the user. Limited while the user has to
// wait.
func (s *Method) CheckSecondCode(ctx context.Context, user record.User,
	login, code string) (address string, right bool, err error) {
	asked, right, err := s.TryMailLogin(record.AsService(ctx, user.UUID), SecondMailbox(user.UUID),
		secondBinding(login), code, record.ActProven, sessions.Client{})
	return asked.To, right && asked.IsFor(user), err
}

// SecondMailbox is the uuid of the mailbox for codes that are a user's second factor.
func SecondMailbox(user string) string { return "second-" + secret.Hex(user) }

// secondBinding binds a code to a pending login, and is not the binding of a browser.
func secondBinding(login string) string { return secret.Digest("second factor:" + login) }
