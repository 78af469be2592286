package filestore

import (
	"context"
	"errors"
	"testing"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
	"belfry/test/kit"
	"belfry/test/kit/memdisk"
)

// TestReadsWaitUntilWhatTheyReadIsSynced holds the sync of a write back: until it is done no read returns,
// neither one that would show the write nor one whose result is due to it.
func TestReadsWaitUntilWhatTheyReadIsSynced(t *testing.T) {
	for name, c := range map[string]struct {
		write driver.Write
		read  func(ctx context.Context, s *store) error
	}{
		"get of an update":           {next("a", "2"), get("a")},
		"get of a deletion":          {next("a", ""), get("a")},
		"get of a create":            {create("b", "1"), get("b")},
		"query of an update":         {next("a", "2"), query("2")},
		"query without a record":     {next("a", "2"), query("1")},
		"intersection":               {next("a", "2"), intersect("2")},
		"count of an intersection":   {next("a", "2"), countCommon("1")},
		"scan":                       {next("a", "2"), scan},
		"scan without a record":      {next("a", ""), scan},
		"pending events":             {next("a", "2"), pending},
		"failed condition":           {next("a", "2"), put(next("a", "3"))},
		"create of a record":         {create("b", "1"), put(create("b", "2"))},
		"update of a deleted record": {next("a", ""), put(next("a", "3"))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			disk := memdisk.New()
			b, s := openStore(t, "/data", disk)
			if err := s.Put(t.Context(), create("a", "1")); err != nil {
				t.Fatal(err)
			}
			disk.HoldSyncs()
			written := make(chan error, 1)
			go func() { written <- s.Put(context.WithoutCancel(t.Context()), c.write) }()
			kit.WaitFor(t, "the write is visible", func() bool {
				record, _, err := s.latest(t.Context(), c.write.UUID)
				return err == nil && record.Revision == c.write.Revision
			})
			short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			if err := c.read(short, s); !errors.Is(err, errs.Canceled) {
				t.Errorf("the read returned before the write was synced: %v", err)
			}
			disk.ReleaseSyncs()
			if err := <-written; err != nil {
				t.Error(err)
			}
			if err := c.read(t.Context(), s); err != nil && !errors.Is(err, errs.Mismatch) {
				t.Errorf("after the sync: %v", err)
			}
			if err := b.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestOtherRecordsAreReadDuringASync: a get waits for the writes of its own record only, and for those of the few that
// share its lock.
func TestOtherRecordsAreReadDuringASync(t *testing.T) {
	t.Parallel()
	disk := memdisk.New()
	b, s := openStore(t, "/data", disk)
	other := "b"
	for s.stripe(other) == s.stripe("a") {
		other += "b"
	}
	for _, uuid := range []string{"a", other} {
		if err := s.Put(t.Context(), create(uuid, "1")); err != nil {
			t.Fatal(err)
		}
	}
	disk.HoldSyncs()
	written := make(chan error, 1)
	go func() { written <- s.Put(context.WithoutCancel(t.Context()), next("a", "2")) }()
	kit.WaitFor(t, "the write is visible", func() bool {
		record, _, err := s.latest(t.Context(), "a")
		return err == nil && record.Revision == 2
	})
	if err := get(other)(t.Context(), s); err != nil {
		t.Error(err)
	}
	disk.ReleaseSyncs()
	if err := errors.Join(<-written, b.Close()); err != nil {
		t.Error(err)
	}
}

// create is the first write of a record, next the second: with the body "", its deletion.
func create(uuid, body string) driver.Write { return writeOf(uuid, body, 0) }
func next(uuid, body string) driver.Write   { return writeOf(uuid, body, 1) }

func writeOf(uuid, body string, before uint64) driver.Write {
	w := driver.Write{
		UUID: uuid, IfRevision: before, Revision: before + 1,
		Event: driver.Event{ID: uuid + body, Subject: "s", Payload: []byte("p")},
	}
	if body != "" {
		w.Body = []byte(body)
		w.Keys = keysOf(w.Body)
	}
	return w
}

func get(uuid string) func(context.Context, *store) error {
	return func(ctx context.Context, s *store) error {
		_, _, err := s.Get(ctx, uuid)
		return err
	}
}

func query(writer string) func(context.Context, *store) error {
	return func(ctx context.Context, s *store) error {
		_, err := s.Query(ctx, driver.Query{Index: "writer", Equal: [][]byte{[]byte(writer)}, Limit: 10})
		return err
	}
}

// intersect reads what the index has in common with itself.
func intersect(writer string) func(context.Context, *store) error {
	return func(ctx context.Context, s *store) error {
		part := [][]byte{[]byte(writer)}
		_, err := s.Intersect(ctx, driver.Query{Index: "writer", Equal: part, Limit: 10},
			[]driver.KeyCondition{{Index: "writer", Equal: [][][]byte{part}}}, 10)
		return err
	}
}

func countCommon(writer string) func(context.Context, *store) error {
	return func(ctx context.Context, s *store) error {
		part := [][]byte{[]byte(writer)}
		_, _, err := s.CountCommon(ctx, driver.Query{Index: "writer", Equal: part, Limit: 10},
			[]driver.KeyCondition{{Index: "writer", Equal: [][][]byte{part}}}, 10)
		return err
	}
}

func scan(ctx context.Context, s *store) error {
	_, err := s.Scan(ctx, nil, 10)
	return err
}

func pending(ctx context.Context, s *store) error {
	_, _, err := s.Pending(ctx, nil, 10)
	return err
}

func put(w driver.Write) func(context.Context, *store) error {
	return func(ctx context.Context, s *store) error { return s.Put(ctx, w) }
}
