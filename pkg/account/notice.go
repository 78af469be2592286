package account

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"belfry/pkg/account/guess"
	"belfry/pkg/account/record"
	"belfry/pkg/account/secret"
	"belfry/pkg/errs"
	"belfry/pkg/mail"
	"belfry/pkg/store"
)

// Notice is a kind of mail by which users learn what has happened to their account. It has no token.
type Notice string

// The kinds of notices.
const (
	NoticeDevice        Notice = "device"        // a login from a device that was not seen before
	NoticePassword      Notice = "password"      // the password was set
	NoticeFactorAdded   Notice = "factorAdded"   // a second factor, or a passkey
	NoticeFactorRemoved Notice = "factorRemoved" // one of them
	NoticeRecoveryCodes Notice = "recoveryCodes" // the recovery codes were replaced
	NoticeLoginAdded    Notice = "loginAdded"    // an address, or a login at a provider
	NoticeLoginRemoved  Notice = "loginRemoved"  // one of them
	NoticeKeyAdded      Notice = "keyAdded"      // an API key
	NoticeKeyRemoved    Notice = "keyRemoved"    // one of them
	NoticeAddress       Notice = "address"       // an address was replaced
	NoticeDeletion      Notice = "deletion"      // the account is to be deleted
	NoticeDisabled      Notice = "disabled"      // an admin has disabled the account
	NoticeDeleted       Notice = "deleted"       // an admin has deleted it
)

// maxNotices is how many notices of one kind a user gets in noticePeriod: whoever has the password must not be able to
// flood the mailbox. Each kind counts on its own, so that many of one do not hide another.
const (
	maxNotices   = 5
	noticePeriod = time.Hour
)

// announcement is a notice about an act, which is requested before the act: one notice too many, where the act fails in the end,
// is better than an act without a notice. It becomes durable here.
type announcement struct {
	kind  Notice
	about string // an address, or the name of a provider or key; "" for nothing
	to    string // where it goes; "" to the owner address

	// always is for an act that must not be refused because of the notices before: of an admin, or of who has just proven to have
	// the address to which it goes. Whoever has the password must not be able to keep either from acting.
	always bool
}

// announce requests a notice to the owner address of an account. Errors keep the act from being made. Limited where the notice
// would be left out because there were many of its kind. Two of one kind that come before the mail is sent become one.
func (s *Service) announce(ctx context.Context, user record.User, a announcement) error {
	if s.email == nil || s.email.Notices[a.kind] == nil {
		return nil
	}
	if ctx = record.Managing(ctx); store.CallOf(ctx).Origin == "" { // the write of a client has no internal fields
		ctx = record.AsService(ctx, user.UUID)
	}
	if a.to == "" {
		found, err := s.db.StandingsOf(ctx, user)
		if err != nil {
			return err
		}
		if a.to = found.ForNotices(); a.to == "" {
			return nil // events and the activity of the account have the act
		}
	}
	err := s.orderMail(ctx, mailOrder{
		// The address is in its name: a notice to who was the owner address is not replaced by one to who is that now.
		mailbox: record.NoticePurpose + strings.ToLower(string(a.kind)) + "-" + secret.Hex(user.UUID+" "+a.to), why: record.Purpose(record.NoticePurpose + a.kind), address: a.to,
		delay: func(now record.Mailbox) time.Duration {
			if a.always {
				return 0
			}
			return noticeDelay(now, s.now())
		},
		with: func(m *record.Mailbox) {
			m.About, m.User = a.about, user.UUID
			times := append(noticeTimes(*m, s.now()), record.Timestamp(s.now()))
			m.Times = times[max(0, len(times)-maxNotices):]
		},
	})
	var limited *errs.Error
	if errors.As(err, &limited) && limited.Kind == errs.Limited {
		return guess.Limited("too many changes of this kind: the owner of the account gets a mail about each, and has got many", limited.RetryAfter)
	}
	return err
}

// announceToOwner requests a notice about what a mail to one address takes from an account, to the address that is its owner's until then, if
// that is another one.
func (s *Service) announceToOwner(ctx context.Context, user record.User, acting record.Identity) error {
	found, err := s.db.StandingsOf(ctx, user)
	if to := found.Owner(); err == nil && to != "" && to != acting.ID {
		err = s.announce(record.AsService(ctx, user.UUID), user, announcement{kind: NoticeLoginRemoved, about: to, to: to, always: true})
	}
	return err
}

