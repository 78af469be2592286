package app

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"belfry/pkg/binary"
	"belfry/pkg/console"
	"belfry/pkg/errs"
	"belfry/pkg/store"
	"belfry/pkg/store/object"
	"belfry/pkg/verify"
)

const (
	verificationUUID  = "verification" // of the record in the store of tokens
	verificationField = "_run"

	// maxShared is how many differences, and arrays at their limit, the record has. No page lists more.
	maxShared = 200
)

// sharedVerification is the record by which processes know about the run of one of them.
type sharedVerification struct {
	ID       string          `json:"id"`
	By       string          `json:"by"`
	Request  string          `json:"request"`
	Repair   bool            `json:"repair,omitempty"`
	Deep     bool            `json:"deep,omitempty"`
	Began    time.Time       `json:"began"`
	Ended    time.Time       `json:"ended,omitzero"`
	Written  time.Time       `json:"written"`
	Stop     bool            `json:"stop,omitempty"` // somebody has asked for it
	Progress verify.Progress `json:"progress"`
	Report   *verify.Report  `json:"report,omitempty"`
	Binaries *binary.Report  `json:"binaries,omitempty"`
	Failed   bool            `json:"failed,omitempty"`
	Stopped  bool            `json:"stopped,omitempty"` // it failed since somebody stopped it
	Message  string          `json:"message,omitempty"` // of the error, for people; "" for none that may be shown
}

// runs reports whether the run is in progress: a process that has ended writes nothing more.
func (s *sharedVerification) runs(now time.Time) bool {
	return s.ID != "" && s.Ended.IsZero() && now.Sub(s.Written) < verificationSilence
}

// set takes over the state of a run.
func (s *sharedVerification) set(v *console.Verification) {
	s.By, s.Request, s.Repair, s.Deep, s.Began, s.Ended, s.Progress = v.By, v.Request, v.Repair, v.Deep, v.Began, v.Ended, v.Progress
	if v.Report != nil {
		r := *v.Report
		if more := len(r.Differences) - maxShared; more > 0 {
			r.Differences, r.More = r.Differences[:maxShared], r.More+more
		}
		r.Full, r.TooLarge = r.Full[:min(len(r.Full), maxShared)], r.TooLarge[:min(len(r.TooLarge), maxShared)]
		if r.Unique != nil {
			u := *r.Unique
			if more := len(u.Findings) - maxShared; more > 0 {
				u.Findings, u.More = u.Findings[:maxShared], u.More+more
			}
			r.Unique = &u
		}
		s.Report = &r
	}
	if v.Binaries != nil {
		b := *v.Binaries
		if len(b.Differences) > 1 { // the page says only whether there are any
			b.Differences, b.More = b.Differences[:1], b.More+len(b.Differences)-1
		}
		s.Binaries = &b
	}
	if v.Err != nil {
		kind := errs.KindOf(v.Err)
		s.Failed, s.Stopped = true, kind == errs.Canceled
		var e *errs.Error
		if kind != errs.Internal && errors.As(v.Err, &e) {
			s.Message = e.Message
		}
	}
}

// verification returns what is shown of a run of another process.
func (s *sharedVerification) verification(now time.Time) *console.Verification {
	v := &console.Verification{
		By: s.By, Request: s.Request, Repair: s.Repair, Deep: s.Deep, Began: s.Began, Ended: s.Ended, Progress: s.Progress,
		Report: s.Report, Binaries: s.Binaries,
	}
	switch {
	case s.Stopped:
		v.Err = errs.New(errs.Canceled, "%s", s.Message)
	case s.Failed && s.Message != "":
		v.Err = errs.New(errs.Unavailable, "%s", s.Message)
	case s.Failed:
		v.Err = errs.New(errs.Internal, "the run has failed")
	case s.Ended.IsZero() && !s.runs(now):
		v.Ended, v.Err = s.Written, errs.New(errs.Unavailable, "the process that ran it has ended, or can't reach the stores")
	}
	return v
}

func (s *sharedVerification) mutation() (store.Mutation, error) {
	fields := object.Object{}
	fields.Set(verificationField, s)
	return store.Mutation{Fields: fields}, nil
}

func readVerification(stored store.Stored) (*sharedVerification, error) {
	s := &sharedVerification{}
	if text := object.Field(stored.Body, verificationField); text != nil {
		if err := json.Unmarshal(text, s); err != nil {
			return nil, errs.Wrap(err, errs.Internal, "the record of the last verification")
		}
	}
	return s, nil
}

// claim writes the record of a run that begins; Conflict while another one is in progress.
func (v *verifications) claim(ctx context.Context, run string, first *console.Verification) error {
	ctx = asBelfry(ctx)
	for range 10 {
		_, err := v.records().Mutate(ctx, verificationUUID, func(now store.Stored) (store.Mutation, error) {
			shared, err := readVerification(now)
			if err != nil {
				shared = &sharedVerification{} // of another release: it can't be read, and is replaced
			}
			if shared.runs(v.now()) {
				return store.Mutation{}, errRunning()
			}
			next := &sharedVerification{ID: run, Written: v.now()}
			next.set(first)
			return next.mutation()
		})
		if !errors.Is(err, errs.NotFound) {
			return err
		}
		if _, err := v.records().Save(ctx, object.Object{}, verificationUUID); err != nil && !errors.Is(err, errs.Exists) {
			return err
		}
	}
	return errRunning()
}

// write writes the state of a run, and reports whether it is to end.
func (v *verifications) write(ctx context.Context, run string) (stop bool, err error) {
	ctx, cancel := context.WithTimeout(asBelfry(ctx), verificationSilence/2)
	defer cancel()
	_, err = v.records().Mutate(ctx, verificationUUID, func(now store.Stored) (store.Mutation, error) {
		shared, err := readVerification(now)
		if err != nil {
			return store.Mutation{}, err
		}
		own := v.own(run)
		if stop = shared.ID != run || own == nil; stop {
			return store.Mutation{}, nil // another process took this one for ended, and has begun a run
		}
		stop = shared.Stop
		shared.Written = v.now()
		shared.set(own)
		return shared.mutation()
	})
	return stop, err
}
