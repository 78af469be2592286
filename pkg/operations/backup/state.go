package backup

import (
	"cmp"
	"context"
	"errors"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store"
)

// LeaseTime is for how long a process that does not renew its lease keeps it.
const LeaseTime = time.Minute

// stateUUID is the object that holds the State.
const stateUUID = "backups"

// State is an installation's record of its backups.
type State struct {
	Installation string `json:"installation"`

	Due   time.Time `json:"due,omitzero"` // when the latest backup of the schedule that succeeded was begun
	Lease *Lease    `json:"lease,omitempty"`

	Last      string    `json:"last,omitempty"` // the id of the latest backup
	Ended     time.Time `json:"ended,omitzero"` // of it
	Failed    time.Time `json:"failed,omitzero"`
	Error     string    `json:"error,omitempty"`     // of the latest attempt; "": it succeeded
	Restoring string    `json:"restoring,omitempty"` // the backup of which the stores have a part

	Recent []Attempt `json:"recent,omitempty"` // the latest ones, the newest first
}

// maxRecent is how many attempts a State has.
const maxRecent = 10

// Attempt is a backup that was made, or has failed.
type Attempt struct {
	ID        string    `json:"id,omitempty"` // of the backup; "": it has failed
	Began     time.Time `json:"began"`
	Ended     time.Time `json:"ended"`
	Scheduled bool      `json:"scheduled,omitempty"`
	Size      int64     `json:"size,omitempty"`     // bytes of all parts
	Added     int64     `json:"added,omitempty"`    // bytes that no earlier backup had
	Problems  int       `json:"problems,omitempty"` // how much is damaged, and not in it
	Error     string    `json:"error,omitempty"`    // why it has failed
}

// Took returns how long it took.
func (a Attempt) Took() time.Duration { return a.Ended.Sub(a.Began) }

// Result is how a backup has ended.
type Result struct {
	Manifest *Manifest // nil: it was not made
	Err      error     // why

	// Interrupted says that the backup was canceled by its caller or by a stop of the process. It has not failed.
	Interrupted bool

	// Elsewhere says that the backup is not in the configured place, which has no other backup then than before.
	Elsewhere bool
}

// Holder is the process that makes a backup.
type Holder struct {
	ID   string `json:"id"`   // of the backup that is made, unique
	Run  string `json:"run"`  // of the process, unique
	Host string `json:"host"` // its machine
	Data string `json:"data"` // its data folder, which no other process has
}

// Lease is a backup that is being made.
type Lease struct {
	Holder

	Began     time.Time `json:"began"`
	Renewed   time.Time `json:"renewed"`
	Scheduled bool      `json:"scheduled,omitempty"`
}

// lease is the lease as another holder sees it. That one has the data folder of the first only if the first has ended.
func (l *Lease) lease(by Holder) store.Lease {
	ended := func() bool { return l.Host == by.Host && l.Data == by.Data && l.Run != by.Run }
	return store.Lease{Holder: &l.ID, Renewed: &l.Renewed, Lasts: LeaseTime, Ended: ended}
}

// Live returns the lease of a backup that is being made, as far as is known; nil if none is.
func (s *State) Live(now time.Time) *Lease {
	if s.Lease == nil || !s.Lease.lease(Holder{}).Held(now) {
		return nil
	}
	return s.Lease
}

// States is where the state is stored, in one object: each change is conditional, so of
// several processes that take a lease one has it.
type States struct {
	shared store.Shared[State]
	now    func() time.Time
}

// NewStates returns the states in a store. now may be nil.
func NewStates(s *store.Store, now func() time.Time) *States {
	if now == nil {
		now = time.Now
	}
	return &States{shared: store.Shared[State]{Store: s, UUID: stateUUID, What: "the stored state of backups"},
		now: now}
}

// Get returns the state; it is zero before the first backup.
func (s *States) Get(ctx context.Context) (State, error) {
	state, _, err := s.shared.Get(ctx)
	return state, err
}

// errUnchanged ends a change that is not made.
var errUnchanged = errors.New("unchanged")

// Change reads the state, and stores it changed. When another process has changed it in
// between, it starts over. The error of change ends it; nothing is stored then.
func (s *States) Change(ctx context.Context, change func(*State) error) error {
	var failed error
	_, _, err := s.shared.Change(ctx, func(state *State) bool {
		failed = change(state)
		return failed == nil
	})
	if err == nil && !errors.Is(failed, errUnchanged) {
		err = failed
	}
	return err
}

// errBusy is the error of a process that finds the lease taken.
func (s *State) errBusy() error {
	return errs.New(errs.Unavailable, "a backup is being made since %s by belfry on %s: wait until it has ended",
		s.Lease.Began.Local().Format(time.DateTime), s.Lease.Host)
}

// Take takes the lease. Unavailable while another process has it. With due, it takes the
// lease only if that returns true, and no other process has it, and reports whether; stored
// is the state with the lease. The installation gets its name with its first backup.
func (s *States) Take(ctx context.Context, h Holder, due func(*State) bool) (stored State, taken bool, err error) {
	err = s.Change(ctx, func(state *State) error {
		now := s.now().UTC()
		taken = false
		if due != nil && !due(state) {
			return errUnchanged
		}
		if state.Lease != nil && state.Lease.lease(h).Held(now) {
			if due != nil {
				return errUnchanged
			}
			return state.errBusy()
		}
		if state.Installation == "" {
			state.Installation = object.NewUUID()
		}
		state.Lease = &Lease{Holder: h, Began: now, Renewed: now, Scheduled: due != nil}
		stored, taken = *state, true
		return nil
	})
	return stored, taken && err == nil, err
}

// ErrLost is the error of a process whose lease another one has taken over.
var ErrLost = errs.Wrap(store.ErrLeaseLost, errs.Unavailable,
	"the backup has been taken over by another process, since this one did not respond for a minute")

// Renew extends the lease of a backup. ErrLost if the lease was lost.
func (s *States) Renew(ctx context.Context, id string) error {
	return s.Change(ctx, func(state *State) error {
		if state.Lease == nil || !state.Lease.lease(Holder{}).Renew(id, s.now().UTC()) {
			return ErrLost
		}
		return nil
	})
}

// End ends the lease of a backup, with its result.
func (s *States) End(ctx context.Context, id string, result Result) error {
	return s.Change(ctx, func(state *State) error {
		if state.Lease == nil || state.Lease.ID != id {
			return errUnchanged
		}
		lease := *state.Lease
		state.Lease = nil
		if result.Interrupted || result.Elsewhere {
			return nil
		}
		state.record(&lease, result, s.now().UTC())
		return nil
	})
}

// record adds an attempt.
func (s *State) record(lease *Lease, result Result, now time.Time) {
	a := Attempt{Began: lease.Began, Ended: now, Scheduled: lease.Scheduled}
	if result.Err != nil {
		a.Error = cmp.Or(errs.Messages(result.Err), "the log has the reason")
		s.Failed, s.Error = now, a.Error
	} else {
		m := result.Manifest
		a.ID, a.Ended, a.Size, a.Added, a.Problems = m.ID, m.Ended, m.Size, m.Added, len(m.Problems)
		s.Last, s.Ended, s.Error = m.ID, m.Ended, ""
		if lease.Scheduled {
			s.Due = lease.Began
		}
	}
	s.Recent = append([]Attempt{a}, s.Recent[:min(len(s.Recent), maxRecent-1)]...)
}
