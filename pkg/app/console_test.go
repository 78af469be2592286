package app

import (
	"context"
	"errors"
	"testing"
	"time"

	"belfry/pkg/bus/replay"
	"belfry/pkg/console"
	"belfry/pkg/errs"
	"belfry/pkg/verify"
	"belfry/test/kit"
)

// One verification runs at a time, and ends with the process.
func TestVerificationsOfTheConsoleRunOneAtATime(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	began, finish := make(chan VerifyOptions, 1), make(chan error)
	v := &verifications{ctx: ctx, run: func(ctx context.Context, o VerifyOptions, into *Report) error {
		began <- o
		select {
		case err := <-finish:
			into.Report = &verify.Report{Repaired: 3}
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}}
	ended := func() *console.Verification {
		t.Helper()
		kit.WaitFor(t, "the end of the run", func() bool { return !v.Last().Ended.IsZero() })
		return v.Last()
	}
	if v.Last() != nil {
		t.Error("a run before the first")
	}
	v.Stop()
	if err := v.Start(t.Context(), "ada", true, true); err != nil {
		t.Fatal(err)
	}
	o := <-began
	if !o.Repair || !o.Deep {
		t.Errorf("%+v", o)
	}
	before := v.Last()
	o.Progress(verify.Progress{Objects: 7})
	if before.Progress.Objects != 0 || v.Last().Progress.Objects != 7 {
		t.Error("the progress is not replaced")
	}
	if err := v.Start(t.Context(), "bob", false, false); !errors.Is(err, errs.Conflict) {
		t.Errorf("a second run: %v", err)
	}
	finish <- nil
	if last := ended(); last.Err != nil || last.Report.Repaired != 3 || last.By != "ada" {
		t.Errorf("%+v", last)
	}
	for _, end := range []func(){func() { finish <- errors.New("no disk") }, v.Stop, cancel} {
		if err := v.Start(t.Context(), "ada", false, false); err != nil {
			t.Fatal(err)
		}
		<-began
		end()
		if last := ended(); last.Err == nil || last.Report != nil {
			t.Errorf("%+v", last)
		}
	}
	v.running.Wait()
	if err := v.Start(t.Context(), "ada", false, false); !errors.Is(err, errs.Unavailable) {
		t.Errorf("a run while belfry stops: %v", err)
	}
}

func TestTheStatesOfListenersAreKeptForAnHour(t *testing.T) {
	w := &consoleWorkers{samples: map[string][]console.Sample{}}
	now := time.Now()
	for i := range 300 {
		all := []*replay.Listener{{Name: "mapping", Lag: uint64(i), Unacked: -1}}
		if i < 10 {
			all = append(all, &replay.Listener{Name: "gone"})
		}
		w.add(now.Add(time.Duration(i)*sampleInterval), all)
	}
	got := w.History("mapping")
	if len(got) != 241 || got[0].Lag != 59 || got[240].Lag != 299 || got[0].Unacked != 0 {
		t.Errorf("%d samples, from %+v", len(got), got[0])
	}
	if w.History("gone") != nil {
		t.Error("a listener without samples is remembered")
	}
	many := make([]*replay.Listener, 1000)
	for i := range many {
		many[i] = &replay.Listener{Name: string(rune('a' + i))}
	}
	w.add(now.Add(time.Hour), many)
	if len(w.samples) > maxSampled+1 {
		t.Errorf("%d listeners are remembered", len(w.samples))
	}
}
