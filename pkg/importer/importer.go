// Package importer loads a JSON array or JSON lines into a store over HTTP,
// many objects at once, in memory that does not grow with the input.
//
// Repeating an import is harmless. Each object is created under a uuid that is
// the same every time: its own, that of a field chosen for it, or one derived
// from its place in the input and its content. What is there already is passed
// over. That makes an interrupted import resumable without a record of how far
// it came, and a request that got no answer repeatable.
//
// What the server refuses is reported with its place and the import goes on; a
// server that is away or asks for patience is waited for, within bounds.
package importer

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/store/object"
)

// DefaultConcurrency is how many objects are on their way at once.
const DefaultConcurrency = 16

const (
	requestTimeout = 2 * time.Minute
	// grace is how long requests on their way may still take when an import
	// is interrupted.
	grace = 5 * time.Second
)

// Validator judges a whole object; it reports errs.Invalid.
type Validator interface {
	Validate(ctx context.Context, doc []byte) error
}

// Options say what is imported and how. URL is required unless DryRun is set.
type Options struct {
	URL         string            // of the store's collection
	Transport   http.RoundTripper // nil: one with a connection for each object on its way
	Token       string            // of a session, on whose behalf objects are sent; "": nobody's
	Concurrency int               // 0: DefaultConcurrency
	Key         string            // field whose value is the uuid; "": uuid, else a derived one
	Batch       string            // makes derived uuids differ from those of other imports
	Skip        int64             // objects at the beginning of the input to pass over
	Update      bool              // update what is there already
	Stop        bool              // end at the first object that is not taken
	DryRun      bool              // send nothing

	// Owned reports the fields that are not sent, because the server owns
	// them and would leave them out as well. nil: none.
	Owned func(field string) bool

	// What a dry run checks besides JSON and uuids.
	Schema  Validator // nil: nothing
	MaxSize int       // bytes of an object; 0: any

	// Failed hears of every object that is not taken, from one goroutine at a
	// time. nil: nobody does.
	Failed func(Failure)
}

// Progress is how far an import is.
type Progress struct {
	Read     int64 // objects taken from the input, those skipped included
	Bytes    int64 // of the input, up to the last object read
	Skipped  int64 // passed over as Options.Skip asks
	Created  int64
	Updated  int64
	Present  int64 // there already
	Checked  int64 // good, in a dry run
	Failed   int64 // not taken
	Complete int64 // so many objects from the beginning need no second try
}

// Import is one run over one input.
type Import struct {
	Options
	sender   sender
	identity identity

	reading sync.Mutex // held while the next item is looked for
	items   splitter
	ended   error // why there is no next item

	mu       sync.Mutex // guards what follows; never held while waiting
	progress Progress
	inHand   []int64 // number of the item that each worker has; 0 for none
	stopped  bool

	reporting sync.Mutex // one call of Failed at a time
}

