package mongostore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver"

	"belfry/pkg/errs"
)

// backendForErrors is connected to nothing.
func backendForErrors(t *testing.T) *Backend {
	t.Helper()
	b, err := Open(t.Context(), Options{URL: "mongodb://127.0.0.1:1", Database: "belfry"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}

func command(code int32, message string, labels ...string) error {
	return mongo.CommandError{Code: code, Message: message, Labels: labels}
}

func write(code int, message string) error {
	return mongo.WriteException{WriteErrors: mongo.WriteErrors{{Code: code, Message: message}}}
}

// TestErrorsOfServersAreClassified: another attempt is worth while after whatever does not say that
// the server refuses the command.
func TestErrorsOfServersAreClassified(t *testing.T) {
	t.Parallel()
	const (
		unavailable = "is unavailable"
		failed      = "internal failure"
		concurrent  = "concurrent"
		overloaded  = "overloaded"
		refused     = "can't write"
	)
	b := backendForErrors(t)
	for name, c := range map[string]struct {
		err  error
		kind errs.Kind
		says string
		back bool // rolled back
	}{
		"paused connection pool": {command(0, "connection pool was cleared", driver.TransientTransactionError),
			errs.Unavailable, unavailable, false},
		"lost connection": {command(0, "EOF", driver.NetworkError), errs.Unavailable, unavailable, false},
		"no code":         {command(0, "something"), errs.Unavailable, unavailable, false},
		"retryable": {command(9999, "something", driver.RetryableWriteError), errs.Unavailable,
			unavailable, false},
		"shutdown": {command(91, "The server is in quiesce mode and will shut down"), errs.Unavailable,
			unavailable, false},
		"interrupted at shutdown": {command(11600, "interrupted at shutdown"), errs.Unavailable, unavailable, false},
		"not primary":             {command(10107, "not primary"), errs.Unavailable, unavailable, false},
		"stepped down":            {command(189, "Primary stepped down"), errs.Unavailable, unavailable, false},
		"no majority in time": {mongo.WriteException{WriteConcernError: &mongo.WriteConcernError{Code: 64}},
			errs.Unavailable, unavailable, false},
		"too many sessions": {command(261, "too many clients already"), errs.Unavailable, unavailable, false},
		"full disk":         {write(14031, "disk full"), errs.Unavailable, unavailable, false},
		"index build in progress": {command(285, "Index build already in progress"), errs.Unavailable, unavailable,
			false},
		"queue overflow": {command(433, "too many operations are queued"), errs.Unavailable, overloaded,
			false},
		"write conflict":            {command(112, "WriteConflict"), errs.Unavailable, concurrent, true},
		"write conflict of a write": {write(112, "WriteConflict"), errs.Unavailable, concurrent, true},
		"lock timeout":              {command(24, "Unable to acquire lock"), errs.Unavailable, concurrent, true},
		"internal error": {command(1, "An unexpected internal error has occurred"), errs.Unavailable, failed,
			false},
		"unknown error": {command(8, "Input/output error"), errs.Unavailable, failed, false},

		// DocumentDB on PostgreSQL, through FerretDB 2.
		"deadlock of a write":   {write(16908292, "deadlock detected"), errs.Unavailable, concurrent, true},
		"deadlock of a bulk":    {bulk(16908292, "deadlock detected"), errs.Unavailable, concurrent, true},
		"deadlock of a command": {command(1, "deadlock detected"), errs.Unavailable, concurrent, true},
		"serialization failure": {write(16777220, "could not serialize access due to concurrent update"),
			errs.Unavailable, concurrent, true},
		"lock not available": {write(code("55P03"), "canceling statement due to lock timeout"), errs.Unavailable,
			concurrent, true},
		"administrator's shutdown": {write(code("57P01"), "terminating connection due to administrator command"),
			errs.Unavailable, unavailable, false},
		"crash of another": {write(code("57P02"),
			"terminating connection because of crash of another server process"), errs.Unavailable, unavailable, false},
		"statement timeout": {write(code("57014"), "canceling statement due to statement timeout"),
			errs.Unavailable, unavailable, false},
		"connection failure": {write(code("08006"), "connection failure"), errs.Unavailable, unavailable, false},
		"standby": {write(code("25006"), "cannot execute UPDATE in a read-only transaction"),
			errs.Unavailable, unavailable, false},
		"disk of PostgreSQL full": {write(code("53100"), "could not extend file"), errs.Unavailable, unavailable,
			false},
		"memory of PostgreSQL full": {write(code("53200"), "out of memory"), errs.Unavailable, unavailable, false},

		// FerretDB 1, which has SQLSTATEs in the text only.
		"deadlock in a text": {command(1,
			"[msg_update.go:59 handler.(*Handler).MsgUpdate] ERROR: deadlock detected (SQLSTATE 40P01)"),
			errs.Unavailable, concurrent, true},
		"starting in a text": {command(1,
			"failed to connect: FATAL: the database system is starting up (SQLSTATE 57P03)"), errs.Unavailable, failed,
			false},
		"password in a text": {command(1,
			`failed to connect: FATAL: password authentication failed (SQLSTATE 28P01)`), errs.Internal,
			"refuses the user", false},
		"state of somebody": {command(2, `BadValue: "(SQLSTATE 40P01)"`), errs.Internal, refused, false},
		"bad value":         {command(2, "BadValue"), errs.Internal, refused, false},
		"syntax error":      {write(code("42601"), "syntax error"), errs.Internal, refused, false},
		"unique violation":  {write(code("23505"), "duplicate key value"), errs.Internal, refused, false},
		"not implemented":   {command(238, "not implemented"), errs.Internal, refused, false},
		"command not found": {command(59, "no such command"), errs.Internal, refused, false},
		"index options":     {command(85, "an index with other options exists"), errs.Internal, refused, false},
		"unknown write mode": {mongo.WriteException{WriteConcernError: &mongo.WriteConcernError{Code: 79}},
			errs.Internal, refused, false},
		"missing permission": {command(13, "not authorized"), errs.Internal, "readWrite", false},
		"wrong password":     {command(18, "Authentication failed."), errs.Internal, "refuses the user", false},
		"too large a document": {write(17419, "Resulting document after update is larger"), errs.TooLarge,
			"maximum size", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := b.wrapError(t.Context(), "write", fmt.Errorf("wrapped: %w", c.err))
			var e *errs.Error
			if !errors.As(err, &e) || e.Kind != c.kind || !strings.Contains(e.Message, c.says) {
				t.Errorf("got the error %v of kind %q, want %q and %q", err, errs.KindOf(err), c.kind, c.says)
			}
			if e != nil && (e.RetryAfter > 0) != (c.kind == errs.Unavailable) {
				t.Errorf("the error says to retry after %v", e.RetryAfter)
			}
			if got := rolledBack(c.err); got != c.back {
				t.Errorf("it is rolled back: %v, want %v", got, c.back)
			}
		})
	}
}

func bulk(code int, message string) error {
	return mongo.BulkWriteException{
		WriteErrors: []mongo.BulkWriteError{{WriteError: mongo.WriteError{Code: code, Message: message}}}}
}

// code encodes a SQLSTATE as PostgreSQL does.
func code(state string) (n int) {
	for i := range len(state) {
		n += int(state[i]-'0') & 0x3f << (6 * i)
	}
	return n
}

func TestSQLSTATEsAreRecognizedByTheirCodes(t *testing.T) {
	t.Parallel()
	for _, state := range []string{"40P01", "40001", "57P03", "08006", "55P03", "53100", "23505", "ZZZZZ"} {
		if got := sqlState(code(state)); got != state {
			t.Errorf("%d is %q, want %s", code(state), got, state)
		}
	}
	// Codes of MongoDB, the highest of which begin with the number of an issue.
	for _, n := range []int{0, 1, 112, 197, 453, 11000, 12587, 13388, 14031, 46841, 640570, 4662500, 9751901, 10171600,
		-1} {
		if got := sqlState(n); got != "" {
			t.Errorf("%d is taken for the SQLSTATE %s", n, got)
		}
	}
}

// TestARolledBackCommandIsRepeatedAFewTimes: it is executed until it succeeds, unless its context ends.
func TestARolledBackCommandIsRepeatedAFewTimes(t *testing.T) {
	t.Parallel()
	conflict := command(112, "WriteConflict")
	for name, c := range map[string]struct {
		errs     []error
		attempts int
		want     error
	}{
		"success":                {[]error{nil}, 1, nil},
		"success after conflict": {[]error{conflict, conflict, nil}, 3, nil},
		"another error":          {[]error{conflict, errMismatch()}, 2, errs.Mismatch},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := 0
			err := retryRolledBack(t.Context(), func() error { n++; return c.errs[n-1] })
			if n != c.attempts || !errors.Is(err, c.want) {
				t.Errorf("%d attempts ended with %v, want %d and %v", n, err, c.attempts, c.want)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	err := retryRolledBack(ctx, func() error { n++; cancel(); return conflict })
	if n != 1 || !rolledBack(err) {
		t.Errorf("%d attempts with a canceled context ended with %v", n, err)
	}
	n = 0
	if err := retryRolledBack(t.Context(), func() error { n++; return conflict }); n != conflictAttempts ||
		!rolledBack(err) {
		t.Errorf("%d attempts ended with %v", n, err)
	}
}

// TestDocumentsAreInsertedInTheOrderOfTheirUUIDs: so two batches with the same UUIDs can't wait for
// each other.
func TestDocumentsAreInsertedInTheOrderOfTheirUUIDs(t *testing.T) {
	t.Parallel()
	var docs []bson.Raw
	for _, uuid := range []string{"c", "a", "d", "b"} {
		doc, err := bson.Marshal(bson.D{{Key: idField, Value: uuid}})
		if err != nil {
			t.Fatal(err)
		}
		docs = append(docs, doc)
	}
	if got := fmt.Sprint(byUUID(docs)); got != "[1 3 0 2]" {
		t.Errorf("the order is %s", got)
	}
}
