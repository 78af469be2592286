package account

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/store"
	"belfry/pkg/store/object"
)

// A change of address, or the removal of one that was proven, is in the record of its user from the request on, so that all that
// decides about it is in one record: whether it can still be confirmed, or undone, by whom, and which changes came after it.
type addressChange struct {
	ID    string `json:"id"`
	Ident string `json:"ident"`           // the uuid of the ident that is replaced or removed
	From  string `json:"from,omitempty"`  // its address
	Since string `json:"since,omitempty"` // since when that was proven; "" if it was not
	To    string `json:"to,omitempty"`    // the new address; "" for a removal
	At    string `json:"at"`

	// Holder is the address that alone can undo the change: the owner address of the account when it was requested; "" for none, and
	// in a change that a release requested which did not know it.
	Holder string `json:"holder,omitempty"`
	Proven bool   `json:"proven,omitempty"` // Holder was proven then
	Kept   bool   `json:"kept,omitempty"`   // the right to undo it has ended

	// Of a change that is being undone: an interrupted undoing can be repeated.
	Undoing bool            `json:"undoing,omitempty"`
	Later   []string        `json:"later,omitempty"`   // the new addresses of the changes that came after it
	Restore []formerAddress `json:"restore,omitempty"` // what is restored besides From
}

// formerAddress is an address of an account before a change.
type formerAddress struct {
	Address string `json:"address"`
	Since   string `json:"since"`
}

// fieldChanges holds the changes of address of a user, the oldest first.
const fieldChanges = "_addressChanges"

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

// pendingChange says what the last mail of one of these mailboxes is about.
type pendingChange struct {
	Mail   string `json:"mail"` // id of the mailRequest
	User   string `json:"user"`
	Epoch  uint64 `json:"epoch"`
	Change string `json:"change"`
	Proven bool   `json:"proven,omitempty"`
}

const fieldChange = "_change"

// changesOf returns the changes of a user that can be confirmed or undone still.
func (s *Service) changesOf(user []byte) (all []addressChange) {
	_ = json.Unmarshal(object.Field(user, fieldChanges), &all)
	return slices.DeleteFunc(all, func(c addressChange) bool { return c.At <= timestamp(s.now().Add(-s.undoTTL())) })
}

// undoTTL is how long the token of an undoing is valid from the request of the change.
func (s *Service) undoTTL() time.Duration {
	if s.email == nil { // any more: admins see the changes of before still
		return UndoTTL
	}
	return UndoTTL + s.email.TokenTTL
}

func changeAt(all []addressChange, id string) int {
	return slices.IndexFunc(all, func(c addressChange) bool { return c.ID == id })
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
	if err := s.takeAttempt(from); err != nil {
		return err
	}
	ctx = asService(ctx, me.User.UUID)
	if err := s.checkOwnAddress(ctx, me, ident); err != nil {
		return err
	}
	if hasPassword(me) {
		if err := s.verifyCurrentPassword(ctx, me, password); err != nil {
			return err
		}
	}
	id := emailIdentity(address)
	owner, _, err := s.findOwner(ctx, id)
	if err != nil {
		return err
	}
	if owner.UUID == me.User.UUID {
		return errs.New(errs.Exists, "you log in with this address already")
	}
	why := purposeChange
	if owner.UUID != "" {
		why = purposeTaken
	}
	change, err := s.newChange(ctx, me.User, ident, id.providerID)
	if err != nil {
		return err
	}
	return s.repeatedRequest(ctx, me.User.UUID, change, s.startChange(ctx, me, change, why))
}

// newChange returns a change of the address of an ident, with who may undo it.
func (s *Service) newChange(ctx context.Context, user store.Stored, ident, to string) (addressChange, error) {
	found, err := s.standingsOf(ctx, user)
	c := addressChange{ID: object.NewUUID(), Ident: ident, To: to, At: timestamp(s.now()), Holder: found.owner()}
	c.Proven = found.since(c.Holder) != ""
	for _, a := range found.all {
		if emailIdentity(a.address).uuid() == ident {
			c.From, c.Since = a.address, a.since
		}
	}
	return c, err
}

func errNoSession() error {
	return errs.New(errs.Unauthenticated, "log in first, to the account whose address is changed")
}

// checkOwnAddress reports NotFound for an ident that is no address of the user who is logged in.
func (s *Service) checkOwnAddress(ctx context.Context, me *Session, ident string) error {
	missing := errs.New(errs.NotFound, "you have no e-mail address with this uuid")
	if !object.ValidUUID(ident) {
		return missing
	}
	stored, err := s.idents.Get(ctx, ident)
	if errors.Is(err, errs.NotFound) {
		return missing
	}
	if err != nil {
		return err
	}
	o, err := stored.Object()
	if err != nil {
		return err
	}
	owner, _ := o.Text(fieldUser)
	kind, _ := o.Text("type")
	address, _ := o.Text("_id")
	if owner != me.User.UUID || kind != emailType || address == "" {
		return missing
	}
	return nil
}

// startChange records a change, and requests its mails. Who may undo it is informed first, also of a change that can't
// be confirmed: who asks learns nothing from that.
func (s *Service) startChange(ctx context.Context, me *Session, c addressChange, why purpose) error {
	with, err := pendingField(me.User, c)
	if err != nil {
		return err
	}
	if err := s.checkChanges(me.User); err != nil {
		return err
	}
	if err := s.offerUndo(ctx, me.User, c); err != nil {
		return err
	}
	_, err = s.users.Mutate(ctx, me.User.UUID, func(now store.Stored) (store.Mutation, error) {
		if !sameEpoch(now, me.User) {
			return store.Mutation{}, errSessionEnded()
		}
		return store.Mutation{Fields: s.withChange(now, c)}, s.checkChanges(now)
	})
	if err != nil {
		return err
	}
	return s.orderMail(ctx, mailOrder{mailbox: mailboxUUID(c.To, changeMailbox), address: c.To, why: why, with: with})
}

