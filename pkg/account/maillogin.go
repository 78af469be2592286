package account

import (
	"context"
	"time"

	"belfry/pkg/account/record"
	"belfry/pkg/account/secret"
	"belfry/pkg/errs"
	"belfry/pkg/mail"
	"belfry/pkg/store/object"
)

// MailLogin configures logins without a password, by a code or the link of a mail.
type MailLogin struct {
	Code, Link         bool          // which of the two there are
	TTL                time.Duration // of a code, also of one that is a second factor, and of the token of a link
	CodeMail, LinkMail *mail.Templates
}

// MailLogins returns which logins by mail are configured.
func (s *Service) MailLogins() (code, link bool) {
	if s.email == nil {
		return false, false
	}
	return s.email.Login.Code, s.email.Login.Link
}

// loginMailbox is the kind of the mailbox of logins by mail. That of a second factor has another one, so that
// nobody who does not know the password can delay it.
const loginMailbox = "login"

// RequestedLogin is what a client needs to continue a login by mail.
type RequestedLogin struct {
	Binding string // a secret; it has to come with the code or the token of the mail
	Expires time.Time
	TTL     time.Duration // until Expires
}

// RequestLogin requests the mail with which somebody logs in: with a code or with a link, as kind says (MethodCode,
// MethodLink; "" is the one that is configured). What it does and returns is the same for an address without a user.
// Of one client, by its Binding, and one address the latest request alone is valid.
//
// Errors: Invalid; Limited, with ErrMailAsked where the mail that is on its way is for this client.
func (s *Service) RequestLogin(ctx context.Context, login, kind string, from Client) (RequestedLogin, error) {
	method, err := s.mailMethod(kind)
	if err != nil {
		return RequestedLogin{}, err
	}
	user, _, id, err := s.addressee(ctx, login, from)
	if err != nil {
		return RequestedLogin{}, err
	}
	pending := RequestedLogin{Binding: secret.New(), Expires: s.now().Add(s.email.Login.TTL), TTL: s.email.Login.TTL}
	asked := record.MailLogin{Binding: secret.Digest(pending.Binding), Method: method, Until: record.Timestamp(pending.Expires)}
	why := record.PurposeNone
	if user.UUID != "" && !user.MarkedDisabled {
		why = record.Purpose(method)
		asked.User, asked.Epoch = user.UUID, user.Epoch
	}
	return pending, s.orderLogin(record.AsService(ctx, ""), mailOrder{
		mailbox: mailboxUUID(id.ID, loginMailbox), address: id.ID, why: why,
	}, asked, secret.Digest(from.Binding))
}

