package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// arrayed are parents with arrays of one size. Each child has an entry in one of them.
type arrayed struct {
	run     string // begins the uuids
	parents int
	entries int // of an array
	bytes   int // of an entry with its comma

	updated atomic.Int64 // updates of children so far
}

// firstYear is that of children as they are created. Each pass of updates over all children sets another, of as many
// digits.
const firstYear, years = 1000, 9000

func (a *arrayed) parent(n int) string { return fmt.Sprintf("p%s-%05d", a.run, n) }

func (a *arrayed) child(parent, n int) string { return fmt.Sprintf("c%s-%05d-%05d", a.run, parent, n) }

func (a *arrayed) children() int { return a.parents * a.entries }

// create is the child of a number, in the order of the parents. Its title makes its entry as large as those of the
// array.
func (a *arrayed) create(i int) []byte {
	uuid := a.child(i/a.entries, i%a.entries)
	entry := fmt.Sprintf(`{"uuid":%q,"title":"","year":%d},`, uuid, firstYear)
	title := letters(i, max(0, a.bytes-len(entry)))
	return fmt.Appendf(nil, `{"uuid":%q,"parent":%q,"title":%q,"year":%d,"note":"what is not in the array"}`, uuid,
		a.parent(i/a.entries), title, firstYear)
}

// letters are some that do not repeat, as text hardly does: tables are compressed.
func letters(seed, n int) string {
	random := rand.New(rand.NewPCG(uint64(seed), 1))
	text := make([]byte, n)
	for i := range text {
		text[i] = byte('a' + random.IntN(26))
	}
	return string(text)
}

// update is the path and the body of the update of a number: of the children of one parent after the other, of each
// child again after all others, and so that its entry changes.
func (a *arrayed) update(i int) (path string, body []byte) {
	pass := i / a.children()
	path = "/children/" + a.child(i%a.parents, i/a.parents%a.entries)
	return path, fmt.Appendf(nil, `{"year":%d}`, firstYear+(pass+1)%years)
}

// fill creates the parents and the children by streams, and waits until all entries are in the arrays.
func (a *arrayed) fill(ctx context.Context, s *server) error {
	parents := linesOf(0, a.parents, func(i int) []byte { return fmt.Appendf(nil, `{"uuid":%q}`, a.parent(i)) })
	if err := createLines(ctx, s.base+"/parents", parents, a.parents); err != nil {
		return err
	}
	for from := 0; from < a.children(); from += queryStream {
		to := min(from+queryStream, a.children())
		if err := createLines(ctx, s.base+"/children", linesOf(from, to, a.create), to-from); err != nil {
			return err
		}
		// What waits in the log is bounded.
		if err := mapped(s); err != nil {
			return err
		}
	}
	return nil
}

// next sends the next update.
func (a *arrayed) next(c *client, _ int) error {
	path, body := a.update(int(a.updated.Add(1)) - 1)
	return expect(c, 200, "PUT", path, body)
}

// waiting has a client wait until what a request causes is applied.
func waiting(one func(c *client, i int) error) func(c *client, i int) error {
	return func(c *client, i int) error {
		c.header = "Prefer: wait=30\r\n"
		return one(c, i)
	}
}

// paced is what was measured of requests at a rate.
type paced struct {
	result
	late []time.Duration // of the generator. Sorted
}

// atRate sends requests at a rate, as far as the connections suffice.
func atRate(base string, rate int, took time.Duration, one func(c *client, i int) error) (p paced, err error) {
	var mu sync.Mutex
	var all []time.Duration
	began := time.Now()
	p.result, err = closedLoop(base, connections, int(float64(rate)*took.Seconds()), func(c *client, i int) error {
		due := began.Add(time.Duration(i) * time.Second / time.Duration(rate))
		time.Sleep(time.Until(due))
		sent := time.Now()
		err := one(c, i)
		replied := time.Now()
		mu.Lock()
		defer mu.Unlock()
		all, p.late = append(all, replied.Sub(sent)), append(p.late, sent.Sub(due))
		return err
	})
	slices.Sort(all)
	slices.Sort(p.late)
	p.latencies = all
	return p, err
}
