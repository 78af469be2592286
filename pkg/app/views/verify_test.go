package views

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"belfry/internal/logctx"
	"belfry/pkg/api/console"
	"belfry/pkg/app/command"
	"belfry/pkg/errs"
	"belfry/pkg/mapping/verify"
	"belfry/pkg/store"
	"belfry/test/kit"
	"belfry/test/model"
)

// verifying is the verifications of processes that share a store.
type verifying struct {
	*testing.T
	records *store.Store
	began   chan begun
	finish  chan error
	result  *verify.Report
}

// begun is a run that has begun.
type begun struct {
	command.VerifyRequest
	Progress func(verify.Progress)
}

func newVerifying(t *testing.T) *verifying {
	t.Helper()
	records, err := store.Open(t.Context(), model.NewMemory(), store.Options{Name: "Tokens"})
	if err != nil {
		t.Fatal(err)
	}
	return &verifying{T: t, records: records, began: make(chan begun, 1), finish: make(chan error), result: &verify.Report{Repaired: 3}}
}

func (f *verifying) process(ctx context.Context, log *bytes.Buffer) *verifications {
	return &verifications{
		runs: testRuns(ctx, "verification", log, f.records, shortVerified),
		run: func(ctx context.Context, o command.VerifyRequest, report func(verify.Progress)) (*command.Report, error) {
			f.began <- begun{o, report}
			select {
			case err := <-f.finish:
				return &command.Report{Report: f.result}, err
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		},
	}
}

// testRuns are the runs of a process that shares a store with others.
func testRuns[S any](ctx context.Context, kind string, log io.Writer, records *store.Store, short func(S) S) *runs[S] {
	return &runs[S]{
		kind: kind, uuid: "run", ctx: ctx, log: slog.New(logctx.NewHandler(slog.NewTextHandler(log, nil))), records: func() *store.Store { return records },
		beat: time.Millisecond, now: time.Now, short: short,
	}
}

func (f *verifying) last(v *verifications) *console.Verification {
	f.Helper()
	last, err := v.Last(f.Context())
	if err != nil {
		f.Fatal(err)
	}
	return last
}

// ended waits until a process shows that the run has ended.
func (f *verifying) ended(v *verifications) *console.Verification {
	f.Helper()
	kit.WaitFor(f, "the end of the run", func() bool { return !f.last(v).Ended.IsZero() })
	return f.last(v)
}

// One verification runs at a time, and ends with the process.
func TestVerificationsOfTheConsoleRunOneAtATime(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	f, log := newVerifying(t), &bytes.Buffer{}
	v := f.process(ctx, log)
	if f.last(v) != nil {
		t.Error("a run before the first")
	}
	stop := func() {
		t.Helper()
		if err := v.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	}
	stop()
	request := logctx.With(t.Context(), slog.String("request", "r-17"))
	if err := v.Start(request, "ada", "r-17", true, true); err != nil {
		t.Fatal(err)
	}
	o := <-f.began
	if !o.Repair || !o.Deep {
		t.Errorf("%+v", o)
	}
	before := f.last(v)
	o.Progress(verify.Progress{Objects: 7})
	if before.Progress.Objects != 0 || f.last(v).Progress.Objects != 7 {
		t.Error("the progress is not replaced")
	}
	if err := v.Start(request, "bob", "", false, false); !errors.Is(err, errs.Conflict) {
		t.Errorf("a second run: %v", err)
	}
	f.finish <- nil
	if last := f.ended(v); last.Err != nil || last.Report.Repaired != 3 || last.By != "ada" {
		t.Errorf("%+v", last)
	}
	v.running.Wait()
	if log.Len() > 0 {
		t.Errorf("a run that has succeeded is logged as a failure: %s", log)
	}
	for _, end := range []func(){func() { f.finish <- errors.New("no disk") }, stop, cancel} {
		if err := v.Start(request, "ada", "r-17", false, false); err != nil {
			t.Fatal(err)
		}
		<-f.began
		end()
		if last := f.ended(v); last.Err == nil || last.Report != nil || last.Request != "r-17" {
			t.Errorf("%+v", last)
		}
		v.running.Wait()
	}
	if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "no disk") || !strings.Contains(text, "request=r-17") {
		t.Errorf("the log has not the cause of the one failure: %s", text)
	}
	if err := v.Start(request, "ada", "", false, false); !errors.Is(err, errs.Unavailable) {
		t.Errorf("a run while belfry stops: %v", err)
	}
}

// A balancer may hand each request of a browser to another process.
func TestAVerificationOfOneProcessIsShownAndStoppedByAnother(t *testing.T) {
	f, log := newVerifying(t), &bytes.Buffer{}
	one, other := f.process(t.Context(), log), f.process(t.Context(), log)
	if err := one.Start(t.Context(), "ada", "r-17", true, false); err != nil {
		t.Fatal(err)
	}
	o := <-f.began
	if err := other.Start(t.Context(), "bob", "", false, false); !errors.Is(err, errs.Conflict) {
		t.Errorf("a second run in another process: %v", err)
	}
	o.Progress(verify.Progress{Objects: 7})
	kit.WaitFor(t, "the progress in another process", func() bool {
		last := f.last(other)
		return last != nil && last.Progress.Objects == 7 && last.By == "ada" && last.Repair && last.Ended.IsZero()
	})
	if err := other.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	one.running.Wait()
	for _, v := range []*verifications{one, other} {
		if last := f.last(v); last.Ended.IsZero() || !errors.Is(last.Err, errs.Canceled) {
			t.Errorf("after the stop: %+v", last)
		}
	}

	// What a run has found is shown by all, as far as a page lists it; internals stay with the process.
	for range 300 {
		f.result.Differences = append(f.result.Differences, verify.Difference{Kind: verify.Missing, Source: "Books"})
	}
	for _, c := range []struct {
		err  error
		want func(*console.Verification) bool
	}{
		{nil, func(l *console.Verification) bool {
			return l.Err == nil && len(l.Report.Differences) == 200 && l.Found() == 300 && l.By == "bob"
		}},
		{errors.New("open /secret"), func(l *console.Verification) bool {
			return errs.KindOf(l.Err) == errs.Internal && !strings.Contains(l.Err.Error()+l.Problem(), "secret")
		}},
		{errs.Wrap(errors.New("open /secret"), errs.Unavailable, "the disk is full"), func(l *console.Verification) bool {
			return strings.Contains(l.Problem(), "the disk is full") && !strings.Contains(l.Err.Error(), "secret")
		}},
	} {
		if err := other.Start(t.Context(), "bob", "", false, false); err != nil {
			t.Fatal(err)
		}
		<-f.began
		f.finish <- c.err
		other.running.Wait()
		if last := f.last(one); !c.want(last) {
			t.Errorf("%v: the other process has %+v", c.err, last)
		}
	}

	// A process that has ended writes nothing more.
	if err := one.claim(t.Context(), "gone", &run[console.Verified]{Run: console.Run{By: "eve", Began: time.Now()}}); err != nil {
		t.Fatal(err)
	}
	if last := f.last(other); !last.Ended.IsZero() {
		t.Errorf("%+v", last)
	}
	other.now = func() time.Time { return time.Now().Add(2 * runSilence) }
	if last := f.last(other); last.Ended.IsZero() || !strings.Contains(last.Problem(), "the process that ran it has ended") {
		t.Errorf("%+v", last)
	}
	if err := other.Start(t.Context(), "bob", "", false, false); err != nil {
		t.Errorf("after a process that has ended: %v", err)
	}
	<-f.began
	f.finish <- nil
	other.running.Wait()
}
