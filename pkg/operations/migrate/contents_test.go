package migrate_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"belfry/pkg/operations/migrate"
)

func TestContentsAreCopied(t *testing.T) {
	from, to := newStorage(t), newStorage(t)
	var hashes []string
	for i := range 20 {
		hashes = append(hashes, from.store(t, fmt.Sprintf("content %d", i)))
	}
	from.store(t, "")
	to.store(t, "content 3")
	to.store(t, "another")
	r, err := migrate.Contents(t.Context(), "binary", from, to, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.Records != 21 || r.Copied != 20 || len(r.Differences) > 0 {
		t.Errorf("%+v", r)
	}
	for _, hash := range hashes {
		if !to.there(t.Context(), t, hash) {
			t.Errorf("%s is missing", hash)
		}
	}
	if r, err = migrate.Contents(t.Context(), "binary", from, to, nil); err != nil || r.Copied != 0 || r.Records != 21 {
		t.Errorf("again: %+v, %v", r, err)
	}
}

func TestCorruptContentsAreNotCopied(t *testing.T) {
	from, to := newStorage(t), newStorage(t)
	good, bad, short := from.store(t, "good"), from.store(t, "bad"), from.store(t, "short")
	from.corrupt(t, bad, "BAD")
	from.corrupt(t, short, "sh")
	r, err := migrate.Contents(t.Context(), "binary", from, to, nil)
	if err != nil {
		t.Fatal(err)
	}
	differences := strings.Join(r.Differences, "\n")
	for _, hash := range []string{bad, short} {
		if !strings.Contains(differences, hash+": not copied because it is corrupt: its hash is "+
			hashOf(map[string]string{bad: "BAD", short: "sh"}[hash])) {
			t.Errorf("%s is not reported: %s", hash, differences)
		}
		if to.there(t.Context(), t, hash) {
			t.Errorf("%s has been copied", hash)
		}
	}
	if len(r.Differences) != 2 || r.Copied != 1 || !to.there(t.Context(), t, good) {
		t.Errorf("%+v", r)
	}
}

func TestInterruptedContentsAreResumed(t *testing.T) {
	from, to := newStorage(t), newStorage(t)
	for i := range 40 {
		from.store(t, fmt.Sprintf("content %d", i))
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := migrate.Contents(ctx, "binary", from, to, func(migrate.Progress) { cancel() })
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want that it was canceled", err)
	}
	r, err := migrate.Contents(t.Context(), "binary", from, to, nil)
	if err != nil || r.Records != 40 || r.Copied == 0 || r.Copied > 39 || len(r.Differences) > 0 {
		t.Errorf("the second run: %+v, %v", r, err)
	}
}
