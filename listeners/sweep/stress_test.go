package sweep_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"belfry/listeners/sweep"
	"belfry/pkg/binary"
	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/test/kit"
)

// Clients add, replace and delete the same few contents, while several sweepers
// delete whatever has no record for a moment. In the end every record has its
// content, and no other content is left.
func TestSoakClientsAndSweepers(t *testing.T) {
	t.Parallel()
	for run := kit.Soak(t, 1); run.More(); {
		clientsAndSweepers(t, run)
	}
}

func clientsAndSweepers(t *testing.T, run *kit.SoakRun) {
	t.Helper()
	const clients, sweepers, texts, books = 8, 3, 6, 5
	acts := 40
	if run.Long() {
		acts = 300
	}
	f := newFixture(t, options{grace: time.Millisecond})
	for i := range books {
		f.save("Books", fmt.Sprint("b", i))
	}
	var working, serving sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	failures := make(chan error, 1000)
	fail := func(err error) {
		if err != nil && ctx.Err() == nil {
			failures <- err
		}
	}
	for i := range clients {
		working.Go(func() {
			random := rand.New(rand.NewPCG(run.Seed(), uint64(i)))
			for range acts {
				fail(f.act(random, fmt.Sprint("b", random.IntN(books)), fmt.Sprint("text ", random.IntN(texts))))
			}
		})
	}
	for range sweepers {
		worker := f.newWorker()
		serving.Go(func() {
			for ctx.Err() == nil {
				fail(listen(ctx, worker, f.outbox))
				fail(worker.SweepDue(ctx))
			}
		})
	}
	serving.Go(func() {
		for ctx.Err() == nil {
			fail(f.worker.SweepAll(ctx))
		}
	})
	working.Wait()
	stop()
	serving.Wait()
	close(failures)
	for err := range failures {
		t.Error(err)
	}
	f.converge()
}

// act is one random act of a client.
func (f *fixture) act(random *rand.Rand, book, text string) error {
	ctx, cancel := context.WithCancel(f.Context())
	defer cancel()
	if random.IntN(10) == 0 {
		time.AfterFunc(time.Duration(random.IntN(3000))*time.Microsecond, cancel) // the client disconnects
	}
	var err error
	switch random.IntN(5) {
	case 0, 1:
		err = add(ctx, f.Service, "Books", book, text)
	case 2:
		err = put(ctx, f.Service, place("Books", book, 0), text)
	case 3:
		_, err = f.Delete(ctx, place("Books", book, 0), hashOf(text))
	case 4:
		if random.IntN(4) == 0 {
			err = f.set.Store("Books").Delete(ctx, book, 0)
		} else if _, err = f.set.Store("Books").Save(ctx, object.Object{}, book); errors.Is(err, errs.Exists) {
			err = f.clear(ctx, book)
		}
	}
	switch errs.KindOf(err) {
	case errs.NotFound, errs.Mismatch, errs.Conflict, errs.Canceled:
		return nil // another client was faster, or this one has disconnected
	default:
		return err
	}
}

// clear deletes all binaries of a book.
func (f *fixture) clear(ctx context.Context, book string) error {
	for {
		r, err := f.Get(ctx, place("Books", book, 0))
		if err != nil {
			return err
		}
		if _, err := f.Delete(ctx, place("Books", book, 0), r.Hash); err != nil {
			return err
		}
	}
}

// listen handles events in order, each until it succeeds.
func listen(ctx context.Context, worker *sweep.Worker, out *outbox) error {
	for _, e := range out.take() {
		for {
			err := worker.Handle(ctx, &e)
			if err == nil {
				break
			}
			if !errors.Is(err, errs.Conflict) {
				return err
			}
		}
	}
	return nil
}

// converge sweeps everything, and asserts that every record has its content and
// that no other content, entry or stage is left.
func (f *fixture) converge() {
	f.Helper()
	for range 4 {
		f.ahead.Add(int64(time.Hour)) // past the lease of unfinished deletions
		f.must(f.worker.SweepAll(f.Context()))
		f.deliver()
	}
	report, err := binary.Verify(f.Context(), []*binary.Service{f.Service}, binary.VerifyOptions{Deep: true})
	f.must(err)
	for _, d := range report.Differences {
		f.Errorf("%+v", d)
	}
	f.wantEntries(0)
	if n := f.stages(); n != 0 {
		f.Errorf("%d stages are left", n)
	}
	f.Logf("%d records of %d contents are left", report.Records, report.Contents)
}
