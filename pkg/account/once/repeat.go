package once

import (
	"context"
	"errors"
	"slices"
	"time"

	"belfry/internal/backoff"
	"belfry/pkg/account/guess"
	"belfry/pkg/account/record"
	"belfry/pkg/account/secret"
	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
)

// A secret that is valid once can be sent twice: a scanner of mails opens a link before its reader does, a double click
// sends a form again, a page is reloaded. The second time has no effect. It does not count as a wrong guess either,
// because the sender knew the secret.
//
// So the record of a used secret keeps its hash for a while, and the reply describes the first use. The same browser,
// identified by a cookie, gets the result. All other clients get a text that is the same for every account. A
// repetition never makes a session.

// UsedTTL is how long a secret that was used is remembered by its hash.
const UsedTTL = 10 * time.Minute

// actTexts describe the state to a client that has the secret. They are the same for every account.
var actTexts = map[record.Act]string{
	record.ActConfirmed:  "this link was opened before: the address is confirmed",
	record.ActRegistered: "the token was used before: the address is registered. Log in",
	record.ActPassword:   "the token was used before: the new password is set. Log in with it, or request another mail",
	record.ActLoggedIn:   "this login was already completed. To log in again, start a new login",
	record.ActAddress:    "the token was used before: the new address is confirmed",
	record.ActUndone:     "the token was used before: the change of the address was undone",
	record.ActKept:       "the token was used before: the changes of the address were confirmed",
	record.ActPasskey:    "this answer was sent before: the passkey was added",
	record.ActChanged:    "this was sent before: the new password is set",
	record.ActProven:     "the code was used before: you have proven again who you are",
	record.ActFirstAdmin: "this link was used before: there is a first admin. Log in to the console; `belfry user " +
		"create ADDRESS --admin` makes another admin",
}

// Repetition is the cause of an error: the secret of a request was used before, for an act that has succeeded.
type Repetition struct {
	Act      record.Act
	Provider string // of a login through a provider, or by a passkey: its name

	// Known means that the request comes from the browser of the first use, by a cookie of that browser. It may be
	// redirected as it was at the first use.
	Known bool

	browser string    // digest of the cookie of the browser of the first use; "" if it had none
	Nowhere bool      // the browser can't be redirected to the result of the first use again
	At      time.Time // of the first use, which may be in progress

	// Token is the token of a recovery before its use. While it could recover the account, the first use has not done
	// so.
	Token record.MailedToken
}

func (*Repetition) Error() string { return "the same was done before" }

// Is reports that a repetition is not a guess.
func (*Repetition) Is(target error) bool { return target == guess.ErrKnown }

// Repeated returns the repetition that an error is about; nil for another error.
func Repeated(err error) *Repetition {
	var r *Repetition
	errors.As(err, &r)
	return r
}

// ErrRepeated is the error of a repetition, of the same kind as for an invalid secret.
func ErrRepeated(r Repetition, kind errs.Kind) error {
	return errs.Wrap(&r, kind, "%s", actTexts[r.Act])
}

// Recognize sets in the error of a repetition whether its browser is that of the first use.
func Recognize(err error, from sessions.Client) error {
	if r := Repeated(err); r != nil {
		r.Known = (r.Known || isBrowser(from, r.browser)) && !r.Nowhere
	}
	return err
}

func isBrowser(from sessions.Client, browser string) bool {
	return from.Browser != "" && secret.Matches(byCookie(from.Browser), browser) ||
		from.Session != nil && secret.Matches(inSession(from), browser) ||
		slices.ContainsFunc(from.Browsers,
			func(cookie string) bool { return secret.Matches(byCookie(cookie), browser) })
}

// byCookie identifies a browser by its cookie. The prefix distinguishes a cookie from the id of a session, which is not
// secret.
func byCookie(value string) string { return "browser " + value }

// inSession identifies a browser without such a cookie by its session.
func inSession(from sessions.Client) string { return "session " + from.Session.ID }

// BrowserDigest is the stored form of the browser that uses a secret.
func BrowserDigest(from sessions.Client) string {
	switch {
	case from.Browser != "":
		return secret.Digest(byCookie(from.Browser))
	case from.Session != nil:
		return secret.Digest(inSession(from))
	}
	return ""
}

// NewBrowser returns a secret for the cookie that identifies the browser of a repetition. It grants no rights.
func NewBrowser() string { return secret.New() }

// maxUsed is the number of used secrets of a mailbox.
const maxUsed = 16

// RepetitionOf is the repetition by another use of a secret.
func RepetitionOf(u record.UsedSecret) *Repetition {
	return &Repetition{Act: u.Act, browser: u.Browser, At: record.Time(u.Until).Add(-UsedTTL),
		Token: record.MailedToken{User: u.User, Epoch: u.Epoch}}
}

// UnexpiredUsed returns the used secrets of a mailbox that are still remembered.
func (s *Uses) UnexpiredUsed(mailbox record.Mailbox) []record.UsedSecret {
	now := record.Timestamp(s.DB.Now())
	return slices.DeleteFunc(slices.Clone(mailbox.Used), func(u record.UsedSecret) bool { return u.Until <= now })
}

