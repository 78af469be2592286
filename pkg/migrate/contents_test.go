package migrate_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"belfry/pkg/migrate"
)

func TestContents(t *testing.T) {
	from, to := newShelf(t), newShelf(t)
	var hashes []string
	for i := range 20 {
		hashes = append(hashes, from.keep(t, fmt.Sprintf("content %d", i)))
	}
	from.keep(t, "")
	to.keep(t, "content 3")
	to.keep(t, "another")
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

func TestDamagedContentsStay(t *testing.T) {
	from, to := newShelf(t), newShelf(t)
	good, bad, short := from.keep(t, "good"), from.keep(t, "bad"), from.keep(t, "short")
	from.damage(t, bad, "BAD")
	from.damage(t, short, "sh")
	r, err := migrate.Contents(t.Context(), "binary", from, to, nil)
	if err != nil {
		t.Fatal(err)
	}
	told := strings.Join(r.Differences, "\n")
	for _, hash := range []string{bad, short} {
		if !strings.Contains(told, hash+": not copied, it is damaged: its hash is "+hashOf(map[string]string{bad: "BAD", short: "sh"}[hash])) {
			t.Errorf("%s is not told: %s", hash, told)
		}
		if to.there(t.Context(), t, hash) {
			t.Errorf("%s has been copied", hash)
		}
	}
	if len(r.Differences) != 2 || r.Copied != 1 || !to.there(t.Context(), t, good) {
		t.Errorf("%+v", r)
	}
}

func TestContentsInterrupted(t *testing.T) {
	from, to := newShelf(t), newShelf(t)
	for i := range 40 {
		from.keep(t, fmt.Sprintf("content %d", i))
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
