package outbox_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"belfry/pkg/bus"
	"belfry/pkg/errs"
	"belfry/pkg/outbox"
)

// unsynced is a bus whose syncs can fail.
type unsynced struct {
	*bus.Bus
	mu   sync.Mutex
	fail bool
	asks int
}

func (u *unsynced) Sync(ctx context.Context) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.asks++
	if u.fail {
		return errs.New(errs.Unavailable, "the disk is full")
	}
	return u.Bus.Sync(ctx)
}

func (u *unsynced) set(fail bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.fail = fail
}

func TestEventsStayInTheirRecordsUntilTheSync(t *testing.T) {
	u := &unsynced{Bus: open(t), fail: true}
	r := start(t, outbox.Options{Publisher: u, SweepEvery: 20 * time.Millisecond, SweepAge: time.Nanosecond})
	s := newRecords("Users")
	r.Add("Users", s)
	w := &writer{t: t, relay: r, store: s}
	for i := range 100 {
		w.commit(i, 10)
	}
	flush(t, r)
	eventually(t, func() bool { return r.Stats().ClearFailures > 0 })
	if n := s.count(); n != 100 {
		t.Errorf("%d of 100 events are in their records before the bus has synced them", n)
	}
	u.set(false)
	eventually(t, func() bool { return s.count() == 0 })
	verify(t, log(t, u.Bus), 100)
}
