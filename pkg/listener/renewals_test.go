package listener_test

import (
	"cmp"
	"context"
	"slices"
	"testing"
	"time"

	"belfry/pkg/event"
	"belfry/pkg/listener"
	"belfry/test/kit"
	"belfry/test/kit/natsserver"
)

// waits has the bus deliver events to a worker that is gone: it acknowledges all but the first and the last ones, which
// the bus redelivers in an hour, as when its clock was ahead. Between them are more than are renewed without a flush.
func waits(t *testing.T, ackWait time.Duration) (listener.Bus, listener.Spec, *seen) {
	t.Helper()
	b := open(t)
	handled := &seen{}
	spec := listener.Spec{
		Name: "test", Filters: []string{event.Filter(event.StoreSaved, "Books")}, AckWait: ackWait,
		Start:   listener.StartAll(),
		Handler: func(_ context.Context, e *listener.Event) error { handled.note(e); return nil },
	}
	if _, err := listener.Setup(t.Context(), b, spec, false); err != nil {
		t.Fatal(err)
	}
	const events = listener.RenewedAtOnce + 50
	publish(t, b, 0, events)
	consumer, err := b.JetStream().Consumer(t.Context(), "EVENTS", "test")
	if err != nil {
		t.Fatal(err)
	}
	batch, err := consumer.Fetch(events, natsserver.Wait()...)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for m := range batch.Messages() {
		if n++; n == 1 || n == events {
			err = m.NakWithDelay(time.Hour)
		} else {
			err = m.Ack()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	kit.WaitFor(t, "two events wait", func() bool { return lag(t, b, "test") == 2 })
	run(t, b, spec)
	return b, spec, handled
}

// TestMoreEventsAreRenewedThanAreSentAtOnce: a renewal ended at the first flush.
func TestMoreEventsAreRenewedThanAreSentAtOnce(t *testing.T) {
	t.Parallel()
	b, spec, handled := waits(t, time.Second)
	if err := listener.Renew(t.Context(), b, spec); err != nil {
		t.Fatal("the bus does not take all heartbeats: ", err)
	}
	kit.WaitFor(t, "both events are redelivered", func() bool { return handled.distinct() == 2 })
}

// TestTheFirstAndTheLastOfManyEventsAreRedelivered: a renewal that failed was begun again at each look at the clock, so
// that the first of the events had a new heartbeat before AckWait had passed, for ever.
func TestTheFirstAndTheLastOfManyEventsAreRedelivered(t *testing.T) {
	t.Parallel()
	_, _, handled := waits(t, 3*time.Second)
	kit.WaitFor(t, "both events are redelivered", func() bool { return handled.distinct() == 2 })
}

// TestRenewalsLeaveTimeForARedelivery: whatever causes renewals, and in however many processes, there comes a time of
// AckWait in which no process sends heartbeats.
func TestRenewalsLeaveTimeForARedelivery(t *testing.T) {
	const wait, looks = time.Minute, 4
	type look struct {
		at      time.Duration
		process int
	}
	for name, cause := range map[string]struct{ steps, stay, fails bool }{
		"a clock that seems to be set back all the time": {steps: true},
		"events that stay":          {stay: true},
		"renewals that fail":        {stay: true, fails: true},
		"steps whose renewals fail": {steps: true, fails: true},
		"all of that":               {steps: true, stay: true, fails: true},
	} {
		for _, processes := range []int{1, 2, 5, 50} {
			var all []look
			for p := range processes {
				// They start one after the other, so that their renewals are far from each other.
				for at := 2 * wait * time.Duration(p) / time.Duration(processes); at < 500*wait; at += wait / looks {
					all = append(all, look{at, p})
				}
			}
			slices.SortFunc(all, func(a, b look) int { return cmp.Compare(a.at, b.at) })
			renewals := make([]listener.Renewals, processes)
			start := time.Now()
			last, renewed, pause := time.Duration(0), 0, false
			for i, l := range all {
				if pause = renewed >= 2*processes && l.at-last > wait; pause {
					break
				}
				back, after := time.Duration(0), uint64(i) //nolint:gosec // a count
				if cause.steps {
					back = time.Hour
				}
				if cause.stay {
					after = 1
				}
				if due, _ := renewals[l.process].Due(start.Add(l.at), back, 1, after, after+1, wait); due {
					last = l.at
					renewed++
					if cause.fails {
						renewals[l.process].Failed()
					}
				}
			}
			if !pause {
				t.Errorf("%s, %d processes: %d renewals without a pause", name, processes, renewed)
			}
		}
	}
}

func TestAStepIsFollowedAtOnceUnlessThereWasOneJustNow(t *testing.T) {
	const wait = time.Minute
	type look struct {
		at        float64 // in units of wait
		back      time.Duration
		count     int
		after     uint64
		due, stay bool
	}
	step := time.Hour
	for name, looks := range map[string][]look{
		"no step": {{0, 0, 1, 1, false, false}, {1, time.Second, 1, 2, false, false}},
		"one step": {{0, step, 1, 1, true, false}, {1, 0, 1, 2, false, false},
			{9, 0, 1, 3, false, false}},
		"nothing to renew": {{0, step, 0, 1, false, false}, {1, 0, 1, 2, false, false},
			{2, step, 1, 3, true, false}},
		"another one soon": {{0, step, 1, 1, true, false}, {1, step, 1, 2, false, false},
			{1.9, 0, 1, 3, false, false}, {2, 0, 1, 4, true, false}},
		"a third": {{0, step, 1, 1, true, false}, {2, step, 1, 2, true, false},
			{4, step, 1, 3, false, false}, {6, 0, 1, 4, true, false}},
		"another one late": {{0, step, 1, 1, true, false}, {2, step, 1, 2, true, false},
			{20, step, 1, 3, true, false}, {22, step, 1, 4, true, false}},
		"events stay after one": {{0, 0, 1, 1, false, false}, {1, step, 1, 1, true, false},
			{2, 0, 1, 1, false, false}, {3, 0, 1, 1, true, true}},
		"events stay, which ends": {{0, 0, 1, 1, false, false}, {1, step, 1, 1, true, false},
			{2, 0, 1, 1, false, false}, {2.5, 0, 0, 3, false, false}, {3, 0, 1, 3, false, false}},
		"events stay between renewals": {{0, step, 1, 1, true, false}, {2, step, 1, 1, true, true},
			{4, 0, 1, 1, false, false}, {6, 0, 1, 1, true, true}},
	} {
		var n listener.Renewals
		start := time.Now()
		for _, l := range looks {
			due, stay := n.Due(start.Add(time.Duration(l.at*float64(wait))), l.back, l.count, l.after, l.after+1, wait)
			if due != l.due || stay != l.stay {
				t.Errorf("%s, after %v: %t %t", name, l.at, due, stay)
			}
		}
	}
}

func TestEventsThatStayAreRenewedLateAndEverMoreRarely(t *testing.T) {
	start, wait := time.Now(), time.Minute
	type look struct {
		at          time.Duration // in units of wait
		count       int
		after, last uint64
		want        bool
	}
	for name, looks := range map[string][]look{
		"nothing waits at the start": {{0, 0, 9, 9, false}, {2, 3, 9, 12, false}, {3, 3, 9, 12, false},
			{4, 3, 9, 12, true}},
		"they are acknowledged": {{0, 2, 5, 9, false}, {1, 0, 9, 9, false}, {2, 1, 9, 12, false}},
		"they are, and later ones wait": {{0, 2, 5, 9, false}, {1, 4, 9, 20, false}, {2, 4, 9, 20, false},
			{3, 4, 9, 21, true}},
		"they wait": {{0, 2, 5, 9, false}, {1, 2, 5, 9, false}, {2, 2, 5, 20, true},
			{5, 2, 5, 20, false}, {6, 2, 5, 30, true}, {13, 2, 5, 30, false}, {14, 2, 5, 30, true}},
		"they wait for long": {{0, 2, 5, 9, false}, {1000, 2, 5, 9, true}, {2000, 2, 5, 9, true},
			{3000, 2, 5, 9, true}, {4000, 2, 5, 9, true}, {5000, 2, 5, 9, true}, {6000, 2, 5, 9, true},
			{7000, 2, 5, 9, true}, {8000, 2, 5, 9, true}, {9000, 2, 5, 9, true}, {10_000, 2, 5, 9, false},
			{10_024, 2, 5, 9, true}, {11_048, 2, 5, 9, true}},
		"others wait after them": {{0, 2, 5, 9, false}, {2, 2, 5, 20, true}, {3, 2, 9, 20, false},
			{5, 2, 9, 20, true}},
		"some of them wait, others do not": {{0, 2, 5, 9, false}, {2, 1, 7, 9, true}},
	} {
		var l listener.Leftover
		for _, at := range looks {
			if got := l.Remains(start.Add(at.at*wait), at.count, at.after, at.last, wait); got != at.want {
				t.Errorf("%s, after %d: %t", name, at.at, got)
			}
		}
	}
}
