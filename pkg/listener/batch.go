package listener

import "context"

// workBatch handles an event together with those that wait in the queue, and
// returns how many slots are free again.
func (r *runner) workBatch(ctx context.Context, first *delivery) (done int) {
	var together, alone []*delivery
	for d, more := first, true; more; d, more = r.next(done) {
		switch {
		case r.suspected(d):
			r.handling.Go(func() {
				r.isolate(ctx, d)
				r.window.release(1)
			})
			continue
		case !r.handleable(ctx, d):
		case r.alone(d):
			alone = append(alone, d)
		default:
			together = append(together, d)
		}
		done++
	}
	if len(together) > 0 {
		r.attemptBatch(ctx, together)
	}
	for _, d := range alone {
		r.attempt(ctx, d)
	}
	return done
}

// next takes another event for a batch that has some, if one waits.
func (r *runner) next(have int) (*delivery, bool) {
	if have >= r.spec.BatchSize {
		return nil, false
	}
	select {
	case d, open := <-r.queue:
		if open {
			r.held.Add(-1) // it is handled together with that of the worker
		}
		return d, open
	default:
		return nil, false
	}
}

// alone reports whether an event becomes a batch of its own: others that fail in
// the same batch must neither make it a dead letter nor fail it repeatedly.
func (r *runner) alone(d *delivery) bool {
	const oneOf = 4
	return d.Attempt%oneOf == 0 || r.spec.MaxAttempts > 0 && d.Attempt >= r.spec.MaxAttempts
}

func (r *runner) attemptBatch(ctx context.Context, batch []*delivery) {
	failed, err := r.callTogether(ctx, batch)
	for i, d := range batch {
		each := err
		if each == nil {
			each = failed[i]
		}
		r.finish(ctx, d, each)
	}
}

func (r *runner) callTogether(ctx context.Context, batch []*delivery) ([]error, error) {
	r.lock(batch[0])
	defer r.unlock(batch[0])
	began := r.window.startCall()
	all, err := r.callBatch(ctx, batch)
	r.window.endCall(began, len(batch))
	return all, err
}

// callBatch calls the handler and returns an error, or nil, for each event; err
// is that of a panic.
func (r *runner) callBatch(ctx context.Context, batch []*delivery) (all []error, err error) {
	defer recovered(&err)
	if r.spec.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, r.spec.Timeout)
		defer cancel()
	}
	events := make([]*Event, len(batch))
	for i, d := range batch {
		events[i] = &d.Event
	}
	all = make([]error, len(batch))
	copy(all, r.spec.Batch(ctx, events))
	return all, nil
}
