// Package importer loads a JSON array or JSON lines into a store over HTTP,
// many objects at once, in memory that does not grow with the input.
//
// An import is idempotent. Each object is created under a UUID that is the same every
// time: its own, that of a configured field, or one derived from its position in the
// input and its content. Existing objects are skipped. An interrupted import can thus
// be repeated without a record of its progress, and so can a request without a reply.
//
// An object that the server refuses is reported with its position, and the import
// continues. Requests are retried, within limits, when the server is unavailable or
// throttles.
package importer

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/object"
)

// DefaultConcurrency is the default of Options.Concurrency.
const DefaultConcurrency = 16

const (
	requestTimeout = 2 * time.Minute
	// grace is how long requests in flight may still take after an interruption.
	grace = 5 * time.Second
)

// Validator validates an object. It reports errs.Invalid.
type Validator interface {
	Validate(ctx context.Context, doc []byte) error
}

// Options configures an Import. URL is required unless DryRun is set.
type Options struct {
	URL           string            // of the store's collection
	Transport     http.RoundTripper // nil: a default one with a connection for each request in flight
	RootCAs       *x509.CertPool    // with the default transport; nil: those of the system
	Token         string            // session token; "": anonymous
	Concurrency   int               // maximum number of requests in flight; 0: DefaultConcurrency
	Key           string            // field with the UUID; "": the field uuid, or a derived UUID
	Batch         string            // distinguishes derived UUIDs from those of other imports
	Skip          int64             // number of objects at the beginning of the input to skip
	Update        bool              // update existing objects
	StopOnFailure bool              // stop at the first object that fails
	DryRun        bool              // send no requests

	// Omit reports the fields that are not sent, because the server sets them and
	// would ignore them. nil: none.
	Omit func(field string) bool

	// Refers reports whether a field, given by its JSON pointer, names objects of the same store. An object that is
	// refused for such fields alone is sent again at the end: the objects that it names may come later in the input.
	// nil: none does.
	Refers func(pointer string) bool

	// Checks of a dry run besides JSON and UUIDs.
	Schema  Validator // nil: nothing
	MaxSize int       // maximum size of an object; 0: unlimited

	// OnFailure, if not nil, is called with every object that fails, by one goroutine
	// at a time.
	OnFailure func(Failure)
}

// Progress is the progress of an import.
type Progress struct {
	Read     int64 // objects read from the input, including skipped ones
	Bytes    int64 // size of the input up to the last object read
	Skipped  int64 // because of Options.Skip
	Created  int64
	Updated  int64
	Existing int64 // existed and were not updated
	Checked  int64 // success, in a dry run
	Failed   int64 // refused by the server or invalid
	Complete int64 // number of objects from the beginning that need not be repeated
}

// Import imports one input.
type Import struct {
	opts     Options
	sender   sender
	identity identity

	reading sync.Mutex // held while the next item is read
	items   splitter
	ended   error // why there is no next item

	mu       sync.Mutex // guards the following fields; never held while waiting
	progress Progress
	inFlight []int64 // number of the item of each worker; 0 for none
	stopped  bool

	deferred      []deferred
	deferredBytes int

	reporting sync.Mutex // serializes OnFailure
}

// New returns an import.
func New(o Options) *Import {
	if o.Concurrency == 0 {
		o.Concurrency = DefaultConcurrency
	}
	if o.Transport == nil {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.MaxIdleConnsPerHost, t.MaxConnsPerHost = o.Concurrency, o.Concurrency
		if o.RootCAs != nil {
			t.TLSClientConfig = &tls.Config{RootCAs: o.RootCAs, MinVersion: tls.VersionTLS12}
		}
		o.Transport = t
	}
	if o.Omit == nil {
		o.Omit = func(string) bool { return false }
	}
	i := &Import{opts: o, identity: identity{o.Key, o.Batch}, inFlight: make([]int64, o.Concurrency)}
	i.sender.url, i.sender.token, i.sender.update, i.sender.pause.clock = o.URL, o.Token, o.Update, wallClock{}
	i.sender.client = &http.Client{
		Transport: o.Transport, Timeout: requestTimeout,
		// Following a redirect would turn a POST into a GET.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return i
}

// Progress returns the current progress. It may be called at any time.
func (i *Import) Progress() Progress {
	i.mu.Lock()
	defer i.mu.Unlock()
	p := i.progress
	p.Complete = p.Read
	for _, n := range i.inFlight {
		if n > 0 {
			p.Complete = min(p.Complete, n-1)
		}
	}
	for _, d := range i.deferred {
		p.Complete = min(p.Complete, d.n-1)
	}
	return p
}

// Run imports the input. It must be called only once. It returns nil when every object
// has got a reply, or when it stopped at the first failure; see Progress. Otherwise it
// returns a *SyntaxError for malformed input, the error of a context that ended,
// errs.NotFound when the URL does not accept objects, errs.Unavailable when the server
// stayed unavailable, or the error of reading the input. All requests have ended when it
// returns.
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
	for w := range i.inFlight {
		workers.Go(func() {
			if err := i.work(ctx, request, w); err != nil {
				fail(err)
			}
		})
	}
	workers.Wait()
	if errors.Is(i.ended, io.EOF) && ctx.Err() == nil {
		if err := i.sendDeferred(ctx, request); err != nil {
			return err
		}
	}
	p := i.Progress()
	switch {
	case ctx.Err() != nil && (i.ended == nil || p.Complete < p.Read):
		return context.Cause(ctx)
	case errors.Is(i.ended, io.EOF):
		return nil
	}
	return i.ended
}

