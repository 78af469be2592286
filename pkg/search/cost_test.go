package search_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/search"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/test/kit"
)

// However many beginnings a search has, and however many fields, they are of so many words of the index together.
func TestTheBeginningsOfASearchShareABudget(t *testing.T) {
	p := newPlace(t, search.Settings{Fields: []string{"title", "text"}})
	// 676 words, ab0000 among them, of which 26 have the same first letter.
	var words []string
	for a := 'a'; a <= 'z'; a++ {
		for b := 'a'; b <= 'z'; b++ {
			words = append(words, fmt.Sprintf("%c%c0000", a, b))
		}
	}
	p.save("one", `{"title":"`+strings.Join(words, " ")+`","text":"`+strings.Join(words, " ")+`"}`)
	p.start()
	p.caughtUp()
	// 20 beginnings of one word each in two fields; the same beginning is looked for once.
	var some []string
	for _, word := range words[:20] {
		some = append(some, word[:2]+"*")
	}
	for _, q := range []string{strings.Join(some, " "), strings.Repeat("aa* ", 32)} {
		if _, err := p.store.List(t.Context(), store.ListOptions{Words: q}); err != nil {
			t.Errorf("%s: %v", q, err)
		}
	}
	words = nil
	for i := range 1100 {
		words = append(words, fmt.Sprintf("zz%04d", i))
	}
	p.save("two", `{"title":"`+strings.Join(words, " ")+`"}`)
	p.caughtUp()
	for _, q := range []string{"zz*", "zz00* zz01* zz02* zz03* zz04* zz05* zz06* zz07* zz08* zz09* zz10*",
		"aa0000 -zz0* -zz1*"} {
		if _, err := p.store.List(t.Context(), store.ListOptions{Words: q}); errs.KindOf(err) != errs.Invalid ||
			!strings.Contains(err.Error(), "more than 1024 words have such beginnings") {
			t.Errorf("%s: %v", q, err)
		}
	}
	if _, err := p.store.List(t.Context(), store.ListOptions{Words: "zz00* zz01*"}); err != nil {
		t.Error(err)
	}
}

// A word of a text, and one that is searched for, is cut: what stemmers do with a long one takes the square of its
// length.
func TestWordsAreCut(t *testing.T) {
	for _, language := range []string{"", "ar", "da", "de", "en", "es", "fi", "fr", "hu", "it", "nl", "no", "pt", "ro",
		"ru", "sv", "tr"} {
		t.Run(language, func(t *testing.T) {
			p := newPlace(t, search.Settings{Fields: []string{"title"}, Language: language})
			long := strings.Repeat("ing", 80_000)
			p.save("long", `{"title":"`+long+` needle"}`)
			p.save("other", `{"title":"`+long[:300]+`"}`)
			p.start()
			p.caughtUp()
			if got := p.find("needle"); got != "long" {
				t.Errorf("beside a long word: %q", got)
			}
			// Beyond what counts of a word they are the same.
			if got := p.find(long[:900]); !strings.Contains(got, "long") || !strings.Contains(got, "other") {
				t.Errorf("a long word: %q", got)
			}
		})
	}
}

// blocking is a backend whose reads of single objects wait.
type blocking struct {
	driver.Backend
	until chan struct{}
}

func (b blocking) Open(ctx context.Context, spec driver.Spec) (driver.Store, error) {
	s, err := b.Backend.Open(ctx, spec)
	return blockingStore{s, b.until}, err
}

type blockingStore struct {
	driver.Store
	until chan struct{}
}

func (s blockingStore) Get(ctx context.Context, uuid string) (driver.Record, bool, error) {
	select {
	case <-s.until:
		return s.Store.Get(ctx, uuid)
	case <-ctx.Done():
		return driver.Record{}, false, ctx.Err()
	}
}

// An index that is slow keeps no other from following the log.
func TestIndexesFollowTheLogIndependently(t *testing.T) {
	p := newPlace(t, search.Settings{Fields: []string{"title"}})
	until := make(chan struct{})
	slow, err := store.Open(t.Context(), blocking{p.backend, until},
		store.Options{Name: "Slow", Outbox: p.relay, Search: []string{"title"}})
	if err != nil {
		t.Fatal(err)
	}
	p.relay.Add("Slow", slow.Driver())
	p.others = []search.Indexed{{Store: slow, Settings: p.settings}}
	p.start()
	p.caughtUp()
	if _, err := slow.Save(t.Context(), must(object.Parse([]byte(`{"title":"slow"}`))), "one"); err != nil {
		t.Fatal(err)
	}
	p.save("two", `{"title":"quick"}`)
	kit.WaitFor(t, "the index of the other store", func() bool { return p.find("quick") == "two" })
	if all := p.service.Status(); all[1].Followed >= all[0].Followed {
		t.Errorf("the slow one has followed as well: %+v", all)
	}
	close(until)
	p.caughtUp()
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
