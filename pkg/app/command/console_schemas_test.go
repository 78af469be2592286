package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"belfry/pkg/api/console"
	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/test/kit"
	"belfry/test/model"
)

// refusing is a schema that refuses every object, and waits at one of them.
type refusing struct {
	digest  string
	waitsAt int64
	reached chan struct{}
	seen    *atomic.Int64
}

func (r *refusing) Digest() string { return r.digest }

func (r *refusing) Validate(ctx context.Context, _ []byte) error {
	if r.seen.Add(1) == r.waitsAt {
		close(r.reached)
		<-ctx.Done()
		return errs.Wrap(ctx.Err(), errs.Canceled, "the document was not validated to the end")
	}
	found := &errs.Error{Kind: errs.Invalid, Message: "the document does not match its schema"}
	for i := range 15 {
		found.Fields = append(found.Fields,
			errs.Field{Pointer: fmt.Sprintf("/%d", i), Message: "must not be", Keyword: "false"})
	}
	return found
}

// unreachable is a driver whose backend can't be reached.
type unreachable struct{ driver.Store }

func (unreachable) Scan(context.Context, []byte, int) (driver.Page, error) {
	return driver.Page{}, errs.Wrap(errors.New("dial tcp 10.0.0.7"), errs.Unavailable, "the backend is unavailable")
}

type unreachableBackend struct{ driver.Backend }

func (b unreachableBackend) Open(ctx context.Context, spec driver.Spec) (driver.Store, error) {
	s, err := b.Backend.Open(ctx, spec)
	return unreachable{s}, err
}

// checking is the schema checks of processes that share a store.
type checking struct {
	*testing.T
	records *store.Store
	books   atomic.Pointer[store.Store] // as it is served
	schema  *refusing
}

const checkedBooks = 600

// more than a page

