package run

import (
	"context"
	"errors"
	"fmt"

	"belfry/pkg/missed"
	"belfry/test/chaos/check"
	"belfry/test/chaos/history"
	"belfry/test/kit"
)

// checkLoss remembers what belfry reports, and checks that it has reported and repaired a loss of the log.
func (r *Run) checkLoss(ctx context.Context, found *check.Report) error {
	switch {
	case r.opts.LossEvery == 0:
		return nil
	case r.loss != nil:
		return r.awaitRepair(ctx, found)
	}
	for {
		now, err := r.log.MissedEvents(ctx)
		if err == nil {
			r.remembered(now)
			return nil
		}
		if wait(ctx, 10*interval) != nil {
			return err
		}
	}
}

func (r *Run) remembered(now map[string]missed.Status) {
	for name, s := range now {
		r.reported[name] = s.Until
	}
}

// awaitRepair waits until belfry has noticed the loss of the log, and has repaired what its workers missed. It
// checks that the loss is reported for each listener that belfry knew, and confirms it for that of the run.
func (r *Run) awaitRepair(ctx context.Context, found *check.Report) error {
	var now map[string]missed.Status
	state := kit.Await(patience, func() (state error) {
		if ctx.Err() != nil {
			return nil //nolint:nilerr // it is reported below
		}
		if now, state = r.log.MissedEvents(ctx); state == nil {
			state = r.unreported(now)
		}
		return state
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if state != nil {
		found.Violations = append(found.Violations,
			check.Violation{Kind: check.LossUnreported, Object: "log", Text: state.Error()})
		return nil //nolint:nilerr // it is reported
	}
	r.logf("the loss of the log is reported and repaired")
	r.report.Losses++
	r.remembered(now)
	if r.opts.Belfry == "" {
		return nil
	}
	if err := r.listed(ctx, found); err != nil {
		return err
	}
	if s := now[r.log.Durable()]; s.Open() { // belfry had seen it before the loss
		r.report.Confirmed++
	}
	return r.confirm(ctx, now, found)
}

// listed checks that belfry listener list says the same. Another process may answer it, from what it read up to
// ten seconds before.
func (r *Run) listed(ctx context.Context, found *check.Report) error {
	var now *check.Report
	var err error
	_ = kit.Await(patience, func() error {
		now = &check.Report{}
		if err = r.commands().Missed(ctx, history.Workers(), now); err == nil && len(now.Violations) > 0 {
			return errPersists
		}
		return nil
	})
	if err == nil {
		found.Violations = append(found.Violations, now.Violations...)
	}
	return err
}

// unreported says what is not reported or repaired yet.
func (r *Run) unreported(now map[string]missed.Status) error {
	var all []error
	for _, name := range append([]string{r.log.Durable()}, history.Workers()...) {
		s, there := now[name]
		switch before, known := r.reported[name]; {
		case name == r.log.Durable() && !known && !there:
		case !there || known && s.Until.Equal(before):
			all = append(all, fmt.Errorf("belfry does not report that the listener %s has missed events", name))
		case s.Reason != missed.Replaced:
			all = append(all, fmt.Errorf("belfry says that the log is %s, for the listener %s", s.Reason, name))
		case name != r.log.Durable() && s.Repaired.IsZero():
			all = append(all, fmt.Errorf("belfry has not repaired what the listener %s has missed", name))
		}
	}
	return errors.Join(all...)
}

// confirm confirms what is left to others than belfry: what the listener of the run has missed, and mails. From then
// on there is no alert.
func (r *Run) confirm(ctx context.Context, now map[string]missed.Status, found *check.Report) error {
	var open []string
	for name, s := range now {
		if s.Open() {
			open = append(open, name)
		}
	}
	alert, known, err := r.pool.Alerts(ctx)
	if err != nil {
		return err
	}
	if known && alert != float64(len(open)) {
		found.Violations = append(found.Violations, check.Violation{Kind: check.LossUnreported, Object: "metrics",
			Text: fmt.Sprintf("belfry_listener_missed is %v while %v have missed events", alert, open)})
	}
	for _, listener := range open {
		if err := r.commands().Confirm(ctx, listener, found); err != nil {
			return err
		}
	}
	for known {
		if alert, _, err = r.pool.Alerts(ctx); err != nil || alert == 0 {
			return err
		}
		if err := wait(ctx, 10*interval); err != nil {
			return fmt.Errorf("belfry_listener_missed is %v after everything was repaired or confirmed: %w", alert, err)
		}
	}
	return nil
}
