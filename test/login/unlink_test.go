package login

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
)

// owner is a browser whose user has two idents.
func (w *fixture) owner(id string) (b *browser, first, second string) {
	w.Helper()
	w.providers.User(id)
	b = w.browser()
	b.mustLogin("github")
	b.mustLogin("google")
	first, second = id+"_github", id+"_google"
	b.waitForIdents(first, second)
	return b, first, second
}

// wantStatus fails unless a status is the one wanted.
func (w *fixture) wantStatus(got, want int) {
	w.Helper()
	if got != want {
		w.Fatalf("status %d, want %d", got, want)
	}
}

func TestTheLastIdentCannotBeUnlinked(t *testing.T) {
	t.Parallel()
	w := newFixture(t, options{})
	b, first, second := w.owner("1")
	user := b.userUUID()
	w.wantStatus(b.unlink(first), http.StatusNoContent)
	b.waitForIdents(second)
	w.wantStatus(b.unlink(first), http.StatusNotFound)
	w.wantStatus(b.unlink(second), http.StatusConflict)
	w.wantStatus(b.unlink("none_github"), http.StatusNotFound)
	w.wantStatus(w.browser().unlink(second), http.StatusUnauthorized)
	stranger, _, _ := w.owner("2")
	w.wantStatus(stranger.unlink(second), http.StatusNotFound)
	b.waitForIdents(second)
	b.wantText(w.ident("1", "google")["user"].(string), user)

	// An identity that was unlinked can be linked again.
	w.providers.User("1")
	b.wantText(b.mustLogin("github"), user)
	b.waitForIdents(first, second)
	b.wantText(w.browser().mustLogin("github"), user)
	w.wantStatus(b.unlink(second), http.StatusNoContent)
	b.waitForIdents(first)
	w.wantStatus(b.unlink(first), http.StatusConflict)

	// The identity belongs to nobody now, so its login creates a user.
	other := w.browser()
	if got := other.mustLogin("google"); got == user {
		t.Error("the way in that was unlinked lets in still")
	}
	b.wantText(b.login("google"), "out taken")
}

func TestConcurrentUnlinksKeepOneIdent(t *testing.T) {
	t.Parallel()
	w := newFixture(t, options{race: true})
	for i := range 8 {
		id := fmt.Sprint(i)
		b, first, second := w.owner(id)
		var both sync.WaitGroup
		statuses := make([]int, 2)
		for j, ident := range []string{first, second} {
			both.Go(func() { statuses[j] = b.unlink(ident) })
		}
		both.Wait()
		slices.Sort(statuses)
		if !slices.Equal(statuses, []int{http.StatusNoContent, http.StatusConflict}) ||
			(w.ident(id, "github") == nil) == (w.ident(id, "google") == nil) {
			t.Fatalf("status %v, %v and %v are left", statuses, w.ident(id, "github"), w.ident(id, "google"))
		}
	}
}

// Concurrent linking and unlinking never leaves a user without idents.
func TestConcurrentLinkAndUnlink(t *testing.T) {
	t.Parallel()
	w := newFixture(t, options{race: true})
	for i := range 8 {
		id := fmt.Sprint(i)
		b, first, second := w.owner(id)
		user := b.userUUID()
		w.wantStatus(b.unlink(second), http.StatusNoContent)
		callback := b.begin("google")
		unlinks := w.browser()
		unlinks.header.Set("Authorization", "Bearer "+b.session())
		var both sync.WaitGroup
		both.Go(func() { b.finish(callback) })
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
