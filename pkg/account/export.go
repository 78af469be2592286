package account

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/store"
	"belfry/pkg/store/object"
)

// An export of what is a user's takes long. Its record in the store of tokens, found by the user, is its lease, and counts
// the exports of the last hour, in all processes.
const (
	exportsPerHour = 5
	exportLease    = 2 * time.Minute
	exportRenewal  = 30 * time.Second

	// maxExports is how many exports a process makes at once.
	maxExports = 8
)

// Fields of the record of a user's exports.
const (
	fieldExports      = "_exports" // when those of the last hour began
	fieldExportID     = "_export"  // that which runs
	fieldExportLeased = "_leased"  // until when it runs unless it is renewed
)

func exportUUID(user string) string { return "export-" + hexDigest(user) }

// Export is an export in progress.
type Export struct {
	service *Service
	me      *Session
	id      string
}

// BeginExport begins an export of what is the user's who is logged in. End ends it.
//
// Errors: Unauthenticated with a step; Denied for an API key; Limited while another one is in progress, after too many in an
// hour, and while the process makes too many.
func (s *Service) BeginExport(ctx context.Context, me *Session) (*Export, error) {
	if err := s.requireFresh(ctx, me); err != nil {
		return nil, err
	}
	select {
	case s.exports <- struct{}{}:
	default:
		return nil, errLimited("too many exports are in progress", exportRenewal)
	}
	e := &Export{service: s, me: me, id: object.NewUUID()}
	if err := e.begin(asService(ctx, me.User.UUID)); err != nil {
		<-s.exports
		return nil, err
	}
	return e, nil
}

func (e *Export) begin(ctx context.Context) error {
	s, uuid := e.service, exportUUID(e.me.User.UUID)
	if err := s.checkActive(ctx, e.me); err != nil {
		return err
	}
	exported := s.audit(event.AuthExported, e.me.User.UUID, event.AuthDetails{Session: e.me.ID})
	for range maxAttempts {
		_, err := s.tokens.Mutate(ctx, uuid, func(now store.Stored) (store.Mutation, error) {
			fields, err := e.next(now)
			return store.Mutation{Fields: fields, ExtraEvents: []store.ExtraEvent{exported}}, err
		})
		if !errors.Is(err, errs.NotFound) {
			return err
		}
		fields, err := e.next(store.Stored{Body: []byte("{}")})
		if err != nil {
			return err
		}
		if _, err = s.tokens.Save(ctx, fields, uuid, exported); !errors.Is(err, errs.Exists) {
			return err
		}
	}
	return errContention()
}

// next returns the record with this export, unless another one is in progress or there were too many.
func (e *Export) next(record store.Stored) (object.Object, error) {
	o, err := record.Object()
	if err != nil {
		return nil, err
	}
	now := e.service.now()
	if left := timeField(o, fieldExportLeased).Sub(now); left > 0 && left <= exportLease+clockTolerance {
		return nil, errLimited("an export of yours is in progress: wait for its end", left)
	}
	var all, recent []string
	_ = json.Unmarshal(o[fieldExports], &all)
	hourAgo := now.Add(-time.Hour)
	for _, began := range all {
		if at, err := time.Parse(timeFormat, began); err == nil && at.After(hourAgo) && at.Sub(now) <= clockTolerance {
			recent = append(recent, began)
		}
	}
	if len(recent) >= exportsPerHour {
		first, _ := time.Parse(timeFormat, recent[0])
		return nil, errLimited("too many exports within an hour", first.Sub(hourAgo))
	}
	fields := e.lease(e.id, now.Add(exportLease))
	fields.Set(fieldExports, append(recent, timestamp(now)))
	return fields, nil
}

// lease returns the fields by which an export is in progress until a time.
func (e *Export) lease(id string, until time.Time) object.Object {
	fields := object.Object{}
	fields.Set(fieldExportID, id)
	fields.Set(fieldExportLeased, timestamp(until))
	fields.Set(fieldExpires, timestamp(until.Add(time.Hour)))
	return fields
}