// AddUsed adds used secrets to a mailbox.
func (s *Uses) AddUsed(mailbox *record.Mailbox, more ...record.UsedSecret) {
	until := record.Timestamp(s.DB.Now().Add(UsedTTL))
	for i := range more {
		more[i].Until = until
	}
	all := append(s.UnexpiredUsed(*mailbox), more...)
	mailbox.Used = all[max(0, len(all)-maxUsed):]
}

// ForgetUsed removes used secrets from a mailbox, because their act has failed.
func (s *Uses) ForgetUsed(ctx context.Context, mailbox string, which func(record.UsedSecret) bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(record.AsService(ctx, "")), sessions.BackgroundTimeout)
	defer cancel()
	_, err := s.DB.Mailboxes.Change(ctx, mailbox, func(m *record.Mailbox) error {
		m.Used = slices.DeleteFunc(s.UnexpiredUsed(*m), which)
		return nil
	})
	if record.IgnoreNotFound(err) != nil {
		s.Log.WarnContext(ctx, "auth: the end of a login was not recorded; if its code is sent twice, the second "+
			"reply will say that it has succeeded", "error", err)
	}
}

// RepeatedToken returns the repetition of a token that was mailed for one of some purposes; nil for none.
func (s *Uses) RepeatedToken(mailbox record.Mailbox, token string, purposes []record.Purpose) *Repetition {
	for _, u := range s.UnexpiredUsed(mailbox) {
		if u.Binding == "" && slices.Contains(purposes, u.For) && secret.Matches(token, u.Hash) {
			return RepetitionOf(u)
		}
	}
	return nil
}

// RepeatedLogin returns the repetition of a login by mail; nil for none. A code of six digits can be guessed, so it is
// a repetition only from the browser that has used it, and a wrong code from any other browser. A link has 256 bits.
func (s *Uses) RepeatedLogin(mailbox record.Mailbox, binding, code string, from sessions.Client) *Repetition {
	for _, u := range s.UnexpiredUsed(mailbox) {
		typed := secret.TypedCode(code)
		if u.For == record.PurposeLink {
			typed = secret.TypedToken(code)
		}
		if u.Binding == "" || !secret.Matches(u.Binding+":"+typed, u.Hash) {
			continue
		}
		if bound := u.Binding == binding; bound || isBrowser(from, u.Browser) || u.For == record.PurposeLink {
			r := RepetitionOf(u)
			r.Known = bound && from.Cookie
			return r
		}
	}
	return nil
}

// A flow, a challenge and a login that waits for its second factor have records of their own. The write that uses up
// such a record removes its data, and adds how it was used.

// UsedBefore is the error of another use of a token.
func UsedBefore(u record.Use, kind errs.Kind) error {
	return ErrRepeated(Repetition{Act: u.Act, Provider: u.Provider, browser: u.Browser, Nowhere: u.Application}, kind)
}

// UseUp uses a token up: its data is removed.
func (s *Uses) UseUp(t *record.Token, u record.Use) {
	u.Application = t.Application != nil
	*t = record.Token{Meta: t.Meta, Use: &u, Expires: s.DB.Now().Add(UsedTTL)}
	t.Clear()
}

// Settle records whether the act for which a token was used up has succeeded. If the act has failed, the record is
// deleted. Settle also runs if the client has disconnected, as it does when a page is reloaded.
func (s *Uses) Settle(ctx context.Context, uuid string, done bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(record.AsService(ctx, "")), sessions.BackgroundTimeout)
	defer cancel()
	var err error
	if done {
		_, err = s.DB.Tokens.Change(ctx, uuid, func(t *record.Token) error {
			if t.Use == nil {
				t.Use = &record.Use{}
			}
			t.Use.Done = true
			return nil
		})
	} else {
		err = s.DB.Tokens.Store.Delete(ctx, uuid, 0)
	}
	if record.IgnoreNotFound(err) != nil {
		s.Log.WarnContext(ctx, "auth: the result of a login was not recorded; a repeated request will not get it",
			"error", err)
	}
}

const (
	// repeatWait is how long a repetition waits for the first use, which is in progress.
	repeatWait = 3 * time.Second

	// maxRepeatWaits is how many of them wait at once. Others do not wait.
	maxRepeatWaits = 64
)

// Await calls is until it reports true or a final result, while the first use may be in progress.
func (s *Uses) Await(ctx context.Context, begun time.Time, is func() (is, final bool, err error)) (bool, error) {
	limited, cancel := context.WithTimeout(ctx, repeatWait)
	defer cancel()
	if s.DB.Now().Sub(begun) > repeatWait {
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

// AwaitUse returns how a token was used, once that is known; nil if it was not used, or if that is not known in time.
func (s *Uses) AwaitUse(ctx context.Context, uuid string,
	inProgress func(record.Token) bool) (u *record.Use, err error) {
	done, err := s.Await(ctx, s.DB.Now(), func() (is, final bool, err error) {
		t, err := s.DB.Tokens.Read(record.AsService(ctx, ""), uuid)
		if err != nil {
			return false, true, record.IgnoreNotFound(err)
		}
		u = t.Use
		return u != nil && u.Done, u == nil && !inProgress(t), nil
	})
	if !done {
		u = nil
	}
	return u, err
}

// NoneElse is for a token without another use in progress.
func NoneElse(record.Token) bool { return false }
