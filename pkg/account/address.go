package account

import (
	"context"
	"errors"
	"slices"
	"time"

	"belfry/pkg/account/guess"
	"belfry/pkg/account/record"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/store/object"
)

const (
	// UndoTTL is how long a change of address can be undone, after it could be confirmed.
	UndoTTL = 7 * 24 * time.Hour

	// maxChanges is how many changes of address a user can have requested within that time. They are fewer than maxMailedTokens, so
	// that no token of an undoing is displaced by others of its account.
	maxChanges = 5
)

// Kinds of mailboxes of a change: that of the new address, and that of the old one.
const (
	changeMailbox = "change"
	undoMailbox   = "undo"
)

// changesOf returns the changes of a user that can be confirmed or undone still.
func (s *Service) changesOf(user record.User) []record.AddressChange {
	before := record.Timestamp(s.now().Add(-s.undoTTL()))
	return slices.DeleteFunc(slices.Clone(user.Changes), func(c record.AddressChange) bool { return c.At <= before })
}

// undoTTL is how long the token of an undoing is valid from the request of the change.
func (s *Service) undoTTL() time.Duration {
	if s.email == nil { // any more: admins see the changes of before still
		return UndoTTL
	}
	return UndoTTL + s.email.TokenTTL
}

// RequestAddressChange requests the mails by which the address of an ident is replaced: one to the new address, to
// confirm it, and one to the old address, by which the change can be undone. Nothing changes until the new address is
// confirmed. What it does and returns is the same for an address that belongs to another user, who is informed.
//
// Errors: those of requireFresh; Invalid; NotFound for an ident that is not an address of the user; Denied for a wrong
// password; Exists for an address of the user's own; Limited.
func (s *Service) RequestAddressChange(ctx context.Context, ident, address, password string, from Client) error {
	me := from.Session
	if me == nil {
		return errNoSession()
	}
	if err := s.requireFresh(ctx, me); err != nil {
		return err
	}
	if err := s.requireEmail(); err != nil {
		return err
	}
	if _, err := NormalizeAddress(address); err != nil {
		return &errs.Error{Kind: errs.Invalid, Message: "the new address can't be used", Fields: []errs.Field{{Pointer: "/address", Message: "expected an address such as ada@example.com"}}}
	}
	if err := s.guesses.Take(from.Address); err != nil {
		return err
	}
	ctx = record.AsService(ctx, me.User.UUID)
	if err := s.checkOwnAddress(ctx, me, ident); err != nil {
		return err
	}
	if hasPassword(me) {
		if err := s.verifyCurrentPassword(ctx, me, password); err != nil {
			return err
		}
	}
	id := record.AddressIdentity(address)
	owner, _, err := s.db.FindOwner(ctx, id)
	if err != nil {
		return err
	}
	if owner.UUID == me.User.UUID {
		return errs.New(errs.Exists, "you log in with this address already")
	}
	why := record.PurposeChange
	if owner.UUID != "" {
		why = record.PurposeTaken
	}
	change, err := s.newChange(ctx, me.User, ident, id.ID)
	if err != nil {
		return err
	}
	return s.repeatedRequest(ctx, me.User.UUID, change, s.startChange(ctx, me, change, why))
}

// newChange returns a change of the address of an ident, with who may undo it.
func (s *Service) newChange(ctx context.Context, user record.User, ident, to string) (record.AddressChange, error) {
	found, err := s.db.StandingsOf(ctx, user)
	c := record.AddressChange{ID: object.NewUUID(), Ident: ident, To: to, At: record.Timestamp(s.now()), Holder: found.Owner()}
	c.Proven = found.Since(c.Holder) != ""
	for _, a := range found.All {
		if record.AddressIdentity(a.Address).UUID() == ident {
			c.From, c.Since = a.Address, a.Since
		}
	}
	return c, err
}

// NormalizeAddress returns the form of an e-mail address by which accounts are found: ASCII letters in lower case, an international domain
// in its ASCII form. Invalid for text that is no address that mail can be sent to.
func NormalizeAddress(text string) (string, error) { return record.NormalizeAddress(text) }

func errNoSession() error {
	return errs.New(errs.Unauthenticated, "log in first, to the account whose address is changed")
}

