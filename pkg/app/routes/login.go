package routes

import (
	"context"
	"encoding/binary"
	"log/slog"
	"maps"
	"slices"

	"belfry/pkg/account/export"
	"belfry/pkg/account/sessions"
	"belfry/pkg/api/login"
	"belfry/pkg/app/messaging"
	"belfry/pkg/app/serving"
	content "belfry/pkg/binary"
	"belfry/pkg/bus/eventlog"
	"belfry/pkg/errs"
	"belfry/pkg/event"
)

// loginOptions are the routes of accounts.
func loginOptions(g *serving.Generation, log *slog.Logger) *login.Options {
	c := &g.Config.Authentication
	return &login.Options{
		Service: g.Auth, BrowserRedirects: c.BrowserRedirects, TrustedOrigins: c.TrustedOrigins,
		Activity: func(ctx context.Context, user, cursor string, n int) ([]sessions.Activity, string, error) {
			return activity(ctx, g, user, cursor, n)
		}, Export: exporter(g, log),
	}
}

// exporter returns the exporter of a user's objects and files: those that the user can get over HTTP.
func exporter(g *serving.Generation, log *slog.Logger) *export.Exporter {
	o := export.Options{Files: map[string]*content.Service{}, Log: log}
	for _, name := range slices.Sorted(maps.Keys(g.Config.Stores)) {
		s := g.Config.Stores[name]
		if s.Expose == nil || s.Expose.Restrict.Get || s.Owner == "" || s.NeverRead(s.Owner) ||
			name == g.Config.Authentication.IdentStore {
			continue
		}
		o.Sources = append(o.Sources, export.Source{Store: g.Set.Store(name), Owner: s.Owner})
	}
	for name, service := range g.Binaries {
		if !g.Config.Binaries[name].Restrict.Get {
			o.Files[name] = service
		}
	}
	return export.New(o)
}

// activityCursor is the purpose for sealing positions in the activity of a user: sequences of the log would reveal the
// number of other users' events.
func activityCursor(user string) string { return "activity " + user }

// activity returns the newest events about the security of a user's account, the newest first. They are at most n
// events before a cursor, "" for all, and the cursor of the next page, "" at the end. The log keeps them as long as
// other events.
func activity(ctx context.Context, g *serving.Generation, user, cursor string,
	n int) (page []sessions.Activity, next string, err error) {
	before := uint64(0)
	if cursor != "" {
		opened, ok := g.Sealer.Open(activityCursor(user), cursor)
		if !ok || len(opened) != 8 {
			return nil, "", errs.New(errs.Invalid, "cursor was not returned for your activity: start again without it")
		}
		before = binary.BigEndian.Uint64(opened)
	}
	var entries []*eventlog.Entry
	var more bool
	users := g.Config.Authentication.UserStore
	err = messaging.Do(ctx, g.Bus, func(ctx context.Context) (err error) {
		entries, more, err = eventlog.Newest(ctx, g.Bus.Conn(), g.Bus.JetStream(),
			eventlog.Object{Store: users, UUID: user}, event.Auth(), before, n)
		return err
	})
	if err != nil {
		return nil, "", err
	}
	page = make([]sessions.Activity, 0, len(entries))
	for _, entry := range entries {
		e, err := event.Decode(entry.Data)
		if err != nil || e.UUID != user || e.Store != users || !e.Event.IsAuth() {
			continue // an event of another publisher, which is not proven to be of this user
		}
		page = append(page, g.Auth.Sessions.ActivityOf(&e))
	}
	if more {
		next = g.Sealer.Seal(activityCursor(user), binary.BigEndian.AppendUint64(nil, entries[len(entries)-1].Sequence))
	}
	return page, next, nil
}