// mailMethod returns the method of a kind of login by mail. Invalid for one that is not configured.
func (s *Service) mailMethod(kind string) (string, error) {
	code, link := s.MailLogins()
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

// errWrongMailCode does not say what is wrong with a code.
func errWrongMailCode() error {
	return errs.Wrap(ErrToken, errs.Denied, "the code is wrong, was used, has expired, or was asked for elsewhere: request another mail")
}

// LoginByMail logs in by the code, or the token of the link, of a mail, with the Binding of the request. It is used
// up by that. Who has it has the address: an account whose address nobody had proven is taken from whoever else has
// access to it, as by a recovery.
//
// Errors: Invalid without a login or a code; Denied, the same for an unknown login, and with a Repetition for one that was used; Limited; Unavailable.
func (s *Service) LoginByMail(ctx context.Context, login, code string, from Client) (IssuedSession, error) {
	if _, err := s.mailMethod(""); err != nil {
		return IssuedSession{}, err
	}
	if err := requireTexts("a login and a code are needed", text{"login", login}, text{"code", code}); err != nil {
		return IssuedSession{}, err
	}
	if err := s.guesses.Take(from.Address); err != nil {
		return IssuedSession{}, err
	}
	ctx = record.AsService(ctx, "")
	id := record.AddressIdentity(login)
	mailbox := mailboxUUID(id.ID, loginMailbox)
	var asked record.MailLogin
	if err := s.guesses.TryCode(from.Address, func() (err error) {
		var right bool
		asked, right, err = s.tryMailLogin(ctx, mailbox, secret.Digest(from.Binding), code, ActLoggedIn, from)
		if err == nil && !right {
			err = errWrongMailCode()
		}
		return err
	}); err != nil {
		if Repeated(err) != nil {
			s.guesses.Return(from.Address)
		}
		return IssuedSession{}, recognize(err, from)
	}
	session, err := s.finishMailLogin(ctx, id, asked, from)
	if err == nil || Pending(err) != nil {
		s.guesses.Return(from.Address)
	} else {
		s.forgetUsed(ctx, mailbox, func(u record.UsedSecret) bool { return u.Hash == asked.Hash })
	}
	if err != nil {
		return IssuedSession{}, err
	}
	s.runInBackground(ctx, "recording a login", func(ctx context.Context) error { return s.recordUse(ctx, id.UUID()) })
	return session, nil
}

// finishMailLogin logs in somebody whose code was right and is used up.
func (s *Service) finishMailLogin(ctx context.Context, id record.Identity, asked record.MailLogin, from Client) (IssuedSession, error) {
	user, ident, err := s.db.FindOwner(ctx, id)
	if err != nil {
		return IssuedSession{}, err
	}
	if !asked.IsFor(user) {
		return IssuedSession{}, errWrongMailCode()
	}
	if user, err = s.proveAddress(ctx, id, user, ident, from); err != nil {
		return IssuedSession{}, err
	}
	return s.completeLogin(ctx, user, s.proofBy(record.Email, asked.Method, 1), from)
}

// proveAddress returns the account of somebody who has proven to have an address. If nobody had before, the password,
// sessions and other idents of the account may be those of a stranger who registered the address, unless it is in the
// client's session: then the client has both the address and the account.
func (s *Service) proveAddress(ctx context.Context, id record.Identity, user record.User, ident record.Ident, from Client) (record.User, error) {
	switch {
	case ident.Proven:
		return s.endRights(ctx, user, id)
	case from.Session != nil && from.Session.User.UUID == user.UUID:
		return user, s.markValidated(ctx, ident.UUID, true)
	}
	return s.recoverAccount(ctx, id, user, ident, "")
}

// followLogin handles the link of a mail if it is that of a login. It uses nothing up.
func (s *Service) followLogin(ctx context.Context, id record.Identity, token string, from Client) (to LinkOutcome, found bool, err error) {
	if _, link := s.MailLogins(); !link {
		return 0, false, nil
	}
	mailbox, err := s.db.Mailboxes.Read(record.AsService(ctx, ""), mailboxUUID(id.ID, loginMailbox))
	if err != nil {
		return 0, false, record.IgnoreNotFound(err)
	}
	if r := s.repeatedLogin(mailbox, secret.Digest(from.Binding), token, from); r != nil && r.Act == ActLoggedIn {
		return 0, true, errRepeated(*r, errs.Denied)
	}
	for _, l := range mailbox.Logins {
		if l.Method != record.MethodLink || !s.isValid(l) || !matchesCode(l, token) {
			continue
		}
		if secret.Matches(from.Binding, l.Binding) {
			return OpenLogin, true, nil
		}
		return OpenLoginElsewhere, true, nil
	}
	return 0, false, nil
}

// addressee checks the request of a mail to an address, and returns the identity and its user and ident, as findOwner
// does.
func (s *Service) addressee(ctx context.Context, login string, from Client) (user record.User, ident record.Ident, id record.Identity, err error) {
	if err := s.requireEmail(); err != nil {
		return user, ident, id, err
	}
	if err := requireTexts("a login is needed", text{"login", login}); err != nil {
		return user, ident, id, err
	}
	if _, err := record.KnownAddress(login); err != nil {
		return user, ident, id, err
	}
	if err := s.guesses.Take(from.Address); err != nil {
		return user, ident, id, err
	}
	id = record.AddressIdentity(login)
	user, ident, err = s.db.FindOwner(record.AsService(ctx, ""), id)
	return user, ident, id, err
}

// text is a field of a request.
type text struct{ name, value string }

// requireTexts reports Invalid for texts that are empty.
func requireTexts(message string, texts ...text) error {
	var missing []errs.Field
	for _, t := range texts {
		if t.value == "" {
			missing = append(missing, errs.Field{Pointer: object.Pointer(t.name), Message: "is missing"})
		}
	}
	if missing == nil {
		return nil
	}
	return &errs.Error{Kind: errs.Invalid, Message: message, Fields: missing}
}

// sendSecondCode requests a mail with a code for a user who has logged in with a first factor. The code is bound to the
// login that is pending, and to the user's password. Conflict for a user without an address that it could go to;
// Limited within the interval of mails, with ErrMailAsked where the one on its way is for the same login.
func (s *Service) sendSecondCode(ctx context.Context, user record.User, login string) error {
	if err := s.requireEmail(); err != nil {
		return err
	}
	found, err := s.db.StandingsOf(ctx, user)
	if err != nil {
		return err
	}
	address := found.ForCodes()
	if address == "" {
		return errs.New(errs.Conflict, "the account has no e-mail address that is known to be the user's")
	}
	asked := record.MailLogin{
		Binding: secondBinding(login), Method: record.MethodCode, To: address, Until: record.Timestamp(s.now().Add(s.email.Login.TTL)),
		User: user.UUID, Epoch: user.Epoch,
	}
	return s.orderLogin(record.AsService(ctx, user.UUID), mailOrder{
		mailbox: secondMailbox(user.UUID), address: address, why: record.PurposeCode,
	}, asked, asked.Binding)
}

// checkSecondCode reports whether a code is that of sendSecondCode for a user and a pending login, with the address that it was
// sent to, and uses it up. Wrong codes count against the code and against the user. Limited while the user has to wait.
func (s *Service) checkSecondCode(ctx context.Context, user record.User, login, code string) (address string, right bool, err error) {
	asked, right, err := s.tryMailLogin(record.AsService(ctx, user.UUID), secondMailbox(user.UUID), secondBinding(login), code, ActProven, Client{})
	return asked.To, right && asked.IsFor(user), err
}

// secondMailbox is the uuid of the mailbox for codes that are a user's second factor.
func secondMailbox(user string) string { return "second-" + secret.Hex(user) }

// secondBinding binds a code to a pending login, and is no binding of a browser.
func secondBinding(login string) string { return secret.Digest("second factor:" + login) }
