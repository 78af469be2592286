package account_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"belfry/config"
	"belfry/pkg/account"
	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
	"belfry/pkg/object"
)

// limits sets the limits.
func limits(address, accounts int) func(*account.Options) {
	return func(o *account.Options) { o.Limits = config.Limits{Address: address, Account: accounts} }
}

// wantLimited fails unless an error is Limited with this RetryAfter.
func (w *fixture) wantLimited(err error, want time.Duration) {
	w.Helper()
	var e *errs.Error
	if !errors.As(err, &e) || e.Kind != errs.Limited || e.RetryAfter.Round(time.Microsecond) != want {
		w.Fatalf("error %+v, want one that is limited for %s", err, want)
	}
}

// The delay doubles with each further failure up to 15 minutes, also for the
// right password.
func TestFailedLoginsDelayAnAccount(t *testing.T) {
	for _, uniform := range []bool{false, true} {
		for _, login := range []string{ada, "nobody@example.com"} {
			w := newFixture(t, limits(0, 3), func(o *account.Options) { o.Email.UniformErrors = uniform })
			w.register(ada, password)
			wrong := func() error {
				_, err := w.Login.Login(t.Context(), credentials(login, "a wrong password"), from)
				return err
			}
			for range 3 {
				w.allowKinds(wrong(), errs.Denied, errs.NotFound)
			}
			want := time.Second
			for range 14 {
				w.wantLimited(wrong(), want)
				w.wantLimited(wrong(), want) // which is no failure
				_, err := w.Login.Login(t.Context(), credentials(login, password), from)
				w.wantLimited(err, want)
				w.clock.advance(want - time.Millisecond)
				w.wantLimited(wrong(), time.Millisecond)
				w.clock.advance(time.Millisecond)
				w.allowKinds(wrong(), errs.Denied, errs.NotFound)
				want = min(2*want, 15*time.Minute)
			}
			_, err := w.Login.Login(t.Context(), credentials("bob@example.com", password), from)
			w.allowKinds(err, errs.Denied, errs.NotFound)
		}
	}
}

