package migrate

import (
	"context"
	"errors"
	"time"

	"belfry/internal/backoff"
	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
)

// The limits of retries while a backend is unavailable or throttles.
const (
	retryTimeout = time.Minute
	retryMin     = 100 * time.Millisecond
	retryMax     = 5 * time.Second
)

// retry calls an idempotent function until it succeeds or its error is permanent.
func retry(ctx context.Context, call func() error) error {
	began := time.Now()
	for delays := backoff.New(retryMin, retryMax); ; {
		err := call()
		if err == nil || !transient(err) || time.Since(began) > retryTimeout {
			return err
		}
		if ended := delays.Wait(ctx); ended != nil {
			return errors.Join(ended, err)
		}
	}
}

// transient reports whether a later attempt may succeed. Errors of a folder never are:
// it stays unavailable until a restart.
func transient(err error) bool {
	if !errors.Is(err, errs.Unavailable) {
		return false
	}
	for e := (*errs.Error)(nil); errors.As(err, &e); err = e.Err {
		if e.RetryAfter > 0 {
			return true
		}
	}
	return false
}

// retrying is a store whose reads are retried.
type retrying struct{ driver.Store }

func (r retrying) Get(ctx context.Context, uuid string) (record driver.Record, found bool, err error) {
	err = retry(ctx, func() (err error) {
		record, found, err = r.Store.Get(ctx, uuid)
		return err
	})
	return record, found, err
}

func (r retrying) Scan(ctx context.Context, after []byte, limit int) (page driver.Page, err error) {
	err = retry(ctx, func() (err error) {
		page, err = r.Store.Scan(ctx, after, limit)
		return err
	})
	return page, err
}

func (r retrying) Pending(ctx context.Context, after []byte,
	limit int) (events []driver.Pending, next []byte, err error) {
	err = retry(ctx, func() (err error) {
		events, next, err = r.Store.Pending(ctx, after, limit)
		return err
	})
	return events, next, err
}