// announceToRegistered requests a notice to an address that is removed, if the account was registered with it and nobody has proven it: its owner
// may have opened the link of its mail in another browser, and an address that somebody has added since is the owner address now.
func (s *Service) announceToRegistered(ctx context.Context, user record.User, address string, a announcement) error {
	found, err := s.db.StandingsOf(ctx, user)
	if err != nil || found.Owner() == address {
		return err
	}
	for _, one := range found.All {
		if one.Address == address && one.Since == "" && !one.Added {
			a.to = address
			return s.announce(ctx, user, a)
		}
	}
	return nil
}

// actsForOthers reports whether an act on a user is somebody else's.
func actsForOthers(ctx context.Context, user string) bool {
	actor := store.CallOf(ctx).Actor
	return actor == nil || *actor != user
}

// notify requests a notice about what takes nothing from the account, or what only its owner can have done. An error is logged,
// because what it is about has happened.
func (s *Service) notify(ctx context.Context, user record.User, kind Notice) {
	err := s.announce(ctx, user, announcement{kind: kind})
	switch {
	case errors.Is(err, errs.Limited):
		s.log.InfoContext(ctx, "auth: a notice was left out, because the user got many", "user", user.UUID, "notice", kind)
	case err != nil:
		s.log.ErrorContext(ctx, "auth: requesting a notice failed", "user", user.UUID, "notice", kind, "error", err)
	}
}

// noticeTimes returns the times of the notices of a mailbox that count still.
func noticeTimes(mailbox record.Mailbox, now time.Time) []string {
	return slices.DeleteFunc(slices.Clone(mailbox.Times), func(at string) bool {
		return at <= record.Timestamp(now.Add(-noticePeriod)) || at > record.Timestamp(now.Add(record.ClockTolerance))
	})
}

// noticeDelay is how long it takes until the next notice of a mailbox.
func noticeDelay(mailbox record.Mailbox, now time.Time) time.Duration {
	all := noticeTimes(mailbox, now)
	if len(all) < maxNotices {
		return 0
	}
	return record.Time(all[len(all)-maxNotices]).Add(noticePeriod).Sub(now)
}

// composeNotice renders a notice to the address that was the owner's when it was requested. send is false for a user without one, who
// was deleted or disabled unless it is about that, and where the notice is not configured any more.
func (s *Service) composeNotice(ctx context.Context, mailbox record.Mailbox, request record.MailRequest) (m mail.Message, send bool, err error) {
	kind := Notice(strings.TrimPrefix(string(request.For), record.NoticePurpose))
	texts := s.email.Notices[kind]
	if texts == nil || mailbox.User == "" {
		return m, false, nil
	}
	user, err := s.db.Users.Read(ctx, mailbox.User)
	switch {
	case errors.Is(err, errs.NotFound) && (kind == NoticeDeleted || kind == NoticeDeletion): // which can have been at once
	case err != nil:
		return m, false, record.IgnoreNotFound(err)
	case user.MarkedDisabled && kind != NoticeDisabled && kind != NoticeDeleted:
		return m, false, nil
	}
	address := mailbox.Address
	if address == "" { // requested by a release that did not keep it
		found, err := s.db.StandingsOf(ctx, user)
		if err != nil {
			return m, false, err
		}
		if address = found.ForNotices(); address == "" {
			return m, false, nil
		}
	}
	data := mail.Data{Login: address, Link: s.base.String(), Time: record.Time(request.At).UTC().Format("2006-01-02 15:04 UTC"), About: mailbox.About}
	// Where an admin works is no business of the user.
	if call := store.CallOf(ctx); call.Actor != nil && *call.Actor == mailbox.User {
		from := s.originOf(call.Ctx.Address, call.Ctx.UserAgent)
		data.Address, data.Place, data.Device = from.Address, from.Place.String(), from.Device
	}
	m, err = s.render(texts, request.ID, data)
	return m, err == nil, err
}