// A successful login, a day, and a recovery end the delay.
func TestTheDelayOfAnAccountEnds(t *testing.T) {
	for name, release := range map[string]func(*fixture, sessions.Issued){
		"login": func(w *fixture, in sessions.Issued) {
			w.clock.advance(time.Second)
			w.mustLogin(ada, password, in.User.UUID)
		},
		"time": func(w *fixture, _ sessions.Issued) { w.clock.advance(24*time.Hour + time.Second) },
		"recovery": func(w *fixture, _ sessions.Issued) {
			w.clock.advance(time.Millisecond)
			w.must(w.Recovery.Recover(w.Context(), w.requestRecovery(ada, password), from))
		},
	} {
		for _, elsewhere := range []bool{false, true} {
			t.Run(fmt.Sprint(name, elsewhere), func(t *testing.T) {
				w := newFixture(t, limits(0, 2))
				in := w.register(ada, password)
				fail := func(want errs.Kind) {
					t.Helper()
					_, err := w.Login.Login(t.Context(), credentials(ada, "a wrong password"), from)
					w.wantKind(err, want)
				}
				fail(errs.Denied)
				fail(errs.Denied)
				fail(errs.Limited)
				w.Close()
				here := w.Service
				if elsewhere { // it is reset by another service
					w.Service, _ = w.newService()
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

// The ident may still hold the failures: resetting them there is background
// work.
func TestASuccessfulLoginEndsTheDelayImmediately(t *testing.T) {
	w := newFixture(t, limits(0, 2))
	in := w.register(ada, password)
	fail := func(want errs.Kind) {
		t.Helper()
		_, err := w.Login.Login(t.Context(), credentials(ada, "a wrong password"), from)
		w.wantKind(err, want)
	}
	fail(errs.Denied)
	fail(errs.Denied)
	w.Close()
	w.clock.advance(time.Second)
	w.backend.onStep(failWrites("Idents", errors.New("broken"))) // nothing is noted
	w.mustLogin(ada, password, in.User.UUID)
	w.clock.advance(time.Second)
	fail(errs.Denied)
	fail(errs.Denied)
	fail(errs.Limited)
}

func TestFailuresAreSharedByProcesses(t *testing.T) {
	w := newFixture(t, limits(0, 4))
	w.register(ada, password)
	services := []*account.Service{w.Service, nil}
	services[1], _ = w.newService()
	for i := range 4 {
		_, err := services[i%2].Login.Login(t.Context(), credentials(ada, "a wrong password"), from)
		w.wantKind(err, errs.Denied)
		services[i%2].Close() // the note of it is not waited for
	}
	late, _ := w.newService()
	for _, s := range append(services, late) {
		_, err := s.Login.Login(t.Context(), credentials(ada, password), from)
		w.wantLimited(err, time.Second)
	}
}

// A failure that is recorded late does not overwrite later failures or a reset.
func TestAFailureRecordedLateDoesNotUndoALogin(t *testing.T) {
	for _, c := range []struct {
		name, want string
		meanwhile  func(w *fixture, other *account.Service)
	}{
		{"failures", "2", func(w *fixture, other *account.Service) {
			for range 2 {
				_, err := other.Login.Login(w.Context(), credentials(ada, "a wrong password"), from)
				w.allowKinds(err, errs.Denied)
			}
		}},
		{"a login", "0", func(w *fixture, other *account.Service) {
			w.clock.advance(time.Second)
			_, err := other.Login.Login(w.Context(), credentials(ada, password), from)
			w.allowKinds(err)
		}},
	} {
		w := newFixture(t, limits(0, 5))
		w.register(ada, password)
		other, _ := w.newService()
		w.backend.onStep(onceAt(func(s step) bool { return s.store == "Idents" && s.write != nil && !s.after }, func() {
			c.meanwhile(w, other)
			other.Close()
		}))
		_, err := w.Login.Login(t.Context(), credentials(ada, "a wrong password"), from)
		w.wantKind(err, errs.Denied)
		w.Close()
		if got := string(object.Field(w.record("Idents", adaIdent)["_failedLogins"], "count")); got != c.want {
			t.Errorf("%s: %s failures, want %s", c.name, got, c.want)
		}
	}
}

func TestConcurrentLoginsDoNotEvadeTheLimit(t *testing.T) {
	w := newFixture(t, limits(0, 3))
	w.register(ada, password)
	var tried atomic.Int32
	var all sync.WaitGroup
	for range 40 {
		all.Go(func() {
			_, err := w.Login.Login(t.Context(), credentials(ada, "a wrong password"), from)
			w.allowKinds(err, errs.Denied, errs.Limited)
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

func TestFailedPasswordChangesDelayTheAccount(t *testing.T) {
	w := newFixture(t, limits(0, 2))
	in := w.register(ada, password)
	change := func(current string) error {
		_, err := w.Recovery.ChangePassword(t.Context(), current, "a new password", with(in))
		return err
	}
	w.wantKind(change("a wrong password"), errs.Denied)
	w.wantKind(change("a wrong password"), errs.Denied)
	w.wantLimited(change(password), time.Second)
	_, _, err := w.Registration.Register(t.Context(), credentials("second@example.com", password), with(in))
	w.wantLimited(err, time.Second)
	w.mustLogin(ada, password, in.User.UUID)
	w.clock.advance(time.Second)
	w.must(change(password))
}

// Attempts that succeed do not count.
func TestNetworkAddressesAreLimited(t *testing.T) {
	w := newFixture(t, limits(6, 0), github, func(o *account.Options) { o.Email.MailInterval = 0 })
	in := w.register(ada, password) // one
	attempts := []func(sessions.Client) error{
		func(c sessions.Client) error {
			_, err := w.Login.Login(t.Context(), credentials(ada, "a wrong password"), c)
			return err
		},
		func(c sessions.Client) error {
			_, _, err := w.Registration.Register(t.Context(), credentials("bob@example.com", password), c)
			return err
		},
		func(c sessions.Client) error { return w.Registration.ResendValidation(t.Context(), ada, c) },
		func(c sessions.Client) error { return w.Recovery.Request(t.Context(), ada, c) },
		func(c sessions.Client) error {
			c2 := credentials(ada, password)
			c2.Token = "wrong"
			return w.Recovery.Recover(t.Context(), c2, c)
		},
	}
	for _, attempt := range attempts {
		for range 3 {
			w.mustLogin(ada, password, in.User.UUID)
		}
		if err := attempt(from); errors.Is(err, errs.Limited) {
			t.Fatal(err)
		}
	}
	for _, attempt := range attempts {
		w.wantLimited(attempt(from), 10*time.Second)
	}
	_, err := w.Login.Login(t.Context(), credentials(ada, password), from)
	w.wantLimited(err, 10*time.Second)
	if !w.valid(in.Token) {
		t.Error("the session is not good")
	}
	w.clock.advance(10*time.Second - time.Millisecond)
	w.wantLimited(attempts[0](from), time.Millisecond)
	w.clock.advance(time.Millisecond)
	w.wantKind(attempts[0](from), errs.Denied)
	w.wantLimited(attempts[0](from), 10*time.Second)
	w.clock.advance(time.Hour) // no more than a minute's is saved
	for range 6 {
		w.wantKind(attempts[0](from), errs.Denied)
	}
	w.wantLimited(attempts[0](from), 10*time.Second)
}

func TestAddressesOfOneNetworkShareALimit(t *testing.T) {
	w := newFixture(t, limits(1, 0))
	w.must(w.Recovery.Request(t.Context(), ada, sessions.Client{Address: "192.0.2.1"}))
	for i, c := range []struct {
		address string
		want    bool
	}{
		{"192.0.2.1", false}, {"::ffff:192.0.2.1", false}, {"192.0.2.2", true}, {"2001:db8::1", true},
		{"2001:db8::2", false}, {"2001:db8:0:0:ffff::", false},
		{"2001:db8:0:1::1", true}, {"fe80::1%eth0", true}, {"fe80::1%eth1", false}, {"", true}, {"", false},
		{"no address", true}, {"no address", false},
	} {
		err := w.Recovery.Request(t.Context(), fmt.Sprintf("ada%d@example.com", i), sessions.Client{Address: c.address})
		w.allowKinds(err, errs.Limited)
		if (err == nil) != c.want {
			t.Errorf("%q: %v", c.address, err)
		}
	}
}

// A login is recorded in the background. However late that is, it forgives no guess that failed after the login.
func TestALateLoginForgivesNoGuess(t *testing.T) {
	t.Parallel()
	w := newFixture(t, limits(0, 2))
	w.register(ada, password)
	w.Close()
	services := w.twoServices()
	w.clock.advance(time.Hour)
	recording, held := make(chan struct{}), make(chan struct{})
	w.backend.onStep(onceAt(func(s step) bool { return s.uuid == adaIdent && s.write != nil }, func() {
		close(recording)
		<-held
	}))
	_, err := services[0].Login.Login(t.Context(), credentials(ada, password), from)
	w.must(err)
	<-recording
	at := w.clock.Now()
	for range 2 {
		w.clock.advance(time.Second)
		_, err := services[1].Login.Login(t.Context(), credentials(ada, "a wrong password"), from)
		w.wantKind(err, errs.Denied)
	}
	services[1].Close()
	w.clock.advance(time.Millisecond)
	close(held)
	services[0].Close()
	stored, err := w.Admin.DB.Idents.Read(t.Context(), adaIdent)
	if err != nil || !stored.LastUsed.Equal(at) || stored.Failures.Count != 2 {
		t.Errorf("last used at %v, not at %v, %+v, %v", stored.LastUsed, at, stored.Failures, err)
	}
	for _, s := range services {
		_, err := s.Login.Login(t.Context(), credentials(ada, password), from)
		w.wantLimited(err, time.Second-time.Millisecond)
	}
}