// checkOwnAddress reports NotFound for an ident that is no address of the user who is logged in.
func (s *Service) checkOwnAddress(ctx context.Context, me *Session, ident string) error {
	missing := errs.New(errs.NotFound, "you have no e-mail address with this uuid")
	if !object.ValidUUID(ident) {
		return missing
	}
	i, err := s.db.Idents.Read(ctx, ident)
	if errors.Is(err, errs.NotFound) {
		return missing
	}
	if err == nil && (i.User != me.User.UUID || !i.IsAddress()) {
		return missing
	}
	return err
}

// startChange records a change, and requests its mails. Who may undo it is informed first, also of a change that can't
// be confirmed: who asks learns nothing from that.
func (s *Service) startChange(ctx context.Context, me *Session, c record.AddressChange, why record.Purpose) error {
	if err := s.checkChanges(me.User); err != nil {
		return err
	}
	if err := s.offerUndo(ctx, me.User, c); err != nil {
		return err
	}
	_, err := s.changeCurrentUser(ctx, me, func(now *record.User) error {
		if err := s.checkChanges(*now); err != nil {
			return err
		}
		now.Changes = append(s.changesOf(*now), c)
		return nil
	})
	if err != nil {
		return err
	}
	return s.orderMail(ctx, mailOrder{mailbox: mailboxUUID(c.To, changeMailbox), address: c.To, why: why, with: aboutChange(me.User, c)})
}

// aboutChange sets in a mailbox what its mail is about.
func aboutChange(user record.User, c record.AddressChange) func(*record.Mailbox) {
	return func(m *record.Mailbox) {
		m.Change = &record.PendingChange{Mail: m.Request.ID, User: user.UUID, Epoch: user.Epoch, Change: c.ID, Proven: c.Proven}
	}
}

// offerUndo requests the mail by which a change can be undone, before the change is recorded. Where nobody may undo it, whoever can be
// reached gets a notice. Limited until the mail of the change before was sent: none takes the place of another.
func (s *Service) offerUndo(ctx context.Context, user record.User, c record.AddressChange) error {
	if c.Holder == "" {
		return s.announce(ctx, user, announcement{kind: NoticeAddress, about: c.To})
	}
	return s.orderMail(ctx, mailOrder{mailbox: mailboxUUID(c.Holder, undoMailbox), address: c.Holder, why: record.PurposeUndo, with: aboutChange(user, c),
		delay: func(mailbox record.Mailbox) time.Duration {
			wait := s.mailDelay(mailbox, s.now())
			if _, unsent := s.unsentIn(mailbox); unsent {
				wait = max(wait, unsentDelay)
			}
			return max(wait, s.undoDelay(mailbox, user.UUID, c))
		},
	})
}

// undoDelay is how long a change has to wait because the mailbox of its holder is full of tokens that undo others. Whoever has made the
// owner's address free can register it again, in account after account where nobody has proven it: what was mailed first stays, and such
// a token gives way to that of an address which was proven.
func (s *Service) undoDelay(mailbox record.Mailbox, user string, c record.AddressChange) time.Duration {
	now, first := s.now(), ""
	own, others := 0, 0
	for _, t := range mailbox.Tokens {
		switch {
		case t.For != record.PurposeUndo || t.Until <= record.Timestamp(now):
		case t.User == user:
			own++
		case !t.Proven && c.Proven:
			return 0
		default:
			others++
			if first == "" || t.Until < first {
				first = t.Until
			}
		}
	}
	if min(own, maxChanges-1)+others < maxMailedTokens { // more of the own ones are of changes that have ended
		return 0
	}
	return record.Time(first).Sub(now)
}

const (
	// unsentFor is how long the next change waits for a mail that is not sent: longer than mail servers fail, but not for ever where
	// the mailbox does not exist any more.
	unsentFor = 24 * time.Hour

	// unsentDelay is after what time a client tries again meanwhile.
	unsentDelay = 10 * time.Second
)

// checkChanges reports Limited for a user who has requested too many changes.
func (s *Service) checkChanges(user record.User) error {
	all := s.changesOf(user)
	if len(all) < maxChanges {
		return nil
	}
	return guess.Limited("too many changes of address", record.Time(all[0].At).Add(s.undoTTL()).Sub(s.now()))
}

