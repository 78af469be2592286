package login

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
)

// owner is a browser that is logged in through two providers.
func (w *world) owner(id string) (b *browser, first, second string) {
	w.Helper()
	w.providers.User(id)
	b = w.browser()
	b.enters("github")
	b.enters("google")
	first, second = id+"_github", id+"_google"
	b.hasWays(first, second)
	return b, first, second
}

// status fails unless a status is the one wanted.
func (w *world) status(got, want int) {
	w.Helper()
	if got != want {
		w.Fatalf("status %d, want %d", got, want)
	}
}

func TestTheLastIdentCannotBeUnlinked(t *testing.T) {
	w := begin(t, options{})
	b, first, second := w.owner("1")
	user := b.who()
	w.status(b.unlink(first), http.StatusNoContent)
	b.hasWays(second)
	w.status(b.unlink(first), http.StatusNotFound)
	w.status(b.unlink(second), http.StatusConflict)
	w.status(b.unlink("none_github"), http.StatusNotFound)
	w.status(w.browser().unlink(second), http.StatusUnauthorized)
	stranger, _, _ := w.owner("2")
	w.status(stranger.unlink(second), http.StatusNotFound)
	b.hasWays(second)
	b.is(w.ident("1", "google")["user"].(string), user)

	// What was unlinked can be linked again, and is a way in like any other.
	w.providers.User("1")
	b.is(b.enters("github"), user)
	b.hasWays(first, second)
	b.is(w.browser().enters("github"), user)
	w.status(b.unlink(second), http.StatusNoContent)
	b.hasWays(first)
	w.status(b.unlink(first), http.StatusConflict)

	// Nobody's by now, it is a newcomer's.
	newcomer := w.browser()
	if got := newcomer.enters("google"); got == user {
		t.Error("the way in that was unlinked lets in still")
	}
	b.is(b.visit("google"), "out taken")
}

// Of two ways in that are given up at once, one stays.
func TestConcurrentUnlinksKeepOneIdent(t *testing.T) {
	w := begin(t, options{})
	for i := range 20 {
		id := fmt.Sprint(i)
		b, first, second := w.owner(id)
		var both sync.WaitGroup
		statuses := make([]int, 2)
		for j, ident := range []string{first, second} {
			both.Go(func() { statuses[j] = b.unlink(ident) })
		}
		both.Wait()
		slices.Sort(statuses)
		if !slices.Equal(statuses, []int{http.StatusNoContent, http.StatusConflict}) || (w.ident(id, "github") == nil) == (w.ident(id, "google") == nil) {
			t.Fatalf("status %v, %v and %v are left", statuses, w.ident(id, "github"), w.ident(id, "google"))
		}
	}
}

// Linking a way in and unlinking it, or the other one, at once never leaves
// none.
func TestConcurrentLinkAndUnlink(t *testing.T) {
	w := begin(t, options{})
	for i := range 20 {
		id := fmt.Sprint(i)
		b, first, second := w.owner(id)
		user := b.who()
		w.status(b.unlink(second), http.StatusNoContent)
		callback := b.leave("google")
		unlinks := w.browser()
		unlinks.header.Set("Authorization", "Bearer "+b.session())
		var both sync.WaitGroup
		both.Go(func() { b.back(callback) })
		both.Go(func() { unlinks.unlink([]string{first, second}[i%2]) })
		both.Wait()
		ways := 0
		for _, name := range []string{"github", "google"} {
			if ident := w.ident(id, name); ident != nil && ident["user"] == user {
				ways++
			}
		}
		if ways == 0 {
			t.Fatal("no way in is left")
		}
	}
}
