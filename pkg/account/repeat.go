package account

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"belfry/internal/backoff"
	"belfry/pkg/errs"
	"belfry/pkg/store"
	"belfry/pkg/store/object"
)

// What is valid once is sent twice all the same: a scanner of mails opens a link before its reader does, a double click sends a form
// again, a page is reloaded. The second time nothing happens, and it is no wrong guess: whoever sends it knew the secret. So the record
// in which a secret was used up keeps its hash for a while, and the reply says what the first use did: to the same browser, which
// is known by a cookie, where it led; to all others, in words that are the same for every account. A repetition never makes a session.

// UsedTTL is how long a secret that was used is remembered by its hash.
const UsedTTL = 10 * time.Minute

// Act is what a secret was used for.
type Act string

// The acts.
const (
	ActConfirmed  Act = "confirmed"  // an address was validated
	ActRegistered Act = "registered" // an address was registered, or added to an account
	ActPassword   Act = "password"   // a recovery has set a password
	ActLoggedIn   Act = "login"      // a login, or that an identity was linked
	ActAddress    Act = "address"    // a new address was confirmed
	ActUndone     Act = "undone"     // a change of address was undone
	ActKept       Act = "kept"       // a change of address can't be undone any more
	ActPasskey    Act = "passkey"    // a passkey was added
	ActChanged    Act = "changed"    // the user of a session has changed the password
	ActProven     Act = "proven"     // the user of a session has proven again who they are
	ActFirstAdmin Act = "first"      // the first admin was made
)

// actTexts say what is the case, to whoever has the secret. They are the same for every account.
var actTexts = map[Act]string{
	ActConfirmed:  "this link was opened before: the address is confirmed",
	ActRegistered: "the token was used before: the address is registered. Log in",
	ActPassword:   "the token was used before: the new password is set. Log in with it, or request another mail",
	ActLoggedIn:   "this login is finished already. To log in once more, begin again",
	ActAddress:    "the token was used before: the new address is confirmed",
	ActUndone:     "the token was used before: the change of the address was undone",
	ActKept:       "the token was used before: the changes of the address stay",
	ActPasskey:    "this answer was sent before: the passkey was added",
	ActChanged:    "this was sent before: the new password is set",
	ActProven:     "the code was used before: you have proven again who you are",
	ActFirstAdmin: "this link was used before: there is a first admin. Log in to the console; `belfry user create ADDRESS --admin` makes another admin",
}

// Repetition is the cause of an error: the secret of a request was used before, for an act that has succeeded.
type Repetition struct {
	Act      Act
	Provider string // of a login through a provider, or by a passkey: its name

	// Known says that the request is of the browser of the first use, by a cookie of that browser. It may be sent
	// where the first use has led.
	Known bool

	browser string    // digest of the cookie of the browser of the first use; "" if it had none
	nowhere bool      // the first use has led to where nothing leads a second time
	at      time.Time // of the first use, which may be in progress

	// token is one for a recovery as it was. While it would recover the account, the first use has not.
	token mailedToken
}

func (*Repetition) Error() string { return "the same was done before" }

// Repeated returns the repetition that an error is about; nil for another error.
func Repeated(err error) *Repetition {
	var r *Repetition
	errors.As(err, &r)
	return r
}

// errRepeated is the error of a repetition, of the kind that another secret has which is of no use.
func errRepeated(r Repetition, kind errs.Kind) error {
	return errs.Wrap(&r, kind, "%s", actTexts[r.Act])
}

// recognize completes the error of a repetition with whether its browser is that of the first use.
func recognize(err error, from Client) error {
	if r := Repeated(err); r != nil {
		r.Known = (r.Known || isBrowser(from, r.browser)) && !r.nowhere
	}
	return err
}

// repeatedChange is recognize for a change of address, whose attempt it gives back.
func (s *Service) repeatedChange(err error, from Client) error {
	if Repeated(err) != nil {
		s.returnAttempt(from)
	}
	return recognize(err, from)
}

// repeatedRequest returns the error of a request for a change of address, whose mails may be on their way for another one. Of two
// requests at once the second one may find a mail before the change.
func (s *Service) repeatedRequest(ctx context.Context, user string, c addressChange, err error) error {
	if !errors.Is(err, ErrMailAsked) {
		return err
	}
	since := timestamp(s.now().Add(-UsedTTL))
	same, failed := s.await(ctx, s.now(), func() (bool, bool, error) {
		now, err := s.users.Get(ctx, user)
		return slices.ContainsFunc(s.changesOf(now.Body), func(other addressChange) bool {
			return other.Ident == c.Ident && other.To == c.To && other.At > since
		}), false, err
	})
	switch {
	case failed != nil:
		return failed
	case !same:
		return askedByOthers(err)
	}
	return err
}

