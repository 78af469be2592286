package notices

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"belfry/pkg/account/guess"
	"belfry/pkg/account/post"
	"belfry/pkg/account/record"
	"belfry/pkg/account/secret"
	"belfry/pkg/errs"
	"belfry/pkg/mail"
	"belfry/pkg/store"
)

// The kinds of notices.
const (
	NoticeDevice        post.Notice = "device"        // a login from a device that was not seen before
	NoticePassword      post.Notice = "password"      // the password was set
	NoticeFactorAdded   post.Notice = "factorAdded"   // a second factor, or a passkey
	NoticeFactorRemoved post.Notice = "factorRemoved" // one of them
	NoticeRecoveryCodes post.Notice = "recoveryCodes" // the recovery codes were replaced
	NoticeLoginAdded    post.Notice = "loginAdded"    // an address, or a login at a provider
	NoticeLoginRemoved  post.Notice = "loginRemoved"  // one of them
	NoticeKeyAdded      post.Notice = "keyAdded"      // an API key
	NoticeKeyRemoved    post.Notice = "keyRemoved"    // one of them
	NoticeAddress       post.Notice = "address"       // an address was replaced
	NoticeDeletion      post.Notice = "deletion"      // the account is to be deleted
	NoticeDisabled      post.Notice = "disabled"      // an admin has disabled the account
	NoticeDeleted       post.Notice = "deleted"       // an admin has deleted it
	NoticeImpersonated  post.Notice = "impersonated"  // an admin sees what the user may read
)

// MaxNotices is how many notices of one kind a user gets in NoticePeriod: a thief with the password must not be able to
// flood the mailbox. Each kind is counted separately, so that many notices of one kind do not hide another.
const (
	MaxNotices   = 5
	NoticePeriod = time.Hour
)

// Announcement is a notice about an act that is durably requested before the act. If the act then fails, a superfluous
// notice is better than an act without a notice.
type Announcement struct {
	Kind  post.Notice
	About string // an address, or the name of a provider or key; "" for nothing
	To    string // the recipient; "" for the owner address

	// Always is for an act that must not be refused because of earlier notices: an act of an admin, or of a user who
	// has just proven the recipient's address. A thief with the password must not be able to prevent either.
	Always bool
}

// Announce requests a notice to the owner address of an account. An error prevents the act. Limited if the notice would
// be omitted because there were many of its kind. Two notices of one kind become one if the mail has not been sent.
func (s *Notices) Announce(ctx context.Context, user record.User, a Announcement) error {
	if s.Email == nil || s.Email.Notices[a.Kind] == nil {
		return nil
	}
	if ctx = record.Managing(ctx); store.CallOf(ctx).Origin == "" { // the write of a client has no internal fields
		ctx = record.AsService(ctx, user.UUID)
	}
	if a.To == "" {
		found, err := s.DB.StandingsOf(ctx, user)
		if err != nil {
			return err
		}
		if a.To = found.ForNotices(); a.To == "" {
			return nil // events and the activity of the account show the act
		}
	}
	language := s.LanguageOf(ctx, user)
	err := s.Post.Order(ctx, post.Order{
		Language: &language,
		// The address is in its name: a notice to the previous owner address is not replaced by one to the present one.
		Mailbox: record.NoticePurpose + strings.ToLower(string(a.Kind)) + "-" + secret.Hex(user.UUID+" "+a.To),
		Why:     record.Purpose(record.NoticePurpose + a.Kind), Address: a.To,
		Delay: func(now record.Mailbox) time.Duration {
			if a.Always {
				return 0
			}
			return noticeDelay(now, s.DB.Now())
		},
		With: func(m *record.Mailbox) {
			m.About, m.User = a.About, user.UUID
			times := append(noticeTimes(*m, s.DB.Now()), record.Timestamp(s.DB.Now()))
			m.Times = times[max(0, len(times)-MaxNotices):]
		},
	})
	var limited *errs.Error
	if errors.As(err, &limited) && limited.Kind == errs.Limited {
		return guess.Limited("too many changes of this kind: the owner of the account gets a mail about each; wait "+
			"before the next change", limited.RetryAfter)
	}
	return err
}

