package dynamostore

import (
	"context"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

const (
	maxGarbage   = 10_000 // queued; more are left until they are found as orphans
	cleanTimeout = 30 * time.Second
	closeTimeout = 5 * time.Second
)

// garbage is the data that a write made obsolete: items to remove, and then the note that
// lists them.
type garbage struct {
	table string
	keys  []item
	note  item // nil: none
}

// cleaner removes garbage in the background. Correctness does not depend on it:
// readers ignore garbage.
type cleaner struct {
	b    *Backend
	wake chan struct{}
	done chan struct{}

	closeTimeout time.Duration // bounds close

	mu      sync.Mutex
	waiting []garbage
	closed  bool
}

func newCleaner(b *Backend) *cleaner {
	r := &cleaner{b: b, wake: make(chan struct{}, 1), done: make(chan struct{}), closeTimeout: closeTimeout}
	go r.run()
	return r
}

// add queues garbage. It never blocks.
func (r *cleaner) add(l garbage) {
	if len(l.keys) == 0 && l.note == nil {
		return
	}
	r.mu.Lock()
	if len(r.waiting) < maxGarbage && !r.closed {
		r.waiting = append(r.waiting, l)
	}
	r.mu.Unlock()
	r.notify()
}

func (r *cleaner) notify() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// close removes the queued garbage within closeTimeout and stops the cleaner.
func (r *cleaner) close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.notify()
	timer := time.AfterFunc(r.closeTimeout, r.b.cancel)
	defer timer.Stop()
	<-r.done
}

func (r *cleaner) run() {
	defer close(r.done)
	for {
		r.mu.Lock()
		jobs, closed := r.waiting, r.closed
		r.waiting = nil
		r.mu.Unlock()
		switch {
		case len(jobs) > 0:
			r.clean(jobs)
		case closed:
			return
		default:
			<-r.wake
		}
	}
}

// clean removes the garbage of each table in batches, and then the notes.
func (r *cleaner) clean(jobs []garbage) {
	items, notes := make(map[string][]types.WriteRequest), make(map[string][]types.WriteRequest)
	for _, job := range jobs {
		items[job.table] = append(items[job.table], deletions(job.keys)...)
		if job.note != nil {
			notes[job.table] = append(notes[job.table], deletions([]item{job.note})...)
		}
	}
	ctx, cancel := context.WithTimeout(r.b.ctx, cleanTimeout)
	defer cancel()
	for table, writes := range items {
		err := r.b.writeAll(ctx, table, distinct(writes))
		if err == nil {
			err = r.b.writeAll(ctx, table, distinct(notes[table]))
		}
		if err != nil && r.b.ctx.Err() == nil {
			r.b.log.Warn("obsolete items of writes can't be removed; they will be removed later", "table", table,
				"error", err)
		}
	}
}

// distinct removes duplicates, which DynamoDB refuses in a batch.
func distinct(writes []types.WriteRequest) []types.WriteRequest {
	seen := make(map[string]bool, len(writes))
	var once []types.WriteRequest
	for _, w := range writes {
		key := textOf(w.DeleteRequest.Key[attrPartition]) + "/" + string(bytesOf(w.DeleteRequest.Key[attrSort]))
		if !seen[key] {
			seen[key] = true
			once = append(once, w)
		}
	}
	return once
}