// Keep returns a context that ends once the export has to: its session has ended, or another export has taken its lease. The
// lease is renewed until stop is called.
func (e *Export) Keep(ctx context.Context) (kept context.Context, stop func()) {
	kept, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(exportRenewal)
		defer tick.Stop()
		for {
			select {
			case <-kept.Done():
				return
			case <-tick.C:
				if err := e.Renew(kept); err != nil {
					cancel(err)
					return
				}
			}
		}
	}()
	return kept, func() {
		cancel(context.Canceled)
		<-done
	}
}

// Renew renews the lease, unless the session of the export has ended or another export has taken the lease.
func (e *Export) Renew(ctx context.Context) error {
	ctx = asService(ctx, e.me.User.UUID)
	if err := e.service.checkActive(ctx, e.me); err != nil {
		return err
	}
	return e.write(ctx, e.service.now().Add(exportLease))
}

// End ends the export: another one can begin.
func (e *Export) End(ctx context.Context) {
	defer func() { <-e.service.exports }()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(asService(ctx, e.me.User.UUID)), backgroundTimeout)
	defer cancel()
	if err := e.write(ctx, e.service.now()); err != nil && !errors.Is(err, errs.Conflict) {
		e.service.log.WarnContext(ctx, "auth: the end of an export was not recorded; another one can begin later", "error", err)
	}
}

func (e *Export) write(ctx context.Context, until time.Time) error {
	_, err := e.service.tokens.Mutate(ctx, exportUUID(e.me.User.UUID), func(now store.Stored) (store.Mutation, error) {
		if id, _ := object.Text(object.Field(now.Body, fieldExportID)); id != e.id {
			return store.Mutation{}, errs.New(errs.Conflict, "another export has begun")
		}
		return store.Mutation{Fields: e.lease(e.id, until)}, nil
	})
	return ignoreNotFound(err)
}

// ExportedAccount is the account of a user as they see it.
type ExportedAccount struct {
	User     json.RawMessage   `json:"user"`
	Idents   []json.RawMessage `json:"idents"`
	Factors  Factors           `json:"secondFactors"`
	Passkeys []PasskeyInfo     `json:"passkeys"`
	Sessions []SessionInfo     `json:"sessions"`
	Keys     []KeyInfo         `json:"keys"`
	Deletion *DeletionPlan     `json:"deletion,omitempty"`
}

// ExportAccount returns the account of the user who is logged in: what is theirs besides objects. It has no secrets, and no
// field that the user may not see.
func (s *Service) ExportAccount(ctx context.Context, me *Session) (ExportedAccount, error) {
	a := ExportedAccount{Idents: []json.RawMessage{}}
	user, err := s.VisibleUser(ctx, me)
	if err != nil {
		return a, err
	}
	a.User = user.Body
	stored, err := me.User.Object()
	if err != nil {
		return a, err
	}
	a.Deletion = planOf(stored)
	client := store.CallOf(ctx)
	client.Client, client.User, client.Session, client.Origin = true, me.Visible, me.ForRules(), event.OriginHTTP
	seen := store.WithCall(ctx, client)
	err = forEachOwned(asService(ctx, me.User.UUID), s.idents, me.User.UUID, func(ident store.Stored, o object.Object) error {
		shown, err := s.idents.Reread(seen, ident.UUID)
		switch errs.KindOf(err) {
		case errs.NotFound, errs.Denied, errs.Unauthenticated: // what the user's array of idents has
			least := object.Object{"type": o["type"]}
			least.Set("uuid", ident.UUID)
			shown, err = store.Stored{Body: least.Encode()}, nil
		}
		a.Idents = append(a.Idents, shown.Body)
		return err
	})
	if err != nil {
		return a, err
	}
	if err != nil {
		return a, err
	}
	a.Factors = s.Factors(ctx, me)
	if a.Passkeys, err = s.ListPasskeys(ctx, me); err != nil {
		return a, err
	}
	if a.Sessions, err = s.ListSessions(ctx, me); err == nil {
		a.Keys, err = s.ListKeys(ctx, me)
	}
	return a, err
}
