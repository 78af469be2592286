package outbox

import "belfry/pkg/store/driver"

// queue is a FIFO queue.
type queue struct {
	items []driver.Pending
	head  int
}

func (q *queue) len() int { return len(q.items) - q.head }

func (q *queue) push(p driver.Pending) {
	if q.head == len(q.items) {
		q.items, q.head = q.items[:0], 0
	} else if q.head > 1024 && q.head > len(q.items)/2 {
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
	q.items = append(q.items, p)
}

// first returns the oldest event of a queue that is not empty.
func (q *queue) first() driver.Pending { return q.items[q.head] }

func (q *queue) pop() driver.Pending {
	p := q.items[q.head]
	q.items[q.head] = driver.Pending{}
	q.head++
	return p
}
