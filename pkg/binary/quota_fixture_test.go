package binary_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/pkg/binary"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
)

// quotas is a fixture whose services share stores, as processes do, and a clock.
type quotas struct {
	*fixture
	backend  driver.Backend
	ahead    atomic.Int64 // how far the clock is ahead
	registry *prometheus.Registry
	quota    binary.Quota
	book     string
}

// sharedBackend opens a store once, as servers do for all processes: the records of a
// folder are locked where they are opened.
type sharedBackend struct {
	driver.Backend
	open map[string]driver.Store
}

func (b *sharedBackend) Open(ctx context.Context, spec driver.Spec) (driver.Store, error) {
	if s := b.open[spec.Name]; s != nil {
		return s, nil
	}
	s, err := b.Backend.Open(ctx, spec)
	b.open[spec.Name] = s
	return s, err
}

// quotaCounts is how long bytes count at most: the grace period and two slots.
const (
	quotaGrace  = time.Hour
	quotaCounts = quotaGrace + quotaGrace/6
)

func newQuotas(t *testing.T, quota binary.Quota) *quotas {
	t.Helper()
	q := &quotas{quota: quota}
	q.fixture = newFixture(t, options{backend: func(b driver.Backend) driver.Backend {
		q.backend = &sharedBackend{Backend: b, open: map[string]driver.Store{}}
		return q.backend
	}})
	q.book = q.save("Books", `{}`)
	q.Service = q.process()
	return q
}

// process is the service of another process.
func (q *quotas) process() *binary.Service {
	q.Helper()
	open := func(o store.Options) *store.Store {
		s, err := store.Open(q.Context(), q.backend, o)
		q.must(err)
		return s
	}
	contents, records := open(binary.ContentsOptions("Contents")), open(binary.QuotasOptions("UploadQuotas"))
	q.registry = prometheus.NewRegistry()
	return binary.New(binary.Options{
		Name: "files", Contents: contents, Storage: q.storage, Grace: quotaGrace, Quotas: records, Quota: q.quota,
		Registry: q.registry,
		Set: store.NewSet([]*store.Store{contents, records,
			open(store.Options{Name: "Books", IndexBinaries: true, Outbox: q.outbox})}, nil),
		Now: q.now,
	})
}

// now is a time that passes by pass alone, and so never from one slot to the next by itself.
func (q *quotas) now() time.Time {
	return time.Date(2030, 1, 1, 0, 2, 0, 0, time.UTC).Add(time.Duration(q.ahead.Load()))
}

func (q *quotas) pass(d time.Duration) { q.ahead.Add(int64(d)) }

// from is the context of a client: of a user, or without a login from a network address.
func (q *quotas) from(user, address string) context.Context {
	c := store.Call{Client: true, Origin: event.OriginHTTP, Ctx: event.Ctx{Address: address}}
	if user != "" {
		c.User = object.Object{"uuid": object.AppendString(nil, user)}
	}
	return store.WithCall(q.Context(), c)
}

var contentNumber atomic.Int64

// content is so many bytes, each time others.
func content(size int) string {
	head := fmt.Sprint(contentNumber.Add(1), " ")
	return (head + strings.Repeat("x", size))[:size]
}

// holds begins an upload whose body is what is written into the pipe, and returns where its result will be. Once it
// ends, writing fails.
func (q *quotas) holds(s *binary.Service, ctx context.Context, size int64) (*io.PipeWriter, <-chan error) {
	body, client := io.Pipe()
	done := make(chan error)
	go func() {
		_, err := s.Put(ctx, binary.Upload{Place: photo(q.book, binary.Append), Body: body, Size: size})
		_ = body.CloseWithError(io.ErrClosedPipe)
		done <- err
	}()
	return client, done
}

// begins is holds, once the first byte has been counted.
func (q *quotas) begins(s *binary.Service, ctx context.Context, size int64) (*io.PipeWriter, <-chan error) {
	q.Helper()
	client, done := q.holds(s, ctx, size)
	_, err := io.WriteString(client, "x")
	q.must(err)
	_, err = client.Write(nil) // is read once the byte before has been counted
	q.must(err)
	return client, done
}

// sends uploads so many bytes, and asserts whether the quota refuses them.
func (q *quotas) sends(s *binary.Service, ctx context.Context, size int, refused bool) {
	q.Helper()
	for _, announced := range []bool{true, false} {
		up := upload(photo(q.book, binary.Append), content(size))
		if !announced {
			up.Size = -1
		}
		before := len(q.stored())
		_, err := s.Put(ctx, up)
		if !refused {
			q.must(err)
			return
		}
		q.kind(err, errs.Limited)
		var limited *errs.Error
		if !errors.As(err, &limited) || limited.RetryAfter <= 0 || limited.RetryAfter > quotaCounts {
			q.Errorf("retry after %s", limited.RetryAfter)
		}
		if len(q.stored()) != before {
			q.Error("the refused upload left a content")
		}
	}
}
