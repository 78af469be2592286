package backends

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/test/kit"
	"belfry/test/process"
)

// Claims are not copied by a backup of records and by a migration: after the one they are made by the restore, after
// the other at the next start.
func TestValuesAreUniqueAfterARestoreAndAMigration(t *testing.T) {
	t.Parallel()
	folder, place := t.TempDir(), t.TempDir()
	config := func(name, backend string) string {
		return write(t, folder,
			name+".yaml",
			fmt.Sprintf("listen: 127.0.0.1:0\ndata: ./%s\nbus: {listen: \"\"}\nbackends: {default: %s}\nstores: "+
				"{Books: {expose: {}, unique: [slug]}}\n", name, backend))
	}
	first, restored, moved := config("first", mongo()), config("restored", mongo()), config("moved", "{}")
	s := process.ServePlain(t, first)
	must(t, s, 201, "POST", "/books", `{"uuid":"a","slug":"x"}`)
	belfry(t, 0, "backup", "--config", first, "--place", place)
	stop(t, s)
	out, _ := belfry(t, 0, "restore", "--config", restored, "--place", place)
	if !strings.Contains(out, "1 object with unique fields, 1 value, 0 stale: 0 differences") {
		t.Errorf("the restore prints %s", out)
	}
	s = process.ServePlain(t, restored)
	must(t, s, 409, "POST", "/books", `{"uuid":"b","slug":"x"}`)
	must(t, s, 201, "POST", "/books", `{"uuid":"b","slug":"y"}`)
	stop(t, s)
	belfry(t, 0, "migrate", "--from", restored, "--to", moved)
	s = process.ServePlain(t, moved)
	process.Eventually(t, patience, func() error {
		r, err := ask(s, "POST", "/books", `{"uuid":"c","slug":"z"}`)
		if err == nil && r.status != 201 {
			err = fmt.Errorf("%d %s", r.status, r.body)
		}
		return err
	})
	for _, slug := range []string{"x", "y"} {
		must(t, s, 409, "POST", "/books", fmt.Sprintf(`{"uuid":"d","slug":%q}`, slug))
	}
	stop(t, s)
}

// Writers in several processes compete for few values on every backend: never do two objects have one.
func TestSoakValuesAreUniqueOnEachBackend(t *testing.T) {
	t.Parallel()
	for soak := kit.Soak(t, 1); soak.More(); {
		seed := soak.Rand().Uint64()
		for name, at := range places() {
			t.Run(name, func(t *testing.T) { race(t, at(t), seed, soak.Long(), name == "files") })
		}
	}
}

// race has three processes of two writers each create, change and delete objects, and compares them with their claims
// after each round. Some writers give up in the middle of a write, as in a crash.
func race(t *testing.T, open func() (driver.Backend, error), seed uint64, long, alone bool) {
	rounds, writes := 2, 6
	if long {
		rounds, writes = 10, 20
	}
	var processes []*store.Store
	for range 3 {
		// A folder is one process's, which opens a store once: others write with locks of their own.
		if len(processes) > 0 && alone {
			processes = append(processes,
				processes[0].WithOptions(func(o *store.Options) { o.Locker = store.NewKeyLock() }))
			continue
		}
		b, err := open()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = b.Close() })
		s, err := store.Open(t.Context(),
			b, store.Options{Name: "Books", Unique: [][]string{{"slug"}, {"team", "number"}}, NoEvents: true,
				FenceAfter: 20 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		s.Claims().Trust(true)
		processes = append(processes, s)
	}
	for round := range rounds {
		var writers sync.WaitGroup
		failures := make([]error, 6)
		for i := range failures {
			random := rand.New(rand.NewPCG(seed, uint64(round*10+i))) //nolint:gosec // small
			writers.Go(func() {
				for range writes {
					failures[i] = errors.Join(failures[i], writeRandom(t.Context(), processes[i%3], random))
				}
			})
		}
		writers.Wait()
		if err := errors.Join(failures...); err != nil {
			t.Fatal(err)
		}
		checkRace(t, processes[round%3])
	}
	// What was interrupted keeps no value from anybody.
	s := processes[0]
	for i := range 4 {
		if err := s.Delete(t.Context(), fmt.Sprint("book", i), 0); err != nil && !errors.Is(err, errs.NotFound) {
			t.Fatal(err)
		}
	}
	for i := range 3 {
		o := object.Object{}
		o.Set("slug", fmt.Sprint("s", i))
		if _, err := s.Save(t.Context(), o, ""); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := s.Claims().Sweep(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	checkRace(t, s)
}

// writeRandom makes one write to one of four objects, of three values.
func writeRandom(ctx context.Context, s *store.Store, random *rand.Rand) error {
	if random.IntN(4) == 0 {
		limited, cancel := context.WithTimeout(ctx, time.Duration(random.IntN(10))*time.Millisecond)
		defer cancel()
		ctx = limited
	}
	uuid := fmt.Sprint("book", random.IntN(4))
	o := object.Object{}
	o.Set("slug", fmt.Sprint("s", random.IntN(3)))
	o.Set("team", "red")
	o.Set("number", random.IntN(5))
	var err error
	switch random.IntN(4) {
	case 0:
		err = s.Delete(ctx, uuid, 0)
	case 1:
		_, err = s.Update(ctx, o, store.UpdateOptions{UUID: uuid})
	default:
		_, err = s.Save(ctx, o, uuid)
	}
	switch errs.KindOf(err) {
	case errs.Exists, errs.Taken, errs.NotFound, errs.Conflict, errs.Canceled, errs.Unavailable:
		return nil
	}
	return err
}

func checkRace(t *testing.T, s *store.Store) {
	t.Helper()
	holders := map[string]string{}
	for o, err := range s.All(t.Context(), 100) {
		if err != nil {
			t.Fatal(err)
		}
		for _, fields := range [][]string{{"slug"}, {"team", "number"}} {
			value := ""
			for _, f := range fields {
				value += "," + string(object.Field(o.Body, f))
			}
			if other := holders[value]; other != "" && object.Field(o.Body, fields[0]) != nil {
				t.Errorf("%s and %s both have %s", other, o.UUID, value)
			}
			if object.Field(o.Body, fields[0]) != nil {
				holders[value] = o.UUID
			}
		}
		found, err := s.Claims().Check(t.Context(), o.UUID)
		if err != nil || len(found) > 0 {
			t.Errorf("%s: %v, %v", o.UUID, found, err)
		}
	}
}
