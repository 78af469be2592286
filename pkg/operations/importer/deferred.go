package importer

import (
	"context"
	"errors"
	"net/http"
	"sync"
)

// maxDeferred is how many bytes of objects wait at most for those that they name.
const maxDeferred = 64 << 20

// deferred is an object that the server has refused because it names objects of the store that do not exist: they may
// come later in the input. It is sent again at the end.
type deferred struct {
	n       int64 // of the item
	uuid    string
	body    []byte
	refused *Failure
}

// deferItem reports whether an item that the server has refused is sent again at the end.
func (i *Import) deferItem(it *item, uuid string, body []byte, r *reply) bool {
	if r.status != http.StatusBadRequest || len(r.fields) == 0 || i.opts.StopOnFailure || i.opts.Refers == nil {
		return false
	}
	for _, field := range r.fields {
		if !i.opts.Refers(field.Pointer) {
			return false
		}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.deferredBytes+len(body) > maxDeferred {
		return false
	}
	i.deferredBytes += len(body)
	i.deferred = append(i.deferred, deferred{it.n, uuid, body, r.failure(it, uuid)})
	return true
}

// sendDeferred sends the deferred objects again, as long as some are created that others may name. Those that are left
// have failed. Objects whose outcome is unknown when it returns an error stay deferred.
func (i *Import) sendDeferred(ctx, request context.Context) error {
	for {
		i.mu.Lock()
		all := i.deferred
		i.mu.Unlock()
		if len(all) == 0 {
			return nil
		}
		left, err := i.sendAgain(ctx, request, all)
		i.mu.Lock()
		i.deferred = left
		i.mu.Unlock()
		if err != nil {
			return err
		}
		if len(left) < len(all) {
			continue
		}
		i.mu.Lock()
		i.deferred = nil
		i.mu.Unlock()
		for _, d := range left {
			i.recordFailure(d.refused)
		}
		return nil
	}
}

// sendAgain sends deferred objects once, several at once, and returns those that are left.
func (i *Import) sendAgain(ctx, request context.Context, all []deferred) (left []deferred, err error) {
	var (
		workers sync.WaitGroup
		mu      sync.Mutex
		next    int
	)
	take := func() (d deferred, ok bool) {
		mu.Lock()
		defer mu.Unlock()
		if next == len(all) || err != nil || ctx.Err() != nil {
			return d, false
		}
		next++
		return all[next-1], true
	}
	for range min(i.opts.Concurrency, len(all)) {
		workers.Go(func() {
			for d, ok := take(); ok; d, ok = take() {
				result, failed := i.sender.send(ctx, request, d.uuid, d.body)
				var refusal *reply
				if failed == nil {
					i.countResult(result)
					continue
				}
				mu.Lock()
				left = append(left, d)
				if !errors.As(failed, &refusal) {
					err = failed
				}
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	if left = append(left, all[next:]...); err == nil && next < len(all) {
		err = context.Cause(ctx)
	}
	return left, err
}
