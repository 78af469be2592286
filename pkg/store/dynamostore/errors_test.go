package dynamostore_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
	"belfry/test/backing"
)

// TestErrorsOfServersAreClassified has the server answer with each error: what may succeed later is
// Unavailable, for reads, for writes and when a store is opened.
func TestErrorsOfServersAreClassified(t *testing.T) {
	t.Parallel()
	server := backing.Dynoxide(t)
	openStore(t, openBackend(t, options(server.URL))).put(write("a", 0, 1, body()))
	for _, c := range []struct {
		fault fault
		kind  errs.Kind
		says  string
	}{
		{fault{code: "ThrottlingException"}, errs.Unavailable, "throttles"},
		{fault{code: "RequestLimitExceeded"}, errs.Unavailable, "throttles"},
		{fault{code: "ProvisionedThroughputExceededException"}, errs.Unavailable, "throttles"},
		{fault{code: "LimitExceededException"}, errs.Unavailable, "already changing as many tables"},
		{fault{code: "TransactionConflictException"}, errs.Unavailable, "concurrent"},
		{fault{code: "TransactionInProgressException"}, errs.Unavailable, "concurrent"},
		{fault{code: "ReplicatedWriteConflictException"}, errs.Unavailable, "concurrent"},
		{fault{code: "InternalServerError"}, errs.Unavailable, "fails"},
		{fault{code: "InternalServerError", status: http.StatusInternalServerError}, errs.Unavailable, "fails"},
		{fault{code: "InternalFailure", status: http.StatusInternalServerError}, errs.Unavailable, "fails"},
		{fault{code: "ServiceUnavailable", status: http.StatusServiceUnavailable}, errs.Unavailable, "fails"},
		{fault{code: "SomethingElse", status: http.StatusBadGateway}, errs.Unavailable, "fails"},
		{fault{code: "RequestTimeoutException"}, errs.Unavailable, "fails"},
		{fault{code: "ItemCollectionSizeLimitExceededException"}, errs.Internal, "local secondary indexes"},
		{fault{code: "ValidationException"}, errs.Internal, "refuses"},
		{fault{code: "UnrecognizedClientException"}, errs.Internal, "credentials"},
	} {
		t.Run(fmt.Sprint(c.fault.code, " ", c.fault.status), func(t *testing.T) {
			t.Parallel()
			g := newProxy(t, server.URL)
			b := openBackend(t, options(g.url))
			s := openStore(t, b)
			for name, act := range map[string]func() error{
				"GetItem":       func() error { _, _, err := s.Get(t.Context(), "a"); return err },
				"UpdateItem":    func() error { return s.Put(t.Context(), write("a", 1, 2, body())) },
				"DescribeTable": func() error { _, err := b.Open(t.Context(), driver.Spec{Name: "Books"}); return err },
			} {
				g.set(everyTime(name, c.fault))
				err := act()
				wantKind(t, err, c.kind, c.says)
				if e := (*errs.Error)(nil); errors.As(err, &e) && (e.RetryAfter > 0) != (c.kind == errs.Unavailable) {
					t.Errorf("%s: the error %v says to retry after %v", name, err, e.RetryAfter)
				}
			}
		})
	}
}

// TestConflictsWithTransactionsAreRetried has somebody else's transaction hold the item for a while.
func TestConflictsWithTransactionsAreRetried(t *testing.T) {
	t.Parallel()
	g, s := openThroughProxy(t)
	s.put(write("a", 0, 1, body("red")))
	for i, code := range []string{"TransactionConflictException", "ReplicatedWriteConflictException",
		"TransactionInProgressException"} {
		revision := uint64(i + 1) //nolint:gosec // small
		g.set(firstTimes(2, "UpdateItem", fault{code: code}))
		s.put(write("a", revision, revision+1, body("blue")))
	}
	s.wantRecord("a", 4, body("blue"))
}
