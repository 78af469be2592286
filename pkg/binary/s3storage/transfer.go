package s3storage

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"belfry/pkg/binary/driver"
)

// partsAtOnce is how many parts of a stage are sent at once, if there is memory for them.
const partsAtOnce = 4

// part is a part of an upload. Its bytes are in memory until S3 has acknowledged it.
type part struct {
	upload *upload
	number int32
	buffer *buffer
	cancel context.CancelFunc // while it is in flight
}

// transfer sends the parts of a stage, several at once. The first part that is in memory
// belongs to what the stage has reserved; the others are reserved in the budget, which
// they leave when S3 has acknowledged them.
//
// The methods are called by the goroutine of the stage. Once a part has failed they wait
// until no part is in flight, and return the error. The next call sends it again.
type transfer struct {
	budget driver.Budget

	mu       sync.Mutex
	ended    sync.Cond // a part is no longer in flight
	waiting  []*part   // in the order of their numbers
	inFlight map[*part]bool
	reserved int   // parts in the budget
	err      error // of the first part that failed
}

func newTransfer(within driver.Budget) *transfer {
	t := &transfer{budget: within, inFlight: map[*part]bool{}}
	t.ended.L = &t.mu
	return t
}

// add adds a part. awaitMemory or finish sends it.
func (t *transfer) add(p *part) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiting = append(t.waiting, p)
}

// awaitMemory sends the parts, and returns when there is memory for another one.
func (t *transfer) awaitMemory(ctx context.Context) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.start(ctx); err != nil {
		return err
	}
	for len(t.inFlight) > t.reserved {
		if t.budget.TryReserve(partSize) {
			t.reserved++
			return nil
		}
		if err := t.await(ctx, len(t.inFlight)-1); err != nil {
			return err
		}
	}
	return nil
}

// finish sends the parts and waits for them.
func (t *transfer) finish(ctx context.Context) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.start(ctx); err != nil {
		return err
	}
	return t.await(ctx, 0)
}

// discard cancels the parts in flight, and releases the memory of all.
func (t *transfer) discard() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cancel()
	_ = t.await(context.Background(), 0)
	for _, p := range t.waiting {
		p.buffer.reset()
	}
	t.waiting = nil
	if t.reserved > 0 {
		t.budget.Release(int64(t.reserved) * partSize)
		t.reserved = 0
	}
}

// start sends the parts that wait.
func (t *transfer) start(ctx context.Context) error {
	for len(t.waiting) > 0 {
		if err := t.await(ctx, partsAtOnce-1); err != nil {
			return err
		}
		p := t.waiting[0]
		t.waiting = t.waiting[1:]
		t.inFlight[p] = true
		var sending context.Context
		sending, p.cancel = context.WithCancel(ctx)
		go func() {
			err := p.upload.put(sending, p.number, p.buffer)
			p.cancel()
			t.end(p, err)
		}()
	}
	return nil
}

// end ends a part. An error ends the others too.
func (t *transfer) end(p *part, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	defer t.ended.Broadcast()
	delete(t.inFlight, p)
	if err == nil {
		p.buffer.reset()
		if t.reserved > 0 {
			t.reserved--
			t.budget.Release(partSize)
		}
		return
	}
	t.waiting = append(t.waiting, p)
	slices.SortFunc(t.waiting, func(a, b *part) int { return cmp.Compare(a.number, b.number) })
	if t.err == nil {
		t.err = err
		t.cancel()
	}
}

// cancel cancels the parts in flight.
func (t *transfer) cancel() {
	for p := range t.inFlight {
		p.cancel()
	}
}

// await waits until at most so many parts are in flight, or, after an error, none. The
// end of the context cancels them all.
func (t *transfer) await(ctx context.Context, most int) error {
	release := context.AfterFunc(ctx, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.cancel()
	})
	defer release()
	for len(t.inFlight) > most || t.err != nil && len(t.inFlight) > 0 {
		t.ended.Wait()
	}
	err := t.err
	t.err = nil
	return err
}
