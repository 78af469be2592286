package dynamostore_test

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/dynamostore"
	"belfry/test/backing"
	"belfry/test/kit"
)

var created atomic.Int64

// acts is one of everything that can be asked of a store.
func acts(s driver.Store) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"Get": func(ctx context.Context) error { _, _, err := s.Get(ctx, "a"); return err },
		"Put": func(ctx context.Context) error {
			return s.Put(ctx, write(fmt.Sprint("new", created.Add(1)), 0, 1, body("red")))
		},
		"Query": func(ctx context.Context) error {
			_, err := s.Query(ctx, driver.Query{Index: "colour", Equal: [][]byte{[]byte("red")}, Limit: 1})
			return err
		},
		"Scan":    func(ctx context.Context) error { _, err := s.Scan(ctx, nil, 1); return err },
		"Pending": func(ctx context.Context) error { _, _, err := s.Pending(ctx, nil, 1); return err },
		"Clear":   func(ctx context.Context) error { return s.Clear(ctx, []driver.Pending{{UUID: "a", Revision: 1}}) },
		"Purge":   func(ctx context.Context) error { _, err := s.Purge(ctx, 1, 1); return err },
		"Count":   func(ctx context.Context) error { _, _, err := s.Count(ctx); return err },
	}
}

// TestOutage kills the server under a store: everything is Unavailable, and
// works again when the server is back.
func TestOutage(t *testing.T) {
	t.Parallel()
	server := backing.Dynoxide(t)
	host := hostOf(t, server.URL)
	b := openBackend(t, options(server.URL))
	s := openStore(t, b, byColour)
	s.put(write("a", 0, 1, body("red")))
	server.Kill()
	wantKind(t, b.Ping(t.Context()), errs.Unavailable, host)
	for name, act := range acts(s) {
		t.Run(name, func(t *testing.T) { wantKind(t, act(t.Context()), errs.Unavailable, host) })
	}
	server.Restart()
	if err := b.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.holds("a", 1, body("red"))
	s.finds("red", "a")
	s.put(write("a", 1, 2, body("blue")))
	s.finds("blue", "a")
	s.waits("a/1", "a/2")
}

// TestStartsWithoutServer opens a backend before its server is there.
func TestStartsWithoutServer(t *testing.T) {
	t.Parallel()
	server := backing.Dynoxide(t)
	server.Kill()
	b := openBackend(t, options(server.URL))
	wantKind(t, b.Ping(t.Context()), errs.Unavailable, hostOf(t, server.URL))
	_, err := b.Open(t.Context(), driver.Spec{Name: "Books"})
	wantKind(t, err, errs.Unavailable, hostOf(t, server.URL))
	server.Restart()
	openStore(t, b).put(write("a", 0, 1, body()))
}

func hostOf(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}

// gated opens a store behind a gate.
func gated(t *testing.T) (*gate, shop) {
	t.Helper()
	g := newGate(t, backing.Dynoxide(t).URL)
	return g, openStore(t, openBackend(t, options(g.url)), byColour)
}

// TestStuckServer has the server say nothing: a caller's deadline is honoured,
// and without one the backend gives up by itself.
func TestStuckServer(t *testing.T) {
	t.Parallel()
	g, patient := gated(t)
	opts := options(g.url)
	opts.Timeout = 100 * time.Millisecond
	b := openBackend(t, opts)
	s := shop{t: t}
	kit.WaitUntil(t, func() (err error) { s.Store, err = b.Open(t.Context(), books(byColour)); return err })
	g.set(func(string, string) fate { return fate{stuck: true} })
	for name, act := range acts(s) {
		t.Run(name, func(t *testing.T) {
			wantKind(t, act(limited(t, 20*time.Millisecond)), errs.Canceled)
			if name == "Get" || name == "Put" {
				wantKind(t, act(t.Context()), errs.Unavailable)
			}
		})
	}
	g.set(nil)
	patient.put(write("a", 0, 1, body("red")))
	kit.WaitUntil(t, func() error { _, _, err := s.Get(t.Context(), "a"); return err })
}

