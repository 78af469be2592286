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

// calls has a call of each method of a store.
func calls(s driver.Store) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"Get": func(ctx context.Context) error { _, _, err := s.Get(ctx, "a"); return err },
		"Put": func(ctx context.Context) error {
			return s.Put(ctx, write(fmt.Sprint("new", created.Add(1)), 0, 1, body("red")))
		},
		"Query": func(ctx context.Context) error {
			_, err := s.Query(ctx, driver.Query{Index: "color", Equal: [][]byte{[]byte("red")}, Limit: 1})
			return err
		},
		"Scan":    func(ctx context.Context) error { _, err := s.Scan(ctx, nil, 1); return err },
		"Pending": func(ctx context.Context) error { _, _, err := s.Pending(ctx, nil, 1); return err },
		"Clear":   func(ctx context.Context) error { return s.Clear(ctx, []driver.Pending{{UUID: "a", Revision: 1}}) },
		"Purge":   func(ctx context.Context) error { _, err := s.Purge(ctx, 1, 1); return err },
		"Count":   func(ctx context.Context) error { _, _, err := s.Count(ctx); return err },
	}
}

// TestStoreRecoversFromAnOutage kills the server: every call reports Unavailable, and
// succeeds after the server was restarted.
func TestStoreRecoversFromAnOutage(t *testing.T) {
	t.Parallel()
	server := backing.Dynoxide(t)
	host := hostOf(t, server.URL)
	b := openBackend(t, options(server.URL))
	s := openStore(t, b, byColor)
	s.put(write("a", 0, 1, body("red")))
	server.Kill()
	wantKind(t, b.Ping(t.Context()), errs.Unavailable, host)
	for name, call := range calls(s) {
		t.Run(name, func(t *testing.T) { wantKind(t, call(t.Context()), errs.Unavailable, host) })
	}
	server.Restart()
	if err := b.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.wantRecord("a", 1, body("red"))
	s.wantMatches("red", "a")
	s.put(write("a", 1, 2, body("blue")))
	s.wantMatches("blue", "a")
	s.wantPending("a/1", "a/2")
}

