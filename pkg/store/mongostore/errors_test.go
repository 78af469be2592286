package mongostore

import (
	"errors"
	"testing"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"belfry/pkg/errs"
)

func TestPausedConnectionPoolIsUnavailable(t *testing.T) {
	t.Parallel()
	paused := mongo.CommandError{
		Message: "connection pool for 127.0.0.1:1 was cleared because another operation failed with: EOF",
		Labels:  []string{"TransientTransactionError"},
	}
	if err := (&Backend{address: "MongoDB"}).wrapError(t.Context(), "read", paused); !errors.Is(err, errs.Unavailable) {
		t.Errorf("got the error %v of kind %q, want %q", err, errs.KindOf(err), errs.Unavailable)
	}
}