// work handles one item after the other. An item whose outcome is unknown when it
// returns stays in flight.
func (i *Import) work(ctx, request context.Context, w int) error {
	for {
		it := i.next(ctx, w)
		if it == nil {
			return nil
		}
		if err := i.handle(ctx, request, it); err != nil {
			return err
		}
		i.mu.Lock()
		i.inFlight[w] = 0
		i.mu.Unlock()
	}
}

// next assigns the next item to a worker, nil at the end. Other workers finish their
// items.
func (i *Import) next(ctx context.Context, w int) *item {
	i.reading.Lock()
	defer i.reading.Unlock()
	for i.ended == nil && ctx.Err() == nil && !i.isStopped() {
		it, err := i.items.next()
		if err != nil {
			i.ended = err
			return nil
		}
		if i.assign(w, &it) {
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

// assign assigns an item to a worker, unless it is skipped.
func (i *Import) assign(w int, it *item) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.progress.Read, i.progress.Bytes = it.n, it.end
	if it.n <= i.opts.Skip {
		i.progress.Skipped++
		return false
	}
	i.inFlight[w] = it.n
	return true
}

// handle imports an item. After an error its outcome is unknown.
func (i *Import) handle(ctx, request context.Context, it *item) error {
	uuid, body, failure := i.prepare(it)
	if failure == nil && i.opts.DryRun {
		failure = i.check(ctx, it, uuid, body)
		if failure == nil {
			i.count(&i.progress.Checked)
			return nil
		}
	}
	if failure != nil {
		i.recordFailure(failure)
		return nil
	}
	result, err := i.sender.send(ctx, request, uuid, body)
	var refusal *reply
	switch {
	case errors.As(err, &refusal):
		if !i.deferItem(it, uuid, body, refusal) {
			i.recordFailure(refusal.failure(it, uuid))
		}
		return nil
	case err != nil:
		return err
	}
	i.countResult(result)
	return nil
}

// countResult counts an object that was imported.
func (i *Import) countResult(r outcome) {
	switch r {
	case created:
		i.count(&i.progress.Created)
	case updated:
		i.count(&i.progress.Updated)
	case existing:
		i.count(&i.progress.Existing)
	}
}

func (i *Import) count(what *int64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	*what++
}

// prepare returns the UUID and the request body of an item.
func (i *Import) prepare(it *item) (uuid string, body []byte, failure *Failure) {
	o, failure := it.parse()
	if failure != nil {
		return "", nil, failure
	}
	uuid, err := i.identity.of(o, it.n, it.text)
	if err != nil {
		return "", nil, failed(it.at, err)
	}
	for name := range o {
		if i.opts.Omit(name) {
			delete(o, name)
		}
	}
	o["uuid"] = object.AppendString(nil, uuid)
	return uuid, o.Encode(), nil
}

// check validates an item like the server, as far as possible without it.
func (i *Import) check(ctx context.Context, it *item, uuid string, body []byte) *Failure {
	var err error
	switch {
	case i.opts.MaxSize > 0 && len(body) > i.opts.MaxSize:
		err = errs.New(errs.TooLarge, "the object has %d bytes; the store accepts at most %d", len(body),
			i.opts.MaxSize)
	case i.opts.Schema != nil:
		err = i.opts.Schema.Validate(ctx, body)
	}
	if err == nil {
		return nil
	}
	f := failed(it.at, err)
	f.UUID = uuid
	return f
}

func (i *Import) recordFailure(f *Failure) {
	i.mu.Lock()
	i.progress.Failed++
	i.stopped = i.stopped || i.opts.StopOnFailure
	i.mu.Unlock()
	if i.opts.OnFailure != nil {
		i.reporting.Lock()
		defer i.reporting.Unlock()
		i.opts.OnFailure(*f)
	}
}