// TestBackendOpensWithoutServer opens a backend before its server is started.
func TestBackendOpensWithoutServer(t *testing.T) {
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

// openThroughProxy opens a store that reaches its server through a proxy.
func openThroughProxy(t *testing.T) (*proxy, testStore) {
	t.Helper()
	g := newProxy(t, backing.Dynoxide(t).URL)
	return g, openStore(t, openBackend(t, options(g.url)), byColor)
}

// TestUnresponsiveServerTimesOut has the server not answer: the deadline of a caller is
// honored, and without one the request times out.
func TestUnresponsiveServerTimesOut(t *testing.T) {
	t.Parallel()
	g, patient := openThroughProxy(t)
	opts := options(g.url)
	opts.Timeout = 50 * time.Millisecond
	s := testStore{t: t}
	kit.WaitUntil(t, func() (err error) {
		opts.Timeout *= 2 // a slow machine needs a longer one
		s.Store, err = openBackend(t, opts).Open(t.Context(), books(byColor))
		return err
	})
	g.set(func(string, string) fault { return fault{hang: true} })
	for name, call := range calls(s) {
		t.Run(name, func(t *testing.T) {
			wantKind(t, call(limited(t, 20*time.Millisecond)), errs.Canceled)
			if name == "Get" || name == "Put" {
				wantKind(t, call(t.Context()), errs.Unavailable)
			}
		})
	}
	g.set(nil)
	patient.put(write("a", 0, 1, body("red")))
	kit.WaitUntil(t, func() error { _, _, err := s.Get(t.Context(), "a"); return err })
}

// TestThrottlingIsRetried has the server throttle: a call succeeds after two throttled
// requests, and reports Unavailable if all are throttled.
func TestThrottlingIsRetried(t *testing.T) {
	t.Parallel()
	g, s := openThroughProxy(t)
	s.put(write("a", 0, 1, body("red")))
	ops := map[string][]string{
		"Get": {"GetItem"}, "Put": {"PutItem", "BatchWriteItem"}, "Query": {"Query"}, "Scan": {"Query"},
		"Pending": {"Query"}, "Clear": {"UpdateItem"}, "Purge": {"Query"}, "Count": {"Query"},
	}
	for name, call := range calls(s) {
		for _, op := range ops[name] {
			t.Run(name+"/"+op, func(t *testing.T) {
				throttled := fault{code: "ProvisionedThroughputExceededException"}
				g.set(everyTime(op, throttled))
				err := call(t.Context())
				wantKind(t, err, errs.Unavailable, "throttles", "belfry_Books")
				if e := (*errs.Error)(nil); !errors.As(err, &e) || e.RetryAfter == 0 {
					t.Errorf("the error %v has no RetryAfter", err)
				}
				g.set(firstTimes(2, op, throttled))
				if err := call(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestUnprocessedItemsAreRetried has the server return batches as unprocessed.
func TestUnprocessedItemsAreRetried(t *testing.T) {
	t.Parallel()
	g, s := openThroughProxy(t)
	s.put(write("a", 0, 1, body("red")))
	for name, op := range map[string]string{"Put": "BatchWriteItem", "Query": "BatchGetItem"} {
		call := calls(s)[name]
		g.set(everyTime(op, fault{unprocessed: true}))
		wantKind(t, call(t.Context()), errs.Unavailable, "throttles")
		g.set(firstTimes(2, op, fault{unprocessed: true}))
		if err := call(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// TestMissingPermissionIsNamed has the server deny requests.
func TestMissingPermissionIsNamed(t *testing.T) {
	t.Parallel()
	g := newProxy(t, backing.Dynoxide(t).URL)
	b := openBackend(t, options(g.url))
	for _, op := range []string{"DescribeTable", "CreateTable", "PutItem", "GetItem"} {
		g.set(everyTime(op, fault{code: "AccessDeniedException"}))
		_, err := b.Open(t.Context(), driver.Spec{Name: "Books"})
		wantKind(t, err, errs.Internal, "dynamodb:"+op, "belfry_Books")
	}
	g.set(nil)
	openStore(t, b)
}

// TestRoundTrips counts the requests of each call.
func TestRoundTrips(t *testing.T) {
	t.Parallel()
	g, s := openThroughProxy(t)
	expect := func(what string, want []string, call func() error) {
		t.Helper()
		g.set(nil)
		if err := call(); err != nil {
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
	// Are there indexes that it does not write?
	expect("creating first", []string{"BatchWriteItem", "GetItem", "PutItem"}, put(write("first", 0, 1, body("red"))))
	expect("creating", []string{"BatchWriteItem", "PutItem"}, put(write("a", 0, 1, body("red"))))
	expect("clearing", []string{"UpdateItem"}, func() error {
		return s.Clear(t.Context(), []driver.Pending{{UUID: "a", Revision: 1}})
	})
	expect("reading", []string{"GetItem"}, get)
	expect("updating what was read", []string{"UpdateItem"}, put(write("a", 1, 2, body("red"))))
	expect("clearing one of two events", []string{"UpdateItem", "UpdateItem"}, func() error {
		s.put(write("a", 2, 3, body("red")))
		g.set(nil)
		return s.Clear(t.Context(), []driver.Pending{{UUID: "a", Revision: 2}})
	})
	expect("reading", []string{"GetItem"}, get)
	expect("updating what another process changed", []string{"UpdateItem"}, func() error {
		openStore(t, openBackend(t, options(g.server)), byColor).put(write("a", 3, 4, body("red")))
		if err := s.Put(t.Context(), write("a", 3, 5, body("red"))); !errors.Is(err, errs.Mismatch) {
			return fmt.Errorf("it is not refused: %w", err)
		}
		return nil
	})
	another := openStore(t, openBackend(t, options(g.server)), byColor)
	another.put(write("b", 0, 1, body("red")))
	for uuid, request := range map[string]string{"a": "UpdateItem", "b": "PutItem"} { // it knows only one of them
		wantCreateRefused(t, g, s, uuid, request)
	}
}

// wantCreateRefused creates an object whose uuid is taken.
func wantCreateRefused(t *testing.T, g *proxy, s testStore, uuid, request string) {
	t.Helper()
	g.set(nil)
	if err := s.Put(t.Context(), write(uuid, 0, 9, body())); !errors.Is(err, errs.Mismatch) {
		t.Fatalf("a creation that finds the uuid taken: %v", err)
	}
	kit.WaitUntil(t, func() error { // its entries are removed by another BatchWriteItem, in the background
		got := g.seen()
		slices.Sort(got)
		if !slices.Equal(got, []string{"BatchWriteItem", "BatchWriteItem", request}) {
			return fmt.Errorf("a creation that finds the uuid taken takes the requests %q", got)
		}
		return nil
	})
}

// TestEnvironmentIsUsed configures region, credentials and a CA bundle by the
// environment, as for any AWS tool.
func TestEnvironmentIsUsed(t *testing.T) {
	front := httptest.NewTLSServer(&proxy{server: backing.Dynalite(t).URL})
	t.Cleanup(front.Close)
	bundle := filepath.Join(t.TempDir(), "authorities.pem")
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: front.Certificate().Raw})
	if err := os.WriteFile(bundle, certificate, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"AWS_CA_BUNDLE": bundle, "AWS_REGION": "eu-central-1", "AWS_ACCESS_KEY_ID": "belfry",
		"AWS_SECRET_ACCESS_KEY": "secret",
	} {
		t.Setenv(name, value)
	}
	openStore(t,
		openBackend(t, dynamostore.Options{Endpoint: front.URL, TablePrefix: "belfry_"})).put(write("a", 0, 1, body()))
}

// TestMissingCredentialsAreReported opens a backend without credentials.
func TestMissingCredentialsAreReported(t *testing.T) {
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	opts := options("http://127.0.0.1:1")
	opts.Credentials = nil
	wantKind(t, openBackend(t, opts).Ping(t.Context()), errs.Unavailable, "no credentials", "127.0.0.1:1")
}

// TestInvalidOptionsAreRefused opens backends with invalid options.
func TestInvalidOptionsAreRefused(t *testing.T) {
	_, err := dynamostore.Open(t.Context(), dynamostore.Options{})
	wantKind(t, err, errs.Invalid, "AWS_REGION")
	_, err = dynamostore.Open(t.Context(), dynamostore.Options{Region: "eu-central-1", Endpoint: "localhost"})
	wantKind(t, err, errs.Invalid, "endpoint")
	b := openBackend(t, options("http://127.0.0.1:1"))
	_, err = b.Open(t.Context(), driver.Spec{Name: strings.Repeat("ü", 50)})
	wantKind(t, err, errs.Invalid, "tablePrefix", ".c3.bc")
	_, err = b.Open(t.Context(), driver.Spec{Name: "Books", Indexes: []driver.Index{byColor}})
	wantKind(t, err, errs.Internal, "Books")
}
