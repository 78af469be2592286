package dynamostore

import (
	"context"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

const (
	broomJobs  = 10_000 // that wait at most; more are left to be found as leftovers
	broomTime  = 30 * time.Second
	broomClose = 5 * time.Second
)

// litter is what a write made useless: items to be removed, and after them a
// note that names them.
type litter struct {
	table string
	keys  []item
	note  item // nil: none
}

// broom removes litter behind the callers' backs. Nothing depends on it:
// readers know litter when they see it.
type broom struct {
	b    *Backend
	wake chan struct{}
	done chan struct{}

	atClose time.Duration // how long close removes at most

	mu      sync.Mutex
	waiting []litter
	closed  bool
}

func newBroom(b *Backend) *broom {
	r := &broom{b: b, wake: make(chan struct{}, 1), done: make(chan struct{}), atClose: broomClose}
	go r.run()
	return r
}

// add hands litter over. It never blocks.
func (r *broom) add(l litter) {
	if len(l.keys) == 0 && l.note == nil {
		return
	}
	r.mu.Lock()
	if len(r.waiting) < broomJobs && !r.closed {
		r.waiting = append(r.waiting, l)
	}
	r.mu.Unlock()
	r.nudge()
}

func (r *broom) nudge() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// close removes what waits, for a few seconds at most, and ends the broom.
func (r *broom) close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.nudge()
	timer := time.AfterFunc(r.atClose, r.b.end)
	defer timer.Stop()
	<-r.done
}

func (r *broom) run() {
	defer close(r.done)
	for {
		r.mu.Lock()
		jobs, closed := r.waiting, r.closed
		r.waiting = nil
		r.mu.Unlock()
		switch {
		case len(jobs) > 0:
			r.sweep(jobs)
		case closed:
			return
		default:
			<-r.wake
		}
	}
}

// sweep removes litter of each table in batches, and then the notes.
func (r *broom) sweep(jobs []litter) {
	items, notes := make(map[string][]types.WriteRequest), make(map[string][]types.WriteRequest)
	for _, job := range jobs {
		items[job.table] = append(items[job.table], deletions(job.keys)...)
		if job.note != nil {
			notes[job.table] = append(notes[job.table], deletions([]item{job.note})...)
		}
	}
	ctx, cancel := context.WithTimeout(r.b.life, broomTime)
	defer cancel()
	for table, writes := range items {
		err := r.b.writeAll(ctx, table, distinct(writes))
		if err == nil {
			err = r.b.writeAll(ctx, table, distinct(notes[table]))
		}
		if err != nil && r.b.life.Err() == nil {
			r.b.log.Warn("leftovers of writes stay in a table for now", "table", table, "error", err)
		}
	}
}

// distinct leaves out what is to be removed twice, which DynamoDB refuses in
// one batch.
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
