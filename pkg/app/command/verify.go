package command

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"belfry/config"
	"belfry/pkg/app/hold"
	"belfry/pkg/app/open"
	"belfry/pkg/app/plan"
	"belfry/pkg/binary"
	"belfry/pkg/errs"
	"belfry/pkg/mapping/fill"
	"belfry/pkg/mapping/verify"
	"belfry/pkg/store"
)

// DifferenceTimeout is how long a difference must persist in a running belfry before verify reports it:
// the workers may still apply it.
const DifferenceTimeout = 15 * time.Second

// VerifyOptions are the options of Verify.
type VerifyOptions struct {
	Repair bool // repair differences in mapped arrays
	Deep   bool // hash every content of binaries

	// Progress is called while it runs, twice a second, from one goroutine; may be nil.
	Progress func(verify.Progress)
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

// ProgressInterval is the interval of calls of VerifyOptions.Progress.
const ProgressInterval = 500 * time.Millisecond

// Verify verifies the stores of a configuration and the binaries of their objects: through the belfry that
// serves them if one does, and directly otherwise. If it ends early, a repair is done in part, and another
// call repairs the rest.
func Verify(ctx context.Context, c *config.Config, o VerifyOptions) (*Report, error) {
	report := &Report{}
	err := open.WithStores(ctx, c, "verify",
		func(p *plan.Plan, set *store.Set) error { return verifyStores(ctx, p, set, o, report) },
		func(h hold.Holder) (err error) {
			report, err = verifyServed(ctx, h, o)
			return err
		})
	if err != nil {
		return nil, err
	}
	return report, nil
}

// verify verifies stores that only this process has open.
func verifyStores(ctx context.Context, p *plan.Plan, set *store.Set, o VerifyOptions, into *Report) error {
	storages, err := open.Storages(ctx, p)
	if err != nil {
		return err
	}
	var wait time.Duration
	if p.Shared() {
		wait = DifferenceTimeout
	}
	if err := fill.Load(ctx, open.RequiredOf(p, set, slog.New(slog.DiscardHandler))); err != nil {
		return errors.Join(err, open.CloseStorages(storages))
	}
	err = VerifyAll(ctx, set, open.InOrder(open.Services(p, storages, set, nil, nil)), o, verify.Options{RecheckFor: wait, Alone: true}, into)
	return errors.Join(err, open.CloseStorages(storages))
}

// VerifyAll verifies the stores, and the binaries of services.
func VerifyAll(ctx context.Context, set *store.Set, services []*binary.Service, o VerifyOptions, how verify.Options, into *Report) (err error) {
	how.Repair, how.Tracker = o.Repair, &verify.Tracker{}
	defer reportProgress(how.Tracker, o.Progress)()
	if into.Report, err = verify.Run(ctx, set, how); err != nil || len(services) == 0 {
		return err
	}
	into.Binaries, err = binary.Verify(ctx, services, binary.VerifyOptions{Deep: o.Deep, RecheckFor: how.RecheckFor})
	return err
}

// reportProgress calls a function with the progress until the function that it returns has been called.
func reportProgress(t *verify.Tracker, report func(verify.Progress)) (stop func()) {
	if report == nil {
		return func() {}
	}
	done := make(chan struct{})
	var reporting sync.WaitGroup
	reporting.Go(func() {
		tick := time.NewTicker(ProgressInterval)
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

// VerifyLine is one of the JSON lines with which a serving process replies to a request to verify: its progress,
// and at last the report or an error.
type VerifyLine struct {
	Progress *verify.Progress `json:"progress,omitempty"`
	Report   *Report          `json:"report,omitempty"`
	Error    string           `json:"error,omitempty"`
}

// verifyServed has the process that holds the stores verify them.
func verifyServed(ctx context.Context, h hold.Holder, o VerifyOptions) (*Report, error) {
	query := url.Values{"repair": {strconv.FormatBool(o.Repair)}, "deep": {strconv.FormatBool(o.Deep)}}
	body, err := hold.Control(ctx, h, http.MethodPost, "/verify?"+query.Encode(), http.NoBody)
	if err != nil {
		return nil, err
	}
	defer func() { _ = body.Close() }()
	for lines := json.NewDecoder(body); ; {
		var line VerifyLine
		switch err := lines.Decode(&line); {
		case err != nil:
			return nil, errs.Wrap(err, errs.Unavailable, "the report of %s is incomplete: the connection was closed", h)
		case line.Error != "":
			return nil, errs.New(errs.Unavailable, "%s replied: %s", h, line.Error)
		case line.Report != nil:
			return line.Report, nil
		case line.Progress != nil && o.Progress != nil:
			o.Progress(*line.Progress)
		}
	}
}
