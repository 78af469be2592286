package command

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"belfry/pkg/api/console"
	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store"
)

// runField is the field of a record that has a sharedRun.
const runField = "_run"

// sharedRun is the record by which processes know about the run of one of them.
type sharedRun struct {
	ID      string          `json:"id"`
	By      string          `json:"by"`
	Request string          `json:"request"`
	Began   time.Time       `json:"began"`
	Ended   time.Time       `json:"ended,omitzero"`
	Written time.Time       `json:"written"`
	Stop    bool            `json:"stop,omitempty"` // an admin has requested it
	State   json.RawMessage `json:"state"`          // of the operation
	Failed  bool            `json:"failed,omitempty"`
	// it failed because it was stopped, or because its result would be useless
	Stopped bool   `json:"stopped,omitempty"`
	Message string `json:"message,omitempty"` // of the error, for people; "" for none that may be shown
}

// lease is the lease of the run in progress: a process that has ended no longer writes.
func (s *sharedRun) lease() store.Lease {
	return store.Lease{Holder: &s.ID, Renewed: &s.Written, Lasts: runSilence,
		Ended: func() bool { return !s.Ended.IsZero() }}
}

// set sets the state of a run.
func (s *sharedRun) set(r *run, short func(out any) any) (err error) {
	s.By, s.Request, s.Began, s.Ended = r.By, r.Request, r.Began, r.Ended
	of := r.State
	if short != nil && of.Out != nil {
		of.Out = short(of.Out)
	}
	if s.State, err = json.Marshal(of); err != nil {
		return err
	}
	if r.Err != nil {
		kind := errs.KindOf(r.Err)
		s.Failed, s.Stopped = true, kind == errs.Canceled
		var e *errs.Error
		if kind != errs.Internal && errors.As(r.Err, &e) {
			s.Message = e.Message
		}
	}
	return nil
}

// run returns a run of another process for display.
func (s *sharedRun) run(now time.Time) console.Run {
	r := console.Run{By: s.By, Request: s.Request, Began: s.Began, Ended: s.Ended}
	switch {
	case s.Stopped:
		r.Err = errs.New(errs.Canceled, "%s", s.Message)
	case s.Failed && s.Message != "":
		r.Err = errs.New(errs.Unavailable, "%s", s.Message)
	case s.Failed:
		r.Err = errs.New(errs.Internal, "the run has failed")
	case s.Ended.IsZero() && !s.lease().Held(now):
		r.Lost, r.Ended, r.Err = true, s.Written,
			errs.New(errs.Unavailable, "the process that ran it has ended, or can't reach the stores")
	}
	return r
}

func (s *sharedRun) mutation() (store.Mutation, error) {
	fields := object.Object{}
	fields.Set(runField, s)
	return store.Mutation{Fields: fields}, nil
}

func readRun(stored store.Stored) (*sharedRun, error) {
	s := &sharedRun{}
	if text := object.Field(stored.Body, runField); text != nil {
		if err := json.Unmarshal(text, s); err != nil {
			return nil, errUnreadable(err)
		}
	}
	return s, nil
}

func errUnreadable(err error) error {
	return errs.Wrap(err, errs.Internal, "the record of the last run")
}

// claim writes the record of a run that begins; Conflict while another one is in progress.
func (r *runs) claim(ctx context.Context, uuid string, first *run) error {
	ctx = asBelfry(ctx)
	for range 10 {
		_, err := r.records().Mutate(ctx, r.uuid, func(now store.Stored) (store.Mutation, error) {
			shared, err := readRun(now)
			if err != nil {
				shared = &sharedRun{} // from another release: it can't be read, and is replaced
			}
			own := r.own(shared.ID)
			ended := own != nil && !own.Running() // and the record does not say so yet
			if shared.lease().Held(r.now()) && !ended {
				return store.Mutation{}, r.errRunning()
			}
			next := &sharedRun{}
			next.lease().Claim(uuid, r.now())
			if err := next.set(first, r.short); err != nil {
				return store.Mutation{}, err
			}
			return next.mutation()
		})
		if !errors.Is(err, errs.NotFound) {
			return err
		}
		if _, err := r.records().Save(ctx, object.Object{}, r.uuid); err != nil && !errors.Is(err, errs.Exists) {
			return err
		}
	}
	return r.errRunning()
}

// write writes the state of a run, and reports whether it is to end.
func (r *runs) write(ctx context.Context, uuid string) (stop bool, err error) {
	ctx, cancel := context.WithTimeout(asBelfry(ctx), runSilence/2)
	defer cancel()
	_, err = r.records().Mutate(ctx, r.uuid, func(now store.Stored) (store.Mutation, error) {
		shared, err := readRun(now)
		if err != nil {
			return store.Mutation{}, err
		}
		own := r.own(uuid)
		if stop = own == nil || !shared.lease().Renew(uuid, r.now()); stop {
			return store.Mutation{}, nil // another process considered this one ended, and has begun a run
		}
		stop = shared.Stop
		if err := shared.set(own, r.short); err != nil {
			return store.Mutation{}, err
		}
		return shared.mutation()
	})
	return stop, err
}
