package command

import (
	"context"
	"io"
	"sync"
	"time"

	"belfry/pkg/binary"
	"belfry/pkg/mapping/verify"
	"belfry/pkg/store"
)

// DifferenceTimeout is how long a difference must persist in a running belfry before verify reports it:
// the workers may still apply it.
const DifferenceTimeout = 15 * time.Second

// VerifyRequest asks for a verification.
type VerifyRequest struct {
	Repair bool `json:"repair,omitempty" help:"Correct the differences." console:"button"`
	Deep   bool `json:"deep,omitempty" help:"Read every content of binaries and compare its hash." label:"Read the content of every file, too"`
}

// Report is the result of a verification.
type Report struct {
	*verify.Report
	Binaries *binary.Report `json:"binaries,omitempty"` // nil when there are no binary services
}

// Clean reports whether there are no differences.
func (r *Report) Clean() bool {
	return r.Report.Clean() && (r.Binaries == nil || r.Binaries.Clean())
}

// Copies is what was found about copies.
func (r *Report) Copies() *verify.Report { return r.Report }

// Found is how many differences of copies and unique values there are.
func (r *Report) Found() int {
	found := len(r.Differences) + r.More
	if u := r.Unique; u != nil {
		found += len(u.Findings) + u.More
	}
	return found
}

// Shown are the differences that a page lists.
func (r *Report) Shown() []verify.Difference {
	return r.Differences[:min(len(r.Differences), maxShown)]
}

// maxShown is how many differences, and arrays at their limit, a page lists.
const maxShown = 200

// shortReport is what pages show of a report.
func shortReport(r Report) Report {
	copies := *r.Report
	copies.Differences, copies.More = shorten(copies.Differences, copies.More, maxShown)
	copies.Full, copies.TooLarge = copies.Full[:min(len(copies.Full), maxShown)],
		copies.TooLarge[:min(len(copies.TooLarge), maxShown)]
	if copies.Unique != nil {
		u := *copies.Unique
		u.Findings, u.More = shorten(u.Findings, u.More, maxShown)
		copies.Unique = &u
	}
	r.Report = &copies
	if r.Binaries != nil {
		b := *r.Binaries
		b.Differences, b.More = shorten(b.Differences, b.More, 1) // the page says only whether there are any
		r.Binaries = &b
	}
	return r
}

// shorten returns the first of all, and how many more there are.
func shorten[T any](all []T, more, most int) ([]T, int) {
	kept := min(len(all), most)
	return all[:kept], more + len(all) - kept
}

// progressInterval is the interval of reports of progress.
const progressInterval = 500 * time.Millisecond

// Verify verifies the stores and the binaries of their objects. If it ends early, the repair is partial, and another
// call repairs the rest.
var Verify = Operation[VerifyRequest, Report, verify.Progress]{
	Name: "verify", Help: "Compare every mapped array with the objects it copies.",
	Text: func(w io.Writer, _ VerifyRequest, r *Report) error { return r.WriteText(w) }, Show: showVerify,
	Reads: func(q VerifyRequest) bool { return !q.Repair },
	Run: func(ctx context.Context, at *Place, q VerifyRequest, report func(verify.Progress)) (r *Report, err error) {
		err = at.Binaries(ctx, func(services []*binary.Service) (err error) {
			r, err = verifyAll(ctx, at.Set, services, q, verify.Options{RecheckFor: at.RecheckFor, Alone: !at.Served},
				report)
			return err
		})
		return r, err
	},
	Console: &Console[VerifyRequest, Report]{
		Title: "Verify", Kind: "verification", Button: "Verify now", Short: shortReport,
		Stays: func(q VerifyRequest) string {
			if q.Repair {
				return "Its repairs are kept."
			}
			return ""
		},
	},
}

// verifyAll verifies the stores, and the binaries of services.
func verifyAll(ctx context.Context, set *store.Set, services []*binary.Service, q VerifyRequest, how verify.Options,
	report func(verify.Progress)) (r *Report, err error) {
	r, how.Repair, how.Tracker = &Report{}, q.Repair, &verify.Tracker{}
	defer reportProgress(how.Tracker, report)()
	if r.Report, err = verify.Run(ctx, set, how); err == nil && len(services) > 0 {
		r.Binaries, err = binary.Verify(ctx, services, binary.VerifyOptions{Deep: q.Deep, RecheckFor: how.RecheckFor})
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// reportProgress calls a function with the progress until the returned function has been called.
func reportProgress(t *verify.Tracker, report func(verify.Progress)) (stop func()) {
	done := make(chan struct{})
	var reporting sync.WaitGroup
	reporting.Go(func() {
		tick := time.NewTicker(progressInterval)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				report(t.Progress())
			case <-done:
				report(t.Progress())
				return
			}
		}
	})
	return func() {
		close(done)
		reporting.Wait()
	}
}
