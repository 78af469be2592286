package idempotent

import (
	"sync"
	"time"

	"belfry/internal/ratelimit"
	"belfry/pkg/errs"
)

// Kept limits the bytes of the replies that are kept for each client. A request of a few bytes can have a reply of
// MaxReply, which is kept for KeyRetention. Kept counts the replies of this process since it started. It is safe
// for concurrent use.
type Kept struct {
	now func() time.Time

	mu      sync.Mutex
	max     int64 // 0: no limit
	clients *ratelimit.Table[keptOf]
}

// slot is how long replies are added up: they count for up to so much longer than they are kept.
const slot = time.Hour

// slots is how many of them a reply is kept for, and the one that has begun.
const slots = int(KeyRetention/slot) + 1

// keptOf has the replies that are kept for a client.
type keptOf struct {
	newest int64 // the number of the slot that has begun
	bytes  [slots]int64
}

// NewKept returns a limit of so many bytes for each client; 0 means no limit. now is nil for
// time.Now.
func NewKept(most int64, now func() time.Time) *Kept {
	if now == nil {
		now = time.Now
	}
	k := &Kept{now: now, max: most}
	k.clients = ratelimit.NewTable(func(of *keptOf) bool {
		now := of.at(k.slot())
		return now.sum() == 0
	})
	return k
}

// SetMax sets another limit; kept replies count.
func (k *Kept) SetMax(most int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.max = most
}

func (k *Kept) slot() int64 { return k.now().UnixNano() / int64(slot) }

// at returns the bytes that are kept at the time of a slot.
func (of keptOf) at(number int64) keptOf {
	for ; of.newest < number; of.newest++ {
		if number-of.newest > int64(slots) {
			of.bytes = [slots]int64{}
			of.newest = number - 1
		}
		of.bytes[(of.newest+1)%int64(slots)] = 0
	}
	return of
}

func (of *keptOf) sum() (bytes int64) {
	for _, n := range of.bytes {
		bytes += n
	}
	return bytes
}

// check reports Limited for a client that has reached the limit. "" is a client without a limit.
func (k *Kept) check(client string) error {
	if k == nil || client == "" {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	of := k.clients.Get(client)
	if of == nil || k.max <= 0 {
		return nil
	}
	now := k.slot()
	*of = of.at(now)
	left := of.sum()
	if left < k.max {
		return nil
	}
	oldest := now - int64(slots) + 1
	for ; left >= k.max; oldest++ {
		left -= of.bytes[oldest%int64(slots)]
	}
	ends := time.Unix(0, (oldest+int64(slots)-1)*int64(slot))
	return &errs.Error{Kind: errs.Limited, RetryAfter: max(time.Second, ends.Sub(k.now())),
		Message: "the replies to your requests with an Idempotency-Key, which are kept for 24 hours, have more bytes " +
			"than are kept for you: send the request without a key, or later"}
}

// add counts a reply that is kept.
func (k *Kept) add(client string, bytes int) {
	if k == nil || client == "" {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	of, _ := k.clients.GetOrCreate(client)
	now := k.slot()
	*of = of.at(now)
	of.bytes[now%int64(slots)] += int64(bytes)
}
