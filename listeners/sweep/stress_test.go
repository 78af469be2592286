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
	"belfry/pkg/store/object"
)

// TestStress has clients attach, replace and take away the same few contents,
// while several sweepers delete whatever is without a record for a moment. In
// the end every record has its content, and nothing else is left.
func TestStress(t *testing.T) {
	const clients, sweepers, acts, texts, books = 8, 3, 150, 6, 5
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
			random := rand.New(rand.NewPCG(uint64(i), 1))
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
	f.settles()
}

// act is what a client does.
func (f *fixture) act(random *rand.Rand, book, text string) error {
	ctx, cancel := context.WithCancel(f.Context())
	defer cancel()
	if random.IntN(10) == 0 {
		time.AfterFunc(time.Duration(random.IntN(3000))*time.Microsecond, cancel) // the client goes away
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
		return nil // others were there before, or the client has gone
	default:
		return err
	}
}

// clear takes all binaries from a book.
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

// listen handles events until each has been handled, one after the other, as
// often as it takes.
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

// settles asserts that nothing is left to do once all has been swept: every
// record has its content, and no content is without a record.
func (f *fixture) settles() {
	f.Helper()
	for range 4 {
		f.ahead.Add(int64(time.Hour)) // so that deletions which broke off are gone on with
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
