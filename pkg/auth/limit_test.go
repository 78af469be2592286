package auth_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"belfry/pkg/auth"
	"belfry/pkg/errs"
	"belfry/pkg/store/object"
)

// limits is a change to a world in which something is limited.
func limits(address, account int) func(*auth.Options) {
	return func(o *auth.Options) { o.Limits = auth.Limits{Address: address, Account: account} }
}

// waits fails unless an error says to wait for a time.
func (w *world) waits(err error, want time.Duration) {
	w.Helper()
	var e *errs.Error
	if !errors.As(err, &e) || e.Kind != errs.Limited || e.RetryAfter.Round(time.Microsecond) != want {
		w.Fatalf("error %+v, want one that is limited for %s", err, want)
	}
}

// An account waits after so many failures, twice as long after each further
// one, at most a quarter of an hour; the right password waits too.
func TestAnAccountWaits(t *testing.T) {
	for _, uniform := range []bool{false, true} {
		for _, login := range []string{ada, "nobody@example.com"} {
			w := begin(t, limits(0, 3), func(o *auth.Options) { o.Email.UniformErrors = uniform })
			w.user(ada, password)
			wrong := func() error {
				_, err := w.Login(t.Context(), creds(login, "a wrong password"), from)
				return err
			}
			for range 3 {
				w.only(wrong(), errs.Denied, errs.NotFound)
			}
			want := time.Second
			for range 14 {
				w.waits(wrong(), want)
				w.waits(wrong(), want) // which is no failure
				_, err := w.Login(t.Context(), creds(login, password), from)
				w.waits(err, want)
				w.clock.pass(want - time.Millisecond)
				w.waits(wrong(), time.Millisecond)
				w.clock.pass(time.Millisecond)
				w.only(wrong(), errs.Denied, errs.NotFound)
				want = min(2*want, 15*time.Minute)
			}
			_, err := w.Login(t.Context(), creds("bob@example.com", password), from)
			w.only(err, errs.Denied, errs.NotFound)
		}
	}
}

// The right password releases an account, and so do a day and a recovery.
func TestAnAccountIsReleased(t *testing.T) {
	for name, release := range map[string]func(*world, auth.IssuedSession){
		"login": func(w *world, in auth.IssuedSession) {
			w.clock.pass(time.Second)
			w.enters(ada, password, in.User.UUID)
		},
		"time": func(w *world, _ auth.IssuedSession) { w.clock.pass(24*time.Hour + time.Second) },
		"recovery": func(w *world, _ auth.IssuedSession) {
			w.clock.pass(time.Millisecond)
			w.must(w.Recover(w.Context(), w.recovery(ada, password), from))
		},
	} {
		for _, elsewhere := range []bool{false, true} {
			t.Run(fmt.Sprint(name, elsewhere), func(t *testing.T) {
				w := begin(t, limits(0, 2))
				in := w.user(ada, password)
				fail := func(want errs.Kind) {
					t.Helper()
					_, err := w.Login(t.Context(), creds(ada, "a wrong password"), from)
					w.is(err, want)
				}
				fail(errs.Denied)
				fail(errs.Denied)
				fail(errs.Limited)
				w.Close()
				here := w.Service
				if elsewhere { // it is released at another front
					w.Service, _ = w.front()
				}
				release(w, in)
				w.Close()
				w.Service = here
				fail(errs.Denied)
				fail(errs.Denied)
				fail(errs.Limited)
			})
		}
	}
}

// An account that was released is so at once, also while its ident still tells
// of failures: that they are forgotten is noted later.
func TestAnAccountIsReleasedAtOnce(t *testing.T) {
	w := begin(t, limits(0, 2))
	in := w.user(ada, password)
	fail := func(want errs.Kind) {
		t.Helper()
		_, err := w.Login(t.Context(), creds(ada, "a wrong password"), from)
		w.is(err, want)
	}
	fail(errs.Denied)
	fail(errs.Denied)
	w.Close()
	w.clock.pass(time.Second)
	w.disk.on(refuse("Idents", errors.New("broken"))) // nothing is noted
	w.enters(ada, password, in.User.UUID)
	w.clock.pass(time.Second)
	fail(errs.Denied)
	fail(errs.Denied)
	fail(errs.Limited)
}

// Failures are known to every front, and outlast them.
func TestFailuresAreKnownToAll(t *testing.T) {
	w := begin(t, limits(0, 4))
	w.user(ada, password)
	fronts := []*auth.Service{w.Service, nil}
	fronts[1], _ = w.front()
	for i := range 4 {
		_, err := fronts[i%2].Login(t.Context(), creds(ada, "a wrong password"), from)
		w.is(err, errs.Denied)
		fronts[i%2].Close() // the note of it is not waited for
	}
	late, _ := w.front()
	for _, s := range append(fronts, late) {
		_, err := s.Login(t.Context(), creds(ada, password), from)
		w.waits(err, time.Second)
	}
}

