package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"belfry/test/chaos/check"
	"belfry/test/chaos/history"
	"belfry/test/kit"
)

// transient are the kinds of violations that pending work may explain. They count only if they persist.
var transient = []check.Kind{check.WrongArray, check.WrongCopy, check.WrongAggregate,
	check.Dangling, check.WrongList, check.Undeleted}

// They may persist so long, on a processor that does nothing else, and for so many checks.
const (
	lateness = 2 * time.Second
	rechecks = 3
)

// Check stops the clients, waits until nothing is pending, and makes every check. It returns an error when
// a check could not be made; what was found is in the report.
func (r *Run) Check(ctx context.Context) error {
	ctx, cancel := kit.Patience(ctx, 3*patience)
	defer cancel()
	r.halt()
	r.logf("clients have stopped")
	reports := &check.Report{}
	if err := r.checkLoss(ctx, reports); err != nil {
		return err
	}
	s := &history.Segment{
		Start: r.states, Carried: r.carried, Known: r.known, Deleted: r.deleted, Received: map[string]bool{},
		Ordered: r.opts.Ordered, ClockSteps: r.opts.ClockSteps, Loss: r.loss, Unseen: r.unseen,
		Marked: r.marked,
	}
	found, err := r.settled(ctx, s)
	if err == nil && persists(found) {
		r.report.Late++
		checks := 0
		_ = kit.Await(lateness, func() error {
			for checks++; ; checks++ {
				if found, err = r.settled(ctx, s); err != nil || !persists(found) {
					return nil //nolint:nilerr // it is reported below
				}
				if checks >= rechecks {
					return errPersists
				}
			}
		})
	}
	if err != nil {
		return err
	}
	found.Violations = append(reports.Violations, found.Violations...)
	for _, text := range r.history.TakeWrong() {
		found.Violations = append(found.Violations,
			check.Violation{Kind: check.WrongReply, Object: "reply", Text: text})
	}
	if r.opts.Accounts {
		if err := r.accounts(ctx, s, found); err != nil {
			return err
		}
	}
	if r.opts.Belfry != "" {
		c := r.commands()
		if err := errors.Join(c.Verify(ctx, found), c.DeadLetters(ctx, found)); err != nil {
			return err
		}
	}
	if len(found.Violations) > 0 {
		if err := r.explain(ctx, s, found); err != nil {
			return err
		}
	}
	r.report.add(found)
	r.remember(s)
	r.logf("checked after round %d: %s", r.report.Rounds, r.Report().Line())
	return nil
}

// explain says what the log has now, where that differs from what was read of it before, and what the
// listener received without an event in the log.
func (r *Run) explain(ctx context.Context, s *history.Segment, found *check.Report) error {
	missed, err := r.log.Missed(ctx)
	if err != nil {
		return err
	}
	for _, e := range missed {
		found.Violations = append(found.Violations, check.Violation{Kind: check.WrongReply, Object: "log",
			Text: fmt.Sprintf("the log has the event %s %s of %s at %d now, and had it not when that was read", e.ID,
				e.Event, e.Object(), e.Sequence)})
	}
	read := map[string]bool{}
	for _, e := range s.Published() {
		read[e.ID] = true
	}
	for id := range s.Received {
		if !read[id] {
			r.logf("the listener received %s, which was not read of the log", id)
		}
	}
	return nil
}

func (r *Run) commands() check.Commands {
	program := r.opts.Belfry
	if r.opts.Serving != nil {
		program = cmp.Or(r.opts.Serving(), program)
	}
	return check.Commands{Program: program, Config: r.opts.Deployment.Config, Env: r.opts.Deployment.Env}
}

// Verify runs belfry verify once more, for instance after belfry has been stopped.
func (r *Run) Verify(ctx context.Context) error {
	found := &check.Report{}
	err := r.commands().Verify(ctx, found)
	r.report.violations(found)
	return err
}

var errPersists = errors.New("there are violations")

func persists(found *check.Report) bool {
	return slices.ContainsFunc(found.Violations,
		func(v check.Violation) bool { return slices.Contains(transient, v.Kind) })
}

// settled waits until nothing is pending, completes the segment with what is there then, and checks it.
func (r *Run) settled(ctx context.Context, s *history.Segment) (*check.Report, error) {
	if err := r.pool.Settle(ctx, r.log); err != nil {
		return nil, err
	}
	r.logf("nothing is pending")
	events, err := r.log.Read(ctx)
	if err != nil {
		return nil, err
	}
	s.Events = append(s.Events, events...)
	if s.Final, err = r.pool.Snapshot(ctx); err != nil {
		return nil, err
	}
	if s.Listed, err = r.pool.Listed(ctx); err != nil {
		return nil, err
	}
	if s.Files, err = r.pool.Files(ctx, s.Final); err != nil {
		return nil, err
	}
	ids, failures := r.log.Received(ctx, events)
	for id := range ids {
		s.Received[id] = true
	}
	s.Ops = append(s.Ops, r.history.Take()...)
	found := check.Segment(s)
	for _, text := range failures {
		found.Violations = append(found.Violations,
			check.Violation{Kind: check.WrongReply, Object: "listener", Text: text})
	}
	return found, nil
}

// accounts logs in to all addresses. What that writes has to settle, since users have copies of idents.
func (r *Run) accounts(ctx context.Context, s *history.Segment, found *check.Report) error {
	accounts, err := r.pool.Accounts.Settle(ctx, r.pool)
	if err != nil {
		return err
	}
	if err := r.pool.Settle(ctx, r.log); err != nil {
		return err
	}
	events, err := r.log.Read(ctx)
	if err != nil {
		return err
	}
	s.Events = append(s.Events, events...)
	users, err := r.pool.Users(ctx)
	if err != nil {
		return err
	}
	check.Accounts(accounts, users, s, found)
	r.report.Accounts += len(accounts)
	return nil
}
