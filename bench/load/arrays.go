package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"belfry/pkg/event"
)

// The load of the part arrays.
const (
	fullEntries = 10_000 // of an array that is full by their number
	smallEntry  = 98     // bytes with the comma: 10,000 are 957 KiB, so that the array is not full by its bytes before
	largeEntry  = 400    // bytes with the comma
	largeFull   = 2_458  // of these make an array full by its bytes

	// updates of the first turn, from whose rate it is computed how many the next one has
	arrayTrial   = 500
	arrayTurn    = 5 * time.Second // at least half of it, and about so long
	arrayLoose   = 20_000          // updates of objects in no array
	arrayRate    = 50              // updates a second where the lag is measured
	arrayLagTurn = 5 * time.Second
)

const arrayStores = serving + `  Parents: {expose: {}}
  Loose: {expose: {}}
  Children:
    expose: {}
    map:
      Parents: {key: parent, target: children, fields: "title, year", cascade: true}
`

// arrays measures updates of objects that have entries in large arrays: in one array, of several sizes, and in several
// that are full.
func (b *bench) arrays(ctx context.Context, full int) error {
	if err := b.withArrays(ctx, b.oneArray); err != nil || full == 0 {
		return err
	}
	return b.withArrays(ctx,
		func(ctx context.Context, s *server, log *eventLog) error { return b.fullArrays(ctx, s, log, full) })
}

// withArrays starts belfry, and verifies all arrays after what was measured.
func (b *bench) withArrays(ctx context.Context,
	measure func(ctx context.Context, s *server, log *eventLog) error) error {
	address, err := freeAddress(ctx)
	if err != nil {
		return err
	}
	s, err := b.serveWith(ctx, withBus(arrayStores, address))
	if err != nil {
		return err
	}
	s.pause = 20 * time.Millisecond
	log, err := openLog(ctx, address)
	if err == nil {
		err = measure(ctx, s, log)
		log.Close()
	}
	if err = errors.Join(err, s.stop()); err != nil {
		return err
	}
	home := filepath.Dir(s.data)
	if out, err := exec.CommandContext(ctx, b.belfry, "verify", "--config",
		filepath.Join(home, "belfry.yaml")).CombinedOutput(); err != nil {
		return fmt.Errorf("belfry verify: %w: %s", err, out)
	}
	fmt.Println("  belfry verify: all arrays are what their objects say")
	return os.RemoveAll(home)
}

// oneArray measures updates of the children of one parent for each size of its array, beside objects in no array.
func (b *bench) oneArray(ctx context.Context, s *server, log *eventLog) error {
	fmt.Printf("updates of the children of one parent, over %d connections:\n", connections)
	loose, err := looseUpdates(s)
	if err != nil {
		return err
	}
	for _, a := range []*arrayed{
		{run: "a", parents: 1, entries: 100, bytes: smallEntry},
		{run: "b", parents: 1, entries: 1_000, bytes: smallEntry},
		{run: "c", parents: 1, entries: fullEntries, bytes: smallEntry},
		{run: "d", parents: 1, entries: largeFull, bytes: largeEntry},
	} {
		if err := a.fill(ctx, s); err != nil {
			return err
		}
		if err := b.measureArrays(ctx, s, log, a, loose); err != nil {
			return err
		}
	}
	return nil
}

// fullArrays measures updates that are spread over several parents with full arrays, and what other requests notice of
// them.
func (b *bench) fullArrays(ctx context.Context, s *server, log *eventLog, parents int) error {
	a := &arrayed{run: "f", parents: parents, entries: largeFull, bytes: largeEntry}
	small := &arrayed{run: "s", parents: 10, entries: 100, bytes: smallEntry}
	began := time.Now()
	if err := errors.Join(small.fill(ctx, s), a.fill(ctx, s)); err != nil {
		return err
	}
	fmt.Printf("updates spread over %d parents with full arrays, which were filled in %s; resident %d MB:\n", parents,
		short(time.Since(began)), s.resident()>>20)
	loose, err := looseUpdates(s)
	if err != nil {
		return err
	}
	if err := b.measureArrays(ctx, s, log, a, loose); err != nil {
		return err
	}
	if err := beside(s, "updates of objects in no array", small, updateLoose); err != nil {
		return err
	}
	return beside(s, "updates of children in full arrays", small, a.next)
}

// looseObjects are those in no array.
const looseObjects = 1000

// updateLoose updates one of the objects in no array.
func updateLoose(c *client, i int) error {
	return expect(c, 200, "PUT", fmt.Sprintf("/loose/u-%08d", i%looseObjects),
		fmt.Appendf(nil, `{"year":%d}`, firstYear+(i/looseObjects+1)%years))
}

// looseUpdates measures updates of objects in no array.
func looseUpdates(s *server) (arrayCost, error) {
	if _, err := closedLoop(s.base, connections, looseObjects, create("/loose", "u")); err != nil {
		return arrayCost{}, err
	}
	cost, err := measureUpdates(s, arrayLoose, func(n int) error {
		_, err := closedLoop(s.base, connections, n, updateLoose)
		return err
	})
	if err == nil {
		fmt.Printf("  in no array: %.0f/s, %.0f µs of processor an update, %s to the disk\n", cost.rate(),
			micros(cost.cpu, cost.updates), size(cost.disk()))
	}
	return cost, err
}