func newChecking(t *testing.T) *checking {
	t.Helper()
	backend := model.NewMemory()
	open := func(b driver.Backend, o store.Options) *store.Store {
		s, err := store.Open(t.Context(), b, o)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	f := &checking{T: t, records: open(backend, store.Options{Name: "Tokens"}),
		schema: &refusing{digest: "first", reached: make(chan struct{}), seen: &atomic.Int64{}}}
	books := open(backend, store.Options{Name: "Books"})
	for i := range checkedBooks {
		if _, err := books.Save(t.Context(), object.Object{}, fmt.Sprintf("b-%04d", i)); err != nil {
			t.Fatal(err)
		}
	}
	f.serve(books, f.schema)
	return f
}

// serve serves books with a schema.
func (f *checking) serve(books *store.Store, schema store.Validator) {
	f.books.Store(books.WithOptions(func(o *store.Options) { o.Schema = schema }))
}

func (f *checking) process(ctx context.Context, log io.Writer) *consoleRuns {
	if log == nil {
		log = io.Discard
	}
	r := testRuns(Schema.Untyped(), ctx, log, f.records, &Place{})
	r.host.Now = func() *Place { return &Place{Set: store.NewSet([]*store.Store{f.books.Load()}, nil)} }
	r.host.Serving = func(bool) (*Place, func()) { return r.host.Now(), func() {} }
	return r
}

// schemaCheck is a run with what it has found.
type schemaCheck struct {
	*console.Run
	store.SchemaReport
}

func (f *checking) last(c *consoleRuns) *schemaCheck {
	f.Helper()
	last, err := c.Last(f.Context())
	if err != nil {
		f.Fatal(err)
	}
	if last == nil {
		return nil
	}
	found := &schemaCheck{Run: last}
	found.SchemaReport, _ = last.Progress.(store.SchemaReport)
	if out, ok := last.Out.(*store.SchemaReport); ok {
		found.SchemaReport = *out
	}
	return found
}

// until waits until a process shows what is expected.
func (f *checking) until(c *consoleRuns, what string, right func(*schemaCheck) bool) *schemaCheck {
	f.Helper()
	kit.WaitFor(f, what, func() bool { last := f.last(c); return last != nil && right(last) })
	return f.last(c)
}

// found checks what is shown of a run that has seen one page, or all objects.
func (f *checking) found(last *schemaCheck, objects int) {
	f.Helper()
	if last.Objects != objects || last.Failing != objects || last.About != checkedBooks || len(last.First) != 10 ||
		last.By != "ada" || last.Store != "Books" || last.Schema != "first" {
		f.Errorf("%+v", last)
		return
	}
	if first := last.First[0]; first.UUID != "b-0000" || len(first.Errors) != 10 || first.More != 5 {
		f.Errorf("%+v", first)
	}
}

// All processes show a run, which any of them stops; what it has found until then stays.
func TestASchemaCheckOfOneProcessIsShownAndStoppedByAnother(t *testing.T) {
	f, log := newChecking(t), &bytes.Buffer{}
	one, other := f.process(t.Context(), log), f.process(t.Context(), log)
	if f.last(one) != nil {
		t.Error("a run before the first")
	}
	f.schema.waitsAt = 501
	if err := one.Start(t.Context(), "ada", "r-17", url.Values{"store": {"Books"}}); err != nil {
		t.Fatal(err)
	}
	<-f.schema.reached
	if err := other.Start(t.Context(), "bob", "", url.Values{"store": {"Books"}}); !errors.Is(err, errs.Conflict) {
		t.Errorf("a second run in another process: %v", err)
	}
	for _, c := range []*consoleRuns{one, other} {
		last := f.until(c, "the first page", func(l *schemaCheck) bool { return l.Objects > 0 })
		if f.found(last, 500); !last.Running() {
			t.Errorf("%+v", last)
		}
	}
	if err := other.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	one.running.Wait()
	for _, c := range []*consoleRuns{one, other} {
		last := f.last(c)
		if f.found(last, 500); last.Running() || last.Problem() != "the run was stopped." {
			t.Errorf("after the stop: %+v", last)
		}
	}
	if err := other.Start(t.Context(), "ada", "", url.Values{"store": {"Books"}}); err != nil {
		t.Fatal(err)
	}
	other.running.Wait()
	for _, c := range []*consoleRuns{one, other} {
		if last := f.last(c); last.Err != nil || last.Running() {
			t.Errorf("%+v", last)
		}
		f.found(f.last(c), checkedBooks)
	}
	if log.Len() > 0 {
		t.Errorf("logged: %s", log)
	}
}

// What is found by one schema says nothing about another.
func TestASchemaCheckEndsWhenAnotherSchemaIsServed(t *testing.T) {
	f, log := newChecking(t), &bytes.Buffer{}
	c := f.process(t.Context(), log)
	books := f.books.Load()
	f.serve(books, &servesOther{refusing: f.schema, of: f, books: books})
	if err := c.Start(t.Context(), "ada", "r-17", url.Values{"store": {"Books"}}); err != nil {
		t.Fatal(err)
	}
	c.running.Wait()
	last := f.last(c)
	if f.found(last, 500); !strings.Contains(last.Problem(), "was reloaded meanwhile, with another schema of Books") ||
		log.Len() > 0 {
		t.Errorf("%+v, logged: %s", last.Problem(), log)
	}
}

// servesOther has another schema served from the tenth object on.
type servesOther struct {
	*refusing
	of    *checking
	books *store.Store
}

func (s *servesOther) Validate(ctx context.Context, doc []byte) error {
	err := s.refusing.Validate(ctx, doc)
	if s.seen.Load() == 10 {
		s.of.serve(s.books, &refusing{digest: "second"})
	}
	return err
}

func TestASchemaCheckOfABackendThatIsAwayFails(t *testing.T) {
	f, log := newChecking(t), &bytes.Buffer{}
	books, err := store.Open(t.Context(), unreachableBackend{model.NewMemory()}, store.Options{Name: "Books"})
	if err != nil {
		t.Fatal(err)
	}
	f.serve(books, f.schema)
	c, other := f.process(t.Context(), log), f.process(t.Context(), log)
	if err := c.Start(t.Context(), "ada", "r-17", url.Values{"store": {"Books"}}); err != nil {
		t.Fatal(err)
	}
	c.running.Wait()
	for _, process := range []*consoleRuns{c, other} {
		last := f.last(process)
		if want := "The run ended early: the backend is unavailable. The log has the cause under the request r-17. " +
			"Try again."; last.Running() || last.Problem() != want {
			t.Errorf("%+v: %s", last, last.Problem())
		}
	}
	if !strings.Contains(log.String(), "dial tcp 10.0.0.7") {
		t.Errorf("the log has not the cause: %s", log)
	}
}
