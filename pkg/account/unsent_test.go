package account_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"belfry/pkg/errs"
)

// The events of mails are lost. What the store of tokens has as requested and not sent is sent, once, and nothing else.
func TestUnsentMailsAreSent(t *testing.T) {
	w := newFixture(t, validatedFirst)
	request := func(login string) {
		t.Helper()
		_, mailed, err := w.Registration.Register(t.Context(), credentials(login, "a fine password"), from)
		if err != nil || !mailed {
			t.Fatal(mailed, err)
		}
	}
	send := func(want int) {
		t.Helper()
		if n, err := w.Post.SendUnsent(t.Context(), 0); err != nil || n != want {
			t.Errorf("%d sent, want %d, %v", n, want, err)
		}
	}
	send(0)
	request("old@example.com")
	w.clock.advance(25 * time.Hour)
	request("sent@example.com")
	w.must(w.deliverMails())
	old := w.countMails("old@example.com") // by its event, however late
	request("lost@example.com")
	request("other@example.com")

	down := errs.New(errs.Unavailable, "the mail server is down")
	w.sender.failWith(down, nil)
	if n, err := w.Post.SendUnsent(t.Context(), 0); n != 0 || !errors.Is(err, down) {
		t.Errorf("%d sent while the server is down, %v", n, err)
	}
	w.sender.failWith(nil, nil)
	send(2)
	send(0)
	for address, want := range map[string]int{"old@example.com": old, "sent@example.com": 1, "lost@example.com": 1,
		"other@example.com": 1} {
		if n := len(w.sender.to(address)); n != want {
			t.Errorf("%d mails to %s, want %d", n, address, want)
		}
	}
	w.must(w.deliverMails()) // the events arrive all the same
	if n := w.countMails("lost@example.com"); n != 1 {
		t.Errorf("%d mails after the event, want 1", n)
	}

	request("left@example.com")
	w.clock.advance(25 * time.Hour)
	send(0)

	request("waiting@example.com")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if n, err := w.Post.SendUnsent(ctx, time.Hour); n != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("%d sent while they are left to the listener, %v", n, err)
	}
}