// measureArrays measures updates of children with entries in arrays, and prints what they cost.
func (b *bench) measureArrays(ctx context.Context, s *server, log *eventLog, a *arrayed, loose arrayCost) error {
	send := func(n int) error {
		_, err := closedLoop(s.base, connections, n, a.next)
		return err
	}
	if err := s.resetPeak(); err != nil {
		return err
	}
	var cost arrayCost
	if err := b.profiled(ctx, s, fmt.Sprintf("arrays-%d-%d", a.parents, a.entries), int(arrayTurn.Seconds()),
		func() (err error) {
			cost, err = enoughUpdates(arrayTrial, func(n int) (arrayCost, error) { return measureUpdates(s, n, send) })
			return err
		}); err != nil {
		return err
	}
	peak := s.status("VmHWM")
	lag, err := atRate(s.base, arrayRate, arrayLagTurn, waiting(a.next))
	if err != nil {
		return err
	}
	record, published, err := sizesOf(ctx, s, log, a)
	if err != nil {
		return err
	}
	cost.print(a, record, loose)
	fmt.Printf("    the event of a write: %s; resident at most %d MB\n", published, peak>>20)
	fmt.Printf("    at %d updates/s: in the array p50 %s, p99 %s after the request\n", arrayRate,
		short(lag.percentile(0.5)), short(lag.percentile(0.99)))
	return nil
}

func (c arrayCost) print(a *arrayed, record int, loose arrayCost) {
	updates, seconds := float64(c.updates), c.took.Seconds()
	fmt.Printf("  arrays of %d entries of %d bytes, %s, of %d parents:\n", a.entries, a.bytes, size(float64(record)),
		a.parents)
	fmt.Printf("    %d updates, all in the arrays after %s: %.0f/s, %.0f %% of those in no array; %.1f updates a "+
		"write, %.1f writes/s\n",
		c.updates, short(c.took), c.rate(), 100*c.rate()/loose.rate(), c.batch(), float64(c.writes)/seconds)
	fmt.Printf("    an update writes %s of arrays, %.1f times its entry, and %s to the disk, %.1f times, of which "+
		"the log of events %s; %.0f MB/s to the disk\n",
		size(c.records(record)), c.records(record)/float64(a.bytes), size(c.disk()), c.disk()/float64(a.bytes),
		size(float64(c.log)/updates), float64(c.written)/1e6/seconds)
	fmt.Printf("    %.0f µs of processor an update, of which %.0f for the array; %.0f %% of the processors\n",
		micros(c.cpu, c.updates), micros(c.cpu, c.updates)-micros(loose.cpu, loose.updates),
		100*c.cpu.Seconds()/seconds/float64(runtime.NumCPU()))
}

// sizesOf returns the size of a parent, and what the last event of its array is like.
func sizesOf(ctx context.Context, s *server, log *eventLog, a *arrayed) (record int, published string, err error) {
	c, err := dial(s.base)
	if err != nil {
		return 0, "", err
	}
	defer c.close()
	if err := expect(c, 200, "GET", "/parents/"+a.parent(0), nil); err != nil {
		return 0, "", err
	}
	m, err := log.stream.GetLastMsgForSubject(ctx, event.Subject(event.StoreUpdated, "Parents", a.parent(0)))
	if err != nil {
		return 0, "", err
	}
	e, err := event.Decode(m.Data)
	has := "the object and the array before"
	switch {
	case e.ObjectOmitted && e.PreviousOmitted:
		has = "neither the object nor the array before"
	case e.ObjectOmitted:
		has = "the array before alone"
	}
	return len(c.body), size(float64(len(m.Data))) + ", with " + has, err
}

// The load beside which other requests are measured.
const (
	besideRate = 100 // updates a second
	besideTurn = 8 * time.Second
)

// beside measures other requests beside updates at a rate.
func beside(s *server, name string, small *arrayed, update func(c *client, i int) error) error {
	if err := s.resetPeak(); err != nil {
		return err
	}
	loads := []struct {
		name string
		rate int
		one  func(c *client, i int) error
	}{
		{"these updates", besideRate, update},
		{"gets", 200, func(c *client, i int) error {
			return expect(c, 200, "GET", fmt.Sprintf("/loose/u-%08d", i%looseObjects), nil)
		}},
		{"creates", 100, create("/loose", fmt.Sprint("b", time.Now().UnixNano()))},
		{"updates until they are in an array of 100", 50, waiting(small.next)},
	}
	results, failed := make([]paced, len(loads)), make([]error, len(loads))
	var running sync.WaitGroup
	began := time.Now()
	for i, l := range loads {
		running.Go(func() { results[i], failed[i] = atRate(s.base, l.rate, besideTurn, l.one) })
	}
	running.Wait()
	err := errors.Join(append(failed, mapped(s))...)
	fmt.Printf("  beside %d %s a second (after %s all were applied; resident at most %d MB):\n", besideRate, name,
		short(time.Since(began)), s.status("VmHWM")>>20)
	for i, l := range loads {
		fmt.Printf("    %s, %d/s: p50 %s, p99 %s (the generator was late by p99 %s)\n",
			l.name, l.rate, short(results[i].percentile(0.5)), short(results[i].percentile(0.99)),
			short(percentile(results[i].late, 0.99)))
	}
	return err
}
