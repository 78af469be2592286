package command

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/url"
	"strings"
	"testing"
	"time"

	"belfry/internal/logctx"
	"belfry/pkg/api/console"
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
	VerifyRequest
	Progress func(verify.Progress)
}

func newVerifying(t *testing.T) *verifying {
	t.Helper()
	records, err := store.Open(t.Context(), model.NewMemory(), store.Options{Name: "Tokens"})
	if err != nil {
		t.Fatal(err)
	}
	return &verifying{T: t, records: records, began: make(chan begun, 1), finish: make(chan error),
		result: &verify.Report{Repaired: 3}}
}

func (f *verifying) process(ctx context.Context, log *bytes.Buffer) *consoleRuns {
	of := Verify
	of.Run = func(ctx context.Context, _ *Place, q VerifyRequest, report func(verify.Progress)) (*Report, error) {
		f.began <- begun{q, report}
		select {
		case err := <-f.finish:
			return &Report{Report: f.result}, err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return testRuns(of.Untyped(), ctx, log, f.records, &Place{})
}

// testRuns are the runs of a process that shares a store with others.
func testRuns(of *Untyped, ctx context.Context, log io.Writer, records *store.Store, at *Place) *consoleRuns {
	r := of.Job(&Host{
		Ctx: ctx, Log: slog.New(logctx.NewHandler(slog.NewTextHandler(log, nil))),
		Now:     func() *Place { now := *at; return &now },
		Serving: func(bool) (*Place, func()) { now := *at; return &now, func() {} },
		Records: func() *store.Store { return records },
	}).Runs.(*consoleRuns)
	r.beat = time.Millisecond
	return r
}

func (f *verifying) last(v *consoleRuns) *console.Run {
	f.Helper()
	last, err := v.Last(f.Context())
	if err != nil {
		f.Fatal(err)
	}
	return last
}

func progress(r *console.Run) int64 { return r.Progress.(verify.Progress).Objects }

// ended waits until a process shows that the run has ended.
func (f *verifying) ended(v *consoleRuns) *console.Run {
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
	if err := v.Start(request, "ada", "r-17", url.Values{"repair": {"true"}, "deep": {"true"}}); err != nil {
		t.Fatal(err)
	}
	o := <-f.began
	if !o.Repair || !o.Deep {
		t.Errorf("%+v", o)
	}
	before := f.last(v)
	o.Progress(verify.Progress{Objects: 7})
	if progress(before) != 0 || progress(f.last(v)) != 7 {
		t.Error("the progress is not replaced")
	}
	if err := v.Start(request, "bob", "", nil); !errors.Is(err, errs.Conflict) {
		t.Errorf("a second run: %v", err)
	}
	f.finish <- nil
	if last := f.ended(v); last.Err != nil || last.Out.(*Report).Repaired != 3 || last.By != "ada" {
		t.Errorf("%+v", last)
	}
	v.running.Wait()
	if log.Len() > 0 {
		t.Errorf("a run that has succeeded is logged as a failure: %s", log)
	}
	for _, end := range []func(){func() { f.finish <- errors.New("no disk") }, stop, cancel} {
		if err := v.Start(request, "ada", "r-17", nil); err != nil {
			t.Fatal(err)
		}
		<-f.began
		end()
		if last := f.ended(v); last.Err == nil || last.Out != nil || last.Request != "r-17" {
			t.Errorf("%+v", last)
		}
		v.running.Wait()
	}
	if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "no disk") ||
		!strings.Contains(text, "request=r-17") {
		t.Errorf("the log has not the cause of the one failure: %s", text)
	}
	if err := v.Start(request, "ada", "", nil); !errors.Is(err, errs.Unavailable) {
		t.Errorf("a run while belfry stops: %v", err)
	}
}

// A balancer may hand each request of a browser to another process.
func TestAVerificationOfOneProcessIsShownAndStoppedByAnother(t *testing.T) {
	f, log := newVerifying(t), &bytes.Buffer{}
	one, other := f.process(t.Context(), log), f.process(t.Context(), log)
	if err := one.Start(t.Context(), "ada", "r-17", url.Values{"repair": {"true"}}); err != nil {
		t.Fatal(err)
	}
	o := <-f.began
	if err := other.Start(t.Context(), "bob", "", nil); !errors.Is(err, errs.Conflict) {
		t.Errorf("a second run in another process: %v", err)
	}
	o.Progress(verify.Progress{Objects: 7})
	kit.WaitFor(t, "the progress in another process", func() bool {
		last := f.last(other)
		return last != nil && progress(last) == 7 && last.By == "ada" && last.In.(VerifyRequest).Repair &&
			last.Ended.IsZero()
	})
	if err := other.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	one.running.Wait()
	for _, v := range []*consoleRuns{one, other} {
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
		want func(*console.Run) bool
	}{
		{nil, func(l *console.Run) bool {
			return l.Err == nil && len(l.Out.(*Report).Differences) == 200 && l.Out.(*Report).Found() == 300 &&
				l.By == "bob"
		}},
		{errors.New("open /secret"), func(l *console.Run) bool {
			return errs.KindOf(l.Err) == errs.Internal && !strings.Contains(l.Err.Error()+l.Problem(), "secret")
		}},
		{errs.Wrap(errors.New("open /secret"), errs.Unavailable, "the disk is full"), func(l *console.Run) bool {
			return strings.Contains(l.Problem(), "the disk is full") && !strings.Contains(l.Err.Error(), "secret")
		}},
	} {
		if err := other.Start(t.Context(), "bob", "", nil); err != nil {
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
	if err := one.claim(t.Context(),
		"gone", &run{Run: console.Run{By: "eve", Began: time.Now()},
			State: state{In: &VerifyRequest{}, Progress: &verify.Progress{}}}); err != nil {
		t.Fatal(err)
	}
	if last := f.last(other); !last.Ended.IsZero() {
		t.Errorf("%+v", last)
	}
	other.now = func() time.Time { return time.Now().Add(2 * runSilence) }
	if last := f.last(other); last.Ended.IsZero() || !last.Lost ||
		!strings.Contains(last.Problem(), "the process that ran it has ended") {
		t.Errorf("%+v", last)
	}
	if err := other.Start(t.Context(), "bob", "", nil); err != nil {
		t.Errorf("after a process that has ended: %v", err)
	}
	<-f.began
	f.finish <- nil
	other.running.Wait()
}

// A run can begin as soon as the one before is shown as ended, also while the record does not say so yet.
func TestARunFollowsTheOneBefore(t *testing.T) {
	p := newVerifying(t).process(t.Context(), &bytes.Buffer{})
	first := run{console.Run{By: "ada", Began: p.now()}, state{}}
	if err := p.claim(t.Context(), "first", &first); err != nil {
		t.Fatal(err)
	}
	p.id, p.last = "first", &first
	if err := p.claim(t.Context(), "second", &first); errs.KindOf(err) != errs.Conflict {
		t.Errorf("two runs at once: %v", err)
	}
	p.change("first", func(now *run) { now.Ended = p.now() })
	if err := p.claim(t.Context(), "second", &first); err != nil {
		t.Errorf("the first has ended, and the second says: %v", err)
	}
}
