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
	w := newWorld(t, options{grace: time.Millisecond})
	for i := range books {
		w.save("Books", fmt.Sprint("b", i))
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
				fail(w.act(random, fmt.Sprint("b", random.IntN(books)), fmt.Sprint("text ", random.IntN(texts))))
			}
		})
	}
	for range sweepers {
		worker := w.newWorker()
		serving.Go(func() {
			for ctx.Err() == nil {
				fail(listen(ctx, worker, w.outbox))
				fail(worker.Due(ctx))
			}
		})
	}
	serving.Go(func() {
		for ctx.Err() == nil {
			fail(w.worker.Pass(ctx))
		}
	})
	working.Wait()
	stop()
	serving.Wait()
	close(failures)
	for err := range failures {
		t.Error(err)
	}
	w.settles()
}

// act is what a client does.
func (w *world) act(random *rand.Rand, book, text string) error {
	ctx, cancel := context.WithCancel(w.Context())
	defer cancel()
	if random.IntN(10) == 0 {
		time.AfterFunc(time.Duration(random.IntN(3000))*time.Microsecond, cancel) // the client goes away
	}
	var err error
	switch random.IntN(5) {
	case 0, 1:
		err = add(ctx, w.Service, "Books", book, text)
	case 2:
		err = put(ctx, w.Service, place("Books", book, 0), text)
	case 3:
		_, err = w.Delete(ctx, place("Books", book, 0), hashOf(text))
	case 4:
		if random.IntN(4) == 0 {
			err = w.set.Store("Books").Delete(ctx, book, 0)
		} else if _, err = w.set.Store("Books").Save(ctx, object.Object{}, book); errors.Is(err, errs.Exists) {
			err = w.clear(ctx, book)
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
func (w *world) clear(ctx context.Context, book string) error {
	for {
		r, err := w.Find(ctx, place("Books", book, 0))
		if err != nil {
			return err
		}
		if _, err := w.Delete(ctx, place("Books", book, 0), r.Hash); err != nil {
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
func (w *world) settles() {
	w.Helper()
	for range 4 {
		w.ahead.Add(int64(time.Hour)) // so that deletions which broke off are gone on with
		w.must(w.worker.Pass(w.Context()))
		w.hear()
	}
	report, err := binary.Verify(w.Context(), []*binary.Service{w.Service}, binary.VerifyOptions{Deep: true})
	w.must(err)
	for _, d := range report.Differences {
		w.Errorf("%+v", d)
	}
	w.noted(0)
	if n := w.stages(); n != 0 {
		w.Errorf("%d stages are left", n)
	}
	w.Logf("%d records of %d contents are left", report.Records, report.Contents)
}
