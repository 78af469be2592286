package auth

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/mail"
	"belfry/pkg/store"
	"belfry/pkg/store/object"
)

// Notice is a kind of mail by which users learn what has happened to their account. It has no token.
type Notice string

// The kinds of notices.
const (
	NoticeDevice        Notice = "device"        // a login from a device that was not seen before
	NoticePassword      Notice = "password"      // the password was set
	NoticeFactorAdded   Notice = "factorAdded"   // a second factor, or a passkey
	NoticeFactorRemoved Notice = "factorRemoved" // one of them
	NoticeAddress       Notice = "address"       // an address was replaced
	NoticeDeletion      Notice = "deletion"      // the account is to be deleted
)

// noticePurpose is the prefix of the purpose of a notice's mail.
const noticePurpose = "notice-"

// maxNotices is how many notices of one kind a user gets in noticePeriod: whoever has the password must not be able to
// flood the mailbox. Each kind counts on its own, so that many of one do not hide another.
const (
	maxNotices   = 5
	noticePeriod = time.Hour
)

// fieldTimes holds the times of the latest notices of a mailbox.
const fieldTimes = "_times"

// notify requests a notice about something that has just happened to a user's account. It becomes durable here; an error
// is logged, because what the notice is about has happened. Two of one kind that come before the mail is sent become one.
func (s *Service) notify(ctx context.Context, user store.Stored, kind Notice) {
	if s.email == nil || s.email.Notices[kind] == nil {
		return
	}
	call := store.CallOf(ctx)
	if call.Origin == "" {
		ctx = asService(ctx, user.UUID)
	}
	err := s.orderMail(ctx, mailOrder{
		mailbox: noticePurpose + strings.ToLower(string(kind)) + "-" + hexDigest(user.UUID), why: purpose(noticePurpose + kind),
		delay: func(now store.Stored) time.Duration { return noticeDelay(now, s.now()) },
		with: func(body []byte, _ mailRequest) object.Object {
			fields := object.Object{}
			fields.Set(fieldLinkUser, user.UUID)
			fields.Set(fieldTimes, append(noticeTimes(body, s.now()), timestamp(s.now())))
			return fields
		},
	})
	switch {
	case errors.Is(err, errs.Limited):
		s.log.InfoContext(ctx, "auth: a notice was left out, because the user got many", "user", user.UUID, "notice", kind)
	case err != nil:
		s.log.ErrorContext(ctx, "auth: requesting a notice failed", "user", user.UUID, "notice", kind, "error", err)
	}
}

// noticeTimes returns the times of the notices of a mailbox that count still.
func noticeTimes(body []byte, now time.Time) (all []string) {
	_ = json.Unmarshal(object.Field(body, fieldTimes), &all)
	return slices.DeleteFunc(all, func(at string) bool {
		return at <= timestamp(now.Add(-noticePeriod)) || at > timestamp(now.Add(clockTolerance))
	})
}

// noticeDelay is how long it takes until the next notice of a mailbox.
func noticeDelay(mailbox store.Stored, now time.Time) time.Duration {
	all := noticeTimes(mailbox.Body, now)
	if len(all) < maxNotices {
		return 0
	}
	first, _ := time.Parse(timeFormat, all[len(all)-maxNotices])
	return first.Add(noticePeriod).Sub(now)
}

// composeNotice renders a notice to the address that its user has now. send is false for a user without one that is known
// to be theirs, who was deleted or disabled, and where the notice is not configured any more.
func (s *Service) composeNotice(ctx context.Context, mailbox store.Stored, request mailRequest) (m mail.Message, send bool, err error) {
	texts := s.email.Notices[Notice(strings.TrimPrefix(string(request.For), noticePurpose))]
	uuid, _ := object.Text(object.Field(mailbox.Body, fieldLinkUser))
	if texts == nil || uuid == "" {
		return m, false, nil
	}
	user, err := s.users.Get(ctx, uuid)
	if err != nil || IsDisabled(user) {
		return m, false, ignoreNotFound(err)
	}
	address, err := s.noticeAddress(ctx, uuid)
	if err != nil || address == "" {
		return m, false, err
	}
	at, _ := time.Parse(timeFormat, request.At)
	data := mail.Data{Login: address, Link: s.baseURL, Time: at.UTC().Format("2006-01-02 15:04 UTC")}
	// Where an admin works is no business of the user.
	if call := store.CallOf(ctx); call.Actor != nil && *call.Actor == uuid {
		from := s.originOf(call.Ctx.Address, call.Ctx.UserAgent)
		data.Address, data.Place, data.Device = from.Address, from.Place.String(), from.Device
	}
	m, err = s.render(texts, request.ID, data)
	return m, err == nil, err
}