// undoneAtOnce returns the error of an undoing whose change has ended: by another use of the same token, at the same time, which uses the
// token up last.
func (s *Service) undoneAtOnce(ctx context.Context, id identity, token string, wrong error, from Client) error {
	var repeated error
	_, err := s.await(ctx, s.now(), func() (bool, bool, error) {
		_, err := s.verifyToken(ctx, id.providerID, token, purposeUndo)
		if Repeated(err) != nil {
			repeated = s.repeatedChange(err, from)
		}
		return repeated != nil, err != nil, nil
	})
	return cmp.Or(err, repeated, wrong)
}

func isBrowser(from Client, browser string) bool {
	return from.Browser != "" && secretMatches(byCookie(from.Browser), browser) || from.Session != nil && secretMatches(inSession(from), browser) ||
		slices.ContainsFunc(from.Browsers, func(secret string) bool { return secretMatches(byCookie(secret), browser) })
}

// byCookie is how a browser is known by its cookie. Whatever that says, it is no session, whose id is no secret.
func byCookie(secret string) string { return "browser " + secret }

// inSession is how a browser without a cookie of its own is known: by that of its session.
func inSession(from Client) string { return "session " + from.Session.ID }

// browserDigest is what is stored of the browser that uses a secret.
func browserDigest(from Client) string {
	switch {
	case from.Browser != "":
		return digest(byCookie(from.Browser))
	case from.Session != nil:
		return digest(inSession(from))
	}
	return ""
}

// NewBrowser returns a secret for the cookie by which the browser of a repetition is known. It gives no right to anything.
func NewBrowser() string { return newSecret() }

// usedSecret is a token, a code or a link of a mail that was used. Its mailbox has it, so that it is written with the write that
// uses it up: of two uses at once one succeeds, and the other finds this.
type usedSecret struct {
	Hash    string  `json:"hash"`
	For     purpose `json:"for"`
	Act     Act     `json:"act"`
	Until   string  `json:"until"`
	Browser string  `json:"browser,omitempty"` // digest of the cookie of the browser
	Binding string  `json:"binding,omitempty"` // of a login by mail

	// The account that a token for recovery was made for.
	User  string `json:"user,omitempty"`
	Epoch uint64 `json:"epoch,omitempty"`
}

const (
	fieldUsed = "_used" // of a mailbox

	// maxUsed is how many used secrets a mailbox has.
	maxUsed = 16
)

// repetition is what another use of the secret is.
func (u usedSecret) repetition() *Repetition {
	until, _ := time.Parse(timeFormat, u.Until)
	return &Repetition{Act: u.Act, browser: u.Browser, at: until.Add(-UsedTTL), token: mailedToken{User: u.User, Epoch: u.Epoch}}
}

func usedOf(body []byte) (all []usedSecret) {
	_ = json.Unmarshal(object.Field(body, fieldUsed), &all)
	return all
}

// unexpiredUsed returns the used secrets of a mailbox that are remembered still.
func (s *Service) unexpiredUsed(body []byte) []usedSecret {
	now := timestamp(s.now())
	return slices.DeleteFunc(usedOf(body), func(u usedSecret) bool { return u.Until <= now })
}

// setUsed adds used secrets to the fields of a mailbox.
func (s *Service) setUsed(fields object.Object, body []byte, more ...usedSecret) {
	until := timestamp(s.now().Add(UsedTTL))
	for i := range more {
		more[i].Until = until
	}
	all := append(s.unexpiredUsed(body), more...)
	fields.Set(fieldUsed, all[max(0, len(all)-maxUsed):])
}

// forgetUsed removes used secrets from a mailbox: what they were used for has failed, so there is nothing to repeat.
func (s *Service) forgetUsed(ctx context.Context, mailbox string, which func(usedSecret) bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(asService(ctx, "")), backgroundTimeout)
	defer cancel()
	_, err := s.tokens.Mutate(ctx, mailbox, func(now store.Stored) (store.Mutation, error) {
		fields := object.Object{}
		fields.Set(fieldUsed, slices.DeleteFunc(s.unexpiredUsed(now.Body), which))
		return store.Mutation{Fields: fields}, nil
	})
	if ignoreNotFound(err) != nil {
		s.log.WarnContext(ctx, "auth: the end of a login was not recorded; if its code is sent twice, the second reply will say that it has succeeded", "error", err)
	}
}

// repeatedToken returns the repetition of a token that was mailed for one of some purposes; nil for none.
func (s *Service) repeatedToken(mailbox []byte, token string, purposes []purpose) *Repetition {
	for _, u := range s.unexpiredUsed(mailbox) {
		if u.Binding == "" && slices.Contains(purposes, u.For) && secretMatches(token, u.Hash) {
			return u.repetition()
		}
	}
	return nil
}