// New prepares an import.
func New(o Options) *Import {
	if o.Concurrency == 0 {
		o.Concurrency = DefaultConcurrency
	}
	if o.Transport == nil {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.MaxIdleConnsPerHost, t.MaxConnsPerHost = o.Concurrency, o.Concurrency
		o.Transport = t
	}
	if o.Owned == nil {
		o.Owned = func(string) bool { return false }
	}
	i := &Import{Options: o, identity: identity{o.Key, o.Batch}, inHand: make([]int64, o.Concurrency)}
	i.sender.url, i.sender.token, i.sender.update, i.sender.pause.clock = o.URL, o.Token, o.Update, wallClock{}
	i.sender.client = &http.Client{
		Transport: o.Transport, Timeout: requestTimeout,
		// Following a redirect would make a GET of a POST.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return i
}

// Progress may be asked for at any time.
func (i *Import) Progress() Progress {
	i.mu.Lock()
	defer i.mu.Unlock()
	p := i.progress
	p.Complete = p.Read
	for _, n := range i.inHand {
		if n > 0 {
			p.Complete = min(p.Complete, n-1)
		}
	}
	return p
}

// Run imports the input, once. It returns nil when every object has had an
// answer, be it a refusal, or when the first refusal was to end it: the progress
// tells. Else it returns a
// *SyntaxError for an input that can't be read on, the error of a context that
// ended, errs.NotFound when the store takes no objects there, errs.Unavailable
// when the server stayed away, or what reading failed with; requests on their
// way have had their answers then.
func (i *Import) Run(ctx context.Context, input io.Reader) error {
	defer i.sender.client.CloseIdleConnections()
	items, err := split(input)
	if err != nil {
		return err
	}
	i.items = items
	return i.run(ctx)
}

func (i *Import) run(parent context.Context) error {
	ctx, fail := context.WithCancelCause(parent)
	defer fail(nil)
	request, cut := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cut(nil)
	release := context.AfterFunc(ctx, func() {
		time.AfterFunc(grace, func() { cut(context.Cause(ctx)) })
	})
	defer release()

	var workers sync.WaitGroup
	for w := range i.inHand {
		workers.Go(func() {
			if err := i.work(ctx, request, w); err != nil {
				fail(err)
			}
		})
	}
	workers.Wait()
	p := i.Progress()
	switch {
	case ctx.Err() != nil && (i.ended == nil || p.Complete < p.Read):
		return context.Cause(ctx)
	case errors.Is(i.ended, io.EOF):
		return nil
	}
	return i.ended
}

// work handles one item after the other. An item whose fate is open when it
// returns stays in hand.
func (i *Import) work(ctx, request context.Context, w int) error {
	for {
		it := i.take(ctx, w)
		if it == nil {
			return nil
		}
		if err := i.handle(ctx, request, it); err != nil {
			return err
		}
		i.mu.Lock()
		i.inHand[w] = 0
		i.mu.Unlock()
	}
}

// take gets the next item into a worker's hand, nil when there is nothing left
// to do. What is in other hands is not cut short by that.
func (i *Import) take(ctx context.Context, w int) *item {
	i.reading.Lock()
	defer i.reading.Unlock()
	for i.ended == nil && ctx.Err() == nil && !i.isStopped() {
		it, err := i.items.next()
		if err != nil {
			i.ended = err
			return nil
		}
		if i.hand(w, &it) {
			return &it
		}
	}
	return nil
}

func (i *Import) isStopped() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.stopped
}

// hand puts an item into a worker's hand, unless it is to be skipped.
func (i *Import) hand(w int, it *item) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.progress.Read, i.progress.Bytes = it.n, it.end
	if it.n <= i.Skip {
		i.progress.Skipped++
		return false
	}
	i.inHand[w] = it.n
	return true
}

// handle decides the fate of an item; an error leaves it open.
func (i *Import) handle(ctx, request context.Context, it *item) error {
	uuid, body, failure := i.prepare(it)
	if failure == nil && i.DryRun {
		failure = i.check(ctx, it, uuid, body)
		if failure == nil {
			i.count(&i.progress.Checked)
			return nil
		}
	}
	if failure != nil {
		i.refused(failure)
		return nil
	}
	result, err := i.sender.send(ctx, request, uuid, body)
	var refusal *reply
	switch {
	case errors.As(err, &refusal):
		i.refused(refusal.failure(it, uuid))
		return nil
	case err != nil:
		return err
	}
	switch result {
	case created:
		i.count(&i.progress.Created)
	case updated:
		i.count(&i.progress.Updated)
	case present:
		i.count(&i.progress.Present)
	}
	return nil
}

func (i *Import) count(what *int64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	*what++
}

// prepare makes what is sent of an item.
func (i *Import) prepare(it *item) (uuid string, body []byte, failure *Failure) {
	o, failure := it.parse()
	if failure != nil {
		return "", nil, failure
	}
	uuid, err := i.identity.of(o, it.n)
	if err != nil {
		return "", nil, failed(it.at, err)
	}
	for name := range o {
		if i.Owned(name) {
			delete(o, name)
		}
	}
	o["uuid"] = object.AppendString(nil, uuid)
	return uuid, o.Encode(), nil
}

// check judges what the server would, as far as that needs no server.
func (i *Import) check(ctx context.Context, it *item, uuid string, body []byte) *Failure {
	var err error
	switch {
	case i.MaxSize > 0 && len(body) > i.MaxSize:
		err = errs.New(errs.TooLarge, "the object has %d bytes; the store takes at most %d", len(body), i.MaxSize)
	case i.Schema != nil:
		err = i.Schema.Validate(ctx, body)
	}
	if err == nil {
		return nil
	}
	f := failed(it.at, err)
	f.UUID = uuid
	return f
}

func (i *Import) refused(f *Failure) {
	i.mu.Lock()
	i.progress.Failed++
	i.stopped = i.stopped || i.Stop
	i.mu.Unlock()
	if i.Failed != nil {
		i.reporting.Lock()
		defer i.reporting.Unlock()
		i.Failed(*f)
	}
}