// TestThrottled has the server throttle: a little is borne, more is told.
func TestThrottled(t *testing.T) {
	t.Parallel()
	g, s := gated(t)
	s.put(write("a", 0, 1, body("red")))
	ops := map[string][]string{
		"Get": {"GetItem"}, "Put": {"UpdateItem", "BatchWriteItem"}, "Query": {"Query"}, "Scan": {"Query"},
		"Pending": {"Query"}, "Clear": {"UpdateItem"}, "Purge": {"Query"}, "Count": {"Query"},
	}
	for name, act := range acts(s) {
		for _, op := range ops[name] {
			t.Run(name+"/"+op, func(t *testing.T) {
				throttled := fate{code: "ProvisionedThroughputExceededException"}
				g.set(always(op, throttled))
				err := act(t.Context())
				wantKind(t, err, errs.Unavailable, "throttles", "belfry_Books")
				if e := (*errs.Error)(nil); !errors.As(err, &e) || e.RetryAfter == 0 {
					t.Errorf("the error %v does not say when to try again", err)
				}
				g.set(times(2, op, throttled))
				if err := act(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestHalfBatches has the server leave batches undone.
func TestHalfBatches(t *testing.T) {
	t.Parallel()
	g, s := gated(t)
	s.put(write("a", 0, 1, body("red")))
	for name, op := range map[string]string{"Put": "BatchWriteItem", "Query": "BatchGetItem"} {
		act := acts(s)[name]
		g.set(always(op, fate{none: true}))
		wantKind(t, act(t.Context()), errs.Unavailable, "throttles")
		g.set(times(2, op, fate{none: true}))
		if err := act(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// TestRefused has the server refuse requests for want of rights.
func TestRefused(t *testing.T) {
	t.Parallel()
	g := newGate(t, backing.Dynoxide(t).URL)
	b := openBackend(t, options(g.url))
	for _, op := range []string{"DescribeTable", "CreateTable", "PutItem", "GetItem"} {
		g.set(always(op, fate{code: "AccessDeniedException"}))
		_, err := b.Open(t.Context(), driver.Spec{Name: "Books"})
		wantKind(t, err, errs.Internal, "dynamodb:"+op, "belfry_Books")
	}
	g.set(nil)
	openStore(t, b)
}

// TestOneRoundTrip counts the requests of each act.
func TestOneRoundTrip(t *testing.T) {
	t.Parallel()
	g, s := gated(t)
	expect := func(what string, want []string, act func() error) {
		t.Helper()
		g.set(nil)
		if err := act(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		got := g.seen()
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s takes the requests %q, want %q", what, got, want)
		}
	}
	put := func(w driver.Write) func() error { return func() error { return s.Put(t.Context(), w) } }
	get := func() error { _, _, err := s.Get(t.Context(), "a"); return err }
	expect("creating", []string{"BatchWriteItem", "UpdateItem"}, put(write("a", 0, 1, body("red"))))
	expect("clearing", []string{"UpdateItem"}, func() error {
		return s.Clear(t.Context(), []driver.Pending{{UUID: "a", Revision: 1}})
	})
	expect("reading", []string{"GetItem"}, get)
	expect("updating what was read", []string{"UpdateItem"}, put(write("a", 1, 2, body("red"))))
	expect("reading", []string{"GetItem"}, get)
	expect("a creation that finds the uuid taken", []string{"BatchWriteItem", "UpdateItem"}, func() error {
		if err := s.Put(t.Context(), write("a", 0, 9, body())); !errors.Is(err, errs.Mismatch) {
			return errors.New("it was not refused")
		}
		return nil
	})
}

// TestSettingsOfTheMachine takes region, credentials and an authority from
// where AWS tools do.
func TestSettingsOfTheMachine(t *testing.T) {
	front := httptest.NewTLSServer(&gate{server: backing.Dynalite(t).URL})
	t.Cleanup(front.Close)
	bundle := filepath.Join(t.TempDir(), "authorities.pem")
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: front.Certificate().Raw})
	if err := os.WriteFile(bundle, certificate, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"AWS_CA_BUNDLE": bundle, "AWS_REGION": "eu-central-1", "AWS_ACCESS_KEY_ID": "belfry", "AWS_SECRET_ACCESS_KEY": "secret",
	} {
		t.Setenv(name, value)
	}
	openStore(t, openBackend(t, dynamostore.Options{Endpoint: front.URL, TablePrefix: "belfry_"})).put(write("a", 0, 1, body()))
}

// TestNoCredentials opens a backend where no credentials are to be had.
func TestNoCredentials(t *testing.T) {
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	opts := options("http://127.0.0.1:1")
	opts.Credentials = nil
	wantKind(t, openBackend(t, opts).Ping(t.Context()), errs.Unavailable, "no credentials", "127.0.0.1:1")
}

// TestWrongSettings opens backends that can't be.
func TestWrongSettings(t *testing.T) {
	_, err := dynamostore.Open(t.Context(), dynamostore.Options{})
	wantKind(t, err, errs.Invalid, "AWS_REGION")
	_, err = dynamostore.Open(t.Context(), dynamostore.Options{Region: "eu-central-1", Endpoint: "localhost"})
	wantKind(t, err, errs.Invalid, "endpoint")
	b := openBackend(t, options("http://127.0.0.1:1"))
	_, err = b.Open(t.Context(), driver.Spec{Name: strings.Repeat("ü", 50)})
	wantKind(t, err, errs.Invalid, "tablePrefix", ".c3.bc")
	_, err = b.Open(t.Context(), driver.Spec{Name: "Books", Indexes: []driver.Index{byColour}})
	wantKind(t, err, errs.Internal, "Books")
}