// repeatedLogin returns the repetition of a login by mail; nil for none. A code of six digits is found by trying: it is known to the
// browser that has used it alone, and is a wrong one from any other. A link has 256 bits.
func (s *Service) repeatedLogin(mailbox []byte, binding, code string, from Client) *Repetition {
	for _, u := range s.unexpiredUsed(mailbox) {
		typed := typedCode(code)
		if u.For == purposeLink {
			typed = typedToken(code)
		}
		if u.Binding == "" || !secretMatches(u.Binding+":"+typed, u.Hash) {
			continue
		}
		if bound := u.Binding == binding; bound || isBrowser(from, u.Browser) || u.For == purposeLink {
			r := u.repetition()
			r.Known = bound && from.Cookie
			return r
		}
	}
	return nil
}

// A flow, a challenge and a login that waits for its second factor have records of their own. The write that uses one up removes
// what is in it, and leaves this.
type use struct {
	Act      Act    `json:"act"`
	Provider string `json:"provider,omitempty"`
	Browser  string `json:"browser,omitempty"` // digest of the cookie of the browser
	Secret   string `json:"secret,omitempty"`  // digest of the secret of the flow
	Answer   string `json:"answer,omitempty"`  // digest of what it was answered with
	Done     bool   `json:"done,omitempty"`    // the act has succeeded; absent while it is in progress

	// Application says that it was for an application: its browser was sent there with a code, which is sent once.
	Application bool `json:"application,omitempty"`
}

const fieldUse = "_use"

func useOf(o object.Object) (u use, used bool) {
	return u, o[fieldUse] != nil && json.Unmarshal(o[fieldUse], &u) == nil
}

// repeated is the error of another use of the record.
func (u use) repeated(kind errs.Kind) error {
	return errRepeated(Repetition{Act: u.Act, Provider: u.Provider, browser: u.Browser, nowhere: u.Application}, kind)
}

// usedFields are the fields of a record that is used up: nothing stays of what was in it.
func (s *Service) usedFields(o object.Object, u use) object.Object {
	fields := object.Object{}
	u.Application = o[fieldApplication] != nil
	for name := range o {
		switch name {
		case "uuid", "created", "updated":
		default:
			fields[name] = nil
		}
	}
	fields.Set(fieldUse, u)
	fields.Set(fieldExpires, timestamp(s.now().Add(UsedTTL)))
	return fields
}

// settle records whether the act for which a record was used up has succeeded. If it has not, there is nothing to repeat, and the record
// is deleted. It also happens if the client has disconnected: a page that is loaded again disconnects.
func (s *Service) settle(ctx context.Context, uuid string, done bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(asService(ctx, "")), backgroundTimeout)
	defer cancel()
	var err error
	if done {
		_, err = s.tokens.Mutate(ctx, uuid, func(now store.Stored) (store.Mutation, error) {
			o, err := now.Object()
			if err != nil {
				return store.Mutation{}, err
			}
			u, _ := useOf(o)
			u.Done = true
			fields := object.Object{}
			fields.Set(fieldUse, u)
			return store.Mutation{Fields: fields}, nil
		})
	} else {
		err = s.tokens.Delete(ctx, uuid, 0)
	}
	if ignoreNotFound(err) != nil {
		s.log.WarnContext(ctx, "auth: what a login led to was not recorded; if it is sent twice, the second reply will not know of the first", "error", err)
	}
}

const (
	// repeatWait is how long a repetition waits for the first use, which is in progress.
	repeatWait = 3 * time.Second

	// maxRepeatWaits is how many of them wait at once. Others do not wait.
	maxRepeatWaits = 64
)

// await calls whether something is the case until it is, or can't be any more, while the first use may be in progress.
func (s *Service) await(ctx context.Context, begun time.Time, is func() (is, final bool, err error)) (bool, error) {
	limited, cancel := context.WithTimeout(ctx, repeatWait)
	defer cancel()
	if s.now().Sub(begun) > repeatWait {
		cancel()
	}
	select {
	case s.repeats <- struct{}{}:
		defer func() { <-s.repeats }()
	default:
		cancel()
	}
	wait := backoff.New(20*time.Millisecond, 500*time.Millisecond)
	for {
		is, final, err := is()
		if is || final || err != nil {
			return is, err
		}
		if wait.Wait(limited) != nil {
			return false, ctx.Err()
		}
	}
}

// awaitUse returns how a record was used, once that is known; false if it was not used, or if that is not known in time.
func (s *Service) awaitUse(ctx context.Context, uuid string, inProgress func(object.Object) bool) (u use, used bool, err error) {
	used, err = s.await(ctx, s.now(), func() (is, final bool, err error) {
		stored, err := s.tokens.Get(asService(ctx, ""), uuid)
		if err != nil {
			return false, true, ignoreNotFound(err)
		}
		o, err := stored.Object()
		if err != nil {
			return false, true, err
		}
		var was bool
		u, was = useOf(o)
		return was && u.Done, !was && !inProgress(o), nil
	})
	return u, used, err
}

// noneElse is for a record that has no use in progress but that which has used it up.
func noneElse(object.Object) bool { return false }
