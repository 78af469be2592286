package app

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"belfry/config"
	"belfry/pkg/binary"
	"belfry/pkg/errs"
	"belfry/pkg/store"
	"belfry/pkg/verify"
)

// VerifyOptions are the options of Verify.
type VerifyOptions struct {
	Repair bool // repair differences in mapped arrays
	Deep   bool // hash every content of binaries
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

// Verify verifies the stores of a configuration and the binaries of their objects: through the belfry that
// serves them if one does, and directly otherwise.
func Verify(ctx context.Context, c *config.Config, o VerifyOptions) (*Report, error) {
	report := &Report{}
	err := withStores(ctx, c, "verify",
		func(p *plan, set *store.Set) error { return p.verify(ctx, set, o, report) },
		func(h Holder) error {
			query := url.Values{"repair": {strconv.FormatBool(o.Repair)}, "deep": {strconv.FormatBool(o.Deep)}}
			body, err := control(ctx, h, http.MethodPost, "/verify?"+query.Encode())
			if err != nil {
				return err
			}
			defer func() { _ = body.Close() }()
			err = json.NewDecoder(body).Decode(report)
			return errs.Wrap(err, errs.Unavailable, "the report of %s is incomplete: the connection was closed", h)
		})
	if err != nil {
		return nil, err
	}
	return report, nil
}

// verify verifies stores that only this process has open.
func (p *plan) verify(ctx context.Context, set *store.Set, o VerifyOptions, into *Report) error {
	storages, err := p.openStorages(ctx)
	if err != nil {
		return err
	}
	var wait time.Duration
	if p.shared() {
		wait = differenceTimeout
	}
	err = verifyAll(ctx, set, inOrder(p.services(storages, set)), o, wait, into)
	return errors.Join(err, closeStorages(storages))
}

func verifyAll(ctx context.Context, set *store.Set, services []*binary.Service, o VerifyOptions, wait time.Duration, into *Report) (err error) {
	if into.Report, err = verify.Run(ctx, set, verify.Options{Repair: o.Repair, RecheckFor: wait}); err != nil || len(services) == 0 {
		return err
	}
	into.Binaries, err = binary.Verify(ctx, services, binary.VerifyOptions{Deep: o.Deep, RecheckFor: wait})
	return err
}