// bindChange binds a token to the change that its mail is about.
func bindChange(_ context.Context, t *record.MailedToken, mailbox record.Mailbox) error {
	if p := mailbox.Change; p != nil && p.Mail == t.Mail {
		t.User, t.Epoch, t.Change, t.Proven = p.User, p.Epoch, p.Change, p.Proven
	}
	return nil
}

// FinishAddressChange confirms a change of address by the token that was mailed to the new address, or undoes it by the
// one that was mailed to the old address. Both can be repeated if they were interrupted.
//
// Who confirms has to be logged in as the user: otherwise a mistyped address would give the account to its owner. Who
// undoes need not be: the change may be that of a thief.
//
// Errors: Unauthenticated; Denied for a wrong token; Exists for an address that has got another account meanwhile; Limited.
func (s *Service) FinishAddressChange(ctx context.Context, login, token string, from Client) (undone bool, err error) {
	if err := s.requireEmail(); err != nil {
		return false, err
	}
	if err := requireTexts("a login and a token are needed", text{"login", login}, text{"token", token}); err != nil {
		return false, err
	}
	if err := s.guesses.Take(from.Address); err != nil {
		return false, err
	}
	id := record.AddressIdentity(login)
	id.Validated = true
	verified, err := s.verifyToken(ctx, id.ID, token, record.PurposeChange, record.PurposeUndo)
	if err != nil {
		return false, s.repeatedChange(err, from)
	}
	if undone = verified.token.For == record.PurposeUndo; undone {
		if err = s.undoChange(ctx, id, verified, from); errors.Is(err, ErrToken) {
			err = s.undoneAtOnce(ctx, id, token, err, from)
		}
	} else {
		err = s.confirmChange(ctx, id, verified, from)
	}
	if err == nil {
		s.guesses.Return(from.Address)
	}
	return undone, err
}

// confirmChange creates the ident of the new address, and then removes that of the old one: the user always has one of
// them. The token is used up last, so that an interrupted change is completed by repeating it.
func (s *Service) confirmChange(ctx context.Context, id record.Identity, v verifiedToken, from Client) error {
	me := from.Session
	if me == nil {
		return errNoSession()
	}
	if err := errors.Join(RequireLogin(me), RequireComplete(me)); err != nil {
		return err
	}
	// The account may have got a second factor since RequestAddressChange.
	if err := s.requireSecond(ctx, me); err != nil {
		return err
	}
	changes := s.changesOf(me.User)
	at := record.ChangeAt(changes, v.token.Change)
	if v.token.User != me.User.UUID || v.token.Epoch != me.User.Epoch || at < 0 || changes[at].Undoing {
		return errWrongToken()
	}
	change := changes[at]
	if err := s.announceToRegistered(ctx, me.User, change.From, announcement{kind: NoticeAddress, about: id.ID, always: true}); err != nil {
		return err
	}
	changed := s.db.Audit(event.AuthAddressChanged, me.User.UUID, event.AuthDetails{Factor: id.UUID(), Session: me.ID})
	if err := s.linkIdent(ctx, identity{Identity: id}, me, changed); err != nil {
		return err
	}
	gone := errs.New(errs.NotFound, "the old address is no login of yours any more")
	err := s.unlinkIdent(record.AsService(ctx, me.User.UUID), unlinking{
		user: me.User.UUID, ident: change.Ident, other: id.UUID(), missing: gone, last: errSessionEnded(),
		check: func(now record.User) error {
			if !now.SameEpoch(me.User) {
				return errSessionEnded()
			}
			return nil
		},
	})
	if record.IgnoreNotFound(err) != nil {
		return err
	}
	if err := ignoreUsed(s.consumeToken(ctx, v, ActAddress, from)); err != nil {
		return err
	}
	if err := s.announce(record.AsService(ctx, me.User.UUID), me.User, announcement{kind: NoticeAddress, about: id.ID, always: true}); err != nil {
		// Who may undo the change was informed when it was requested.
		s.log.ErrorContext(ctx, "auth: requesting a notice failed", "user", me.User.UUID, "notice", NoticeAddress, "error", err)
	}
	return nil
}

// ignoreUsed returns err unless it is Denied: another call has used up the same token for the same.
func ignoreUsed(err error) error {
	if errors.Is(err, errs.Denied) {
		return nil
	}
	return err
}
