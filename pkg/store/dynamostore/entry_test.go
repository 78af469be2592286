package dynamostore_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"belfry/pkg/errs"
	"belfry/test/backing"
)

// TestEntriesTogether: entries of writes that come at once go together, each
// write waits for its own, and none suffers from what is wrong with another's.
func TestEntriesTogether(t *testing.T) {
	t.Parallel()
	const n = 64
	const bad = "YmFkYmFk" // "badbad" as the entries of a uuid begin with it
	g := &gate{server: backing.Dynoxide(t).URL}
	g.set(func(op, body string) fate {
		if op == "BatchWriteItem" && strings.Contains(body, bad) {
			return fate{code: "ValidationException"}
		}
		return fate{}
	})
	var updates atomic.Int64
	all := make(chan struct{}) // closed when every record has been written
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch _, op, _ := strings.Cut(r.Header.Get("X-Amz-Target"), "."); op {
		case "BatchWriteItem":
			<-all
			g.ServeHTTP(w, r)
		case "UpdateItem":
			g.ServeHTTP(w, r)
			if updates.Add(1) == n {
				close(all)
			}
		default:
			g.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(front.Close)
	s := openStore(t, openBackend(t, options(front.URL)), byColour)
	uuids := make([]string, n)
	results := make([]error, n)
	var group sync.WaitGroup
	for i := range n {
		uuids[i] = fmt.Sprintf("good%02d", i)
		if i == n-1 {
			uuids[i] = "badbad"
		}
		group.Go(func() { results[i] = s.Put(t.Context(), write(uuids[i], 0, 1, body("red"))) })
	}
	group.Wait()
	for i, err := range results[:n-1] {
		if err != nil {
			t.Errorf("%s: %v", uuids[i], err)
		}
	}
	if !errs.Is(results[n-1], errs.Internal) {
		t.Errorf("entries that were refused were reported as %v", results[n-1])
	}
	s.finds("red", uuids[:n-1]...)
	requests := 0
	for _, op := range g.seen() {
		if op == "BatchWriteItem" {
			requests++
		}
	}
	if requests > n*3/4 {
		t.Errorf("the entries of %d writes took %d requests", n, requests)
	}
}
