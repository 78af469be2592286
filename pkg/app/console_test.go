package app

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"belfry/pkg/bus/replay"
	"belfry/pkg/console"
	"belfry/pkg/errs"
	"belfry/pkg/logctx"
	"belfry/pkg/verify"
	"belfry/test/kit"
)

// One verification runs at a time, and ends with the process.
func TestVerificationsOfTheConsoleRunOneAtATime(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	began, finish := make(chan VerifyOptions, 1), make(chan error)
	var log bytes.Buffer
	v := &verifications{ctx: ctx, log: slog.New(logctx.NewHandler(slog.NewTextHandler(&log, nil))), run: func(ctx context.Context, o VerifyOptions, into *Report) error {
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
	request := logctx.With(t.Context(), slog.String("request", "r-17"))
	if err := v.Start(request, "ada", "r-17", true, true); err != nil {
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
	if err := v.Start(request, "bob", "", false, false); !errors.Is(err, errs.Conflict) {
		t.Errorf("a second run: %v", err)
	}
	finish <- nil
	if last := ended(); last.Err != nil || last.Report.Repaired != 3 || last.By != "ada" {
		t.Errorf("%+v", last)
	}
	if log.Len() > 0 {
		t.Errorf("a run that has succeeded is logged as a failure: %s", &log)
	}
	for _, end := range []func(){func() { finish <- errors.New("no disk") }, v.Stop, cancel} {
		if err := v.Start(request, "ada", "r-17", false, false); err != nil {
			t.Fatal(err)
		}
		<-began
		end()
		if last := ended(); last.Err == nil || last.Report != nil {
			t.Errorf("%+v", last)
		}
	}
	v.running.Wait()
	if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "no disk") || !strings.Contains(text, "request=r-17") {
		t.Errorf("the log has not the cause of the one failure: %s", text)
	}
	if v.Last().Request != "r-17" {
		t.Errorf("%+v", v.Last())
	}
	if err := v.Start(request, "ada", "", false, false); !errors.Is(err, errs.Unavailable) {
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