// AnnounceToOwner requests a notice to the owner address of an account about an act by a mail to another address,
// unless both are the same.
func (s *Notices) AnnounceToOwner(ctx context.Context, user record.User, acting record.Identity) error {
	found, err := s.DB.StandingsOf(ctx, user)
	if to := found.Owner(); err == nil && to != "" && to != acting.ID {
		err = s.Announce(record.AsService(ctx, user.UUID), user,
			Announcement{Kind: NoticeLoginRemoved, About: to, To: to, Always: true})
	}
	return err
}

// AnnounceToRegistered requests a notice to an address that is removed, if the account was registered with it and
// nobody has proven it. Its owner may have opened the link of its mail in another browser. An address that somebody has
// added since is now the owner address.
func (s *Notices) AnnounceToRegistered(ctx context.Context, user record.User, address string, a Announcement) error {
	found, err := s.DB.StandingsOf(ctx, user)
	if err != nil || found.Owner() == address {
		return err
	}
	for _, one := range found.All {
		if one.Address == address && one.Since == "" && !one.Added {
			a.To = address
			return s.Announce(ctx, user, a)
		}
	}
	return nil
}

// ActsForOthers reports whether an act on a user is by another user.
func ActsForOthers(ctx context.Context, user string) bool {
	actor := store.CallOf(ctx).Actor
	return actor == nil || *actor != user
}

// Notify requests a notice about an act that removes nothing from the account, or that only its owner can have done. An
// error is only logged, because the act has happened.
func (s *Notices) Notify(ctx context.Context, user record.User, kind post.Notice) {
	err := s.Announce(ctx, user, Announcement{Kind: kind})
	switch {
	case errors.Is(err, errs.Limited):
		s.Log.InfoContext(ctx, "auth: a notice was omitted, because the user got many", "user", user.UUID,
			"notice", kind)
	case err != nil:
		s.Log.ErrorContext(ctx, "auth: requesting a notice failed", "user", user.UUID, "notice", kind, "error", err)
	}
}

// noticeTimes returns the times of the notices of a mailbox that still count.
func noticeTimes(mailbox record.Mailbox, now time.Time) []string {
	return slices.DeleteFunc(slices.Clone(mailbox.Times), func(at string) bool {
		return at <= record.Timestamp(now.Add(-NoticePeriod)) || at > record.Timestamp(now.Add(record.ClockTolerance))
	})
}

// noticeDelay returns the time until the next notice of a mailbox is allowed.
func noticeDelay(mailbox record.Mailbox, now time.Time) time.Duration {
	all := noticeTimes(mailbox, now)
	if len(all) < MaxNotices {
		return 0
	}
	return record.Time(all[len(all)-MaxNotices]).Add(NoticePeriod).Sub(now)
}

// ComposeNotice renders a notice to the address that was the owner's when it was requested. send is false if the notice
// is no longer configured. It is also false for a deleted or disabled user, unless the notice is about that.
func (s *Notices) ComposeNotice(ctx context.Context, mailbox record.Mailbox,
	request record.MailRequest) (m mail.Message, send bool, err error) {
	kind := post.Notice(strings.TrimPrefix(string(request.For), record.NoticePurpose))
	texts := s.Email.Notices[kind]
	if texts == nil || mailbox.User == "" {
		return m, false, nil
	}
	user, err := s.DB.Users.Read(ctx, mailbox.User)
	switch {
	// The user may have been deleted at once.
	case errors.Is(err, errs.NotFound) && (kind == NoticeDeleted || kind == NoticeDeletion):
	case err != nil:
		return m, false, record.IgnoreNotFound(err)
	case user.MarkedDisabled && kind != NoticeDisabled && kind != NoticeDeleted:
		return m, false, nil
	}
	address := mailbox.Address
	if address == "" { // requested by a release that did not keep it
		found, err := s.DB.StandingsOf(ctx, user)
		if err != nil {
			return m, false, err
		}
		if address = found.ForNotices(); address == "" {
			return m, false, nil
		}
	}
	language := s.Languages.Of(mailbox.Language)
	data := mail.Data{Login: address, Link: s.Base.String(), Time: language.Time(record.Time(request.At)),
		About: mailbox.About}
	// The place of an admin is not shown to the user.
	if call := store.CallOf(ctx); call.Actor != nil && *call.Actor == mailbox.User {
		from := s.Sessions.OriginOf(call.Ctx.Address, call.Ctx.UserAgent)
		data.Address, data.Place, data.Device = from.Address, from.Place.String(), language.Device(from.Device)
	}
	m, err = s.Post.Render(texts.In(mailbox.Language), request.ID, data)
	return m, err == nil, err
}
