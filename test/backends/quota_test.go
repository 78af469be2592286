package backends

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// TestQuotasHoldOnEachBackend: many uploads at once, through two belfrys that know nothing of each other, store no more
// than the quota. Those that share a folder are in pkg/binary: only one process can use it.
func TestQuotasHoldOnEachBackend(t *testing.T) {
	t.Parallel()
	for name, backend := range map[string]func() string{
		"MongoDB":  mongo,
		"DynamoDB": func() string { return dynamo(servers.dynoxide()) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			quotaHolds(t, backend())
		})
	}
}

func quotaHolds(t *testing.T, backend string) {
	t.Helper()
	const size, quota, books = 10_000, 200_000, 12
	config := fmt.Sprintf(`
backends: {shared: %s}
stores:
  Books: {backend: shared, expose: {}}
  UploadQuotas: {backend: shared}
binaries:
  binary: {map: {Books: [covers]}, maxSize: 10000, quota: {address: %d}}
`, backend, quota)
	urls := []string{serveInProcess(t, config), serveInProcess(t, config)}
	for i := range books {
		if r, err := request(urls[0], "POST", "/books", fmt.Sprintf(`{"uuid":"b%d"}`, i)); err != nil ||
			r.status != 201 {
			t.Fatalf("%v: %+v", err, r)
		}
	}
	var stored, refused atomic.Int64
	var wg sync.WaitGroup
	for i := range books {
		wg.Go(func() {
			for n := range 5 {
				body := fmt.Sprintf("%d %d %s", i, n, strings.Repeat("x", size))[:size]
				r, err := request(urls[i%2], "PUT", fmt.Sprintf("/binary/upload/Books/b%d/covers/0", i), body)
				switch {
				case err == nil && (r.status == 200 || r.status == 201):
					stored.Add(size)
				case err == nil && r.status == 429 && r.header.Get("Retry-After") != "":
					refused.Add(1)
				default:
					t.Errorf("%v: %d %s", err, r.status, r.body)
				}
			}
		})
	}
	wg.Wait()
	// Each belfry may have reserved a 64th in advance.
	if n := stored.Load(); n > quota || n < quota-3*size || refused.Load() == 0 {
		t.Errorf("%d bytes of a quota of %d are stored, and %d uploads are refused", n, quota, refused.Load())
	}
}
