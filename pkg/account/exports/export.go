package exports

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"belfry/pkg/account/flow/deletion"
	"belfry/pkg/account/flow/enrollment"
	"belfry/pkg/account/guess"
	"belfry/pkg/account/keys"
	"belfry/pkg/account/method/passkeys"
	"belfry/pkg/account/record"
	"belfry/pkg/account/secret"
	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/object"
	"belfry/pkg/store"
)

// An export of the data of a user takes long. Its record in the store of tokens, found by the user, is its lease, and
// counts the exports of the last hour, in all processes.
const (
	exportsPerHour = 5
	exportLease    = 2 * time.Minute
	exportRenewal  = 30 * time.Second

	// MaxExports is how many exports a process makes at once.
	MaxExports = 8
)

func exportUUID(user string) string { return "export-" + secret.Hex(user) }

// Export is an export in progress.
type Export struct {
	service *Exports
	me      *sessions.Session
	id      string
}

// Begin begins an export of the data of the logged-in user. End ends it.
//
// Errors: Unauthenticated with a step; Denied for an API key; Limited while another export of the user is in progress,
// after too many in an hour, and while the process makes too many.
func (s *Exports) Begin(ctx context.Context, me *sessions.Session) (*Export, error) {
	if err := s.Sessions.RequireFresh(ctx, me); err != nil {
		return nil, err
	}
	select {
	case s.Slots <- struct{}{}:
	default:
		return nil, guess.Limited("too many exports are in progress", exportRenewal)
	}
	e := &Export{service: s, me: me, id: object.NewUUID()}
	if err := e.begin(record.AsService(ctx, me.User.UUID)); err != nil {
		<-s.Slots
		return nil, err
	}
	return e, nil
}

func (e *Export) begin(ctx context.Context) error {
	s := e.service
	if err := s.Sessions.CheckActive(ctx, e.me); err != nil {
		return err
	}
	return s.DB.Exports.Put(ctx, exportUUID(e.me.User.UUID), func(r *record.Exports) error {
		r.Publish(s.DB.Audit(event.AuthExported, e.me.User.UUID, event.AuthDetails{Session: e.me.ID}))
		return e.next(r)
	})
}

// lease is the lease of a user's export.
func lease(r *record.Exports) store.Lease {
	return store.Lease{Holder: &r.Running, Until: &r.Leased, Lasts: exportLease}
}

// next adds this export to the record, unless another one is in progress or there were too many.
func (e *Export) next(r *record.Exports) error {
	now := e.service.DB.Now()
	if left := lease(r).Left(now); left > 0 {
		return guess.Limited("your previous export is in progress: wait for its end", left)
	}
	var recent []string
	hourAgo := now.Add(-time.Hour)
	for _, began := range r.Began {
		if at := record.Time(began); at.After(hourAgo) && at.Sub(now) <= record.ClockTolerance {
			recent = append(recent, began)
		}
	}
	if len(recent) >= exportsPerHour {
		return guess.Limited("too many exports within an hour", record.Time(recent[0]).Sub(hourAgo))
	}
	lease(r).Claim(e.id, now)
	r.Expires = r.Leased.Add(time.Hour)
	recent = append(recent, record.Timestamp(now))
	r.Began = recent
	return nil
}

// Keep returns a context that ends when the session of the export has ended, or another export has taken its lease. The
// lease is renewed until stop is called.
func (e *Export) Keep(ctx context.Context) (kept context.Context, stop func()) {
	return store.KeepLease(ctx, exportRenewal, func(ctx context.Context) error {
		err := e.Renew(ctx)
		if errors.Is(err, errs.Unauthenticated) {
			err = errors.Join(store.ErrLeaseLost, err)
		}
		return err
	})
}

// Renew renews the lease, unless the session of the export has ended or another export has taken the lease.
func (e *Export) Renew(ctx context.Context) error {
	ctx = record.AsService(ctx, e.me.User.UUID)
	if err := e.service.Sessions.CheckActive(ctx, e.me); err != nil {
		return err
	}
	return e.change(ctx, func(held store.Lease, now time.Time) bool { return held.Renew(e.id, now) })
}

// End ends the export: another one can begin.
func (e *Export) End(ctx context.Context) {
	defer func() { <-e.service.Slots }()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(record.AsService(ctx, e.me.User.UUID)),
		sessions.BackgroundTimeout)
	defer cancel()
	err := e.change(ctx, func(held store.Lease, _ time.Time) bool { return held.Release(e.id) })
	if err != nil && !errors.Is(err, store.ErrLeaseLost) {
		e.service.Log.WarnContext(ctx, "auth: the end of an export was not recorded; another one can begin later",
			"error", err)
	}
}

// change changes the lease, unless another export has it.
func (e *Export) change(ctx context.Context, change func(held store.Lease, now time.Time) bool) error {
	_, err := e.service.DB.Exports.Change(ctx, exportUUID(e.me.User.UUID), func(r *record.Exports) error {
		now := e.service.DB.Now()
		if !change(lease(r), now) {
			return errs.Wrap(store.ErrLeaseLost, errs.Conflict, "another export has begun")
		}
		r.Expires = now.Add(exportLease + time.Hour)
		return nil
	})
	return record.IgnoreNotFound(err)
}

// ExportedAccount is the account of a user, as the user sees it.
type ExportedAccount struct {
	User     json.RawMessage    `json:"user"`
	Idents   []json.RawMessage  `json:"idents"`
	Factors  enrollment.Factors `json:"secondFactors"`
	Passkeys []passkeys.Info    `json:"passkeys"`
	Sessions []sessions.Info    `json:"sessions"`
	Keys     []keys.Info        `json:"keys"`
	Deletion *deletion.Plan     `json:"deletion,omitempty"`
}

// Account returns the account of the logged-in user: their data besides objects. It has no secrets, and no
// field that the user may not see.
func (s *Exports) Account(ctx context.Context, me *sessions.Session) (ExportedAccount, error) {
	a := ExportedAccount{Idents: []json.RawMessage{}}
	user, err := s.Sessions.VisibleUser(ctx, me)
	if err != nil {
		return a, err
	}
	a.User, a.Deletion = user.Body, me.User.Plan()
	client := store.CallOf(ctx)
	client.Client, client.User, client.Session, client.Origin = true, me.Visible, me.ForRules(), event.OriginHTTP
	seen := store.WithCall(ctx, client)
	for ident, err := range s.DB.Idents.Owned(record.AsService(ctx, me.User.UUID), me.User.UUID) {
		if err != nil {
			return a, err
		}
		shown, err := s.DB.Idents.Store.Reread(seen, ident.UUID)
		switch errs.KindOf(err) {
		case errs.NotFound, errs.Denied, errs.Unauthenticated: // the user's array of idents may have such entries
			least := object.Object{}
			least.Set("uuid", ident.UUID)
			least.Set("type", ident.Type)
			shown, err = store.Stored{Body: least.Encode()}, nil
		}
		if err != nil {
			return a, err
		}
		a.Idents = append(a.Idents, shown.Body)
	}
	a.Factors = s.Enrollment.Factors(ctx, me)
	if a.Passkeys, err = s.Passkeys.List(ctx, me); err != nil {
		return a, err
	}
	if a.Sessions, err = s.Sessions.List(ctx, me); err == nil {
		a.Keys, err = s.Keys.List(ctx, me)
	}
	return a, err
}
