package app

import (
	"context"
	"encoding/binary"

	"belfry/pkg/account"
	"belfry/pkg/bus/eventlog"
	"belfry/pkg/errs"
	"belfry/pkg/event"
)

// activityCursor is the purpose for which positions in the activity of a user are sealed: the sequences of the log would show how
// many events there are of others.
func activityCursor(user string) string { return "activity " + user }

// activity returns the newest events about the security of a user's account, the newest first: at most n of those before a cursor,
// "" for all, and the cursor of the page after it, "" at the end. The log has them as long as it has others.
func (a *generation) activity(ctx context.Context, user, cursor string, n int) (page []account.Activity, next string, err error) {
	before := uint64(0)
	if cursor != "" {
		content, ok := a.sealer.Open(activityCursor(user), cursor)
		if !ok || len(content) != 8 {
			return nil, "", errs.New(errs.Invalid, "cursor is none that was returned for your activity: begin again without it")
		}
		before = binary.BigEndian.Uint64(content)
	}
	var entries []*eventlog.Entry
	var more bool
	users := a.config.Authentication.UserStore
	err = a.askBus(ctx, func(ctx context.Context) (err error) {
		entries, more, err = eventlog.Newest(ctx, a.bus.Conn(), a.bus.JetStream(), eventlog.Object{Store: users, UUID: user}, event.Auth(), before, n)
		return err
	})
	if err != nil {
		return nil, "", err
	}
	page = make([]account.Activity, 0, len(entries))
	for _, entry := range entries {
		e, err := event.Decode(entry.Data)
		if err != nil || e.UUID != user || e.Store != users || !e.Event.IsAuth() {
			continue // another publisher's, which no subject makes one of this user
		}
		page = append(page, a.auth.Sessions.ActivityOf(&e))
	}
	if more {
		next = a.sealer.Seal(activityCursor(user), binary.BigEndian.AppendUint64(nil, entries[len(entries)-1].Sequence))
	}
	return page, next, nil
}
