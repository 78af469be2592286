package migrate

import (
	"context"
	"errors"
	"time"

	"belfry/pkg/backoff"
	"belfry/pkg/errs"
)

// How long an act is tried again that meets a backend which is away or has
// too much to do, and how soon.
const (
	patience = time.Minute
	pauseMin = 100 * time.Millisecond
	pauseMax = 5 * time.Second
)

// patiently does an act, and again as long as that is worth trying. The act
// may be done any number of times.
func patiently(ctx context.Context, act func() error) error {
	began := time.Now()
	for wait := pauseMin; ; wait = min(2*wait, pauseMax) {
		err := act()
		if err == nil || !passes(err) || time.Since(began) > patience {
			return err
		}
		if ended := backoff.Sleep(ctx, wait); ended != nil {
			return errors.Join(ended, err)
		}
	}
}

// passes reports whether an error says that a later attempt may succeed. A
// folder's error never does: it does not come back by itself.
func passes(err error) bool {
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
