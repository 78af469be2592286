package binary_test

import (
	"context"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"belfry/pkg/binary"
	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
)

// unavailable is a backend whose store of quotas fails.
type unavailable struct {
	driver.Backend
	fail atomic.Pointer[error]
	also atomic.Bool // the write is made all the same
}

func (u *unavailable) Open(ctx context.Context, spec driver.Spec) (driver.Store, error) {
	s, err := u.Backend.Open(ctx, spec)
	if spec.Name == "UploadQuotas" {
		s = unavailableStore{s, u}
	}
	return s, err
}

type unavailableStore struct {
	driver.Store
	u *unavailable
}

func (s unavailableStore) Put(ctx context.Context, w driver.Write) error {
	if failure := s.u.fail.Load(); failure != nil {
		if s.u.also.Load() {
			_ = s.Store.Put(ctx, w)
		}
		return *failure
	}
	return s.Store.Put(ctx, w)
}

// Whether or not a write that failed was made, nobody may upload more than the quota.
func TestQuotasHoldWhileTheirStoreIsUnavailable(t *testing.T) {
	t.Parallel()
	for name, also := range map[string]bool{"writes are not made": false, "writes are made, and nobody knows": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := newQuotas(t, binary.Quota{User: 100_000})
			u := &unavailable{Backend: q.backend}
			u.also.Store(also)
			q.backend = u
			s := q.process()
			ann := q.from("ann", "")
			q.sends(s, ann, 10_000, false)
			var failure error = errs.New(errs.Unavailable, "the backend is unavailable")
			client, done := q.holds(s, ann, 50_000)
			_, err := io.WriteString(client, "x")
			q.must(err)
			u.fail.Store(&failure)
			_, err = s.Put(ann, upload(photo(q.book, 0), content(10_000)))
			q.kind(err, errs.Unavailable)
			q.pass(10 * time.Minute)
			// The upload in flight survives it.
			_, err = io.WriteString(client, content(49_998))
			q.must(err)
			u.fail.Store(nil)
			_, err = io.WriteString(client, "x")
			q.must(err)
			q.must(client.Close())
			q.must(<-done)
			q.sends(s, ann, 40_010, true)
			q.sends(q.process(), ann, 40_010, true)
			q.pass(quotaGrace - time.Minute)
			q.sends(s, ann, 50_010, true)
			q.pass(2 * quotaGrace)
			q.sends(s, ann, 100_000, false)
		})
	}
}

// Bytes that are given back by a write that seems to fail belong to others.
func TestBytesThatAreGivenBackAreNotUsedTwice(t *testing.T) {
	t.Parallel()
	q := newQuotas(t, binary.Quota{User: 100_000})
	u := &unavailable{Backend: q.backend}
	u.also.Store(true)
	q.backend = u
	s := q.process()
	ann := q.from("ann", "")
	q.sends(s, ann, 10_000, false)
	var failure error = errs.New(errs.Unavailable, "the backend is unavailable")
	client, done := q.holds(s, ann, 40_000)
	_, err := io.WriteString(client, "x")
	q.must(err)
	u.fail.Store(&failure)
	q.must(client.CloseWithError(io.ErrClosedPipe))
	q.kind(<-done, errs.Canceled)
	u.fail.Store(nil)
	q.sends(s, ann, 40_000, false)
	q.sends(q.process(), ann, 50_010, true)
	q.sends(q.process(), ann, 48_000, false) // the rest is reserved in advance
}