// A failure is noted late: neither what others have noted meanwhile nor that
// the account was released is undone.
func TestAFailureIsNotedLate(t *testing.T) {
	for _, c := range []struct {
		name, want string
		meanwhile  func(w *world, other *auth.Service)
	}{
		{"failures", "2", func(w *world, other *auth.Service) {
			for range 2 {
				_, err := other.Login(w.Context(), creds(ada, "a wrong password"), from)
				w.only(err, errs.Denied)
			}
		}},
		{"a login", "0", func(w *world, other *auth.Service) {
			w.clock.pass(time.Second)
			_, err := other.Login(w.Context(), creds(ada, password), from)
			w.only(err)
		}},
	} {
		w := begin(t, limits(0, 5))
		w.user(ada, password)
		other, _ := w.front()
		w.disk.on(once(func(s step) bool { return s.store == "Idents" && s.write != nil && !s.after }, func() {
			c.meanwhile(w, other)
			other.Close()
		}))
		_, err := w.Login(t.Context(), creds(ada, "a wrong password"), from)
		w.is(err, errs.Denied)
		w.Close()
		if got := string(object.Field(w.record("Idents", adaIdent)["_failedLogins"], "count")); got != c.want {
			t.Errorf("%s: %s failures, want %s", c.name, got, c.want)
		}
	}
}

// Many attempts at once are no way around the limit.
func TestManyAttemptsAtOnce(t *testing.T) {
	w := begin(t, limits(0, 3))
	w.user(ada, password)
	var tried atomic.Int32
	var all sync.WaitGroup
	for range 40 {
		all.Go(func() {
			_, err := w.Login(t.Context(), creds(ada, "a wrong password"), from)
			w.only(err, errs.Denied, errs.Limited)
			if errors.Is(err, errs.Denied) {
				tried.Add(1)
			}
		})
	}
	all.Wait()
	if n := tried.Load(); n != 3 {
		t.Errorf("%d passwords were tried, want 3", n)
	}
}

// Who is logged in is not let try passwords either.
func TestThePasswordOfASessionWaits(t *testing.T) {
	w := begin(t, limits(0, 2))
	in := w.user(ada, password)
	change := func(current string) error {
		_, err := w.ChangePassword(t.Context(), current, "a new password", with(in))
		return err
	}
	w.is(change("a wrong password"), errs.Denied)
	w.is(change("a wrong password"), errs.Denied)
	w.waits(change(password), time.Second)
	_, _, err := w.Register(t.Context(), creds("second@example.com", password), with(in))
	w.waits(err, time.Second)
	w.enters(ada, password, in.User.UUID)
	w.clock.pass(time.Second)
	w.must(change(password))
}

// A network address has so many attempts a minute. What turns out well is none.
func TestANetworkAddressWaits(t *testing.T) {
	w := begin(t, limits(6, 0), github, func(o *auth.Options) { o.Email.MailInterval = 0 })
	in := w.user(ada, password) // one
	attempts := []func(auth.Client) error{
		func(c auth.Client) error {
			_, err := w.Login(t.Context(), creds(ada, "a wrong password"), c)
			return err
		},
		func(c auth.Client) error {
			_, _, err := w.Register(t.Context(), creds("bob@example.com", password), c)
			return err
		},
		func(c auth.Client) error { return w.ResendValidation(t.Context(), ada, c) },
		func(c auth.Client) error { return w.RequestRecovery(t.Context(), ada, c) },
		func(c auth.Client) error {
			c2 := creds(ada, password)
			c2.Token = "wrong"
			return w.Recover(t.Context(), c2, c)
		},
	}
	for _, attempt := range attempts {
		for range 3 {
			w.enters(ada, password, in.User.UUID)
		}
		if err := attempt(from); errors.Is(err, errs.Limited) {
			t.Fatal(err)
		}
	}
	for _, attempt := range attempts {
		w.waits(attempt(from), 10*time.Second)
	}
	_, err := w.Login(t.Context(), creds(ada, password), from)
	w.waits(err, 10*time.Second)
	if !w.good(in.Token) {
		t.Error("the session is not good")
	}
	w.clock.pass(10*time.Second - time.Millisecond)
	w.waits(attempts[0](from), time.Millisecond)
	w.clock.pass(time.Millisecond)
	w.is(attempts[0](from), errs.Denied)
	w.waits(attempts[0](from), 10*time.Second)
	w.clock.pass(time.Hour) // no more than a minute's is saved
	for range 6 {
		w.is(attempts[0](from), errs.Denied)
	}
	w.waits(attempts[0](from), 10*time.Second)
}

// What counts as one address.
func TestNetworks(t *testing.T) {
	w := begin(t, limits(1, 0))
	w.must(w.RequestRecovery(t.Context(), ada, auth.Client{Address: "192.0.2.1"}))
	for i, c := range []struct {
		address string
		want    bool
	}{
		{"192.0.2.1", false}, {"::ffff:192.0.2.1", false}, {"192.0.2.2", true}, {"2001:db8::1", true}, {"2001:db8::2", false}, {"2001:db8:0:0:ffff::", false},
		{"2001:db8:0:1::1", true}, {"fe80::1%eth0", true}, {"fe80::1%eth1", false}, {"", true}, {"", false}, {"no address", true}, {"no address", false},
	} {
		err := w.RequestRecovery(t.Context(), fmt.Sprintf("ada%d@example.com", i), auth.Client{Address: c.address})
		w.only(err, errs.Limited)
		if (err == nil) != c.want {
			t.Errorf("%q: %v", c.address, err)
		}
	}
}