// withChange returns the field of a user to which a change is added.
func (s *Service) withChange(user store.Stored, c addressChange) object.Object {
	fields := object.Object{}
	fields.Set(fieldChanges, append(s.changesOf(user.Body), c))
	return fields
}

// pendingField returns the field of a mailbox that says what its mail is about.
func pendingField(user store.Stored, c addressChange) (func([]byte, mailRequest) object.Object, error) {
	o, err := user.Object()
	return func(_ []byte, request mailRequest) object.Object {
		fields := object.Object{}
		fields.Set(fieldChange, pendingChange{Mail: request.ID, User: user.UUID, Epoch: epoch(o), Change: c.ID, Proven: c.Proven})
		return fields
	}, err
}

// offerUndo requests the mail by which a change can be undone, before the change is recorded. Where nobody may undo it, whoever can be
// reached gets a notice. Limited until the mail of the change before was sent: none takes the place of another.
func (s *Service) offerUndo(ctx context.Context, user store.Stored, c addressChange) error {
	if c.Holder == "" {
		return s.announce(ctx, user, announcement{kind: NoticeAddress, about: c.To})
	}
	with, err := pendingField(user, c)
	if err != nil {
		return err
	}
	return s.orderMail(ctx, mailOrder{mailbox: mailboxUUID(c.Holder, undoMailbox), address: c.Holder, why: purposeUndo, with: with,
		delay: func(mailbox store.Stored) time.Duration {
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
func (s *Service) undoDelay(mailbox store.Stored, user string, c addressChange) time.Duration {
	now, first := s.now(), ""
	own, others := 0, 0
	for _, t := range mailedTokensOf(mailbox.Body) {
		switch {
		case t.For != purposeUndo || t.Until <= timestamp(now):
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
	until, _ := time.Parse(timeFormat, first)
	return until.Sub(now)
}

const (
	// unsentFor is how long the next change waits for a mail that is not sent: longer than mail servers fail, but not for ever where
	// the mailbox does not exist any more.
	unsentFor = 24 * time.Hour

	// unsentDelay is after what time a client tries again meanwhile.
	unsentDelay = 10 * time.Second
)

// checkChanges reports Limited for a user who has requested too many changes.
func (s *Service) checkChanges(user store.Stored) error {
	all := s.changesOf(user.Body)
	if len(all) < maxChanges {
		return nil
	}
	first, _ := time.Parse(timeFormat, all[0].At)
	return errLimited("too many changes of address", first.Add(s.undoTTL()).Sub(s.now()))
}

// bindChange binds a token to the change that its mail is about.
func (t *mailedToken) bindChange(mailbox store.Stored) {
	var p pendingChange
	if json.Unmarshal(object.Field(mailbox.Body, fieldChange), &p) == nil && p.Mail == t.Mail {
		t.User, t.Epoch, t.Change, t.Proven = p.User, p.Epoch, p.Change, p.Proven
	}
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
	if err := requireTexts("a login and a token are needed", text{fieldLogin, login}, text{"token", token}); err != nil {
		return false, err
	}
	if err := s.takeAttempt(from); err != nil {
		return false, err
	}
	id := emailIdentity(login)
	id.validated = true
	verified, err := s.verifyToken(ctx, id.providerID, token, purposeChange, purposeUndo)
	if err != nil {
		return false, s.repeatedChange(err, from)
	}
	if undone = verified.token.For == purposeUndo; undone {
		if err = s.undoChange(ctx, id, verified, from); errors.Is(err, ErrToken) {
			err = s.undoneAtOnce(ctx, id, token, err, from)
		}
	} else {
		err = s.confirmChange(ctx, id, verified, from)
	}
	if err == nil {
		s.returnAttempt(from)
	}
	return undone, err
}

// confirmChange creates the ident of the new address, and then removes that of the old one: the user always has one of
// them. The token is used up last, so that an interrupted change is completed by repeating it.
func (s *Service) confirmChange(ctx context.Context, id identity, v verifiedToken, from Client) error {
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
	user, err := me.User.Object()
	if err != nil {
		return err
	}
	changes := s.changesOf(me.User.Body)
	at := changeAt(changes, v.token.Change)
	if v.token.User != me.User.UUID || v.token.Epoch != epoch(user) || at < 0 || changes[at].Undoing {
		return errWrongToken()
	}
	change := changes[at]
	if err := s.announceToRegistered(ctx, me.User, change.From, announcement{kind: NoticeAddress, about: id.providerID, always: true}); err != nil {
		return err
	}
	changed := s.audit(event.AuthAddressChanged, me.User.UUID, event.AuthDetails{Factor: id.uuid(), Session: me.ID})
	if err := s.linkIdent(ctx, id, me, changed); err != nil {
		return err
	}
	gone := errs.New(errs.NotFound, "the old address is no login of yours any more")
	err = s.unlinkIdent(asService(ctx, me.User.UUID), unlinking{
		user: me.User.UUID, ident: change.Ident, other: id.uuid(), missing: gone, last: errSessionEnded(),
		check: func(now store.Stored) error {
			if !sameEpoch(now, me.User) {
				return errSessionEnded()
			}
			return nil
		},
	})
	if ignoreNotFound(err) != nil {
		return err
	}
	if err := ignoreUsed(s.consumeToken(ctx, v, ActAddress, from)); err != nil {
		return err
	}
	if err := s.announce(asService(ctx, me.User.UUID), me.User, announcement{kind: NoticeAddress, about: id.providerID, always: true}); err != nil {
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
