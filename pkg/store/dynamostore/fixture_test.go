package dynamostore_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/dynamostore"
	"belfry/test/kit"
)

// TestMain removes the settings for AWS tools from the environment.
func TestMain(m *testing.M) {
	for _, setting := range os.Environ() {
		if name, _, _ := strings.Cut(setting, "="); strings.HasPrefix(name, "AWS_") {
			_ = os.Unsetenv(name)
		}
	}
	_ = os.Setenv("AWS_CONFIG_FILE", os.DevNull)
	_ = os.Setenv("AWS_SHARED_CREDENTIALS_FILE", os.DevNull)
	m.Run()
}

var byColor = driver.Index{Name: "color", Parts: 1, Multi: true}

// body returns an object whose colors are its keys.
func body(colors ...string) []byte {
	data, err := json.Marshal(map[string]any{"colors": colors})
	if err != nil {
		panic(err)
	}
	return data
}

// keys returns the keys of a body in the index byColor.
func keys(body []byte) []driver.Key {
	var object struct{ Colors []string }
	if json.Unmarshal(body, &object) != nil {
		return nil
	}
	var list []driver.Key
	for _, color := range object.Colors {
		list = append(list, driver.Key{Index: "color", Parts: [][]byte{[]byte(color)}})
	}
	return list
}

func openBackend(t *testing.T, opts dynamostore.Options) *dynamostore.Backend {
	t.Helper()
	b, err := dynamostore.Open(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeBackend(t, b) })
	return b
}

// closeBackend closes a backend and waits for its background tasks.
func closeBackend(t *testing.T, b *dynamostore.Backend) {
	t.Helper()
	dynamostore.SetCloseTime(b, kit.Limit)
	if err := b.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}

// testStore is a store under test.
type testStore struct {
	driver.Store
	t *testing.T
}

func books(indexes ...driver.Index) driver.Spec {
	return driver.Spec{Name: "Books", Indexes: indexes, Keys: keys}
}

func openStore(t *testing.T, b driver.Backend, indexes ...driver.Index) testStore {
	t.Helper()
	s, err := b.Open(t.Context(), books(indexes...))
	if err != nil {
		t.Fatal(err)
	}
	return testStore{s, t}
}

func write(uuid string, cond, revision uint64, data []byte) driver.Write {
	w := driver.Write{UUID: uuid, IfRevision: cond, Revision: revision, Body: data, Event: driver.Event{
		ID: fmt.Sprintf("%s/%d", uuid, revision), Subject: "events.1.Store.Saved.Books." + uuid,
		Payload: []byte("payload"),
	}}
	if data != nil {
		w.Keys = keys(data)
	}
	return w
}

func (s testStore) put(w driver.Write) {
	s.t.Helper()
	if err := s.Put(s.t.Context(), w); err != nil {
		s.t.Fatalf("Put of %s at %d: %v", w.UUID, w.Revision, err)
	}
}

func (s testStore) wantRecord(uuid string, revision uint64, want []byte) {
	s.t.Helper()
	r, ok, err := s.Get(s.t.Context(), uuid)
	if err != nil || !ok || r.Revision != revision || !bytes.Equal(r.Body, want) || r.Deleted != (want == nil) {
		s.t.Fatalf("Get of %s: at %d, deleted %v, %d bytes, found %v, error %v; want %d with %d bytes",
			uuid, r.Revision, r.Deleted, len(r.Body), ok, err, revision, len(want))
	}
}

func (s testStore) wantMatches(color string, want ...string) {
	s.t.Helper()
	page, err := s.Query(s.t.Context(), driver.Query{Index: "color", Equal: [][]byte{[]byte(color)}, Limit: 1000})
	var got []string
	for _, r := range page.Records {
		got = append(got, r.UUID)
	}
	if err != nil || !slices.Equal(got, want) {
		s.t.Fatalf("the color %s finds %q, error %v; want %q", color, got, err, want)
	}
}

// pending returns all pending events, and asserts that those of one record are in
// order.
func (s testStore) pending() []driver.Pending {
	s.t.Helper()
	var all []driver.Pending
	last := map[string]uint64{}
	for e, err := range driver.PendingEvents(s.t.Context(), s.Store, 37) {
		if err != nil {
			s.t.Fatal(err)
		}
		if e.Revision <= last[e.UUID] {
			s.t.Fatalf("the event of %s at %d follows the one at %d", e.UUID, e.Revision, last[e.UUID])
		}
		last[e.UUID] = e.Revision
		all = append(all, e)
	}
	return all
}

func (s testStore) wantPending(want ...string) {
	s.t.Helper()
	var got []string
	for _, e := range s.pending() {
		got = append(got, e.ID)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		s.t.Fatalf("the events %q are pending, want %q", got, want)
	}
}

func (s testStore) clear() {
	s.t.Helper()
	if err := s.Clear(s.t.Context(), s.pending()); err != nil {
		s.t.Fatal(err)
	}
}

func wantKind(t *testing.T, err error, kind errs.Kind, words ...string) {
	t.Helper()
	if err == nil || errs.KindOf(err) != kind {
		t.Fatalf("got the error %v, want one of kind %q", err, kind)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("the error %q does not say %q", err, word)
		}
	}
	if strings.Contains(err.Error(), "secret") {
		t.Errorf("the error %q contains the secret", err)
	}
}

// client accesses tables without the backend.
func client(url string) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{Region: "eu-central-1", BaseEndpoint: aws.String(url),
		Credentials: options(url).Credentials})
}

// contents counts the items of a table by the first letter of their keys.
func contents(t *testing.T, url, table string) string {
	t.Helper()
	counts := map[string]int{}
	pages := dynamodb.NewScanPaginator(client(url), &dynamodb.ScanInput{TableName: &table})
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, it := range page.Items {
			key := it["k"].(*types.AttributeValueMemberS)
			counts[key.Value[:1]]++
		}
	}
	var list []string
	for letter, n := range counts {
		list = append(list, fmt.Sprintf("%s:%d", letter, n))
	}
	slices.Sort(list)
	return strings.Join(list, " ")
}

// limited returns a context with a timeout.
func limited(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}
