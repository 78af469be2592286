package natsapi_test

import (
	"context"
	"strings"
	"testing"

	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/pkg/wire"
)

func TestRepliesToWritesShowWhatAnInterceptorOfGetShows(t *testing.T) {
	fault := &faultyBackend{}
	refuseGet := func(_ context.Context, q store.InterceptRequest) (object.Object, error) {
		if q.Op == "get" {
			return nil, errs.New(errs.Denied, "the library is closed")
		}
		return nil, nil
	}
	w := newFixture(t, refuseGet, func(b driver.Backend) driver.Backend { fault.Backend = b; return fault })
	w.serve()
	want := func(op, body string, headers ...string) {
		t.Helper()
		if a := w.want("", op, body, headers...); !strings.HasPrefix(a.body, `{"object":{"uuid":"emma"},"revision":`) {
			t.Errorf("%s %s: the reply shows %s", op, body, a.body)
		}
	}
	want(wire.Save, `{"object":{"uuid":"emma","title":"Emma"}}`)
	want(wire.Update, `{"object":{"uuid":"emma"}}`)
	want(wire.Update, `{"object":{"uuid":"emma"}}`, key("first")...)

	// The reply of a write that is found to have been applied before.
	writes := 0
	fault.set(func(string, driver.Write) (error, error) {
		if writes++; writes == 3 { // the key, the object, the reply
			return errUnavailable, nil
		}
		return nil, nil
	})
	w.want("503", wire.Update, `{"object":{"uuid":"emma","year":1815}}`, key("repeated")...)
	want(wire.Update, `{"object":{"uuid":"emma","year":1815}}`, key("repeated")...)
	if got := w.outbox.of("emma"); got != "Saved Updated Updated Updated" {
		t.Errorf("the events are %q", got)
	}
}
